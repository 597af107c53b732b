//! The kernel's socket tables and counters, which any user can read.

use rustix::io::Errno;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use weir_doctor::proc::text;

/// Addresses as the kernel prints them: local, remote.
pub(super) type Pair = (String, String);

/// The TIME_WAIT state, between the addresses and the empty queues.
const TIME_WAIT: &str = " 06 00000000:00000000 ";

/// The prefix of an IPv4-mapped IPv6 address as the kernel prints it (RFC 4291, section 2.5.5.2).
const MAPPED: &str = "0000000000000000FFFF0000";

/// A line of /proc/PID/net/tcp (proc_pid_net(5)).
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Socket {
    pub(super) local: String,
    pub(super) remote: String,
    pub(super) is_listening: bool,
    /// 0 if no process has the socket open.
    pub(super) inode: u64,
}

impl Socket {
    pub(super) fn pair(&self) -> Pair {
        (self.local.clone(), self.remote.clone())
    }
}

/// The port of an address.
pub(super) fn port(address: &str) -> &str {
    address.rsplit(':').next().unwrap_or_default()
}

/// All sockets in the network namespace except those in TIME_WAIT.
pub(super) fn sockets(pids: &[u32]) -> Vec<Socket> {
    // On a busy machine most lines are in TIME_WAIT. They are not parsed, since the scan may share a core with the
    // service, and its requests would wait.
    table(pids, |line| !line.contains(TIME_WAIT))
}

/// The connections in TIME_WAIT, which no process owns.
pub(super) fn ended(pids: &[u32]) -> BTreeSet<Pair> {
    table(pids, |line| line.contains(TIME_WAIT)).iter().map(Socket::pair).collect()
}

fn table(pids: &[u32], is_wanted: impl Fn(&&str) -> bool) -> Vec<Socket> {
    let Some(pid) = pids.first() else { return Vec::new() };
    let of = |name: &str| fs::read_to_string(format!("/proc/{pid}/net/{name}")).unwrap_or_default();
    let [four, six] = ["tcp", "tcp6"].map(of);
    let lines = four.lines().skip(1).chain(six.lines().skip(1));
    lines.filter(is_wanted).filter_map(socket).collect()
}

fn socket(line: &str) -> Option<Socket> {
    const LISTEN: &str = "0A";
    let fields: Vec<&str> = line.split_whitespace().collect();
    let address = |at: usize| fields.get(at).map(|text| text.strip_prefix(MAPPED).unwrap_or(text).to_owned());
    Some(Socket {
        local: address(1)?,
        remote: address(2)?,
        is_listening: *fields.get(3)? == LISTEN,
        inode: fields.get(9)?.parse().ok()?,
    })
}

/// The inodes of the processes' TCP sockets.
pub(super) fn inodes(pids: &[u32]) -> BTreeSet<u64> {
    let files =
        pids.iter().flat_map(|pid| fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten());
    let inode = |file: fs::DirEntry| {
        let path = file.path();
        let link = fs::read_link(&path).ok()?;
        let inode = link.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.parse::<u64>().ok()?;
        is_tcp(&path).then_some(inode)
    };
    files.filter_map(inode).collect()
}

/// Whether a socket of /proc/PID/fd uses TCP or MPTCP; `true` if that is unknown.
fn is_tcp(path: &Path) -> bool {
    let mut name = [0; 32];
    match rustix::fs::getxattr(path, "system.sockprotoname", &mut name[..]) {
        Ok(length) => name[..length].windows(3).any(|part| part == b"TCP"),
        Err(error) => error != Errno::NOENT,
    }
}

/// The kernel's count of opened connections: `ActiveOpens` of /proc/PID/net/snmp.
pub(super) fn opened(pids: &[u32]) -> Option<u64> {
    let text = text(&format!("{}/net/snmp", pids.first()?))?;
    let mut lines = text.lines().filter_map(|line| line.strip_prefix("Tcp: "));
    let (names, values) = (lines.next()?, lines.next()?);
    let at = names.split(' ').position(|name| name == "ActiveOpens")?;
    values.split(' ').nth(at)?.parse().ok()
}

#[cfg(test)]
pub(super) mod testing {
    use super::Socket;

    /// A socket, which is listening if its remote address is `0:0`.
    pub(in crate::gather) fn socket_of(local: &str, remote: &str, inode: u64) -> Socket {
        Socket { local: local.into(), remote: remote.into(), is_listening: remote == "0:0", inode }
    }
}

#[cfg(test)]
mod tests {
    use super::testing::socket_of;
    use super::*;

    #[test]
    fn the_table_is_read() {
        let line = "   0: 0100007F:1F90 0100007F:9C40 01 00000000:00000000 00:00000000 00000000  0  0 4711 1 0 20 4 0 10 -1";
        let expected = Socket { is_listening: false, ..socket_of("0100007F:1F90", "0100007F:9C40", 4711) };
        assert_eq!(socket(line), Some(expected));
        assert!(opened(&[std::process::id()]).is_some());
    }

    /// Regression test: a process that sends datagrams was reported to open connections.
    #[test]
    fn only_tcp_sockets_are_the_processes_own() {
        use std::net::{TcpListener, UdpSocket};
        use std::os::fd::AsFd;
        use std::os::unix::net::UnixStream;
        let inode = |socket: &dyn AsFd| rustix::fs::fstat(socket.as_fd()).expect("is open").st_ino;
        let (four, six) = (TcpListener::bind("127.0.0.1:0").ok(), TcpListener::bind("[::1]:0").ok());
        let udp = UdpSocket::bind("127.0.0.1:0").expect("binds");
        let (unix, _other) = UnixStream::pair().expect("opens");
        let own = inodes(&[std::process::id()]);
        for tcp in [four, six].iter().flatten() {
            assert!(own.contains(&inode(tcp)));
        }
        assert!(!own.contains(&inode(&udp)) && !own.contains(&inode(&unix)));
    }

    #[test]
    fn an_address_within_ipv6_is_the_same() {
        let line = "   0: 0000000000000000FFFF00000100007F:1F90 0000000000000000FFFF00000100007F:9C40 06 00000000:00000000 03:00000176 00000000  0  0 0 3 0";
        assert_eq!(socket(line), Some(socket_of("0100007F:1F90", "0100007F:9C40", 0)));
        assert!(line.contains(TIME_WAIT));
    }
}
