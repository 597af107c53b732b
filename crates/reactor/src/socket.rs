//! The few socket calls of the data path, all non-blocking.

use rustix::buffer::spare_capacity;
use rustix::io::Errno;
use rustix::net::{self, AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, sockopt};
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};

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
///
/// # Errors
/// As socket(2) and connect(2), except that "in progress" is none.
pub fn connect(address: SocketAddr) -> io::Result<OwnedFd> {
    let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let socket = net::socket_with(family, SocketType::STREAM, flags, None)?;
    sockopt::set_tcp_nodelay(&socket, true)?;
    match net::connect(&socket, &address) {
        Ok(()) | Err(Errno::INPROGRESS) => Ok(socket),
        Err(error) => Err(error.into()),
    }
}

/// Takes the socket's pending error.
///
/// # Errors
/// That error.
pub fn error(socket: impl AsFd) -> io::Result<()> {
    match sockopt::socket_error(socket)? {
        Ok(()) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Reads at most `limit` bytes to the end of `into`.
///
/// # Errors
/// As recv(2), except for "would block" and interruptions.
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
///
/// # Errors
/// As send(2), except for "would block" and interruptions.
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
