//! One connection of the engine: sends a request, receives and checks the response.

use crate::check::{Detail, ErrorClass, Wrong};
use crate::record::recorder::{Course, Recorder};
use crate::request::Request;
use crate::request::mix::Mix;
use crate::setup::{Setup, count_tickets};
use crate::worker::{Http1, Protocol};
use aws_lc_rs::digest;
use std::time::Instant;
use weir_http::Method;
use weir_http1::{BodyDecoder, Framing, Parse};
use weir_reactor::Timer;
use weir_transport::{End, Transport, Wire};

pub(crate) struct Connection {
    pub(crate) transport: Transport,
    pub(crate) phase: Phase,
    /// Set while the phase waits for the peer; the phase tells what a passed deadline means.
    pub(crate) timer: Timer<()>,
    /// Responses so far.
    pub(crate) answered: u64,
    /// Maximum number of requests.
    pub(crate) quota: u64,
    /// Consecutive previous connections without a response.
    pub(crate) failures: u32,
    pub(crate) setup: Setup,
    /// Its one request is sent to get a session with the response.
    pub(crate) primes: bool,
    /// A partial head.
    kept: Vec<u8>,
    /// The head is complete.
    body: Option<Body>,
    /// Bytes of the request given to the transport, and whether it asks to close.
    given: usize,
    last: bool,
    /// The position of the request in the mix.
    place: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    Opening(Purpose),
    /// Between requests.
    Idle,
    /// Waiting for a response.
    Busy {
        planned: Instant,
        written: Instant,
        first: Option<Instant>,
    },
    /// The handshake is done; waiting for a session ticket (TLS 1.3).
    AwaitingTicket(Purpose),
    /// The handshake is done on this side, but in TLS 1.3 the server may still reject it, for example the client
    /// certificate (RFC 8446 section 4.4.2.4); waiting for its first record.
    AwaitingVerdict,
    /// Done, and the server announced a close: let it close first, so that TIME_WAIT (RFC 9293
    /// section 3.6.1) is on its side.
    Ending,
}

/// What a connection is opened for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// Any request.
    Stock,
    /// The request planned for this instant.
    Request(Instant),
    /// The handshake planned for this instant.
    Handshake(Instant),
    /// A session to resume later.
    Session,
}

struct Body {
    decoder: BodyDecoder,
    received: u64,
    digest: Option<digest::Context>,
    status: u16,
    /// The server closes the connection after the response.
    closes: bool,
}

/// The outcome of an event.
pub(crate) enum Outcome {
    Waits,
    Opened,
    /// The response is complete, correct or not; the connection's fate.
    Answered {
        wrong: Option<Wrong>,
        then: Then,
    },
    /// A session to resume is available.
    Ticket,
    /// The server closed an idle connection.
    Ended,
}

/// What happens to a connection after a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Then {
    /// It takes another request.
    Reuse,
    /// The server will close it.
    AwaitEnd,
    /// It can no longer be used.
    Close,
}

/// State shared by all connections of a worker.
pub(crate) struct Context<'a, P: Protocol = Http1> {
    pub(crate) wire: Wire,
    pub(crate) recorder: Recorder,
    /// The time of the current event.
    pub(crate) now: Instant,
    pub(crate) mix: &'a Mix<P::Request>,
    /// The position of the next request in the mix.
    pub(crate) place: u64,
    pub(crate) input: Vec<u8>,
    pub(crate) head: P::Head,
    limits: P::Limits,
}

/// How much of a large request body is given to the transport at once.
const PIECE: usize = 256 * 1024;

impl<'a, P: Protocol> Context<'a, P> {
    /// Starts the mix at `place`.
    pub(crate) fn new(mix: &'a Mix<P::Request>, place: u64, recorder: Recorder, now: Instant) -> Self {
        Self {
            wire: Wire::default(),
            recorder,
            now,
            mix,
            place,
            input: Vec::new(),
            head: P::Head::default(),
            limits: P::Limits::default(),
        }
    }
}

impl Purpose {
    /// The planned instant of its purpose.
    pub(crate) fn planned(self) -> Option<Instant> {
        match self {
            Self::Request(planned) | Self::Handshake(planned) => Some(planned),
            Self::Stock | Self::Session => None,
        }
    }
}

