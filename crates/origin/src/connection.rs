//! One connection: requests in, known responses out. This is HTTP/1.1; [`h2`](crate::h2) is HTTP/2.

use crate::context::{Context, Needs};
use crate::echo::Echo;
use crate::h2::{self, Http2, Turn};
use crate::null;
use crate::pattern;
use crate::response::{CONTINUE, Terms};
use crate::route::{Resource, Route};
use crate::settings::{H2, HttpVersions};
use std::time::{Duration, Instant};
use weir_http::Method;
use weir_http1::{BodyDecoder, Framing, Parse};
use weir_reactor::{Key, Reactor};
use weir_transport::{End, Fault, Transport};

/// One connection.
pub(crate) struct Connection {
    pub(crate) transport: Transport,
    pub(crate) state: State,
    /// Received but unprocessed: a partial head, or pipelined requests.
    kept: Vec<u8>,
    /// The peer closed its sending side.
    ended: bool,
    /// The poller does not report input, as the state takes none.
    paused: bool,
}

pub(crate) enum State {
    /// Before the first request, whose bytes may choose HTTP/2, or within a TLS handshake.
    First,
    /// Between requests, or within a head.
    Head,
    /// Discarding the request's body, before the response.
    Body { decoder: BodyDecoder, route: Route, terms: Terms },
    /// The response is delayed, and so is a body to echo.
    Delay { until: Instant, route: Route, terms: Terms, echo: Option<(BodyDecoder, Framing)> },
    /// Echoing the request's body.
    Echo(Echo),
    /// Sending a long body.
    Stream(Streaming),
    /// HTTP/2, from the first bytes on.
    Http2(Box<Http2>),
    /// Done; waiting for the peer's close, so that ours does not reset unread data.
    Closing { until: Option<Instant> },
}

/// The rest of a body: bytes `at..total` of the pattern.
#[derive(Clone, Copy)]
pub(crate) struct Streaming {
    pub(crate) at: u64,
    pub(crate) total: u64,
    pub(crate) chunked: bool,
    /// The connection closes after the response.
    pub(crate) close: bool,
}

/// The result of one step.
pub(crate) enum Step {
    Consumed(usize),
    Blocked,
}

/// Maximum bytes sent by one visit, so that a large response does not delay other connections.
const SHARE: usize = 512 * 1024;

/// Timeout for the peer's close.
const LINGER: Duration = Duration::from_secs(2);

impl Connection {
    pub(crate) fn new(transport: Transport, context: &Context) -> Self {
        let state = match context.http {
            HttpVersions::Http2 if transport.is_open() => State::Http2(Http2::new(context)),
            HttpVersions::Both | HttpVersions::Http2 => State::First,
            HttpVersions::Http1 => State::Head,
        };
        Self { transport, state, kept: Vec::new(), ended: false, paused: false }
    }

    /// Makes as much progress as possible.
    pub(crate) fn visit(
        &mut self,
        readable: bool,
        writable: bool,
        context: &mut Context,
    ) -> Result<Needs, Fault> {
        if !self.is_closing()
            && let Some(response) = context.null.take()
        {
            let needs = null::visit(&mut self.transport, &response, (readable, writable), context);
            context.null = Some(response);
            return needs;
        }
        if writable && self.transport.pending() > 0 {
            self.transport.advance(&mut context.wire)?;
        }
        let mut input = std::mem::take(&mut context.input);
        input.clear();
        input.append(&mut self.kept);
        self.kept = Vec::new();
        if readable {
            self.receive(&mut input, context)?;
        }
        let needs = match &mut self.state {
            State::Http2(http2) => {
                let turn = http2.turn(&mut input, self.ended, &mut self.transport, context);
                turn.and_then(|turn| self.turned(&turn, &input, context))
            }
            _ => self.go_on(&input, context),
        };
        context.input = input;
        needs
    }

