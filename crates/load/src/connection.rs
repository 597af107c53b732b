//! One connection of the engine: a request out, its answer in and checked.

use crate::check::{Detail, ErrorClass, Wrong};
use crate::record::recorder::{Course, Recorder};
use crate::request::Request;
use crate::request::mix::Mix;
use crate::result::Tickets;
use aws_lc_rs::digest::Context;
use std::time::Instant;
use weir_http1::{BodyDecoder, Framing, Limits, Method, Parse, ResponseHead};
use weir_tls::{HandshakeKind, Version};
use weir_transport::{End, Transport, Wire};

pub(crate) struct Connection {
    pub(crate) transport: Transport,
    pub(crate) phase: Phase,
    /// When to give up, if the phase waits for the peer.
    pub(crate) deadline: Instant,
    /// Whether the wheel holds an entry for it.
    pub(crate) armed: bool,
    /// Answers so far.
    pub(crate) answered: u64,
    /// Requests that it may have in all.
    pub(crate) quota: u64,
    /// Connections before this one, one after the other, that never got an answer.
    pub(crate) failures: u32,
    /// When its making began, and when the socket was connected.
    pub(crate) begun: Instant,
    pub(crate) connected: Instant,
    /// Whether it offered a session because it is to resume.
    pub(crate) offered: bool,
    /// Its one request is sent for the session that comes with the answer.
    pub(crate) primes: bool,
    /// A partial head.
    kept: Vec<u8>,
    /// The head has been read.
    body: Option<Body>,
    /// Bytes of the request that the transport has been given, and whether it asks for the connection's end.
    given: usize,
    last: bool,
    /// The place of the request in the mix.
    place: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    Opening(Purpose),
    /// Between two requests.
    Idle,
    /// Waiting for an answer.
    Busy {
        planned: Instant,
        written: Instant,
        first: Option<Instant>,
    },
    /// The handshake is done, and nothing else is wanted but a session to resume: TLS 1.3 gives it afterwards.
    AwaitingTicket(Purpose),
    /// The handshake is done on this side, and in TLS 1.3 the server may still refuse it, for the client's certificate
    /// say (RFC 8446 section 4.4.2.4): its first record tells.
    AwaitingVerdict,
    /// All is done, and the server has said that it ends the connection: it goes first, so that the port waits for late
    /// segments (TIME_WAIT, RFC 9293 section 3.6.1) on its side and not on ours.
    Ending,
}

/// What a connection is made for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// For any request.
    Stock,
    /// For the request that was planned for then.
    Request(Instant),
    /// For the handshake that was planned for then.
    Handshake(Instant),
    /// For a session to resume later.
    Session,
}

struct Body {
    decoder: BodyDecoder,
    received: u64,
    digest: Option<Context>,
    status: u16,
    /// The server ends the connection after the answer.
    closes: bool,
}

/// What an event led to.
pub(crate) enum Outcome {
    Waits,
    Opened,
    /// The answer is complete, right or wrong; what becomes of the connection.
    Answered {
        wrong: Option<Wrong>,
        then: Then,
    },
    /// There is a session to resume.
    Ticket,
    /// The server ended a connection that had no request.
    Ended,
}

/// What becomes of a connection after an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Then {
    /// It takes another request.
    Reuse,
    /// The server will end it.
    AwaitEnd,
    /// It is of no more use.
    Close,
}

/// What all connections of a worker share.
pub(crate) struct Desk<'a> {
    pub(crate) wire: Wire,
    pub(crate) recorder: Recorder,
    /// The time of the event that is being worked on.
    pub(crate) now: Instant,
    mix: &'a Mix,
    /// The place of the next request in the mix.
    place: u64,
    input: Vec<u8>,
    head: ResponseHead,
    limits: Limits,
}

/// The part of a large request body that is given to a transport at once.
const PIECE: usize = 256 * 1024;

impl<'a> Desk<'a> {
    /// The mix is begun at `place`.
    pub(crate) fn new(mix: &'a Mix, place: u64, recorder: Recorder, now: Instant) -> Self {
        Self {
            wire: Wire::default(),
            recorder,
            now,
            mix,
            place,
            input: Vec::new(),
            head: ResponseHead::new(),
            limits: Limits::default(),
        }
    }
}

impl Purpose {
    /// When what it is made for was planned.
    pub(crate) fn planned(self) -> Option<Instant> {
        match self {
            Self::Request(planned) | Self::Handshake(planned) => Some(planned),
            Self::Stock | Self::Session => None,
        }
    }
}

impl Connection {
    pub(crate) fn new(transport: Transport, purpose: Purpose, now: Instant, deadline: Instant) -> Self {
        Self {
            transport,
            phase: Phase::Opening(purpose),
            deadline,
            armed: false,
            answered: 0,
            quota: u64::MAX,
            failures: 0,
            begun: now,
            connected: now,
            offered: false,
            primes: false,
            kept: Vec::new(),
            body: None,
            given: 0,
            last: false,
            place: 0,
        }
    }

