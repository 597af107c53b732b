//! A TCP connection, cleartext or TLS: the reactor's sockets plus the TLS byte transformer.
//!
//! A [`Transport`] sends and receives application bytes. What is staged leaves with the next commit or send, in one write
//! and as few TLS records as it takes. It buffers what is sent before the connection is established, and what the socket
//! does not accept; [`Transport::pending`] returns how much, for back-pressure. These buffers exist only while in use and
//! come from the core's [`Wire`], which has the buffer for reads, too.

mod endpoint;
mod place;
mod sending;
mod wire;

pub use endpoint::{Endpoint, ascii_host};
pub use place::{Place, UNIX, unix_path};
pub use weir_reactor::Address;
pub use wire::Wire;

use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use std::io::{self, ErrorKind};
use std::net::{IpAddr, SocketAddr};
use weir_reactor::socket::{self, Read};
use weir_reactor::{Interest, Key, Net, Socket};
use weir_tls::{CertificateDer, Facts, Session, TlsError};

/// One connection.
#[derive(Debug)]
pub struct Transport<S = OwnedFd> {
    socket: S,
    session: Option<Box<Session>>,
    phase: Phase,
    /// Application bytes that were not passed on yet.
    staged: Vec<u8>,
    /// Bytes for the socket, starting at `sent`.
    out: Vec<u8>,
    sent: usize,
    /// Bytes that the socket has taken so far.
    taken: u64,
    /// Bytes that it has given.
    received: u64,
    /// What is in `out` leaves with the next bytes of the application.
    waits_for_answer: bool,
    /// Whether to close our side after the last byte.
    finishing: bool,
    /// A write has failed. That took the socket's error, so a reset reads as an end of the stream now.
    failed: bool,
    registered: Option<Interest>,
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
    /// Starts a connection; with a client session, a handshake follows.
    /// Errors: as connect(2). A later refusal is reported by [`Transport::advance`].
    pub fn connect(address: SocketAddr, session: Option<Session>) -> Result<Self, Fault> {
        let socket = socket::connect(address).map_err(Fault::Connect)?;
        Ok(Self::dialled(socket, session))
    }

    /// As [`Transport::connect`], to any address and from the given local one (`None`: the system chooses). A
    /// Unix domain socket has no local address. Errors: as [`Transport::connect`] and bind(2).
    pub fn connect_from(
        source: Option<IpAddr>,
        address: &Address,
        session: Option<Session>,
    ) -> Result<Self, Fault> {
        let socket = match (address, source) {
            (Address::Tcp(address), Some(source)) => socket::connect_from(source, *address),
            (address, _) => socket::connect_to(address),
        };
        Ok(Self::dialled(socket.map_err(Fault::Connect)?, session))
    }
}

impl<S: Socket> Transport<S> {
    /// An accepted connection; with a server session, a handshake comes first.
    pub fn accepted(socket: S, session: Option<Session>) -> Self {
        let phase = if session.is_some() { Phase::Handshaking } else { Phase::Open };
        Self::new(socket, session, phase)
    }

    /// A connection that was started ([`Net::connect`]); with a client session, a handshake follows.
    pub fn dialled(socket: S, session: Option<Session>) -> Self {
        Self::new(socket, session, Phase::Connecting)
    }

    fn new(socket: S, session: Option<Session>, phase: Phase) -> Self {
        Self {
            socket,
            session: session.map(Box::new),
            phase,
            staged: Vec::new(),
            out: Vec::new(),
            sent: 0,
            taken: 0,
            received: 0,
            waits_for_answer: false,
            finishing: false,
            failed: false,
            registered: None,
        }
    }

