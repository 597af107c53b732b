//! A TCP connection, in cleartext or with TLS: the reactor's sockets plus the TLS byte transformer.
//!
//! A [`Transport`] sends and receives application bytes. It sends staged bytes with the next commit or send, in one
//! write and as few TLS records as possible. It buffers bytes sent before the connection is established and bytes that
//! the socket does not accept; [`Transport::pending`] returns their number, for back-pressure. The buffers come from
//! the core's [`Wire`], which also owns the read buffer, and exist only while in use.

mod place;
mod sending;
mod url;
mod wire;

pub use place::{Place, UNIX, unix_path};
pub use url::{Endpoint, ascii_host};
pub use weir_reactor::Address;
pub use wire::Wire;

use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use std::io::{self, ErrorKind};
use std::net::{IpAddr, SocketAddr};
use weir_reactor::socket::{self, Read};
use weir_reactor::{Interest, Key, Net, Socket};
use weir_tls::{CertificateDer, Facts, Session, TlsError};

/// A connection over TCP or a Unix socket, in cleartext or with TLS.
#[derive(Debug)]
pub struct Transport<S = OwnedFd> {
    socket: S,
    session: Option<Box<Session>>,
    phase: Phase,
    /// Application bytes that are not sealed or written yet.
    staged: Vec<u8>,
    /// Bytes for the socket. Those before `sent` are already written.
    out: Vec<u8>,
    sent: usize,
    /// Bytes written to the socket so far.
    taken: u64,
    /// Bytes read from the socket so far.
    received: u64,
    /// Whether to hold `out` back until the next application bytes, so that one write sends both.
    waits_for_answer: bool,
    finish: Finish,
    /// Whether a write has failed and taken the socket's error, so that a read now reports a reset as an end of stream.
    failed: bool,
    /// Whether the handshake fails unless ALPN selects HTTP/2.
    requires_http2: bool,
    registered: Option<Interest>,
}

/// The result of [`Transport::receive`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Received {
    /// The number of appended application bytes.
    pub bytes: usize,
    /// Whether the handshake finished in this call; always false on a cleartext connection.
    pub handshake_finished: bool,
    /// The end of the peer's stream; `None` while the peer may send more.
    pub end: Option<End>,
    /// Whether the read filled its buffer, so that more bytes may be available.
    pub is_full: bool,
}

/// The end of the peer's stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// FIN in cleartext, close_notify in TLS.
    Clean,
    /// TLS without close_notify: the stream may be truncated (RFC 8446 section 6.1).
    Truncated,
}

/// The failure of a connection.
#[derive(Debug, thiserror::Error)]
pub enum Fault {
    /// The connection could not be opened: creating or binding the socket failed, or connect(2) did, at once or later.
    #[error("connect: {0}")]
    Connect(io::Error),
    /// Reading from the socket or writing to it failed.
    #[error("{0}")]
    Socket(io::Error),
    /// The TLS handshake failed, or a later record was invalid.
    #[error("{0}")]
    Tls(#[from] TlsError),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Connecting,
    Handshaking,
    Open,
}

/// The state of closing our side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Finish {
    No,
    /// After the last buffered byte.
    Due,
    Done,
}

impl Transport {
    /// Starts a connection; with a client session, a TLS handshake follows. Errors: those of connect(2).
    /// [`Transport::advance`] reports a later refusal.
    pub fn connect(address: SocketAddr, session: Option<Session>) -> Result<Self, Fault> {
        let socket = socket::connect(address).map_err(Fault::Connect)?;
        Ok(Self::dialled(socket, session))
    }

    /// As [`Transport::connect`], to any address and from the local address `source` (`None`: the system chooses). A
    /// Unix domain socket ignores `source`. Errors: those of [`Transport::connect`] and bind(2).
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
    /// An accepted connection; with a server session, it starts with a TLS handshake.
    pub fn accepted(socket: S, session: Option<Session>) -> Self {
        let phase = if session.is_some() { Phase::Handshaking } else { Phase::Open };
        Self::new(socket, session, phase)
    }

