//! The process that owns a listening port, from /proc.

use std::fmt;
use std::fs;
use std::net::{IpAddr, SocketAddr};

/// A process that owns a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owner {
    /// The process ID.
    pub pid: u32,
    /// The name, from /proc/PID/comm.
    pub name: String,
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "process {} ({})", self.pid, self.name)
    }
}

/// The process that listens on the address, or on all addresses with the same port; `None` if it is unknown.
pub(super) fn of(address: SocketAddr) -> Option<Owner> {
    holder(&inodes(address, Match::OrAll))
}

/// The process that listens on exactly this address. `None`: no process does; `Some(None)`: the process is unknown.
pub(super) fn of_exactly(address: SocketAddr) -> Option<Option<Owner>> {
    let inodes = inodes(address, Match::Exact);
    (!inodes.is_empty()).then(|| holder(&inodes))
}

/// The addresses to match.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Match {
    /// Only sockets on exactly this address.
    Exact,
    /// Also sockets on the wildcard addresses with the same port.
    OrAll,
}

/// The inodes of listening sockets, as /proc/PID/fd names them.
fn inodes(address: SocketAddr, which: Match) -> Vec<String> {
    ["/proc/net/tcp", "/proc/net/tcp6"]
        .iter()
        .filter_map(|table| fs::read_to_string(table).ok())
        .flat_map(|table| listening(&table, address, which))
        .map(|inode| format!("socket:[{inode}]"))
        .collect()
}

/// The process that holds one of these sockets.
fn holder(inodes: &[String]) -> Option<Owner> {
    let processes = fs::read_dir("/proc").ok()?.flatten();
    let mut pids = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let pid = pids.find(|pid| holds(*pid, inodes))?;
    let name = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    Some(Owner { pid, name: name.trim().to_string() })
}

/// The inodes of sockets in `table` that listen on `address`.
fn listening(table: &str, address: SocketAddr, which: Match) -> Vec<String> {
    const LISTEN: &str = "0A";
    let wanted = match address.ip() {
        IpAddr::V4(ip) => format!("{:08X}", u32::from_ne_bytes(ip.octets())),
        IpAddr::V6(ip) => {
            let words = ip.octets();
            words.chunks(4).map(|w| format!("{:08X}", u32::from_ne_bytes([w[0], w[1], w[2], w[3]]))).collect()
        }
    };
    let matches = |local: &str| {
        let Some((ip, port)) = local.split_once(':') else { return false };
        let every = which == Match::OrAll && ip.bytes().all(|digit| digit == b'0');
        port == format!("{:04X}", address.port()) && (every || ip == wanted)
    };
    let rows = table.lines().skip(1).map(|line| line.split_whitespace().collect::<Vec<_>>());
    rows.filter(|row| row.len() > 9 && row[3] == LISTEN && matches(row[1]))
        .map(|row| row[9].to_string())
        .collect()
}

fn holds(pid: u32, sockets: &[String]) -> bool {
    let Ok(descriptors) = fs::read_dir(format!("/proc/{pid}/fd")) else { return false };
    descriptors.flatten().any(|entry| {
        fs::read_link(entry.path())
            .is_ok_and(|link| sockets.iter().any(|socket| link.as_os_str() == socket.as_str()))
    })
}