    /// Reads once and appends the application's bytes to `into`. One call reads about [`Wire::with_read_size`] bytes at most:
    /// the poller reports the rest in the next turn, so that no connection starves the others.
    /// Errors: the connection failed. Any alert for the peer has been sent.
    pub fn receive(&mut self, wire: &mut Wire, into: &mut Vec<u8>) -> Result<Received, Fault> {
        if self.session.is_none() {
            return Ok(match self.read(wire, into)? {
                Read::Bytes(bytes) => {
                    Received { bytes, is_full: into.len() == into.capacity(), ..Received::default() }
                }
                Read::WouldBlock => Received::default(),
                Read::End => Received { end: Some(End::Clean), ..Received::default() },
            });
        }
        let mut raw = std::mem::take(&mut wire.ciphertext);
        raw.clear();
        let received = match self.read(wire, &mut raw) {
            Ok(Read::Bytes(_)) => {
                let is_full = raw.len() == raw.capacity();
                self.feed(&mut raw, into, wire).map(|received| Received { is_full, ..received })
            }
            Ok(Read::WouldBlock) => Ok(Received::default()),
            Ok(Read::End) => Ok(Received { end: Some(self.end()), ..Received::default() }),
            Err(fault) => Err(fault),
        };
        wire.ciphertext = raw;
        received
    }

    /// Reads once what is on the wire, without a look at it, for a caller that chooses the protocol by the first bytes and
    /// passes them on with [`Transport::feed`]. Errors: the connection failed.
    pub fn read(&mut self, wire: &Wire, into: &mut Vec<u8>) -> Result<Read, Fault> {
        match self.socket.read(into, wire.read_size) {
            Ok(Read::Bytes(bytes)) => {
                self.received += bytes as u64;
                Ok(Read::Bytes(bytes))
            }
            Ok(Read::End) if self.failed => Err(Fault::Socket(ErrorKind::ConnectionReset.into())),
            read => read.map_err(Fault::Socket),
        }
    }

    /// Takes bytes from the wire (with TLS they are decrypted in place) and appends the application's bytes to `into`.
    /// Errors: as [`Transport::receive`].
    pub fn feed(&mut self, raw: &mut [u8], into: &mut Vec<u8>, wire: &mut Wire) -> Result<Received, Fault> {
        let before = into.len();
        let Some(session) = &mut self.session else {
            into.extend_from_slice(raw);
            return Ok(Received { bytes: raw.len(), ..Received::default() });
        };
        wire.sealed.clear();
        let outcome = session.receive(raw, into, &mut wire.sealed);
        if self.phase != Phase::Open && !wire.sealed.is_empty() {
            wire.flights += 1;
        }
        let finished = outcome.as_ref().is_ok_and(|received| received.handshake_finished);
        let is_asked = finished && session.is_server() && into.len() > before;
        if finished {
            self.phase = Phase::Open;
            // The end of a client's handshake and its request leave together.
            let staged = std::mem::take(&mut self.staged);
            if !staged.is_empty() {
                session.send(&staged, &mut wire.sealed)?;
            }
            wire.give_back(staged);
        }
        let replied = match () {
            () if wire.sealed.is_empty() => Ok(()),
            // All that a server has left to say are tickets, which leave with its answer.
            () if is_asked && self.out.is_empty() => {
                self.out = wire.buffer();
                self.out.extend_from_slice(&wire.sealed);
                self.waits_for_answer = true;
                Ok(())
            }
            () => self.put_sealed(wire),
        };
        let received = outcome?;
        replied?;
        Ok(Received {
            bytes: into.len() - before,
            handshake_finished: received.handshake_finished,
            end: received.peer_closed.then_some(End::Clean),
            is_full: false,
        })
    }

    /// Terminates TLS from here on, on an accepted connection that was looked at in the clear ([`Transport::read`]).
    pub fn begin_tls(&mut self, session: Session) {
        self.session = Some(Box::new(session));
        self.phase = Phase::Handshaking;
    }

    /// Continues in cleartext, to respond to a peer whose handshake failed. Buffered bytes are still sent.
    pub fn give_up_tls(&mut self) {
        self.session = None;
        self.phase = Phase::Open;
        self.staged = Vec::new();
    }

    /// Our end's address; `None` for a Unix socket.
    pub fn local(&self) -> Option<SocketAddr> {
        self.socket.local()
    }

    /// Makes dropping this send a reset, not a clean close.
    pub fn reset(&self) {
        self.socket.reset_on_close();
    }

    /// Bytes waiting to be sent.
    pub fn pending(&self) -> usize {
        self.staged.len() + self.unsent()
    }

    /// Bytes that the socket has taken so far, with all of TLS.
    pub fn taken(&self) -> u64 {
        self.taken
    }

    /// Bytes that the socket has given so far, with all of TLS.
    pub fn received(&self) -> u64 {
        self.received
    }

