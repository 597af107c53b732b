//! One side of one TLS connection, as a byte transformer.

use std::fmt;
use std::sync::Arc;

use rustls::client::{ClientConfig, UnbufferedClientConnection};
use rustls::server::{ServerConfig, UnbufferedServerConnection};
use rustls::{CommonState, Error, InvalidMessage};
use rustls_pki_types::{CertificateDer, ServerName};

use crate::early_data::EarlyData;
use crate::hello::{self, FirstBytes};
use crate::notes::{self, Lent, Notes, Origin};
use crate::unbuffered::{self, RECORD_HEADER, RECORD_PLAINTEXT, Sink};
use crate::{Chain, Facts, TlsError};

/// The maximum size of a leftover in bytes: room for a handshake message of 64 KiB, the longest that rustls accepts, in
/// records with at least 100 bytes of payload each, and for the current record.
const MAX_PARTIAL: usize = 96 * 1024;

/// The server or client side of one connection.
///
/// Between calls a session keeps only rustls's state (keys and counters, about 1 KiB) and any partial record.
pub struct Session {
    side: Side,
    /// A partial record, or the first records of a partial handshake message.
    partial: Vec<u8>,
    phase: Phase,
    /// See [`Session::named_certificate`].
    named: Option<u32>,
    /// The maximum plaintext per sent record.
    record_size: u16,
    peer_closed: bool,
    closed: bool,
    /// Whether the session keeps reading after it has sent close_notify.
    reads_on: bool,
}

/// The result of [`Session::receive`], besides bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Received {
    /// Whether the handshake finished in this call: [`Session::facts`] and [`Session::send`] work from now on.
    pub handshake_finished: bool,
    /// Whether the peer has closed its direction with close_notify, in this call or an earlier one.
    pub peer_closed: bool,
}

enum Side {
    Server(Box<UnbufferedServerConnection>),
    Client(Box<UnbufferedClientConnection>),
    /// rustls could not start; [`Phase::Failed`] contains the cause.
    None,
}

enum Phase {
    Handshaking(Handshaking),
    Traffic(Facts),
    Failed { error: TlsError, facts: Option<Facts> },
}

#[derive(Default)]
struct Handshaking {
    notes: Notes,
    /// The hellos sent by this side.
    hellos: hello::Sent,
    /// The records that a server has received since its last hello.
    received: hello::Received,
    /// Whether the peer's first bytes were TLS.
    is_tls: bool,
    /// The client's first flight, created in advance.
    first_flight: Vec<u8>,
}

impl Session {
    pub(crate) fn server(config: Arc<ServerConfig>) -> Self {
        let record_size = config.max_fragment_size;
        match UnbufferedServerConnection::new(config) {
            Ok(connection) => Self::new(
                Side::Server(Box::new(connection)),
                Phase::Handshaking(Handshaking {
                    notes: Notes { early_data: EarlyData::Possible { skipped: 0 }, ..Notes::default() },
                    ..Handshaking::default()
                }),
                record_size,
            ),
            Err(error) => Self::stillborn(error),
        }
    }

    pub(crate) fn client(config: Arc<ClientConfig>, name: ServerName<'static>) -> Self {
        let mut notes = Notes::default();
        let record_size = config.max_fragment_size;
        match notes::recorded(&mut notes, || UnbufferedClientConnection::new(config, name)) {
            Ok(connection) => {
                let handshaking = Handshaking { notes, ..Handshaking::default() };
                Self::new(Side::Client(Box::new(connection)), Phase::Handshaking(handshaking), record_size)
            }
            Err(error) => Self::stillborn(error),
        }
    }

    /// Creates a client's ClientHello now, for [`Session::first_flight`]. The first call of
    /// [`Session::receive`] returns it as usual.
    pub(crate) fn start(&mut self) {
        let mut flight = Vec::new();
        // Ignore a failure: the next call of `receive` returns the same error.
        let _ = self.receive(&mut [], &mut Vec::new(), &mut flight);
        if let Phase::Handshaking(handshaking) = &mut self.phase {
            handshaking.first_flight = flight;
        }
    }

