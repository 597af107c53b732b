//! A TCP connection, cleartext or TLS: where the reactor's sockets meet the TLS byte transformer.
//!
//! A [`Transport`] takes and gives the bytes of the application. What it is given before the connection stands waits;
//! what the socket does not take waits too, and [`Transport::pending`] tells how much, for back-pressure. The memory
//! for both exists only while something waits. Reading goes into buffers that all connections of a core share
//! ([`Wire`]).

mod address;
mod endpoint;

pub use address::Address;
pub use endpoint::Endpoint;

use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use std::io;
use std::net::{IpAddr, SocketAddr};
use weir_reactor::socket::{self, Read};
use weir_reactor::{Interest, Key, Reactor};
use weir_tls::{Facts, Session, TlsError};

/// One connection.
#[derive(Debug)]
pub struct Transport {
    socket: OwnedFd,
    session: Option<Box<Session>>,
    phase: Phase,
    /// Application bytes that were given before the connection stood.
    early: Vec<u8>,
    /// Bytes for the socket, from `sent` on.
    out: Vec<u8>,
    sent: usize,
    /// Whether the end of our stream follows the last byte.
    finishing: bool,
    registered: Option<Interest>,
}

/// Buffers that all connections of a core share; they grow to some [`READ_SIZE`] and stay.
#[derive(Debug, Default)]
pub struct Wire {
    ciphertext: Vec<u8>,
    sealed: Vec<u8>,
}

/// What one call of [`Transport::receive`] found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Received {
    /// Application bytes that were appended.
    pub bytes: usize,
    /// The handshake was finished by this very call (a cleartext connection has none).
    pub handshake_finished: bool,
    /// The peer's stream is over.
    pub end: Option<End>,
}

/// How the peer ended its stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// By FIN in cleartext, by close_notify in TLS.
    Clean,
    /// TLS without close_notify: what came before may have been cut off (RFC 8446 section 6.1).
    Truncated,
}

/// Why a connection is of no more use.
#[derive(Debug, thiserror::Error)]
pub enum Fault {
    /// The connection could not be made.
    #[error("connect: {0}")]
    Connect(io::Error),
    /// The socket failed.
    #[error("{0}")]
    Socket(io::Error),
    /// TLS failed.
    #[error("{0}")]
    Tls(#[from] TlsError),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Connecting,
    Handshaking,
    Open,
}

impl Transport {
    /// A connection that was accepted; with a server's session, a handshake comes first.
    pub fn accepted(socket: OwnedFd, session: Option<Session>) -> Self {
        let phase = if session.is_some() { Phase::Handshaking } else { Phase::Open };
        Self::new(socket, session, phase)
    }

    /// Begins a connection; with a client's session, a handshake follows.
    /// Errors: as connect(2). A connection that is refused later is told by [`Transport::advance`].
    pub fn connect(address: SocketAddr, session: Option<Session>) -> Result<Self, Fault> {
        let socket = socket::connect(address).map_err(Fault::Connect)?;
        Ok(Self::new(socket, session, Phase::Connecting))
    }

    /// As [`Transport::connect`], to any address and from a local one that is named (`None`: the system chooses). A
    /// socket in the file system has no local address. Errors: as [`Transport::connect`] and bind(2).
    pub fn connect_from(
        source: Option<IpAddr>,
        address: &Address,
        session: Option<Session>,
    ) -> Result<Self, Fault> {
        let socket = match (address, source) {
            (Address::Tcp(address), None) => socket::connect(*address),
            (Address::Tcp(address), Some(source)) => socket::connect_from(source, *address),
            (Address::Unix(path), _) => socket::connect_unix(path),
        };
        Ok(Self::new(socket.map_err(Fault::Connect)?, session, Phase::Connecting))
    }

    fn new(socket: OwnedFd, session: Option<Session>, phase: Phase) -> Self {
        Self {
            socket,
            session: session.map(Box::new),
            phase,
            early: Vec::new(),
            out: Vec::new(),
            sent: 0,
            finishing: false,
            registered: None,
        }
    }