    /// Begins the mix's next request.
    pub(crate) fn begin(&mut self, planned: Instant, desk: &mut Desk<'_>) -> Result<(), Wrong> {
        self.phase = Phase::Busy { planned, written: desk.now, first: None };
        self.given = 0;
        self.last = self.answered + 1 >= self.quota;
        self.place = desk.place;
        desk.place += 1;
        self.give(desk)
    }

    /// Takes up a readiness. Reads the clock once, after the read.
    pub(crate) fn event(
        &mut self,
        readable: bool,
        writable: bool,
        desk: &mut Desk<'_>,
    ) -> Result<Outcome, Wrong> {
        let mut opened = false;
        if writable && (!self.transport.is_open() || self.transport.pending() > 0) {
            let was_open = self.transport.is_open();
            let was_connecting = self.transport.is_connecting();
            if was_connecting {
                // Before the first bytes go out: on loopback the kernel does the peer's part of that at once.
                self.connected = Instant::now();
            }
            let advanced = self.transport.advance(&mut desk.wire);
            desk.now = Instant::now();
            advanced?;
            if was_connecting {
                desk.recorder.connected(self.begun, self.connected);
            }
            opened = !was_open && self.transport.is_open();
            if matches!(self.phase, Phase::Busy { .. }) {
                self.give(desk)?;
            }
        }
        if !readable || self.transport.is_connecting() {
            return Ok(if opened { Outcome::Opened } else { Outcome::Waits });
        }

        let mut input = std::mem::take(&mut desk.input);
        input.clear();
        if !self.kept.is_empty() {
            input.append(&mut self.kept);
            self.kept = Vec::new();
        }
        let received = self.transport.receive(&mut desk.wire, &mut input);
        desk.now = Instant::now();
        let outcome = received.map_err(Wrong::from).and_then(|received| {
            desk.recorder.counters.bytes_received += received.bytes as u64;
            if received.handshake_finished {
                opened = true;
                self.shook_hands(desk);
            }
            self.read(&input, received.end, opened, desk)
        });
        desk.input = input;
        outcome
    }

    /// What is under way will not be waited for any longer: each of its times is at least as long as until now.
    pub(crate) fn give_up(&self, desk: &mut Desk<'_>) {
        let (recorder, now) = (&mut desk.recorder, desk.now);
        match self.phase {
            Phase::Busy { planned, written, first } => {
                recorder.given_up(planned, Some(written), now);
                if first.is_none() {
                    recorder.first_byte_given_up(planned, written, now);
                }
            }
            Phase::Opening(purpose) => {
                let connected = (!self.transport.is_connecting()).then_some(self.connected);
                recorder.opening_given_up(self.begun, connected, self.offered, now);
                if let Some(planned) = purpose.planned() {
                    let written = connected.filter(|_| matches!(purpose, Purpose::Handshake(_)));
                    recorder.given_up(planned, written, now);
                }
            }
            Phase::Idle | Phase::AwaitingTicket(_) | Phase::AwaitingVerdict | Phase::Ending => {}
        }
    }

    /// Whether a request would be lost with it.
    pub(crate) fn has_request(&self) -> bool {
        let Phase::Opening(purpose) = self.phase else { return matches!(self.phase, Phase::Busy { .. }) };
        purpose.planned().is_some()
    }

    fn shook_hands(&mut self, desk: &mut Desk<'_>) {
        let Some(facts) = self.transport.facts() else { return };
        desk.recorder.handshake(facts, self.begun, self.connected, desk.now);
        if self.offered {
            desk.recorder.counters.offered += 1;
            desk.recorder.counters.declined += u64::from(facts.kind == HandshakeKind::Full);
        }
        if self.phase == Phase::Opening(Purpose::Session) {
            desk.recorder.counters.primed += 1;
        }
    }

    /// Those that a TLS 1.3 handshake brought: they come before the first answer, or with it.
    fn count_tickets(&self, desk: &mut Desk<'_>) {
        if let Some(facts) = self.transport.facts().filter(|facts| facts.version == Version::Tls13) {
            let number = self.transport.tickets_received();
            desk.recorder.tickets(facts.kind.name(), Tickets { least: number, most: number });
        }
    }

