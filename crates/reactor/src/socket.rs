//! The socket calls of the data path, all non-blocking.

use crate::address::Address;
use crate::net::Socket;
use nix::sys::socket::{setsockopt, sockopt::IpBindAddressNoPort};
use rustix::buffer::spare_capacity;
use rustix::io::Errno;
use rustix::net::addr::SocketAddrArg;
use rustix::net::{
    self, AddressFamily, RecvFlags, SendFlags, SocketAddrUnix, SocketFlags, SocketType, sockopt,
};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

/// The result of a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Read {
    /// The number of bytes read; more may be available.
    Bytes(usize),
    /// No bytes are available now.
    WouldBlock,
    /// End of stream.
    End,
}

/// Starts a TCP connection with TCP_NODELAY. The connection is established once the socket is writable and [`error`]
/// returns no error. Errors: those of socket(2) and connect(2), except "in progress".
pub fn connect(address: SocketAddr) -> io::Result<OwnedFd> {
    begin(tcp(address)?, &address)
}

/// Connects to either kind of address, as [`connect`] or [`connect_unix`].
pub fn connect_to(address: &Address) -> io::Result<OwnedFd> {
    match address {
        Address::Tcp(address) => connect(*address),
        Address::Unix(path) => connect_unix(path),
    }
}

/// As [`connect`], from the local address `source`. The kernel chooses the port at connect(2)
/// (`IP_BIND_ADDRESS_NO_PORT`, ip(7)), so each destination can use all ports of the address, and ports in TIME_WAIT are
/// reused as without a bind. Errors: those of [`connect`] and bind(2).
pub fn connect_from(source: IpAddr, address: SocketAddr) -> io::Result<OwnedFd> {
    let socket = tcp(address)?;
    setsockopt(&socket, IpBindAddressNoPort, &true)?;
    net::bind(&socket, &SocketAddr::new(source, 0))?;
    begin(socket, &address)
}

/// Connects to a Unix domain socket. Unlike with TCP, this completes immediately: a full queue is an error. Fails as
/// socket(2) and connect(2) do, or if the path is too long for `sockaddr_un` (108 bytes with its NUL).
pub fn connect_unix(path: &Path) -> io::Result<OwnedFd> {
    let address = SocketAddrUnix::new(path)?;
    begin(stream(AddressFamily::UNIX)?, &address)
}

fn tcp(address: SocketAddr) -> io::Result<OwnedFd> {
    let socket = stream(if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 })?;
    sockopt::set_tcp_nodelay(&socket, true)?;
    Ok(socket)
}

fn stream(family: AddressFamily) -> io::Result<OwnedFd> {
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    Ok(net::socket_with(family, SocketType::STREAM, flags, None)?)
}

fn begin(socket: OwnedFd, address: &impl SocketAddrArg) -> io::Result<OwnedFd> {
    match net::connect(&socket, address) {
        Ok(()) | Err(Errno::INPROGRESS) => Ok(socket),
        Err(error) => Err(error.into()),
    }
}

/// Takes the socket's pending error, such as that of a failed connect. Returns that error as `Err`.
pub fn error(socket: impl AsFd) -> io::Result<()> {
    Ok(sockopt::socket_error(socket)??)
}