    /// Reads once and appends the application's bytes to `into`. One call reads at most [`READ_SIZE`] bytes or so:
    /// the poller tells of the rest in the next turn, so that no connection starves the others.
    /// Errors: the connection is of no more use. An alert for the peer has been sent where there was one.
    pub fn receive(&mut self, wire: &mut Wire, into: &mut Vec<u8>) -> Result<Received, Fault> {
        let Some(session) = &mut self.session else {
            return Ok(match socket::read(&self.socket, into, READ_SIZE).map_err(Fault::Socket)? {
                Read::Bytes(bytes) => Received { bytes, ..Received::default() },
                Read::WouldBlock => Received::default(),
                Read::End => Received { end: Some(End::Clean), ..Received::default() },
            });
        };
        wire.ciphertext.clear();
        match socket::read(&self.socket, &mut wire.ciphertext, READ_SIZE).map_err(Fault::Socket)? {
            Read::Bytes(_) => {}
            Read::WouldBlock => return Ok(Received::default()),
            Read::End => {
                let end = if session.peer_closed() { End::Clean } else { End::Truncated };
                return Ok(Received { end: Some(end), ..Received::default() });
            }
        }
        let before = into.len();
        wire.sealed.clear();
        let outcome = session.receive(&mut wire.ciphertext, into, &mut wire.sealed);
        let replied = if wire.sealed.is_empty() { Ok(()) } else { self.put(&wire.sealed) };
        let received = outcome?;
        replied?;
        if received.handshake_finished {
            self.opened(wire)?;
        }
        Ok(Received {
            bytes: into.len() - before,
            handshake_finished: received.handshake_finished,
            end: received.peer_closed.then_some(End::Clean),
        })
    }

    /// Sends `bytes`, or keeps what cannot be sent yet. Errors: the connection is of no more use.
    pub fn send(&mut self, bytes: &[u8], wire: &mut Wire) -> Result<(), Fault> {
        if self.phase != Phase::Open {
            self.early.extend_from_slice(bytes);
            return Ok(());
        }
        match &mut self.session {
            None => self.put(bytes),
            Some(session) if self.out.is_empty() => {
                wire.sealed.clear();
                session.send(bytes, &mut wire.sealed)?;
                self.put(&wire.sealed)
            }
            Some(session) => Ok(session.send(bytes, &mut self.out)?),
        }
    }

    /// Goes on after the poller told that the socket is writable: makes the connection, sends what waits.
    /// Errors: [`Fault::Connect`] when the connection was refused, else as [`Transport::send`].
    pub fn advance(&mut self, wire: &mut Wire) -> Result<(), Fault> {
        if self.phase == Phase::Connecting {
            socket::error(&self.socket).map_err(Fault::Connect)?;
            match &mut self.session {
                None => self.opened(wire)?,
                Some(session) => {
                    self.phase = Phase::Handshaking;
                    wire.sealed.clear();
                    session.receive(&mut [], &mut Vec::new(), &mut wire.sealed)?;
                    self.put(&wire.sealed)?;
                }
            }
        }
        self.flush()
    }

    /// Ends our side of the stream behind all that waits (with close_notify in TLS). The peer may go on sending.
    /// Errors: as [`Transport::send`].
    pub fn finish(&mut self) -> Result<(), Fault> {
        if self.finishing {
            return Ok(());
        }
        self.finishing = true;
        if let Some(session) = &mut self.session {
            session.close(&mut self.out);
        }
        self.flush()
    }

    /// Ends our side of the stream behind all that waits, by FIN alone: a TLS peer cannot tell whether it was cut off
    /// (RFC 8446 section 6.1). The peer may go on sending. Errors: as [`Transport::send`].
    pub fn finish_bare(&mut self) -> Result<(), Fault> {
        self.finishing = true;
        self.flush()
    }

    /// Goes on in cleartext: for what is left to tell a peer whose handshake failed. What waits is still sent.
    pub fn give_up_tls(&mut self) {
        self.session = None;
        self.phase = Phase::Open;
        self.early = Vec::new();
    }

    /// Has the peer see a reset when this is dropped, and no end that could be taken for a clean one.
    pub fn reset(&self) {
        socket::reset_on_close(&self.socket);
    }

    /// Bytes that wait to be sent.
    pub fn pending(&self) -> usize {
        self.early.len() + self.out.len() - self.sent
    }