    fn request<'a>(&self, desk: &Desk<'a>) -> &'a Request {
        desk.mix.nth(self.place)
    }

    /// Gives the transport what it takes of the request without keeping much of it.
    fn give(&mut self, desk: &mut Desk<'_>) -> Result<(), Wrong> {
        let bytes = self.request(desk).bytes(self.last);
        while self.given < bytes.len() && self.transport.pending() == 0 {
            let piece = &bytes[self.given..bytes.len().min(self.given + PIECE)];
            self.transport.send(piece, &mut desk.wire)?;
            desk.recorder.counters.bytes_sent += piece.len() as u64;
            self.given += piece.len();
        }
        Ok(())
    }

    fn read(
        &mut self,
        input: &[u8],
        end: Option<End>,
        opened: bool,
        desk: &mut Desk<'_>,
    ) -> Result<Outcome, Wrong> {
        let ends = end.is_some();
        match self.phase {
            Phase::Busy { planned, written, first } => {
                if first.is_none() && !input.is_empty() {
                    self.phase = Phase::Busy { planned, written, first: Some(desk.now) };
                }
                self.answer(input, end, desk)
            }
            Phase::Ending if ends => Ok(Outcome::Ended),
            Phase::Ending => Ok(Outcome::Waits),
            Phase::AwaitingVerdict if ends || self.transport.tickets_received() > 0 => Ok(Outcome::Ended),
            Phase::AwaitingTicket(_) if ends || self.transport.tickets_received() > 0 => Ok(Outcome::Ticket),
            _ if !input.is_empty() => {
                Err(Wrong::fixed(ErrorClass::Malformed, "bytes from the server before any request"))
            }
            Phase::Opening(_) if ends => {
                Err(Wrong::fixed(ErrorClass::Closed, "the server closed the connection before it stood"))
            }
            Phase::Idle if ends => Ok(Outcome::Ended),
            _ if opened => Ok(Outcome::Opened),
            _ => Ok(Outcome::Waits),
        }
    }

    fn answer(&mut self, input: &[u8], end: Option<End>, desk: &mut Desk<'_>) -> Result<Outcome, Wrong> {
        let mut at = 0;
        loop {
            let Some(body) = &mut self.body else {
                match self.head(&input[at..], desk)? {
                    Some(length) => at += length,
                    None => break,
                }
                continue;
            };
            let decoded = body.decoder.decode(&input[at..]).map_err(|error| Wrong {
                class: ErrorClass::Malformed,
                detail: Detail::Text(error.to_string()),
            })?;
            body.received += decoded.data.len() as u64;
            if let Some(digest) = &mut body.digest {
                digest.update(&input[at..][decoded.data.clone()]);
            }
            at += decoded.consumed;
            if end == Some(End::Clean) && at == input.len() && body.closes {
                // What was framed by the connection's end is complete; anything else stays what it is. An end of TLS
                // without close_notify may be anybody's, and completes nothing (RFC 9112 section 9.8).
                let _ = body.decoder.end_of_input();
            }
            if body.decoder.is_complete() {
                return self.complete(at < input.len(), end.is_some(), desk);
            }
            if decoded.consumed == 0 {
                break;
            }
        }
        if end.is_some() {
            return Err(Wrong::fixed(ErrorClass::Closed, "the connection ended before the answer did"));
        }
        self.kept.extend_from_slice(&input[at..]);
        Ok(Outcome::Waits)
    }

    /// Reads a head; its length, or `None` when it is not complete.
    fn head(&mut self, input: &[u8], desk: &mut Desk<'_>) -> Result<Option<usize>, Wrong> {
        if input.is_empty() {
            return Ok(None);
        }
        let length = match desk.head.parse(input, &desk.limits) {
            Ok(Parse::Complete(length)) => length,
            Ok(Parse::Partial) => return Ok(None),
            Err(error) => return Err(Wrong::no_http(input, &error)),
        };
        let status = desk.head.status;
        match status {
            101 => {
                return Err(Wrong::fixed(
                    ErrorClass::Malformed,
                    "101 to a request that asked for no upgrade",
                ));
            }
            // An interim answer (RFC 9110 section 15.2): the final one follows.
            100..=199 => return Ok(Some(length)),
            _ => {}
        }
        let framing = desk.head.framing(self.request(desk).method);
        let closes = !desk.head.persistent || framing == Framing::UntilClose;
        let decoder = BodyDecoder::new(framing, &desk.limits);
        let digest = self.request(desk).expect.digest();
        self.body = Some(Body { decoder, received: 0, digest, status, closes });
        Ok(Some(length))
    }

    fn complete(&mut self, more: bool, end: bool, desk: &mut Desk<'_>) -> Result<Outcome, Wrong> {
        let (Some(body), Phase::Busy { planned, written, first }) = (self.body.take(), self.phase) else {
            return Ok(Outcome::Waits);
        };
        self.answered += 1;
        if self.answered == 1 {
            self.count_tickets(desk);
        }
        self.phase = Phase::Idle;
        let request = self.request(desk);
        let bodiless = request.method == Method::Head;
        let wrong = if !request.expect.status_is_right(body.status) {
            Some(Wrong::number(ErrorClass::Status, "status", u64::from(body.status)))
        } else if !bodiless && !request.expect.length_is_right(body.received) {
            Some(Wrong::number(ErrorClass::Length, "a body of bytes:", body.received))
        } else if !bodiless && !request.expect.digest_is_right(body.digest) {
            Some(Wrong::fixed(ErrorClass::Digest, "a body with another SHA-256"))
        } else if more {
            Some(Wrong::fixed(ErrorClass::Malformed, "bytes behind the end of the answer"))
        } else {
            desk.recorder.answer(Course { planned, written, first, end: desk.now });
            None
        };
        // An answer that came before all of the request was sent leaves the connection in the middle of it.
        let sent = self.given == request.bytes(self.last).len();
        let then = match sent && !more && !end {
            true if !(body.closes || self.last) => Then::Reuse,
            true if body.closes => Then::AwaitEnd,
            _ => Then::Close,
        };
        Ok(Outcome::Answered { wrong, then })
    }
}
