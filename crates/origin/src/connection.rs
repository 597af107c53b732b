//! One connection: requests in, known answers out.

use crate::answer::{CONTINUE, Terms};
use crate::desk::{Desk, Needs};
use crate::null;
use crate::pattern;
use crate::route::{Resource, Route};
use std::time::{Duration, Instant};
use weir_http1::{BodyDecoder, Framing, Method, Parse};
use weir_reactor::{Key, Reactor};
use weir_transport::{End, Fault, Transport};

/// One connection.
pub(crate) struct Connection {
    pub(crate) transport: Transport,
    pub(crate) state: State,
    /// Received and not yet used: a partial head, or requests that wait for an answer in progress.
    kept: Vec<u8>,
    /// The peer has sent its last byte.
    ended: bool,
    /// Not watched for bytes, since none are wanted now.
    paused: bool,
}

pub(crate) enum State {
    /// Between two requests, or within a head.
    Head,
    /// The request's body is read and dropped; then comes the answer.
    Body { decoder: BodyDecoder, route: Route, terms: Terms },
    /// The answer waits for its time; so does the body that is to be echoed.
    Delay { until: Instant, route: Route, terms: Terms, echo: Option<(BodyDecoder, Framing)> },
    /// The request's body goes back as it comes. The head goes with the first piece.
    Echo { decoder: BodyDecoder, framing: Framing, terms: Terms, begun: bool },
    /// Bytes `at..total` of the pattern are still to be sent.
    Stream { at: u64, total: u64, chunked: bool, close: bool },
    /// All is said; the peer's end is awaited, so that closing does not reset what it has not read yet.
    Closing { until: Option<Instant> },
}

/// What one step did.
pub(crate) enum Step {
    Consumed(usize),
    Blocked,
}

/// What one visit may send, so that a large answer does not hold up the other connections.
const SHARE: usize = 512 * 1024;

/// How long the peer may take to notice the end of a connection.
const LINGER: Duration = Duration::from_secs(2);

impl Connection {
    pub(crate) fn new(transport: Transport) -> Self {
        Self { transport, state: State::Head, kept: Vec::new(), ended: false, paused: false }
    }

    /// Goes on as far as possible.
    pub(crate) fn visit(&mut self, readable: bool, writable: bool, desk: &mut Desk) -> Result<Needs, Fault> {
        if !self.is_closing()
            && let Some(answer) = desk.null.take()
        {
            let needs = null::visit(&mut self.transport, &answer, (readable, writable), desk);
            desk.null = Some(answer);
            return needs;
        }
        if writable && self.transport.pending() > 0 {
            self.transport.advance(&mut desk.wire)?;
        }
        let mut input = std::mem::take(&mut desk.input);
        input.clear();
        input.append(&mut self.kept);
        self.kept = Vec::new();
        if readable {
            self.receive(&mut input, desk)?;
        }
        let needs = self.go_on(&input, desk);
        desk.input = input;
        needs
    }

    /// Begins nothing new: a connection between two requests ends now. A request that has arrived already is answered.
    pub(crate) fn drain(&mut self, desk: &mut Desk) -> Result<Needs, Fault> {
        let needs = self.visit(true, false, desk)?;
        if needs.end || self.is_closing() {
            return Ok(needs);
        }
        if matches!(self.state, State::Head) && self.kept.is_empty() && self.transport.is_open() {
            self.state = State::Closing { until: None };
        }
        self.go_on(&[], desk)
    }

    /// Has the poller tell what this connection waits for.
    pub(crate) fn watch(&mut self, reactor: &Reactor, key: Key) -> std::io::Result<()> {
        self.paused &= !self.wants_input();
        self.transport.watch(reactor, key, !self.paused)
    }

    /// Whether all that it was asked for has been said.
    pub(crate) fn is_closing(&self) -> bool {
        matches!(self.state, State::Closing { .. })
    }

    pub(crate) fn wants_input(&self) -> bool {
        if self.ended {
            return false;
        }
        match self.state {
            State::Closing { .. } => true,
            // Whoever does not take answers is asked for no more requests.
            State::Head | State::Body { .. } | State::Echo { .. } => {
                !self.transport.is_open() || self.transport.pending() == 0
            }
            State::Delay { .. } | State::Stream { .. } => false,
        }
    }

    fn receive(&mut self, input: &mut Vec<u8>, desk: &mut Desk) -> Result<(), Fault> {
        if !self.wants_input() {
            self.paused = true;
            return Ok(());
        }
        let received = self.transport.receive(&mut desk.wire, input)?;
        if received.handshake_finished
            && let Some(facts) = self.transport.facts()
        {
            desk.count().handshake(facts);
        }
        if let Some(end) = received.end {
            self.ended = true;
            // Only what the framing leaves open is in doubt after a TLS stream that was cut off, and a request's
            // framing leaves nothing open.
            if end == End::Truncated && !self.transport.is_open() {
                desk.count().failed.add(1);
            }
        }
        Ok(())
    }