    /// Bytes of memory for what waits on this connection, and for its session, whose own is an estimate.
    pub fn memory(&self) -> usize {
        let session = self.session.as_ref().map_or(0, |session| SESSION + session.partial_bytes());
        self.staged.capacity() + self.out.capacity() + session
    }

    /// Bytes that the socket did not accept yet.
    fn unsent(&self) -> usize {
        if self.waits_for_answer { 0 } else { self.out.len() - self.sent }
    }

    /// Whether nothing has come that was not received yet: no bytes, no end of the stream, no error. Costs a system call.
    pub fn is_quiet(&self) -> bool {
        !self.has_partial_record() && self.socket.is_quiet()
    }

    /// Whether a part of a TLS record has come.
    pub fn has_partial_record(&self) -> bool {
        self.session.as_ref().is_some_and(|session| session.partial_bytes() > 0)
    }

    /// Whether application bytes can flow: connected, and the handshake done.
    pub fn is_open(&self) -> bool {
        self.phase == Phase::Open
    }

    /// Whether the next step is one of a TLS handshake, which costs far more than any other.
    pub fn is_in_handshake(&self) -> bool {
        self.phase != Phase::Open && self.session.is_some()
    }

    /// Whether the TCP connection is still being established.
    pub fn is_connecting(&self) -> bool {
        self.phase == Phase::Connecting
    }

    /// What was negotiated, once the handshake is done; `None` in cleartext.
    pub fn facts(&self) -> Option<&Facts> {
        self.session.as_ref()?.facts()
    }

    /// The certificates that a client has presented: see [`Session::client_chain`].
    pub fn client_chain(&self) -> Option<&[CertificateDer<'static>]> {
        self.session.as_ref()?.client_chain()
    }

    /// TLS 1.3 tickets that a client has received on this connection so far; 0 in cleartext.
    pub fn tickets_received(&self) -> u32 {
        self.session.as_ref().map_or(0, |session| session.tickets_received())
    }

    /// Registers this connection's interest with `net`: writable while bytes are buffered, readable if
    /// the caller wants to read. Makes a system call only on a change. Errors: as epoll_ctl(2).
    pub fn watch<N: Net<Socket = S>>(&mut self, net: &N, key: Key, read: bool) -> io::Result<()> {
        // A handshake always needs reading; and whoever connects wants to know what is there before the first byte leaves.
        let read = read || self.phase != Phase::Open;
        let interest = Interest { read, write: self.phase == Phase::Connecting || self.unsent() > 0 };
        match self.registered {
            Some(registered) if registered == interest => return Ok(()),
            Some(_) => net.reregister(&self.socket, key, interest)?,
            None => net.register(&self.socket, key, interest)?,
        }
        self.registered = Some(interest);
        Ok(())
    }

    /// As [`Transport::watch`], without reading, not even in a handshake, whose turn will come. Errors: as epoll_ctl(2).
    pub fn pause<N: Net<Socket = S>>(&mut self, net: &N, key: Key) -> io::Result<()> {
        let interest = Interest { read: false, write: self.unsent() > 0 };
        match self.registered.replace(interest) {
            Some(registered) if registered == interest => Ok(()),
            Some(_) => net.reregister(&self.socket, key, interest),
            None => net.register(&self.socket, key, interest),
        }
    }

    /// Ends [`Transport::watch`], for a connection that goes to another net. Errors: as epoll_ctl(2).
    pub fn unwatch<N: Net<Socket = S>>(&mut self, net: &N) -> io::Result<()> {
        match self.registered.take() {
            Some(_) => net.deregister(&self.socket),
            None => Ok(()),
        }
    }

    /// How the stream ended when the socket says so.
    fn end(&self) -> End {
        match &self.session {
            Some(session) if !session.peer_closed() => End::Truncated,
            _ => End::Clean,
        }
    }
}

impl<S: AsFd> AsFd for Transport<S> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// What a TLS session has, besides what has come of a record: keys, and what was negotiated.
const SESSION: usize = 4096;

/// The usual size of a read: a message of 64 KiB with its head and its TLS records in one call, and still within a core's L2 cache
/// together with the plaintext.
pub const READ_SIZE: usize = 128 * 1024;