    /// The output of [`Session::start`]; `None` unless the handshake is in progress.
    pub(crate) fn first_flight(&self) -> Option<&[u8]> {
        Some(&self.handshaking()?.first_flight)
    }

    /// The TLS 1.2 session from a client's store; `None` if the connection offers none.
    pub(crate) fn lent(&self) -> Option<Lent> {
        self.handshaking()?.notes.lent
    }

    /// Whether this is the server's side.
    pub fn is_server(&self) -> bool {
        matches!(self.side, Side::Server(_))
    }

    /// The certificates that the client presented, leaf first, in this handshake or the resumed one; `None` during the
    /// handshake, without a client certificate, and on the client's side.
    pub fn client_chain(&self) -> Option<&[CertificateDer<'static>]> {
        match (&self.side, &self.phase) {
            (Side::Server(connection), Phase::Traffic(_)) => connection.peer_certificates(),
            _ => None,
        }
    }

    /// The index in [`Server::certificates`](crate::Server::certificates) of the certificate that the server selected
    /// by the client's server name, also for a resumption; `None` before the ClientHello, for a client that sent no
    /// name, and on the client's side.
    pub fn named_certificate(&self) -> Option<u32> {
        self.named
    }

    fn handshaking(&self) -> Option<&Handshaking> {
        match &self.phase {
            Phase::Handshaking(handshaking) => Some(handshaking),
            Phase::Traffic(_) | Phase::Failed { .. } => None,
        }
    }

    /// Creates a session. `record_size` includes the header, as rustls counts it.
    fn new(side: Side, phase: Phase, record_size: Option<usize>) -> Self {
        let record_size = record_size.map_or(RECORD_PLAINTEXT, |size| size.saturating_sub(RECORD_HEADER));
        Self {
            side,
            partial: Vec::new(),
            phase,
            named: None,
            // At least 1, since `send` divides by it.
            record_size: record_size.clamp(1, RECORD_PLAINTEXT) as u16,
            peer_closed: false,
            closed: false,
            reads_on: false,
        }
    }

    fn stillborn(error: Error) -> Self {
        Self::new(Side::None, Phase::Failed { error: TlsError::from(error), facts: None }, None)
    }

    /// Processes ciphertext from the socket, in any pieces, decrypting in place; the slice is scratch
    /// afterwards. Appends the plaintext to `plaintext`, and output for the peer to `reply`: handshake
    /// messages, tickets, alerts, key updates.
    ///
    /// A client calls this once at the start without bytes, to get its first flight.
    ///
    /// # Errors
    ///
    /// After a failure, every further call returns the same error. `reply` may contain an alert for the peer,
    /// and `plaintext` the bytes before the failure. After [`TlsError::NotTls`] there is no alert, so that
    /// the caller may respond in cleartext. After [`Session::close`] the session discards input.
    pub fn receive(
        &mut self,
        ciphertext: &mut [u8],
        plaintext: &mut Vec<u8>,
        reply: &mut Vec<u8>,
    ) -> Result<Received, TlsError> {
        match &mut self.phase {
            Phase::Failed { error, .. } => return Err(error.clone()),
            _ if (self.closed && !self.reads_on) || self.peer_closed => {
                return Ok(Received { handshake_finished: false, peer_closed: self.peer_closed });
            }
            Phase::Traffic(_) => {
                self.take(ciphertext, plaintext, reply).map_err(|error| self.fail(error.into()))?;
                return Ok(Received { handshake_finished: false, peer_closed: self.peer_closed });
            }
            Phase::Handshaking(handshaking) if !handshaking.is_tls => match hello::first_bytes(ciphertext) {
                FirstBytes::None => {}
                FirstBytes::Tls => handshaking.is_tls = true,
                FirstBytes::Other { http } => return Err(self.fail(TlsError::NotTls { http })),
            },
            Phase::Handshaking(_) => {}
        }
        self.handshake(ciphertext, plaintext, reply)
    }

