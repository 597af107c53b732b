//! Ports for a run, and how many connections a port has seen.

use std::collections::BTreeSet;
use std::io;
use std::net::TcpListener;

/// Finds `count` free loopback ports below the range from which the system takes the ports of outgoing connections: one
/// of those could otherwise be taken between our look and the server's bind.
pub fn free_ports(count: usize, start: u16) -> io::Result<Vec<u16>> {
    let end = first_ephemeral();
    let span = end.saturating_sub(LOWEST).max(1);
    let mut ports = Vec::with_capacity(count);
    for step in 0..span {
        let port = LOWEST + (start.wrapping_add(step)) % span;
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            ports.push(port);
            if ports.len() == count {
                return Ok(ports);
            }
        }
    }
    Err(io::Error::new(io::ErrorKind::AddrInUse, format!("no {count} free ports from {LOWEST} to {end}")))
}

/// Above the ports that services are given.
const LOWEST: u16 = 15_000;

fn first_ephemeral() -> u16 {
    std::fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range")
        .ok()
        .and_then(|text| text.split_whitespace().next()?.parse().ok())
        .filter(|first| *first > LOWEST + 100)
        .unwrap_or(32_768)
}

/// How many connections to `port` the system still knows, closed ones included: a closed connection stays listed for a
/// minute (TIME_WAIT), longer than a run. `None` when the system does not tell. It looks into the network namespace of the
/// calling thread (`/proc/net` is that of the process's first thread).
pub fn connections_to(port: u16) -> Option<u64> {
    Some(count(&std::fs::read_to_string("/proc/thread-self/net/tcp").ok()?, port))
}

fn count(table: &str, port: u16) -> u64 {
    let mut peers = BTreeSet::new();
    for line in table.lines().skip(1) {
        let mut words = line.split_whitespace().skip(1);
        let (Some(local), Some(remote)) = (words.next().and_then(port_of), words.next().and_then(port_of))
        else {
            continue;
        };
        // Both ends are here, so an open connection stands in the table twice and is one.
        if remote == port {
            peers.insert(local);
        } else if local == port && remote != 0 {
            peers.insert(remote);
        }
    }
    peers.len() as u64
}

fn port_of(address: &str) -> Option<u16> {
    u16::from_str_radix(address.split_once(':')?.1, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpStream;

    #[test]
    fn both_ends_of_a_connection_are_one_and_a_listener_is_none() {
        let table = "  sl  local_address rem_address   st\n\
            0: 0100007F:1F90 00000000:0000 0A 0 0\n\
            1: 0100007F:1F90 0100007F:C001 01 0 0\n\
            2: 0100007F:C001 0100007F:1F90 01 0 0\n\
            3: 0100007F:C002 0100007F:1F90 06 0 0\n\
            4: 0100007F:C003 0100007F:1F91 01 0 0\n";
        assert_eq!(count(table, 0x1f90), 2);
    }

    #[test]
    fn real_connections_are_counted_after_they_closed() {
        // A free port can still have connections of its last owner listed, or have been a client's.
        let (listener, address) = loop {
            let listener = TcpListener::bind("127.0.0.1:0").expect("binds");
            let address = listener.local_addr().expect("an address");
            if connections_to(address.port()) == Some(0) {
                break (listener, address);
            }
        };
        let clients: Vec<_> = (0..3).map(|_| TcpStream::connect(address).expect("connects")).collect();
        let servers: Vec<_> = (0..3).map(|_| listener.accept().expect("accepts")).collect();
        assert_eq!(connections_to(address.port()), Some(3));
        drop(clients);
        drop(servers);
        assert_eq!(connections_to(address.port()), Some(3), "TIME_WAIT keeps them listed");
    }

    #[test]
    fn ports_differ_and_can_be_bound() {
        let ports = free_ports(3, 77).expect("three ports");
        assert!(ports.windows(2).all(|pair| pair[0] != pair[1]));
        assert!(TcpListener::bind(("127.0.0.1", ports[0])).is_ok());
    }
}