    fn go_on(&mut self, input: &[u8], desk: &mut Desk) -> Result<Needs, Fault> {
        let mut used = 0;
        let mut share = SHARE;
        desk.out.clear();
        while let Step::Consumed(bytes) = self.step(&input[used..], &mut share, desk)? {
            used += bytes;
            if desk.out.len() >= pattern::PIECE {
                self.flush(desk)?;
            }
        }
        self.flush(desk)?;
        if matches!(self.state, State::Closing { .. }) {
            return self.close(desk);
        }
        self.kept.extend_from_slice(&input[used..]);
        // Bytes that wait for an answer in progress need no end of the stream to be told.
        if self.ended && self.transport.pending() == 0 && !self.waits_for_itself() {
            let cut = !self.kept.is_empty() || !matches!(self.state, State::Head);
            desk.count().failed.add(u64::from(cut));
            return Ok(Needs { end: true, ..Needs::default() });
        }
        Ok(Needs {
            end: false,
            again: share == 0 && self.transport.pending() == 0,
            wake: match self.state {
                State::Delay { until, .. } => Some(until),
                _ => None,
            },
        })
    }

    /// Whether the connection goes on without a byte from its peer.
    fn waits_for_itself(&self) -> bool {
        matches!(self.state, State::Delay { .. } | State::Stream { .. })
    }

    pub(crate) fn flush(&mut self, desk: &mut Desk) -> Result<(), Fault> {
        if !desk.out.is_empty() {
            self.transport.send(&desk.out, &mut desk.wire)?;
            desk.out.clear();
        }
        Ok(())
    }

    fn step(&mut self, input: &[u8], share: &mut usize, desk: &mut Desk) -> Result<Step, Fault> {
        if self.transport.pending() > 0 && self.transport.is_open() {
            return Ok(Step::Blocked);
        }
        match &mut self.state {
            State::Head if input.is_empty() => Ok(Step::Blocked),
            State::Head => Ok(self.read_head(input, desk)),
            State::Body { decoder, route, terms } => {
                let (route, terms) = (*route, *terms);
                match decoder.decode(input) {
                    Err(error) => Ok(self.refuse(error.status(), &error.to_string(), desk)),
                    Ok(decoded) => {
                        desk.count().bytes_received.add(decoded.data.len() as u64);
                        if decoder.is_complete() {
                            self.requested(route, terms, None, desk);
                        } else if decoded.consumed == 0 {
                            return Ok(Step::Blocked);
                        }
                        Ok(Step::Consumed(decoded.consumed))
                    }
                }
            }
            State::Delay { until, route, terms, echo } => {
                if desk.now < *until {
                    return Ok(Step::Blocked);
                }
                let (route, terms, echo) = (*route, *terms, echo.take());
                self.answer(route, terms, echo, desk);
                Ok(Step::Consumed(0))
            }
            State::Echo { .. } => self.echo(input, desk),
            State::Stream { .. } => self.stream(share, desk),
            State::Closing { .. } => Ok(Step::Blocked),
        }
    }

    fn read_head(&mut self, input: &[u8], desk: &mut Desk) -> Step {
        let length = match desk.head.parse(input, &desk.limits) {
            Ok(Parse::Complete(length)) => length,
            Ok(Parse::Partial) => return Step::Blocked,
            Err(error) => return self.refuse(error.status(), &error.to_string(), desk),
        };
        let head = &desk.head;
        let route = Route::of(head.path.of(input));
        let terms = Terms {
            version: head.version,
            head_only: head.method == Method::Head,
            close: !head.persistent || desk.draining,
        };
        let framing = head.framing;
        if head.expect_continue && input.len() == length {
            desk.out.extend_from_slice(CONTINUE);
        }
        let decoder = BodyDecoder::new(framing, &desk.limits);
        if route.resource == Resource::Echo && !terms.head_only {
            self.requested(route, terms, Some((decoder, framing)), desk);
        } else if decoder.is_complete() {
            self.requested(route, terms, None, desk);
        } else {
            self.state = State::Body { decoder, route, terms };
        }
        Step::Consumed(length)
    }

    fn close(&mut self, desk: &mut Desk) -> Result<Needs, Fault> {
        self.transport.finish()?;
        let State::Closing { until } = &mut self.state else { return Ok(Needs::default()) };
        let all_sent = self.transport.pending() == 0;
        if all_sent && (self.ended || until.is_some_and(|until| desk.now >= until)) {
            return Ok(Needs { end: true, ..Needs::default() });
        }
        let wake = match until {
            None if all_sent => Some(*until.insert(desk.now + LINGER)),
            _ => None,
        };
        Ok(Needs { wake, ..Needs::default() })
    }
}
