//! Responses, from the server to the client.

use super::Flow;
use super::client_request::{ToStream, pass_to_stream};
use crate::deadlines::BodyDeadlines;
use crate::exchange::{Body, Event, Exchange, Head, HeadStep, Outcome, Passed, ResponseHalf};
use crate::heads::rewrite::{self, Connection, ResponseEdits};
use crate::heads::set_cookie::Cookie;
use crate::heads::websocket;
use crate::heads::writer::FieldBlock;
use crate::keys::{ClientId, OfService, ServiceId, Store};
use crate::mirror::Fate;
use crate::observe::By;
use crate::plan::Plan;
use crate::reason::Reason;
use crate::upstream::Service;
use crate::worker::Core;
use std::ops::ControlFlow;
use std::rc::Rc;
use std::time::Duration;
use weir_http1::{Framing, Parse, Repaired, ResponseError, ResponseHead, Rules};
use weir_http2::{ErrorCode, Part, StreamNo};
use weir_reactor::Net;
use weir_transport::{End, Fault};

/// The worker's next action after a piece of a response.
#[derive(Debug)]
pub(crate) enum Next {
    /// Nothing: more input continues the exchange.
    Wait,
    /// Another server may replace this response, which has this status and begins at `at`.
    AskAnother { at: usize, status: u16 },
    /// The server switched protocols; its head ends at `at`.
    Switch { at: usize },
    /// The response is complete.
    Complete(Completed),
    /// The exchange must decide the next step after this event.
    On(Event),
    /// The exchange ends early.
    End(Reason),
    /// The client's connection failed.
    LoseClient(Fault),
}

/// A complete response, and whether its connections persist.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Completed {
    pub client: ClientId,
    pub client_persists: bool,
    pub upstream_persists: bool,
    pub upstream_stream: Option<StreamNo>,
    pub service: ServiceId,
    pub status: u16,
    /// Bytes that followed the response.
    pub stray: usize,
}

#[derive(Clone, Copy, Debug)]
enum Source<'a> {
    /// HTTP/1.1 text. `rest`: the input after the head.
    Text { rest: &'a [u8] },
    /// HTTP/2 frames. `end`: no body follows.
    Stream { end: bool },
}