impl Connection {
    pub(crate) fn new(transport: Transport, purpose: Purpose, setup: Setup) -> Self {
        Self {
            transport,
            phase: Phase::Opening(purpose),
            timer: Timer::default(),
            answered: 0,
            quota: u64::MAX,
            failures: 0,
            setup,
            primes: false,
            kept: Vec::new(),
            body: None,
            given: 0,
            last: false,
            place: 0,
        }
    }

    /// Starts the next request of the mix.
    pub(crate) fn begin(&mut self, planned: Instant, context: &mut Context<'_>) -> Result<(), Wrong> {
        self.phase = Phase::Busy { planned, written: context.now, first: None };
        self.given = 0;
        self.last = self.answered + 1 >= self.quota;
        self.place = context.place;
        context.place += 1;
        self.give(context)
    }

    /// Handles readiness. Reads the clock once, after the read.
    pub(crate) fn event(
        &mut self,
        readable: bool,
        writable: bool,
        context: &mut Context<'_>,
    ) -> Result<Outcome, Wrong> {
        let was_open = self.transport.is_open();
        if writable {
            self.setup.advance(&mut self.transport, context)?;
            if matches!(self.phase, Phase::Busy { .. }) {
                self.give(context)?;
            }
        }
        let mut opened = !was_open && self.transport.is_open();
        if !readable || self.transport.is_connecting() {
            return Ok(if opened { Outcome::Opened } else { Outcome::Waits });
        }

        let mut input = std::mem::take(&mut context.input);
        input.clear();
        if !self.kept.is_empty() {
            input.append(&mut self.kept);
            self.kept = Vec::new();
        }
        let received = self.transport.receive(&mut context.wire, &mut input);
        context.now = Instant::now();
        let outcome = received.map_err(Wrong::from).and_then(|received| {
            context.recorder.counters.bytes_received += received.bytes as u64;
            if received.handshake_finished {
                opened = true;
                self.handshake_done(context);
            }
            self.read(&input, received.end, opened, context)
        });
        context.input = input;
        outcome
    }

    /// Gives up what is in flight: each of its times is censored at now.
    pub(crate) fn give_up(&self, context: &mut Context<'_>) {
        let now = context.now;
        match self.phase {
            Phase::Busy { planned, written, first } => {
                let recorder = &mut context.recorder;
                recorder.given_up(planned, Some(written), now);
                if first.is_none() {
                    recorder.first_byte_given_up(planned, written, now);
                }
            }
            Phase::Opening(purpose) => {
                let connected = self.setup.give_up(&self.transport, context);
                if let Some(planned) = purpose.planned() {
                    let written = connected.filter(|_| matches!(purpose, Purpose::Handshake(_)));
                    context.recorder.given_up(planned, written, now);
                }
            }
            Phase::Idle | Phase::AwaitingTicket(_) | Phase::AwaitingVerdict | Phase::Ending => {}
        }
    }

    /// It waits for its next request, however long.
    pub(crate) fn rest(&mut self) {
        self.phase = Phase::Idle;
        self.timer.clear();
    }

    /// Whether closing it would lose a request.
    pub(crate) fn has_request(&self) -> bool {
        let Phase::Opening(purpose) = self.phase else { return matches!(self.phase, Phase::Busy { .. }) };
        purpose.planned().is_some()
    }

    fn handshake_done(&mut self, context: &mut Context<'_>) {
        let Some(facts) = self.transport.facts() else { return };
        self.setup.handshake_done(facts, context);
        if self.phase == Phase::Opening(Purpose::Session) {
            context.recorder.counters.primed += 1;
        }
    }