    /// Encrypts all of `plaintext` and appends the records to `out`.
    ///
    /// # Errors
    ///
    /// [`TlsError::Handshaking`] before the handshake is done, [`TlsError::Closed`] after [`Session::close`], and after
    /// a failure the error that [`Session::receive`] returns.
    pub fn send(&mut self, plaintext: &[u8], out: &mut Vec<u8>) -> Result<(), TlsError> {
        match &self.phase {
            Phase::Failed { error, .. } => return Err(error.clone()),
            _ if self.closed => return Err(TlsError::Closed),
            Phase::Handshaking(_) => return Err(TlsError::Handshaking),
            Phase::Traffic(_) => {}
        }
        let record_size = usize::from(self.record_size);
        let sent = match &mut self.side {
            Side::Server(connection) => {
                unbuffered::send(&mut **connection, &mut self.partial, plaintext, record_size, out)
            }
            Side::Client(connection) => {
                unbuffered::send(&mut **connection, &mut self.partial, plaintext, record_size, out)
            }
            Side::None => Ok(()),
        };
        sent.map_err(|error| self.fail(error.into()))
    }

    /// Appends a close_notify alert, once; the session then neither sends nor reads. Appends nothing during the
    /// handshake, or after a failure, which has already sent an alert.
    pub fn close(&mut self, out: &mut Vec<u8>) {
        if self.closed || matches!(self.phase, Phase::Failed { .. }) {
            return;
        }
        self.closed = true;
        let mut partial = std::mem::take(&mut self.partial);
        match &mut self.side {
            Side::Server(connection) => unbuffered::close(&mut **connection, &mut partial, out),
            Side::Client(connection) => unbuffered::close(&mut **connection, &mut partial, out),
            Side::None => {}
        }
        if self.reads_on {
            self.partial = partial;
        }
    }

    /// As [`Session::close`], but the session keeps reading until the peer's close_notify: a half-close (RFC 8446 6.1).
    pub fn close_sending(&mut self, out: &mut Vec<u8>) {
        self.reads_on = true;
        self.close(out);
    }

    /// Whether the handshake is in progress.
    pub fn is_handshaking(&self) -> bool {
        self.handshaking().is_some()
    }

    /// Whether the peer has sent close_notify, the only clean end (RFC 8446 6.1). An end of stream without it may be a
    /// truncation attack.
    pub fn peer_closed(&self) -> bool {
        self.peer_closed
    }

    /// The negotiated parameters, once the handshake is done.
    pub fn facts(&self) -> Option<&Facts> {
        match &self.phase {
            Phase::Traffic(facts) => Some(facts),
            Phase::Failed { facts, .. } => facts.as_ref(),
            Phase::Handshaking(_) => None,
        }
    }

    /// The number of TLS 1.3 tickets that a client has received on this connection so far. 0 on a server.
    pub fn tickets_received(&self) -> u32 {
        match &self.side {
            Side::Client(connection) => connection.tls13_tickets_received(),
            Side::Server(_) | Side::None => 0,
        }
    }

    /// The memory for an incomplete record or handshake message, in bytes, without rustls's own memory.
    pub fn partial_bytes(&self) -> usize {
        self.partial.capacity()
    }