    /// Starts nothing new: an idle connection closes now. Received requests still get their responses.
    pub(crate) fn drain(&mut self, context: &mut Context) -> Result<Needs, Fault> {
        let needs = self.visit(true, false, context)?;
        if needs.end || self.is_closing() {
            return Ok(needs);
        }
        if matches!(self.state, State::Http2(_)) {
            return Ok(needs);
        }
        if self.is_between() && self.kept.is_empty() && self.transport.is_open() {
            self.state = State::Closing { until: None };
        }
        self.go_on(&[], context)
    }

    /// Updates the poller's interest.
    pub(crate) fn watch(&mut self, reactor: &Reactor, key: Key) -> std::io::Result<()> {
        self.paused &= !self.wants_input();
        self.transport.watch(reactor, key, !self.paused)
    }

    /// Whether all requests have their responses, and no more are read.
    pub(crate) fn is_closing(&self) -> bool {
        matches!(self.state, State::Closing { .. })
    }

    /// Whether the peer may close the connection in any way.
    pub(crate) fn owes_nothing(&self) -> bool {
        match &self.state {
            State::Closing { .. } => true,
            State::Http2(http2) => http2.is_idle() && self.transport.pending() == 0,
            _ => false,
        }
    }

    pub(crate) fn wants_input(&self) -> bool {
        if self.ended {
            return false;
        }
        match self.state {
            State::Closing { .. } => true,
            // A peer that does not read responses may not send more requests.
            State::First | State::Head | State::Body { .. } | State::Echo(_) => {
                !self.transport.is_open() || self.transport.pending() == 0
            }
            State::Http2(ref http2) => self.transport.pending() == 0 && !http2.has_backlog(),
            State::Delay { .. } | State::Stream(_) => false,
        }
    }

    /// Whether no request is in progress, except for its head.
    fn is_between(&self) -> bool {
        matches!(self.state, State::First | State::Head)
    }

    fn receive(&mut self, input: &mut Vec<u8>, context: &mut Context) -> Result<(), Fault> {
        if !self.wants_input() {
            self.paused = true;
            return Ok(());
        }
        let received = self.transport.receive(&mut context.wire, input)?;
        if received.handshake_finished
            && let Some(facts) = self.transport.facts()
        {
            context.count().handshake(facts);
            self.state = match facts.alpn.as_deref() == Some(H2) || context.http == HttpVersions::Http2 {
                true => State::Http2(Http2::new(context)),
                false => State::Head,
            };
        }
        if let Some(end) = received.end {
            self.ended = true;
            // A truncated TLS stream only matters to a body framed by its end, and a request
            // has none.
            if end == End::Truncated && !self.transport.is_open() {
                context.count().failed.add(1);
            }
        }
        Ok(())
    }

