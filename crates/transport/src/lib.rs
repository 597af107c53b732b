//! A TCP connection, cleartext or TLS: the reactor's sockets plus the TLS byte transformer.
//!
//! A [`Transport`] sends and receives application bytes. It buffers what is sent before the connection is established,
//! and what the socket does not accept; [`Transport::pending`] returns how much, for back-pressure. These buffers
//! exist only while in use. Reads go into buffers shared by all connections of a core
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
    /// Application bytes sent before the connection was established.
    early: Vec<u8>,
    /// Bytes for the socket, starting at `sent`.
    out: Vec<u8>,
    sent: usize,
    /// Whether to close our side after the last byte.
    finishing: bool,
    registered: Option<Interest>,
}

/// Buffers shared by all connections of a core; they grow to about [`READ_SIZE`] and stay.
#[derive(Debug, Default)]
pub struct Wire {
    ciphertext: Vec<u8>,
    sealed: Vec<u8>,
}

/// The result of [`Transport::receive`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Received {
    /// Application bytes that were appended.
    pub bytes: usize,
    /// The handshake finished in this call (a cleartext connection has none).
    pub handshake_finished: bool,
    /// The peer's stream has ended.
    pub end: Option<End>,
    /// The read filled its buffer, so more may wait.
    pub is_full: bool,
}

/// How the peer ended its stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// By FIN in cleartext, by close_notify in TLS.
    Clean,
    /// TLS without close_notify: the stream may be truncated (RFC 8446 section 6.1).
    Truncated,
}

/// Why a connection failed.
#[derive(Debug, thiserror::Error)]
pub enum Fault {
    /// Connecting failed.
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
    /// An accepted connection; with a server session, a handshake comes first.
    pub fn accepted(socket: OwnedFd, session: Option<Session>) -> Self {
        let phase = if session.is_some() { Phase::Handshaking } else { Phase::Open };
        Self::new(socket, session, phase)
    }

    /// Starts a connection; with a client session, a handshake follows.
    /// Errors: as connect(2). A later refusal is reported by [`Transport::advance`].
    pub fn connect(address: SocketAddr, session: Option<Session>) -> Result<Self, Fault> {
        let socket = socket::connect(address).map_err(Fault::Connect)?;
        Ok(Self::new(socket, session, Phase::Connecting))
    }

    /// As [`Transport::connect`], to any address and from the given local one (`None`: the system chooses). A
    /// Unix domain socket has no local address. Errors: as [`Transport::connect`] and bind(2).
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
    /// the poller reports the rest in the next turn, so that no connection starves the others.
    /// Errors: the connection failed. Any alert for the peer has been sent.
    pub fn receive(&mut self, wire: &mut Wire, into: &mut Vec<u8>) -> Result<Received, Fault> {
        let Some(session) = &mut self.session else {
            return Ok(match socket::read(&self.socket, into, READ_SIZE).map_err(Fault::Socket)? {
                Read::Bytes(bytes) => {
                    Received { bytes, is_full: into.len() == into.capacity(), ..Received::default() }
                }
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
        let is_full = wire.ciphertext.len() == wire.ciphertext.capacity();
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
            is_full,
        })
    }

    /// Sends `bytes`, and buffers what cannot be sent yet. Errors: the connection failed.
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

    /// Continues when the socket is writable: completes the connection, sends buffered bytes.
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

    /// Closes our side after buffered bytes (with close_notify in TLS). The peer may keep sending.
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

    /// Closes our side after buffered bytes with FIN only: a TLS peer cannot tell whether the stream was truncated
    /// (RFC 8446 section 6.1). The peer may keep sending. Errors: as [`Transport::send`].
    pub fn finish_bare(&mut self) -> Result<(), Fault> {
        self.finishing = true;
        self.flush()
    }

    /// Continues in cleartext, to respond to a peer whose handshake failed. Buffered bytes are still sent.
    pub fn give_up_tls(&mut self) {
        self.session = None;
        self.phase = Phase::Open;
        self.early = Vec::new();
    }

    /// Makes dropping this send a reset, not a clean close.
    pub fn reset(&self) {
        socket::reset_on_close(&self.socket);
    }

    /// Bytes waiting to be sent.
    pub fn pending(&self) -> usize {
        self.early.len() + self.out.len() - self.sent
    }

    /// Whether nothing has come that was not received yet: no bytes, no end of the stream, no error. Costs a system call.
    pub fn is_quiet(&self) -> bool {
        !self.has_partial_record() && socket::is_quiet(&self.socket)
    }

    /// Whether a part of a TLS record has come.
    pub fn has_partial_record(&self) -> bool {
        self.session.as_ref().is_some_and(|session| session.partial_bytes() > 0)
    }

    /// Whether application bytes can flow: connected, and the handshake done.
    pub fn is_open(&self) -> bool {
        self.phase == Phase::Open
    }

    /// Whether the TCP connection is still being established.
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

    /// Registers this connection's interest with `reactor`: writable while bytes are buffered, readable if
    /// the caller wants to read. Makes a system call only on a change. Errors: as epoll_ctl(2).
    pub fn watch(&mut self, reactor: &Reactor, key: Key, read: bool) -> io::Result<()> {
        // A handshake always needs reading.
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

    /// Passes bytes to the socket after those buffered.
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
            // Free the buffer when there is nothing to send.
            self.out = Vec::new();
            self.sent = 0;
            if self.finishing {
                socket::finish(&self.socket);
            }
        } else if self.sent > self.out.len() / 2 {
            // With a slow peer, sent bytes must not pile up at the front of the buffer.
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

/// Read size: four maximum TLS records. Fewer calls for bulk, and still within a core's
/// L2 cache together with the plaintext.
pub const READ_SIZE: usize = 64 * 1024;

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::net::sockopt;
    use std::io::Read;
    use std::os::unix::net::UnixStream;

    #[test]
    fn a_peer_that_always_leaves_something_waiting_costs_no_memory() {
        // Regression test: sent bytes stayed at the front of the buffer while anything waited, so a slow, steady
        // reader made the buffer as large as everything ever sent to it.
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
