//! The few socket calls of the data path, all non-blocking.

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

/// What one read gave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Read {
    /// That many bytes, and perhaps more are waiting.
    Bytes(usize),
    /// Nothing for now.
    WouldBlock,
    /// The peer has sent its last byte.
    End,
}

/// Begins a TCP connection without Nagle's delay. It is made when the socket is writable and [`error`] tells none.
/// Errors: as socket(2) and connect(2), except that "in progress" is none.
pub fn connect(address: SocketAddr) -> io::Result<OwnedFd> {
    begin(tcp(address)?, &address)
}

/// As [`connect`], from this local address. The port is chosen when the destination is known
/// (`IP_BIND_ADDRESS_NO_PORT`, ip(7)), so that each destination has all ports of the address to itself, and ports in
/// TIME_WAIT come back as they do without a bind. Errors: as [`connect`] and bind(2).
pub fn connect_from(source: IpAddr, address: SocketAddr) -> io::Result<OwnedFd> {
    let socket = tcp(address)?;
    setsockopt(&socket, IpBindAddressNoPort, &true)?;
    net::bind(&socket, &SocketAddr::new(source, 0))?;
    begin(socket, &address)
}

/// Connects to a stream socket in the file system. Unlike TCP, this does not go on by itself: a listener whose queue
/// is full is an error.
/// Errors: as socket(2) and connect(2); a path that does not fit into `sockaddr_un` (108 bytes with its end).
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

/// Takes the socket's pending error and returns it.
pub fn error(socket: impl AsFd) -> io::Result<()> {
    Ok(sockopt::socket_error(socket)??)
}

/// Reads at most `limit` bytes to the end of `into`. Errors: as recv(2), except for "would block" and interruptions.
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

/// Writes what the socket takes; fewer bytes than given means that it is full.
/// Errors: as send(2), except for "would block" and interruptions.
pub fn write(socket: impl AsFd, bytes: &[u8]) -> io::Result<usize> {
    loop {
        match net::send(&socket, bytes, SendFlags::NOSIGNAL) {
            Ok(written) => return Ok(written),
            Err(Errno::AGAIN) => return Ok(0),
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// Tells the peer that no more bytes will come.
pub fn finish(socket: impl AsFd) {
    // A connection that is already gone needs no end.
    let _ = net::shutdown(socket, net::Shutdown::Write);
}

/// Has the peer see a reset when the socket is closed; what waits to be sent is lost.
pub fn reset_on_close(socket: impl AsFd) {
    // A connection that is already gone needs no end.
    let _ = sockopt::set_socket_linger(socket, Some(std::time::Duration::ZERO));
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::event::{PollFd, PollFlags, poll};
    use std::net::{TcpListener, TcpStream};
    use std::os::unix::net::UnixListener;

    /// Waits until the connection is made or refused.
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
        // RFC 5737: nobody has it.
        let error = connect_from("192.0.2.1".parse().unwrap(), to).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::AddrNotAvailable);
        assert!(connect_from("::1".parse().unwrap(), to).is_err());
    }

    /// Ports that are taken by bind(2) at once are taken from all destinations: the second connection of an address
    /// from the same port to another destination would not exist.
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