impl<N: Net> Flow<'_, N> {
    /// Forwards the input from the server in `inbox[at..]`. `end`: the server's stream has ended.
    pub(crate) fn take_response(&mut self, inbox: &mut [u8], mut at: usize, end: Option<End>) -> Next {
        self.response_begins(inbox.len() > at);
        loop {
            match &mut self.exchange.response {
                ResponseHalf::Awaiting if at == inbox.len() => break,
                ResponseHalf::Awaiting => match self.take_head(inbox, at) {
                    ControlFlow::Continue(Some(after)) => at = after,
                    ControlFlow::Continue(None) => break,
                    ControlFlow::Break(next) => return next,
                },
                ResponseHalf::Forwarding { .. } => match self.pass_response_body(inbox, at) {
                    Ok(consumed) => {
                        at += consumed;
                        break;
                    }
                    Err(next) => return next,
                },
            }
        }
        self.response_taken(&inbox[at..], end, b"")
    }

    /// Forwards the part of the body in `inbox[at..]`; returns its length.
    #[inline(always)]
    fn pass_response_body(&mut self, inbox: &mut [u8], at: usize) -> Result<usize, Next> {
        let Self { exchange, client, core, .. } = self;
        let ResponseHalf::Forwarding { body, .. } = &mut exchange.response else { return Ok(0) };
        let passed = match (exchange.stream, &mut client.h2) {
            (Some(no), Some(h2)) => {
                exchange.moved = true;
                let to = ToStream { no, h2, transport: &mut client.transport };
                pass_to_stream(body, &inbox[at..], to, &mut core.wire, |_| ())
            }
            _ => body.pass(inbox, at, &mut client.transport, &mut core.wire, |_| ()),
        };
        match passed {
            Ok(Passed { receiver_lost: Some(fault), .. }) => Err(Next::LoseClient(fault)),
            Ok(Passed { consumed, receiver_lost: None }) => Ok(consumed),
            Err(error) => Err(Next::End(Reason::BadResponseBody(error))),
        }
    }

    /// Forwards the response head that was decoded last, from a server's stream; `bytes` are its lines. `end`: no body
    /// follows.
    pub(crate) fn take_stream_head(&mut self, bytes: &[u8], end: bool) -> Next {
        self.response_begins(true);
        if let (true, Some(call)) = (end, &mut self.exchange.grpc) {
            call.note_fields(&self.core.response.fields, bytes);
        }
        match self.pass_head(bytes, 0, 0, Source::Stream { end }) {
            ControlFlow::Continue(()) => {
                let is_over = end && self.exchange.is_tunnel;
                self.stream_moved(is_over.then_some(End::Clean), b"")
            }
            ControlFlow::Break(next) => next,
        }
    }

    /// Forwards the DATA of a server's stream, `input[at..]`. `end`: the response is complete.
    pub(crate) fn take_stream_data(&mut self, input: &mut [u8], at: usize, end: bool) -> Next {
        match self.pass_response_body(input, at) {
            Ok(_) => self.stream_moved(end.then_some(End::Clean), b""),
            Err(next) => next,
        }
    }

    /// Ends the response on a server's stream with these lines of trailers.
    pub(crate) fn take_stream_trailers(&mut self, trailers: &[u8]) -> Next {
        if let Some(call) = &mut self.exchange.grpc {
            call.note_trailers(trailers);
        }
        self.stream_moved(Some(End::Clean), trailers)
    }

    #[inline(never)]
    fn stream_moved(&mut self, end: Option<End>, trailers: &[u8]) -> Next {
        self.response_taken(b"", end, trailers)
    }

    /// Records the first bytes of a response. These bytes rule out another attempt, unless another server may replace
    /// the response.
    #[inline(always)]
    fn response_begins(&mut self, has_input: bool) {
        if !has_input {
            return;
        }
        let Self { exchange, core, .. } = self;
        exchange.times.first_byte.get_or_insert(core.net.now());
        if !exchange.may_ask_another() {
            core.forget_request(exchange);
        }
    }

    /// Processes the head at the start of `inbox[at..]`. Returns the position after it; `None` if it is incomplete.
    fn take_head(&mut self, inbox: &[u8], at: usize) -> ControlFlow<Next, Option<usize>> {
        match self.core.response.parse(&inbox[at..], &self.exchange.limits) {
            Ok(Parse::Complete(length)) => {
                let after = at + length;
                self.pass_head(&inbox[at..after], at, after, Source::Text { rest: &inbox[after..] })?;
                ControlFlow::Continue(Some(after))
            }
            Ok(Parse::Partial) => ControlFlow::Continue(None),
            Err(error) => self.recover_head(inbox, at, error),
        }
    }

    /// As [`Self::take_head`], for a head that the parser rejected for `error`: corrects it if the service allows that.
    #[cold]
    fn recover_head(
        &mut self,
        inbox: &[u8],
        at: usize,
        error: ResponseError,
    ) -> ControlFlow<Next, Option<usize>> {
        let Self { exchange, core, services, .. } = self;
        let rules = rules_of(services, exchange.service);
        let mut head = Vec::new();
        match core.response.repair(&inbox[at..], &exchange.limits, rules, error, &mut head) {
            Ok(Some(Repaired { length, broken })) => {
                let after = at + length;
                let passed = self.pass_head(&head, at, after, Source::Text { rest: &inbox[after..] });
                if !matches!(passed, ControlFlow::Break(Next::AskAnother { .. })) {
                    note_recovered(self.core, self.services, self.exchange.service, broken);
                }
                passed?;
                ControlFlow::Continue(Some(after))
            }
            Ok(None) => ControlFlow::Continue(None),
            Err(error) => {
                let rule = ResponseHead::would_pass(&inbox[at..], &exchange.limits, rules, error);
                ControlFlow::Break(Next::End(Reason::BadResponse(error, rule)))
            }
        }
    }

    /// Forwards the head that was parsed last, from `buf`. The server sent it in the input from `at` to `after`.
    fn pass_head(&mut self, buf: &[u8], at: usize, after: usize, source: Source<'_>) -> ControlFlow<Next> {
        let Self { exchange, client, upstream, services, core, .. } = self;
        let head = &core.response;
        let status = head.status;
        if status >= 400 && exchange.is_to_ask_another(status) {
            return ControlFlow::Break(Next::AskAnother { at, status });
        }
        let framing = head.framing(exchange.method);
        let (framing, received) = match source {
            Source::Text { .. } => (framing, framing),
            Source::Stream { end: true } if framing == Framing::UntilClose => {
                (Framing::Length(0), Framing::None)
            }
            Source::Stream { end: true } => (framing, Framing::None),
            // An HTTP/1.1 client takes the body for complete at its declared length, so the gateway does, too. If the
            // client speaks HTTP/2, trailers may follow.
            Source::Stream { end: false } if exchange.stream.is_none() && status >= 200 => match framing {
                Framing::None | Framing::Length(_) => (framing, framing),
                Framing::Chunked | Framing::UntilClose => (framing, Framing::UntilClose),
            },
            Source::Stream { end: false } => (framing, Framing::UntilClose),
        };
        let facts = Head {
            length: buf.len(),
            status,
            framing,
            received,
            persistent: head.persistent,
            authenticates_connection: head.authenticates_connection,
            announces_absent_body: head.announces_absent_body(exchange.method),
        };
        if facts.framing == Framing::Chunked
            && status >= 200
            && let Source::Text { rest } = source
            // If the part of the body received with the head is invalid, the client gets the gateway's error response
            // instead of a truncated response of the server.
            && let Err(error) = Body::new(Framing::Chunked, true, &exchange.limits).discard(rest)
        {
            return ControlFlow::Break(Next::End(Reason::BadResponseBody(error)));
        }
        let step = exchange.on_head(facts, client.drain.is_on());
        let via = exchange.plan.snapshot.via.responses.as_deref();
        let edits = exchange.plan.response_edits(exchange.route);
        match step {
            HeadStep::Skip => {}
            HeadStep::Interim => match (exchange.stream, &mut client.h2) {
                (Some(no), Some(h2)) => {
                    let out = client.transport.stage(&mut core.wire);
                    let write =
                        |block: &mut FieldBlock<'_, '_>| rewrite::interim(buf, head, via, edits, block);
                    h2.head(no, Part::Interim, write, &mut core.lines, out);
                }
                _ => rewrite::interim(buf, head, via, edits, client.transport.stage(&mut core.wire)),
            },
            HeadStep::Switch => match (exchange.stream, &mut client.h2) {
                (Some(no), Some(h2)) => {
                    let out = client.transport.stage(&mut core.wire);
                    let write =
                        |block: &mut FieldBlock<'_, '_>| rewrite::tunnel(buf, head, via, edits, block);
                    h2.head(no, Part::Head { end: false }, write, &mut core.lines, out);
                    open_tunnel(exchange, core, services);
                }
                _ if exchange.upstream_stream().is_some() => {
                    let Some(accept) = exchange.accept.take() else {
                        return ControlFlow::Break(Next::End(Reason::Internal(
                            "a WebSocket without its key",
                        )));
                    };
                    let out = client.transport.stage(&mut core.wire);
                    websocket::switched(buf, head, &accept, via, edits, out);
                    open_tunnel(exchange, core, services);
                    // The client may already have sent bytes of the tunnel, or closed its side.
                    if client.ended || !client.held.is_empty() {
                        core.resumable.push(exchange.client);
                    }
                }
                _ => {
                    rewrite::switching(buf, head, via, edits, client.transport.stage(&mut core.wire));
                    return ControlFlow::Break(Next::Switch { at: after });
                }
            },
            HeadStep::Final { framing, trailers } => {
                let connection = Connection::of(exchange.persistent, exchange.version);
                if let Some(seconds) = head.idle_timeout {
                    upstream.life.keep_alive_hint = Some(Duration::from_secs(seconds.into()));
                }
                if let Some(body_deadlines) = &mut exchange.body_deadlines {
                    body_deadlines.response_begins();
                }
                let cookie = match exchange.sets_cookie {
                    true => services.get(exchange.service).and_then(|service| {
                        let name = &service.config.sticky.as_ref()?.name;
                        let secure = client.frontend.tls.is_some();
                        Some(Cookie { name, value: service.cookie_of(upstream.server)?, secure })
                    }),
                    false => None,
                };
                let date = core.date.line(core.net.now());
                let changes = ResponseEdits { framing, trailers, connection, edits, cookie, date, via };
                match (exchange.stream, &mut client.h2) {
                    (Some(no), Some(h2)) => {
                        let changes = ResponseEdits { connection: Connection::Persists, ..changes };
                        let part = Part::Head { end: exchange.response.is_complete() };
                        let out = client.transport.stage(&mut core.wire);
                        let write =
                            |block: &mut FieldBlock<'_, '_>| rewrite::response(buf, head, changes, block);
                        h2.head(no, part, write, &mut core.lines, out);
                        h2.update_priority(no, buf, &head.fields);
                    }
                    _ => rewrite::response(buf, head, changes, client.transport.stage(&mut core.wire)),
                }
            }
            HeadStep::End(reason) => return ControlFlow::Break(Next::End(reason)),
        }
        ControlFlow::Continue(())
    }

    /// Decides the next action after input; `rest` is the unprocessed part. `trailers`: the lines at the end of a
    /// stream.
    // Inlined into the path of HTTP/1.1; all streams share one instance.
    #[inline(always)]
    fn response_taken(&mut self, rest: &[u8], end: Option<End>, trailers: &[u8]) -> Next {
        let Self { exchange, client, upstream, core, .. } = self;
        let mut is_complete = exchange.response.is_complete();
        if let (ResponseHalf::Forwarding { body, .. }, Some(End::Clean), false) =
            (&mut exchange.response, end, is_complete)
        {
            is_complete = body.end().is_ok();
            match (exchange.stream, &mut client.h2) {
                _ if !is_complete => {}
                (Some(no), Some(h2)) => {
                    let to = ToStream { no, h2, transport: &mut client.transport };
                    to.finish(body, trailers, &mut core.wire);
                }
                _ => body.write_last(trailers, client.transport.stage(&mut core.wire)),
            }
        }
        if is_complete {
            let completed = self.complete(rest.len());
            let upstream_persists = completed.upstream_persists && end.is_none();
            return Next::Complete(Completed { upstream_persists, ..completed });
        }
        if end.is_some() {
            return Next::On(Event::UpstreamEnded { partial: !rest.is_empty() });
        }
        exchange.server_moved = true;
        upstream.moved |= !exchange.response.is_awaiting();
        if !rest.is_empty() {
            upstream.part = core.note_part(rest);
            upstream.held = rest.to_vec();
        }
        self.touch_client();
        Next::Wait
    }

    /// The response is complete, followed by `stray` bytes: the client continues with its next request, if its
    /// connection persists.
    #[inline(always)]
    fn complete(&mut self, stray: usize) -> Completed {
        let Self { exchange, client, services, core, .. } = self;
        exchange.times.last_byte = Some(core.net.now());
        if !exchange.is_tunnel {
            core.count_response(exchange, exchange.status, services);
        }
        if let Some(status) = exchange.grpc.as_ref().and_then(|call| call.status) {
            core.counters.grpc.0[status.index()] += 1;
        }
        if exchange.copy.is_some() {
            core.counters.mirror(Fate::Incomplete);
        }
        exchange.cancel_timer(core.net.wheel());
        if let (Some(no), Some(h2)) = (exchange.stream, &mut client.h2) {
            h2.exchange_is_over(no, ErrorCode::NO_ERROR);
            if h2.get(no).is_some_and(|stream| stream.pending() > 0) {
                h2.keep_deadlines(no, deadlines_of_rest(exchange, &core.plan));
            }
            client.touch(exchange.client, &mut core.touched.clients);
            return Completed {
                client: exchange.client,
                client_persists: true,
                upstream_persists: exchange.outcome().upstream_persists && stray == 0,
                upstream_stream: exchange.upstream_stream(),
                service: exchange.service,
                status: exchange.status,
                stray,
            };
        }
        client.request_is_over();
        client.body_deadlines = deadlines_of_rest(exchange, &core.plan);
        let Outcome { client_persists, upstream_persists } = exchange.outcome();
        let client_persists = client_persists && !client.is_done();
        if client_persists {
            client.goes_on(exchange.client, core);
        }
        Completed {
            client: exchange.client,
            client_persists,
            upstream_persists: upstream_persists && stray == 0,
            upstream_stream: exchange.upstream_stream(),
            service: exchange.service,
            status: exchange.status,
            stray,
        }
    }
}