/// Reads at most `limit` bytes and appends them to `into`. Errors: those of recv(2), except for "would block" and
/// interruptions.
pub fn read(socket: impl AsFd, into: &mut Vec<u8>, limit: usize) -> io::Result<Read> {
    into.reserve(limit);
    loop {
        let before = into.len();
        match net::recv(&socket, spare_capacity(into), RecvFlags::empty()) {
            Ok(_) if into.len() == before => return Ok(Read::End),
            Ok(_) => return Ok(Read::Bytes(into.len() - before)),
            Err(Errno::AGAIN) => return Ok(Read::WouldBlock),
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// Whether a read would block: no bytes, end of stream or error is pending.
pub fn is_quiet(socket: impl AsFd) -> bool {
    let mut byte = [0];
    matches!(net::recv(&socket, &mut byte, RecvFlags::PEEK | RecvFlags::DONTWAIT), Err(Errno::AGAIN))
}

/// Writes as much as the socket accepts; a short count means that its buffer is full. Errors: those of send(2), except
/// for "would block" and interruptions.
pub fn write(socket: impl AsFd, bytes: &[u8]) -> io::Result<usize> {
    send(socket, bytes, SendFlags::NOSIGNAL)
}

/// As [`write`], but the kernel may hold the last segment back until [`finish`] adds the FIN to it. Errors: those of
/// [`write`].
pub fn write_last(socket: impl AsFd, bytes: &[u8]) -> io::Result<usize> {
    send(socket, bytes, SendFlags::NOSIGNAL | SendFlags::MORE)
}

fn send(socket: impl AsFd, bytes: &[u8], flags: SendFlags) -> io::Result<usize> {
    loop {
        match net::send(&socket, bytes, flags) {
            Ok(written) => return Ok(written),
            Err(Errno::AGAIN) => return Ok(0),
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// Closes the sending side.
pub fn finish(socket: impl AsFd) {
    // The connection may already be closed, so ignore errors.
    let _ = net::shutdown(socket, net::Shutdown::Write);
}

/// Makes closing the socket send a reset; unsent data is lost.
pub fn reset_on_close(socket: impl AsFd) {
    // The connection may already be closed, so ignore errors.
    let _ = sockopt::set_socket_linger(socket, Some(std::time::Duration::ZERO));
}

impl Socket for OwnedFd {
    #[inline]
    fn read(&self, into: &mut Vec<u8>, limit: usize) -> io::Result<Read> {
        read(self, into, limit)
    }

    #[inline]
    fn write(&self, bytes: &[u8]) -> io::Result<usize> {
        write(self, bytes)
    }

    fn write_last(&self, bytes: &[u8]) -> io::Result<usize> {
        write_last(self, bytes)
    }

    #[inline]
    fn is_quiet(&self) -> bool {
        is_quiet(self)
    }

    fn local(&self) -> Option<SocketAddr> {
        net::getsockname(self).ok().and_then(|address| SocketAddr::try_from(address).ok())
    }

    fn error(&self) -> io::Result<()> {
        error(self)
    }

    fn finish(&self) {
        finish(self);
    }

    fn reset_on_close(&self) {
        reset_on_close(self);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::event::{PollFd, PollFlags, poll};
    use std::net::{TcpListener, TcpStream};
    use std::os::unix::net::UnixListener;

    /// Waits until the connection is established or refused.
    fn settled(socket: OwnedFd) -> io::Result<OwnedFd> {
        poll(&mut [PollFd::new(&socket, PollFlags::OUT)], None)?;
        error(&socket)?;
        Ok(socket)
    }

    #[test]
    fn a_connection_comes_from_the_address_that_is_named() {
        for (to, source) in [("127.0.0.1:0", "127.0.0.77"), ("[::1]:0", "::1")] {
            let Ok(listener) = TcpListener::bind(to) else {
                eprintln!("skipped: cannot listen on {to}");
                continue;
            };
            let source: IpAddr = source.parse().unwrap();
            let socket = connect_from(source, listener.local_addr().unwrap()).unwrap();
            let stream = TcpStream::from(settled(socket).unwrap());
            let (_, from) = listener.accept().unwrap();
            assert_eq!((from.ip(), from), (source, stream.local_addr().unwrap()));
        }
    }

    #[test]
    fn addresses_of_others_and_of_the_other_family_are_refused() {
        let to = "127.0.0.1:9".parse().unwrap();
        // 192.0.2.0/24 is reserved for documentation (RFC 5737), so no interface has this address.
        let error = connect_from("192.0.2.1".parse().unwrap(), to).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::AddrNotAvailable);
        assert!(connect_from("::1".parse().unwrap(), to).is_err());
    }

    /// Without late binding, bind(2) reserves the port for all destinations: no second connection could use
    /// the same address and port for another destination.
    #[test]
    fn a_port_is_chosen_when_the_destination_is_known() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let to = listener.local_addr().unwrap();
        let socket = tcp(to).unwrap();
        setsockopt(&socket, IpBindAddressNoPort, &true).unwrap();
        net::bind(&socket, &SocketAddr::new("127.0.0.78".parse().unwrap(), 0)).unwrap();
        let bound = TcpStream::from(socket);
        assert_eq!(bound.local_addr().unwrap().port(), 0);
        let connected = connect_from("127.0.0.78".parse().unwrap(), to).unwrap();
        assert_ne!(TcpStream::from(connected).local_addr().unwrap().port(), 0);
    }

    #[test]
    fn a_socket_in_the_file_system() {
        let path = std::env::temp_dir().join(format!("weir-socket-test-{}", std::process::id()));
        let listener = UnixListener::bind(&path).unwrap();
        let socket = settled(connect_unix(&path).unwrap()).unwrap();
        let (peer, _) = listener.accept().unwrap();
        peer.set_nonblocking(true).unwrap();
        assert_eq!(write(&socket, b"hello").unwrap(), 5);
        let mut taken = Vec::new();
        assert_eq!(read(&peer, &mut taken, 10).unwrap(), Read::Bytes(5));
        std::fs::remove_file(&path).unwrap();
        assert_eq!(connect_unix(&path).unwrap_err().kind(), io::ErrorKind::NotFound);
        assert!(connect_unix(Path::new(&"x".repeat(200))).is_err());
    }
}