    fn request<'a>(&self, context: &Context<'a>) -> &'a Request {
        context.mix.nth(self.place)
    }

    /// Gives the transport as much of the request as it takes without buffering much.
    fn give(&mut self, context: &mut Context<'_>) -> Result<(), Wrong> {
        let bytes = self.request(context).bytes(self.last);
        while self.given < bytes.len() && self.transport.pending() == 0 {
            let piece = &bytes[self.given..bytes.len().min(self.given + PIECE)];
            self.transport.send(piece, &mut context.wire)?;
            context.recorder.counters.bytes_sent += piece.len() as u64;
            self.given += piece.len();
        }
        Ok(())
    }

    fn read(
        &mut self,
        input: &[u8],
        end: Option<End>,
        opened: bool,
        context: &mut Context<'_>,
    ) -> Result<Outcome, Wrong> {
        let ends = end.is_some();
        match self.phase {
            Phase::Busy { planned, written, first } => {
                if first.is_none() && !input.is_empty() {
                    self.phase = Phase::Busy { planned, written, first: Some(context.now) };
                }
                self.answer(input, end, context)
            }
            Phase::Ending if ends => Ok(Outcome::Ended),
            Phase::Ending => Ok(Outcome::Waits),
            Phase::AwaitingVerdict if ends || self.transport.tickets_received() > 0 => Ok(Outcome::Ended),
            Phase::AwaitingTicket(_) if ends || self.transport.tickets_received() > 0 => Ok(Outcome::Ticket),
            _ if !input.is_empty() => {
                Err(Wrong::fixed(ErrorClass::Malformed, "data from the server before any request"))
            }
            Phase::Opening(_) if ends => {
                Err(Wrong::fixed(ErrorClass::Closed, "the server closed the connection during setup"))
            }
            Phase::Idle if ends => Ok(Outcome::Ended),
            _ if opened => Ok(Outcome::Opened),
            _ => Ok(Outcome::Waits),
        }
    }

    fn answer(
        &mut self,
        input: &[u8],
        end: Option<End>,
        context: &mut Context<'_>,
    ) -> Result<Outcome, Wrong> {
        let mut at = 0;
        loop {
            let Some(body) = &mut self.body else {
                match self.head(&input[at..], context)? {
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
                // A body framed by the connection's end is complete; anything else is not. An end of TLS
                // without close_notify may be an attack, and completes nothing (RFC 9112 section 9.8).
                let _ = body.decoder.end_of_input();
            }
            if body.decoder.is_complete() {
                return self.complete(at < input.len(), end.is_some(), context);
            }
            if decoded.consumed == 0 {
                break;
            }
        }
        if end.is_some() {
            return Err(Wrong::fixed(
                ErrorClass::Closed,
                "the connection ended before the response was complete",
            ));
        }
        self.kept.extend_from_slice(&input[at..]);
        Ok(Outcome::Waits)
    }

    /// Parses a head; its length, or `None` if incomplete.
    fn head(&mut self, input: &[u8], context: &mut Context<'_>) -> Result<Option<usize>, Wrong> {
        if input.is_empty() {
            return Ok(None);
        }
        let length = match context.head.parse(input, &context.limits) {
            Ok(Parse::Complete(length)) => length,
            Ok(Parse::Partial) => return Ok(None),
            Err(error) => return Err(Wrong::no_http(input, &error)),
        };
        let status = context.head.status;
        match status {
            101 => {
                return Err(Wrong::fixed(ErrorClass::Malformed, "101 without an upgrade request"));
            }
            // An interim response (RFC 9110 section 15.2): the final one follows.
            100..=199 => return Ok(Some(length)),
            _ => {}
        }
        let framing = context.head.framing(self.request(context).method);
        let closes = !context.head.persistent || framing == Framing::UntilClose;
        let decoder = BodyDecoder::new(framing, &context.limits);
        let digest = self.request(context).expect.digest();
        self.body = Some(Body { decoder, received: 0, digest, status, closes });
        Ok(Some(length))
    }

    fn complete(&mut self, more: bool, end: bool, context: &mut Context<'_>) -> Result<Outcome, Wrong> {
        let (Some(body), Phase::Busy { planned, written, first }) = (self.body.take(), self.phase) else {
            return Ok(Outcome::Waits);
        };
        self.answered += 1;
        if self.answered == 1 {
            count_tickets(&self.transport, context);
        }
        self.rest();
        let request = self.request(context);
        let bodiless = request.method == Method::Head;
        let wrong = if !request.expect.status_is_right(body.status) {
            Some(Wrong::number(ErrorClass::Status, "status", u64::from(body.status)))
        } else if !bodiless && !request.expect.length_is_right(body.received) {
            Some(Wrong::number(ErrorClass::Length, "unexpected body length:", body.received))
        } else if !bodiless && !request.expect.digest_is_right(body.digest) {
            Some(Wrong::fixed(ErrorClass::Digest, "unexpected body SHA-256"))
        } else if more {
            Some(Wrong::fixed(ErrorClass::Malformed, "data after the end of the response"))
        } else {
            context.recorder.answer(Course { planned, written, first, end: context.now });
            None
        };
        // A response before the whole request was sent leaves the connection mid-request.
        let sent = self.given == request.bytes(self.last).len();
        let then = match sent && !more && !end {
            true if !(body.closes || self.last) => Then::Reuse,
            true if body.closes => Then::AwaitEnd,
            _ => Then::Close,
        };
        Ok(Outcome::Answered { wrong, then })
    }
}