/// The limits of an exchange that is over, for the output that the client has not read; `None`: the current general
/// settings apply.
#[inline(always)]
fn deadlines_of_rest(exchange: &mut Exchange, plan: &Rc<Plan>) -> Option<Box<BodyDeadlines>> {
    let is_special = exchange.policy().has_own_response_limits || !Rc::ptr_eq(&exchange.plan, plan);
    let mut deadlines = exchange.body_deadlines.take();
    if is_special || deadlines.is_some() {
        let limits_of = Some((Rc::clone(&exchange.plan), Some(exchange.route)));
        deadlines.get_or_insert_default().limits_of = limits_of;
    }
    deadlines
}

/// Opens the tunnel of an exchange, which forwards all further bytes in both directions. Counts the response now, since
/// the tunnel may last for hours.
#[cold]
fn open_tunnel<N: Net>(exchange: &mut Exchange, core: &mut Core<N>, services: &Store<OfService, Service>) {
    exchange.become_tunnel();
    core.forget_request(exchange);
    core.counters.tunnels += 1;
    core.count_response(exchange, exchange.status, services);
}

/// Counts the rules that a response violated with its service's permission.
#[cold]
pub(crate) fn note_recovered<N: Net>(
    core: &mut Core<N>,
    services: &Store<OfService, Service>,
    service: ServiceId,
    broken: Rules,
) {
    if let Some(service) = services.get(service) {
        core.counters.accept(By::Service(service.config.name.clone()), broken);
    }
}

/// The rules that a service allows its servers' responses to violate.
pub(crate) fn rules_of(services: &Store<OfService, Service>, service: ServiceId) -> Rules {
    services.get(service).map_or(Rules::NONE, |service| service.config.accept)
}