    /// A connection started by [`Net::connect`]; with a client session, a TLS handshake follows.
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
            finish: Finish::No,
            requires_http2: false,
            failed: false,
            registered: None,
        }
    }

    /// Reads once and appends the application bytes to `into`. One call reads at most about [`Wire::with_read_size`]
    /// bytes, so that no connection starves the others; the poller reports the remaining bytes in the next turn.
    /// Errors: the connection failed, after an alert to the peer if one is due.
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

    /// Reads once from the wire without interpreting the bytes, for a caller that derives the protocol from them and
    /// then passes them to [`Transport::feed`]. Errors: the connection failed.
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

    /// Takes bytes from the wire, decrypts them in place with TLS, and appends the application bytes to `into`. Errors:
    /// those of [`Transport::receive`].
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
        if finished
            && self.requires_http2
            && session.facts().is_none_or(|facts| facts.alpn.as_deref() != Some(b"h2"))
        {
            return Err(Fault::Tls(TlsError::NoApplicationProtocol));
        }
        let is_asked = finished && session.is_server() && into.len() > before;
        if finished {
            self.phase = Phase::Open;
            // Send a client's Finished and its request in one write.
            let staged = std::mem::take(&mut self.staged);
            if !staged.is_empty() {
                session.send(&staged, &mut wire.sealed)?;
            }
            wire.give_back(staged);
        }
        let replied = match () {
            () if wire.sealed.is_empty() => Ok(()),
            // A server's remaining handshake output is its tickets: send them with the response.
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

    /// Makes the TLS handshake fail, before any application byte is sent, unless it negotiates HTTP/2 by ALPN. Has no
    /// effect in cleartext.
    pub fn require_http2(&mut self) {
        self.requires_http2 = true;
    }

    /// Starts a TLS handshake on an accepted connection whose first bytes came from [`Transport::read`].
    pub fn begin_tls(&mut self, session: Session) {
        self.session = Some(Box::new(session));
        self.phase = Phase::Handshaking;
    }

    /// Continues in cleartext, to respond to a peer whose handshake failed. Sends TLS output that is already buffered,
    /// such as an alert, but drops staged bytes.
    pub fn give_up_tls(&mut self) {
        self.session = None;
        self.phase = Phase::Open;
        self.staged = Vec::new();
    }

    /// The local address; `None` for a Unix socket.
    pub fn local(&self) -> Option<SocketAddr> {
        self.socket.local()
    }

    /// Makes dropping the transport send a reset instead of a FIN.
    pub fn reset(&self) {
        self.socket.reset_on_close();
    }

    /// Bytes that the transport has buffered for sending, without tickets that wait for the first response.
    pub fn pending(&self) -> usize {
        self.staged.len() + self.unsent()
    }

    /// Bytes written to the socket so far, including TLS overhead.
    pub fn taken(&self) -> u64 {
        self.taken
    }

    /// Bytes read from the socket so far, including TLS overhead.
    pub fn received(&self) -> u64 {
        self.received
    }

    /// The memory of this connection's buffers and TLS session, in bytes; the session's is an estimate.
    pub fn memory(&self) -> usize {
        let session = self.session.as_ref().map_or(0, |session| SESSION + session.partial_bytes());
        self.staged.capacity() + self.out.capacity() + session
    }

    /// Bytes to write to the socket now: none while `out` is held back.
    fn unsent(&self) -> usize {
        if self.waits_for_answer { 0 } else { self.out.len() - self.sent }
    }

    /// Whether no unread input is pending: no bytes, end of stream or error. Makes a system call.
    pub fn is_quiet(&self) -> bool {
        !self.has_partial_record() && self.socket.is_quiet()
    }

    /// Whether the session holds part of a TLS record.
    pub fn has_partial_record(&self) -> bool {
        self.session.as_ref().is_some_and(|session| session.partial_bytes() > 0)
    }

    /// Whether application bytes can flow: the connection is established and the handshake done.
    pub fn is_open(&self) -> bool {
        self.phase == Phase::Open
    }

    /// Whether the next step belongs to a TLS handshake, which takes far more CPU time than any other step.
    pub fn is_in_handshake(&self) -> bool {
        self.phase != Phase::Open && self.session.is_some()
    }

    /// Whether the TCP connection is still being established.
    pub fn is_connecting(&self) -> bool {
        self.phase == Phase::Connecting
    }

    /// The negotiated parameters, once the handshake is done; `None` in cleartext.
    pub fn facts(&self) -> Option<&Facts> {
        self.session.as_ref()?.facts()
    }

    /// The client's certificate chain: see [`Session::client_chain`].
    pub fn client_chain(&self) -> Option<&[CertificateDer<'static>]> {
        self.session.as_ref()?.client_chain()
    }

    /// The certificate selected by the client's server name: see [`Session::named_certificate`].
    pub fn named_certificate(&self) -> Option<u32> {
        self.session.as_ref()?.named_certificate()
    }

    /// The number of TLS 1.3 tickets received so far; 0 in cleartext.
    pub fn tickets_received(&self) -> u32 {
        self.session.as_ref().map_or(0, |session| session.tickets_received())
    }

    /// Registers this connection's interest with `net`: writable while connecting or while sealed bytes are buffered,
    /// readable if `read` or before the connection is open. Makes a system call only on a change. Errors: those of
    /// epoll_ctl(2).
    pub fn watch<N: Net<Socket = S>>(&mut self, net: &N, key: Key, read: bool) -> io::Result<()> {
        // A handshake always reads. A client must also notice a refusal or an early response before it sends its first
        // byte.
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

    /// As [`Transport::watch`], but without reading, even in a handshake that waits for its turn. Errors: those of
    /// epoll_ctl(2).
    pub fn pause<N: Net<Socket = S>>(&mut self, net: &N, key: Key) -> io::Result<()> {
        let interest = Interest { read: false, write: self.unsent() > 0 };
        match self.registered.replace(interest) {
            Some(registered) if registered == interest => Ok(()),
            Some(_) => net.reregister(&self.socket, key, interest),
            None => net.register(&self.socket, key, interest),
        }
    }

    /// Undoes [`Transport::watch`], for a connection that moves to another [`Net`]. Errors: those of epoll_ctl(2).
    pub fn unwatch<N: Net<Socket = S>>(&mut self, net: &N) -> io::Result<()> {
        match self.registered.take() {
            Some(_) => net.deregister(&self.socket),
            None => Ok(()),
        }
    }

    /// Classifies an end of stream that the socket reports.
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

/// The estimated size of a TLS session without partial records: keys and negotiated parameters.
const SESSION: usize = 4096;

/// The default size of a read. A 64 KiB message with its head and TLS records fits into one read, and together with its
/// plaintext into a core's L2 cache.
pub const READ_SIZE: usize = 128 * 1024;