    /// Whether application bytes can flow: connected, and the handshake done.
    pub fn is_open(&self) -> bool {
        self.phase == Phase::Open
    }

    /// Whether the TCP connection is still being made.
    pub fn is_connecting(&self) -> bool {
        self.phase == Phase::Connecting
    }

    /// What was negotiated, once the handshake is done; `None` in cleartext.
    pub fn facts(&self) -> Option<&Facts> {
        self.session.as_ref()?.facts()
    }

    /// TLS 1.3 tickets that a client has received on this connection so far; 0 in cleartext.
    pub fn tickets_received(&self) -> u32 {
        self.session.as_ref().map_or(0, |session| session.tickets_received())
    }

    /// Has `reactor` wait for what this connection needs: writability as long as something waits, readability when
    /// the caller wants to read. Costs a system call only when that changed. Errors: as epoll_ctl(2).
    pub fn watch(&mut self, reactor: &Reactor, key: Key, read: bool) -> io::Result<()> {
        // A handshake needs reading whatever the application wants.
        let read = read || self.phase == Phase::Handshaking;
        let waits = self.phase == Phase::Connecting || self.sent < self.out.len();
        let interest = Interest { read: read && self.phase != Phase::Connecting, write: waits };
        match self.registered {
            Some(registered) if registered == interest => return Ok(()),
            Some(_) => reactor.reregister(&self.socket, key, interest)?,
            None => reactor.register(&self.socket, key, interest)?,
        }
        self.registered = Some(interest);
        Ok(())
    }

    fn opened(&mut self, wire: &mut Wire) -> Result<(), Fault> {
        self.phase = Phase::Open;
        let early = std::mem::take(&mut self.early);
        if early.is_empty() { Ok(()) } else { self.send(&early, wire) }
    }

    /// Hands bytes to the socket behind those that wait.
    fn put(&mut self, bytes: &[u8]) -> Result<(), Fault> {
        let written = match self.out.is_empty() {
            true => socket::write(&self.socket, bytes).map_err(Fault::Socket)?,
            false => 0,
        };
        self.out.extend_from_slice(&bytes[written..]);
        Ok(())
    }

    fn flush(&mut self) -> Result<(), Fault> {
        if self.sent < self.out.len() {
            self.sent += socket::write(&self.socket, &self.out[self.sent..]).map_err(Fault::Socket)?;
        }
        if self.sent == self.out.len() {
            // A connection that has nothing to send keeps no memory for it.
            self.out = Vec::new();
            self.sent = 0;
            if self.finishing {
                socket::finish(&self.socket);
            }
        } else if self.sent > self.out.len() / 2 {
            // A peer that always leaves something waiting must not make what was sent pile up before it.
            self.out.drain(..self.sent);
            self.sent = 0;
        }
        Ok(())
    }
}

impl AsFd for Transport {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// How much one read asks for. Four TLS records of the largest size: fewer calls for bulk, and still inside a core's
/// second-level cache together with what it becomes.
pub const READ_SIZE: usize = 64 * 1024;

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::net::sockopt;
    use std::io::Read;
    use std::os::unix::net::UnixStream;

    #[test]
    fn a_peer_that_always_leaves_something_waiting_costs_no_memory() {
        // What had been sent stayed in front of what waited for as long as anything waited, so that a slow and steady
        // reader made the buffer as large as all that had ever been sent to him.
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        ours.set_nonblocking(true).unwrap();
        sockopt::set_socket_send_buffer_size(&ours, 4096).unwrap();
        let mut transport = Transport::accepted(ours.into(), None);
        let (mut wire, mut taken) = (Wire::default(), 0);
        let mut some = vec![0; 1000];
        while taken < 10 << 20 {
            if transport.pending() < 64 * 1024 {
                transport.send(&[b'x'; 64 * 1024], &mut wire).unwrap();
            }
            taken += theirs.read(&mut some).unwrap();
            transport.advance(&mut wire).unwrap();
            assert!(transport.pending() > 0, "this test is about a buffer that never becomes empty");
            assert!(transport.out.capacity() <= 1 << 20, "{} bytes", transport.out.capacity());
        }
    }
}