    fn go_on(&mut self, input: &[u8], context: &mut Context) -> Result<Needs, Fault> {
        let mut used = 0;
        let mut share = SHARE;
        context.out.clear();
        while let Step::Consumed(bytes) = self.step(&input[used..], &mut share, context)? {
            used += bytes;
            if context.out.len() >= pattern::PIECE {
                self.flush(context)?;
            }
        }
        self.flush(context)?;
        match self.state {
            State::Closing { until } => return self.close(until, context),
            State::Http2(_) => {
                self.kept.extend_from_slice(input);
                return Ok(Needs { again: true, ..Needs::default() });
            }
            _ => {}
        }
        self.kept.extend_from_slice(&input[used..]);
        // With pipelined bytes pending, the end of the stream need not be polled.
        if self.ended && self.transport.pending() == 0 && !self.waits_for_itself() {
            let cut = !self.kept.is_empty() || !self.is_between();
            context.count().failed.add(u64::from(cut));
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

    /// Whether the connection can progress without input.
    fn waits_for_itself(&self) -> bool {
        matches!(self.state, State::Delay { .. } | State::Stream(_))
    }

    pub(crate) fn flush(&mut self, context: &mut Context) -> Result<(), Fault> {
        if !context.out.is_empty() {
            self.transport.send(&context.out, &mut context.wire)?;
            context.out.clear();
        }
        Ok(())
    }

    fn step(&mut self, input: &[u8], share: &mut usize, context: &mut Context) -> Result<Step, Fault> {
        if self.transport.pending() > 0 && self.transport.is_open() {
            return Ok(Step::Blocked);
        }
        match &mut self.state {
            State::First | State::Head if input.is_empty() => Ok(Step::Blocked),
            State::First | State::Head => Ok(self.read_head(input, context)),
            State::Body { decoder, route, terms } => {
                let (route, terms) = (*route, *terms);
                match decoder.decode(input) {
                    Err(error) => Ok(self.refuse(error.status(), &error.to_string(), context)),
                    Ok(decoded) => {
                        context.count().bytes_received.add(decoded.data.len() as u64);
                        if decoder.is_complete() {
                            self.requested(route, terms, None, context);
                        } else if decoded.consumed == 0 {
                            return Ok(Step::Blocked);
                        }
                        Ok(Step::Consumed(decoded.consumed))
                    }
                }
            }
            State::Delay { until, route, terms, echo } => {
                if context.now < *until {
                    return Ok(Step::Blocked);
                }
                let (route, terms, echo) = (*route, *terms, echo.take());
                self.respond(route, terms, echo, context);
                Ok(Step::Consumed(0))
            }
            State::Echo(echo) => match echo.forward(input, context) {
                Ok((consumed, done)) => {
                    let close = echo.terms.close;
                    Ok(self.echoed(done, consumed, close, context))
                }
                // Once the response has started, an error can only be signalled by aborting.
                Err(_) if echo.started => {
                    context.count().refused.add(1);
                    self.state = State::Closing { until: None };
                    Ok(Step::Blocked)
                }
                Err(error) => Ok(self.refuse(error.status(), &error.to_string(), context)),
            },
            State::Stream(body) => {
                let body = *body;
                self.stream(body, share, context)
            }
            State::Http2(_) | State::Closing { .. } => Ok(Step::Blocked),
        }
    }

    fn read_head(&mut self, input: &[u8], context: &mut Context) -> Step {
        let length = match context.head.parse(input, &context.limits) {
            Ok(Parse::Complete(length)) => length,
            Ok(Parse::Partial) => return Step::Blocked,
            Err(_) if matches!(self.state, State::First) && h2::is_preface(input) => {
                self.state = State::Http2(Http2::new(context));
                return Step::Blocked;
            }
            Err(error) => return self.refuse(error.status(), &error.to_string(), context),
        };
        let head = &context.head;
        let route = Route::of(head.method, head.path.of(input));
        let terms = Terms {
            version: head.version,
            head_only: head.method == Method::Head,
            close: !head.persistent || context.draining,
        };
        let framing = head.framing;
        if head.expect_continue && input.len() == length {
            context.out.extend_from_slice(CONTINUE);
        }
        let decoder = BodyDecoder::new(framing, &context.limits);
        if route.resource == Resource::Echo && !terms.head_only {
            self.requested(route, terms, Some((decoder, framing)), context);
        } else if decoder.is_complete() {
            self.requested(route, terms, None, context);
        } else {
            self.state = State::Body { decoder, route, terms };
        }
        Step::Consumed(length)
    }

    /// Continues after a turn of HTTP/2.
    fn turned(&mut self, turn: &Turn, input: &[u8], context: &mut Context) -> Result<Needs, Fault> {
        match *turn {
            Turn::Open { used, needs } => {
                self.kept.extend_from_slice(&input[used..]);
                Ok(needs)
            }
            Turn::Over => self.close(None, context),
        }
    }

    /// Closes this side, and waits `until` the timeout for the peer's close.
    fn close(&mut self, until: Option<Instant>, context: &mut Context) -> Result<Needs, Fault> {
        self.state = State::Closing { until };
        self.transport.finish(&mut context.wire)?;
        let all_sent = self.transport.pending() == 0;
        let end = all_sent && (self.ended || until.is_some_and(|until| context.now >= until));
        let wake = (until.is_none() && all_sent).then(|| context.now + LINGER);
        self.state = State::Closing { until: until.or(wake) };
        Ok(if end { Needs { end, ..Needs::default() } } else { Needs { wake, ..Needs::default() } })
    }
}
