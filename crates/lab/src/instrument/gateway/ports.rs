//! Ports for a run.

use crate::base::error::LabError;
use std::io;
use std::net::TcpListener;
use weir_doctor::{LISTENERS_FROM, ROOM_BELOW};

/// The ports of one run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Ports {
    /// Of the origin, which uses the first ones.
    pub(crate) origin: [u16; MOST_SERVERS],
    pub(crate) target: u16,
    /// Of the origin's counters.
    pub(crate) counts: u16,
    /// Of the target's metrics.
    pub(crate) admin: u16,
}

/// The most servers that an origin is.
pub(crate) const MOST_SERVERS: usize = 4;

impl Ports {
    /// Free ones; the search begins at `start`. Errors: too few free ports.
    pub(crate) fn find(start: u16) -> Result<Self, LabError> {
        let [first, target, counts, second, third, fourth, admin] = free_ports(start)?;
        Ok(Self { origin: [first, second, third, fourth], target, counts, admin })
    }
}

/// Finds `COUNT` free loopback ports below the system's range of ephemeral ports: an outgoing connection could take
/// one of those between our check and the server's bind.
/// Errors: too few free ports.
fn free_ports<const COUNT: usize>(start: u16) -> Result<[u16; COUNT], LabError> {
    let end = first_ephemeral();
    let span = end.saturating_sub(LISTENERS_FROM).max(1);
    let candidates = (0..span).map(|step| LISTENERS_FROM + start.wrapping_add(step) % span);
    let free = candidates.filter(|port| TcpListener::bind(("127.0.0.1", *port)).is_ok());
    let ports: Vec<u16> = free.take(COUNT).collect();
    ports.try_into().map_err(|_| {
        let message = format!("no {COUNT} free ports from {LISTENERS_FROM} to {end}");
        let source = io::Error::new(io::ErrorKind::AddrInUse, message);
        LabError::System { action: "looking for free ports", source }
    })
}

/// The start of this process's search. Labs that run at once, as tests do, have close pids: they start far
/// apart, since a port that one has found free is not bound yet when the other checks it.
pub(crate) fn first_look() -> u16 {
    (std::process::id() as u16).wrapping_mul(1009)
}

fn first_ephemeral() -> u16 {
    weir_doctor::proc::text("sys/net/ipv4/ip_local_port_range")
        .and_then(|text| text.split_whitespace().next()?.parse().ok())
        .filter(|first| *first > ROOM_BELOW)
        .unwrap_or(32_768)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_differ_and_can_be_bound() {
        let ports = free_ports::<3>(77).expect("three ports");
        assert!(ports.windows(2).all(|pair| pair[0] != pair[1]));
        assert!(TcpListener::bind(("127.0.0.1", ports[0])).is_ok());
    }
}
