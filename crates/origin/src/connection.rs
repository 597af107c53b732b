//! One connection: requests in, known answers out.

use crate::answer::{BYTES, CONTINUE, JSON, Status, TEXT, Terms};
use crate::counters::Counters;
use crate::desk::{Desk, Needs};
use crate::null;
use crate::pattern;
use crate::route::{Resource, Route};
use std::time::{Duration, Instant};
use weir_http1::{BodyDecoder, Framing, Method, Parse, chunk, last_chunk};
use weir_reactor::{Key, Reactor};
use weir_transport::{End, Fault, Transport};

/// One connection.
pub(crate) struct Connection {
    transport: Transport,
    state: State,
    /// Received and not yet used: a partial head, or requests that wait for an answer in progress.
    kept: Vec<u8>,
    /// The peer has sent its last byte.
    ended: bool,
    /// Not watched for bytes, since none are wanted now.
    paused: bool,
}

enum State {
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
enum Step {
    Consumed(usize),
    Blocked,
}

/// What one visit may send, so that a large answer does not hold up the other connections.
const SHARE: usize = 512 * 1024;

/// Bodies up to this size are sent together with their head in one write.
const COPIED: usize = 16 * 1024;

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

    fn flush(&mut self, desk: &mut Desk) -> Result<(), Fault> {
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

    /// A request is complete, or its head is and its body is to be echoed.
    fn requested(
        &mut self,
        route: Route,
        terms: Terms,
        echo: Option<(BodyDecoder, Framing)>,
        desk: &mut Desk,
    ) {
        if echo.is_none() {
            desk.count().requests.add(1);
        }
        if route.delay.is_zero() {
            self.answer(route, terms, echo, desk);
        } else {
            self.state = State::Delay { until: Instant::now() + route.delay, route, terms, echo };
        }
    }

    fn answer(
        &mut self,
        route: Route,
        mut terms: Terms,
        echo: Option<(BodyDecoder, Framing)>,
        desk: &mut Desk,
    ) {
        if let Some((decoder, framing)) = echo {
            self.state = State::Echo { decoder, framing, terms, begun: false };
            return;
        }
        let counters = &desk.counters;
        let (status, kind, body) = match route.resource {
            Resource::Bytes(total) => return self.begin_stream(total, route.chunked, terms, desk),
            Resource::Hello => (Status::Ok, TEXT, "The Weir test server: /bytes/N, /echo, /stats.\n".into()),
            Resource::Echo => (Status::Ok, BYTES, String::new()),
            Resource::Stats => (Status::Ok, JSON, Counters::sum(counters).to_json()),
            Resource::Unknown => (Status::NotFound, TEXT, "Nothing is here.\n".into()),
            Resource::Invalid(why) => (Status::BadRequest, TEXT, format!("{why}\n")),
        };
        let framing = terms.framing(body.len() as u64, route.chunked);
        terms.head(status, kind, framing, desk.date.at(desk.now), &mut desk.out);
        if !terms.head_only {
            match framing {
                Framing::Chunked => {
                    chunk(body.as_bytes(), &mut desk.out);
                    last_chunk(&mut desk.out);
                }
                _ => desk.out.extend_from_slice(body.as_bytes()),
            }
            desk.count().bytes_sent.add(body.len() as u64);
        }
        self.answered(terms.close, desk);
    }

    fn begin_stream(&mut self, total: u64, chunked: bool, mut terms: Terms, desk: &mut Desk) {
        let framing = terms.framing(total, chunked);
        terms.head(Status::Ok, BYTES, framing, desk.date.at(desk.now), &mut desk.out);
        if terms.head_only {
            self.answered(terms.close, desk);
        } else if total <= COPIED as u64 && framing != Framing::Chunked {
            desk.out.extend_from_slice(pattern::from(0, total));
            desk.count().bytes_sent.add(total);
            self.answered(terms.close, desk);
        } else {
            let chunked = framing == Framing::Chunked;
            self.state = State::Stream { at: 0, total, chunked, close: terms.close };
        }
    }

    fn stream(&mut self, share: &mut usize, desk: &mut Desk) -> Result<Step, Fault> {
        let State::Stream { at, total, chunked, close } = &mut self.state else { return Ok(Step::Blocked) };
        if *share == 0 {
            return Ok(Step::Blocked);
        }
        let (chunked, close) = (*chunked, *close);
        let piece = pattern::from(*at, *total - *at);
        *at += piece.len() as u64;
        let done = *at == *total;
        *share = share.saturating_sub(piece.len());
        desk.count().bytes_sent.add(piece.len() as u64);
        if chunked {
            chunk(piece, &mut desk.out);
            if done {
                last_chunk(&mut desk.out);
            }
        } else {
            self.flush(desk)?;
            self.transport.send(piece, &mut desk.wire)?;
        }
        if done {
            self.answered(close, desk);
        }
        Ok(Step::Consumed(0))
    }

    fn echo(&mut self, input: &[u8], desk: &mut Desk) -> Result<Step, Fault> {
        let State::Echo { decoder, framing, terms, begun } = &mut self.state else {
            return Ok(Step::Blocked);
        };
        let decoded = match decoder.decode(input) {
            Ok(decoded) => decoded,
            // Once the answer has begun, only its end can tell that something is wrong.
            Err(_) if *begun => {
                desk.count().refused.add(1);
                self.state = State::Closing { until: None };
                return Ok(Step::Blocked);
            }
            Err(error) => return Ok(self.refuse(error.status(), &error.to_string(), desk)),
        };
        let done = decoder.is_complete();
        if decoded.consumed == 0 && !done {
            return Ok(Step::Blocked);
        }
        let answer = if *framing == Framing::None { Framing::Length(0) } else { *framing };
        if !*begun {
            *begun = true;
            terms.head(Status::Ok, BYTES, answer, desk.date.at(desk.now), &mut desk.out);
        }
        let data = &input[decoded.data];
        if answer == Framing::Chunked {
            chunk(data, &mut desk.out);
            if done {
                last_chunk(&mut desk.out);
            }
        } else {
            desk.out.extend_from_slice(data);
        }
        let close = terms.close;
        desk.count().bytes_received.add(data.len() as u64);
        desk.count().bytes_sent.add(data.len() as u64);
        if done {
            desk.count().requests.add(1);
            self.answered(close, desk);
        }
        Ok(Step::Consumed(decoded.consumed))
    }

    fn answered(&mut self, close: bool, desk: &mut Desk) {
        desk.count().answers.add(1);
        self.state = if close || desk.draining { State::Closing { until: None } } else { State::Head };
    }

    fn refuse(&mut self, status: u16, why: &str, desk: &mut Desk) -> Step {
        desk.count().refused.add(1);
        let terms = Terms { version: weir_http1::Version::Http11, head_only: false, close: true };
        let date = desk.date.at(desk.now);
        terms.whole(Status::of_refusal(status), TEXT, format!("{why}\n").as_bytes(), date, &mut desk.out);
        self.state = State::Closing { until: None };
        Step::Blocked
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
