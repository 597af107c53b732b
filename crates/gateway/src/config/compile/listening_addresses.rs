//! Listening addresses. Each must be unique: otherwise the kernel would split the connections to an address between two
//! listeners.

use super::{Fault, Findings};
use crate::config::document::{Bind, Config};
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};
use weir_transport::Endpoint;

/// Checks that no two addresses are the same, however they are written. `0.0.0.0:443` and `192.0.2.1:443` differ: the
/// kernel gives a connection to the socket with its exact address, and all others to the wildcard.
pub(super) fn check(config: &Config, findings: &mut Findings) {
    let all = binds(config);
    for (index, (key, bind)) in all.iter().enumerate() {
        if let Bind::Tcp { host, port } = bind
            && let Some(address) = host.parse::<Ipv6Addr>().ok().and_then(|host| host.to_ipv4_mapped())
        {
            let why = format!("invalid address `{bind}`: IPv4 in the form of IPv6; write {address}:{port}");
            findings.fault(Fault::new(key, why));
        } else if let Some((other, before)) = all[..index].iter().find(|(_, before)| is_same(bind, before)) {
            let why = format!(
                "`{bind}` is the address `{before}` of `{other}`, and the kernel would give connections to either: expected \
                 another address; remove one of both"
            );
            findings.fault(Fault::new(key, why));
        }
    }
}

/// All listening addresses, with their keys.
fn binds(config: &Config) -> Vec<(String, Bind)> {
    let of_listeners = config.listeners.iter().flat_map(|(name, listener)| {
        let key = move |at: usize| format!("listener.{name}.bind.{at}");
        listener.bind.iter().enumerate().map(move |(at, bind)| (key(at), bind.clone()))
    });
    let watched =
        config.watched().map(|(rights, admin)| (format!("{}.bind", rights.name()), admin.bind(rights)));
    of_listeners.chain(watched).collect()
}

fn is_same(one: &Bind, other: &Bind) -> bool {
    match (one, other) {
        // The kernel gives each socket with port 0 its own port.
        (Bind::Tcp { port: 0, .. }, _) => false,
        (Bind::Tcp { host: one, port }, Bind::Tcp { host: other, port: others }) => {
            port == others
                && (one.eq_ignore_ascii_case(other)
                    || resolved(one, *port).is_some_and(|one| resolved(other, *port) == Some(one)))
        }
        (Bind::Unix(one), Bind::Unix(other)) => file(one) == file(other),
        (Bind::Tcp { .. }, Bind::Unix(_)) | (Bind::Unix(_), Bind::Tcp { .. }) => false,
    }
}

/// The address to bind; `None` if the host has no address, which binding the listener reports later.
fn resolved(host: &str, port: u16) -> Option<SocketAddr> {
    match host.parse::<IpAddr>() {
        Ok(address) => Some(SocketAddr::new(address, port)),
        Err(_) => Endpoint { tls: false, host: host.to_owned(), port }.resolve().ok(),
    }
}

/// The path without symbolic links; unchanged if its directory does not exist.
fn file(path: &Path) -> PathBuf {
    path.canonicalize()
        .ok()
        .or_else(|| Some(path.parent()?.canonicalize().ok()?.join(path.file_name()?)))
        .unwrap_or_else(|| path.to_owned())
}
