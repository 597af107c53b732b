//! Connections to the server: sequential, counted, each with its own deadline.

use crate::ProbeError;
use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream, ToSocketAddrs};
use std::time::{Duration, Instant};
use weir_transport::Endpoint;

/// Connects to one address.
#[derive(Debug)]
pub(crate) struct Dialer {
    pub(crate) address: SocketAddr,
    /// How many addresses the host has.
    pub(crate) addresses: usize,
    timeout: Duration,
    /// Connections made so far.
    pub(crate) made: u32,
    limit: u32,
}

/// One connection. Operations past its deadline fail with [`io::ErrorKind::TimedOut`].
#[derive(Debug)]
pub(crate) struct Connection {
    stream: TcpStream,
    deadline: Instant,
}

impl Dialer {
    /// Finds the first reachable address of the host; all further connections use
    /// it.
    pub(crate) fn new(server: &Endpoint, timeout: Duration, limit: u32) -> Result<Self, ProbeError> {
        let Endpoint { host, port, .. } = server;
        let unresolved = |detail: String| ProbeError::Resolve { host: host.clone(), detail };
        let addresses =
            (host.as_str(), *port).to_socket_addrs().map_err(|error| unresolved(error.to_string()))?;
        let addresses = addresses.collect::<Vec<_>>();
        let mut last = None;
        for address in &addresses {
            match TcpStream::connect_timeout(address, timeout) {
                Ok(_) => {
                    let (address, addresses) = (*address, addresses.len());
                    return Ok(Self { address, addresses, timeout, made: 1, limit });
                }
                Err(source) => last = Some((*address, named(source))),
            }
        }
        let (address, source) = last.ok_or_else(|| unresolved("it has no address".to_owned()))?;
        Err(ProbeError::Connect { host: host.clone(), address, source })
    }

    pub(crate) fn open(&mut self) -> io::Result<Connection> {
        if self.made >= self.limit {
            return Err(io::Error::other(format!("reached the limit of {} connections", self.made)));
        }
        self.made += 1;
        let deadline = Instant::now() + self.timeout;
        let stream = TcpStream::connect_timeout(&self.address, self.timeout).map_err(named)?;
        stream.set_nodelay(true)?;
        Ok(Connection { stream, deadline })
    }
}

impl Connection {
    pub(crate) fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.set_write_timeout(Some(remaining(self.deadline)?))?;
        self.stream.write_all(bytes).map_err(named)
    }

    /// Appends received bytes; 0 is the end of the stream.
    pub(crate) fn receive(&mut self, into: &mut Vec<u8>) -> io::Result<usize> {
        self.receive_within(into, Duration::MAX)
    }

    /// As [`Connection::receive`], but waits at most `patience`.
    pub(crate) fn receive_within(&mut self, into: &mut Vec<u8>, patience: Duration) -> io::Result<usize> {
        self.stream.set_read_timeout(Some(remaining(self.deadline)?.min(patience)))?;
        let mut buffer = [0; 16 * 1024];
        loop {
            match self.stream.read(&mut buffer) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(named(error)),
                Ok(length) => {
                    into.extend_from_slice(&buffer[..length]);
                    return Ok(length);
                }
            }
        }
    }

    /// Closes the sending side and waits for the peer: a server that is reset while it
    /// is still writing may discard the session.
    pub(crate) fn finish(mut self, patience: Duration) {
        let mut unread = Vec::new();
        let mut received = 0;
        let _ = self.stream.shutdown(Shutdown::Write);
        while received < crate::MAX_ANSWER {
            unread.clear();
            match self.receive_within(&mut unread, patience) {
                Ok(length) if length > 0 => received += length,
                _ => return,
            }
        }
    }
}

fn remaining(deadline: Instant) -> io::Result<Duration> {
    let left = deadline.saturating_duration_since(Instant::now());
    if left.is_zero() { Err(named(io::ErrorKind::TimedOut.into())) } else { Ok(left) }
}

/// Linux reports "resource temporarily unavailable" for a socket timeout.
fn named(error: io::Error) -> io::Error {
    match error.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => {
            io::Error::new(io::ErrorKind::TimedOut, "timed out")
        }
        _ => error,
    }
}