    fn handshake(
        &mut self,
        ciphertext: &mut [u8],
        plaintext: &mut Vec<u8>,
        reply: &mut Vec<u8>,
    ) -> Result<Received, TlsError> {
        let Phase::Handshaking(handshaking) = &mut self.phase else { return Ok(Received::default()) };
        let awaits_hello = matches!(self.side, Side::Server(_)) && !handshaking.hellos.server_hello;
        if awaits_hello && !handshaking.received.is_bounded_with(ciphertext) {
            return Err(self.fail(TlsError::HelloTooLong));
        }
        reply.append(&mut handshaking.first_flight);
        let mut notes = handshaking.notes;
        let start = reply.len();
        let taken = notes::recorded(&mut notes, || self.take(ciphertext, plaintext, reply));
        let Phase::Handshaking(handshaking) = &mut self.phase else { return Ok(Received::default()) };
        handshaking.hellos.see(&reply[start..]);
        if reply.len() > start {
            handshaking.received = hello::Received::default();
        }
        if handshaking.hellos.offered_ticket {
            notes.origin = Some(Origin::Ticket);
        }
        handshaking.notes = notes;
        self.named = notes.named;
        let hello_retry = handshaking.hellos.retried();
        if let Err(error) = taken {
            return Err(self.fail(error.into()));
        }
        let finished = self.state().is_some_and(|state| !state.is_handshaking());
        if finished {
            let facts = self.state().and_then(|state| Facts::of(state, notes, hello_retry, self.chain()));
            self.phase = match facts {
                Some(facts) => Phase::Traffic(facts),
                None => return Err(self.fail(TlsError::Internal("the handshake left no facts".to_owned()))),
            };
        }
        Ok(Received { handshake_finished: finished, peer_closed: self.peer_closed })
    }

    /// Passes the leftover and `input` to rustls, and keeps the new leftover.
    ///
    /// Copies to the leftover only the bytes of `input` that complete the leftover's record, as counted from the record
    /// header, so that rustls decrypts the other records of a large read in place. If the leftover starts within a
    /// handshake message, the count is wrong, and the next turn adds the missing bytes.
    fn take(
        &mut self,
        mut input: &mut [u8],
        plaintext: &mut Vec<u8>,
        reply: &mut Vec<u8>,
    ) -> Result<(), Error> {
        let mut sink = Sink { plaintext, reply, peer_closed: &mut self.peer_closed };
        while !self.partial.is_empty() {
            let missing = hello::missing(&self.partial).unwrap_or(input.len()).min(input.len());
            if missing == 0 {
                return Ok(());
            }
            let (head, tail) = std::mem::take(&mut input).split_at_mut(missing);
            self.partial.extend_from_slice(head);
            input = tail;
            let done = feed(&mut self.side, &mut self.partial, &mut sink)?;
            if done == self.partial.len() {
                self.partial = Vec::new();
            } else {
                self.partial.drain(..done);
                bounded(&self.partial)?;
            }
        }
        let done = feed(&mut self.side, input, &mut sink)?;
        if done < input.len() {
            self.partial = input[done..].to_vec();
        }
        bounded(&self.partial)
    }

    fn fail(&mut self, error: TlsError) -> TlsError {
        self.partial = Vec::new();
        let facts = self.facts().cloned();
        self.phase = Phase::Failed { error: error.clone(), facts };
        error
    }

    /// The number and the size of the peer's certificates.
    fn chain(&self) -> Option<Chain> {
        self.state()?.peer_certificates().map(Chain::of)
    }

    fn state(&self) -> Option<&CommonState> {
        match &self.side {
            Side::Server(connection) => Some(connection),
            Side::Client(connection) => Some(connection),
            Side::None => None,
        }
    }
}

/// Checks the size of the leftover: rustls limits a handshake message, but not the records that contain it.
fn bounded(partial: &[u8]) -> Result<(), Error> {
    if partial.len() > MAX_PARTIAL { Err(InvalidMessage::HandshakePayloadTooLarge.into()) } else { Ok(()) }
}

fn feed(side: &mut Side, tls: &mut [u8], sink: &mut Sink<'_>) -> Result<usize, Error> {
    match side {
        Side::Server(connection) => unbuffered::receive(&mut **connection, tls, sink),
        Side::Client(connection) => unbuffered::receive(&mut **connection, tls, sink),
        Side::None => Ok(tls.len()),
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let phase = match &self.phase {
            Phase::Handshaking(_) => "handshaking".to_owned(),
            Phase::Traffic(facts) => facts.to_string(),
            Phase::Failed { error, .. } => error.to_string(),
        };
        f.debug_struct("Session")
            .field("phase", &phase)
            .field("partial", &self.partial.len())
            .field("peer_closed", &self.peer_closed)
            .field("closed", &self.closed)
            .finish()
    }
}
