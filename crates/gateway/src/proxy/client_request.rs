//! Requests, from the client to the server: the bytes of an attempt.

use super::{Flow, values};
use crate::downstream::Client;
use crate::exchange::{Body, Exchange, HeldHead, Passed, RequestHalf, SentBody};
use crate::h2::H2;
use crate::heads::rewrite::{self, RequestEdits};
use crate::heads::writer::FieldBlock;
use crate::keys::note_missing;
use crate::reason::Reason;
use crate::upstream::{Server, Upstream};
use crate::worker::Core;
use std::rc::Rc;
use weir_http::Span;
use weir_http1::{BodyError, Framing, RequestHead};
use weir_http2::{Part, Scheme, StreamNo};
use weir_reactor::{Net, Socket};
use weir_transport::{Transport, Wire};

/// Stages, for a server's connection, the head of a request and the part of its body that an earlier attempt sent.
pub(crate) fn send_request<N: Net>(
    exchange: &mut Exchange,
    held: &HeldHead,
    client: &Client<N::Socket>,
    upstream: &mut Upstream<N::Socket>,
    server: &Server,
    core: &mut Core<N>,
) {
    let plan = Rc::clone(&exchange.plan);
    let Some(found) = plan.snapshot.routes.get(exchange.route) else { return };
    let HeldHead { bytes: buf, request: head } = held;
    let mut values = values(client, head, buf, server.config.authority.as_bytes());
    if plan.snapshot.tracing.is_some() {
        exchange.ids.get_or_insert_with(|| Box::new(core.ids.make()));
    }
    if let (Some(tracing), Some(ids)) = (&plan.snapshot.tracing, &exchange.ids) {
        values.request_id = ids.id(tracing, head, buf, client.is_trusted);
        values.traceparent = ids.traceparent(head, buf);
        if let Some(entry) = &mut exchange.entry {
            entry.request_id = String::from_utf8_lossy(values.request_id).into();
        }
    }
    let changes = RequestEdits {
        forwarded: &client.forwarded,
        proxy: client.proxy(),
        forms: plan.snapshot.forms,
        upgrade: match upstream.h2.is_none() || exchange.asks_upgrade {
            true => upgrade(head, buf),
            false => None,
        },
        path: found.path.as_ref(),
        was_buffered: exchange.was_held,
        announces_trailers: found.request_trailers.is_some() && head.framing == Framing::Chunked,
        via: plan.snapshot.via.requests.as_deref(),
        underscores: client.frontend.underscores,
        edits: &found.request,
        values: &values,
        scheme: if server.tls.is_some() { Scheme::Https } else { Scheme::Http },
        is_http2: exchange.stream.is_some(),
    };
    let underscored = match &mut upstream.h2 {
        Some(h2) => {
            let Some(no) = exchange.upstream_stream() else {
                return note_missing("a missing stream of a request");
            };
            // A tunnel's bytes follow the response, so its stream stays open.
            let end = head.framing.is_empty() && !exchange.asks_upgrade;
            if exchange.asks_upgrade {
                h2.connection.is_for_tunnel(no);
            }
            let mut underscored = 0;
            let write =
                |block: &mut FieldBlock<'_, '_>| underscored = rewrite::request(buf, head, &changes, block);
            let transport = &mut upstream.transport;
            h2.head(no, Part::Head { end }, write, &mut core.lines, transport.stage(&mut core.wire));
            if let Some(body) = &exchange.sent_body {
                send_again(body, no, h2, transport, &mut core.wire);
            }
            underscored
        }
        None => {
            let out = upstream.transport.stage(&mut core.wire);
            let underscored = rewrite::request(buf, head, &changes, out);
            if let Some(body) = &exchange.sent_body {
                body.write(head.framing, out);
            }
            underscored
        }
    };
    if exchange.retries == 0 {
        core.counters.underscored += underscored;
    }
}

/// Sends the stored part of a body again, on a stream.
#[cold]
fn send_again<S: Socket>(
    body: &SentBody,
    no: StreamNo,
    h2: &mut H2,
    transport: &mut Transport<S>,
    wire: &mut Wire,
) {
    h2.push(no, &body.bytes, body.trailers.as_ref().is_some_and(Vec::is_empty), transport, wire);
    if let Some(trailers) = body.trailers.as_ref().filter(|trailers| !trailers.is_empty()) {
        h2.finish(no, trailers.clone(), transport, wire);
    }
}

#[derive(Debug)]
pub(crate) struct Taken {
    /// The length of the input that belonged to the body.
    pub bytes: usize,
    /// Whether the request is complete, and its copy is due.
    pub is_complete: bool,
}

impl<N: Net> Flow<'_, N> {
    /// Forwards the part of the request's body in `input[at..]`. Errors: the reason to end the exchange, and the length
    /// of the part.
    pub(crate) fn take_body(mut self, input: &mut [u8], at: usize) -> Result<Taken, (Reason, usize)> {
        let Self { exchange, upstream, core, .. } = &mut self;
        let (mut is_direct, mut is_lost) = (false, false);
        let stream = exchange.upstream_stream();
        let Exchange { request, head, sent_body, copy, .. } = &mut **exchange;
        let taken = match request {
            RequestHalf::Done { .. } => return Ok(Taken { bytes: 0, is_complete: false }),
            RequestHalf::Forwarding(body) => {
                let tap = |data: &[u8]| {
                    if let Some(copy) = copy {
                        copy.take(data);
                    }
                    if let Some(head) = head {
                        sent_body.get_or_insert_default().push(data, head.request.framing);
                    }
                };
                let passed = match (stream, &mut upstream.h2) {
                    (Some(no), Some(h2)) => {
                        let to = ToStream { no, h2, transport: &mut upstream.transport };
                        pass_to_stream(body, &input[at..], to, &mut core.wire, tap)
                    }
                    _ => body.pass(input, at, &mut upstream.transport, &mut core.wire, tap),
                };
                if let Some(sent) = sent_body.as_mut().filter(|_| body.is_complete()) {
                    body.write_trailers(body.trailers(), sent.trailers.get_or_insert_default());
                }
                passed.map(|passed| {
                    is_direct = body.is_direct();
                    is_lost = passed.receiver_lost.is_some();
                    (passed.consumed, body.passed())
                })
            }
            RequestHalf::Discarding(body) => {
                is_direct = true;
                body.discard(&input[at..]).map(|taken| (taken, 0))
            }
        };
        let (bytes, passed) = taken.map_err(|error| (Reason::BadRequestBody(error), 0))?;
        exchange.awaits_continue.on_body(bytes);
        exchange.received = exchange.received.max(passed);
        if passed > exchange.policy().max_body && !exchange.is_tunnel {
            return Err((Reason::BodyTooLarge, bytes));
        }
        // Keeps the stored request until the connection opens: no byte has been sent yet, and back-pressure limits the
        // stored part.
        let is_too_long = exchange.sent_body.as_ref().is_some_and(|sent| sent.is_too_long());
        if upstream.transport.is_open() && (is_direct || is_too_long) {
            core.forget_request(exchange);
        }
        if is_lost {
            exchange.request.discard();
        }
        exchange.moved |= bytes > 0;
        let is_complete = self.body_moved();
        Ok(Taken { bytes, is_complete })
    }

    /// Ends a request's body with these trailer lines, when the client has sent all of it. No effect if the decoder has
    /// already found the end of the body. Returns whether the caller must settle the request's copy. Errors: the body
    /// is incomplete.
    pub(crate) fn end_body(mut self, trailers: &[u8]) -> Result<bool, Reason> {
        let Self { exchange, upstream, core, .. } = &mut self;
        let stream = exchange.upstream_stream();
        let Exchange { request, head, sent_body, .. } = &mut **exchange;
        match request {
            RequestHalf::Done { .. } => return Ok(false),
            RequestHalf::Forwarding(body) => {
                body.end().map_err(Reason::BadRequestBody)?;
                match (stream, &mut upstream.h2) {
                    (Some(no), Some(h2)) => {
                        let to = ToStream { no, h2, transport: &mut upstream.transport };
                        to.finish(body, trailers, &mut core.wire);
                    }
                    _ => body.write_last(trailers, upstream.transport.stage(&mut core.wire)),
                }
                if head.is_some() {
                    let sent = sent_body.get_or_insert_default();
                    body.write_trailers(trailers, sent.trailers.get_or_insert_default());
                }
            }
            RequestHalf::Discarding(body) => body.end().map_err(Reason::BadRequestBody)?,
        }
        exchange.moved = true;
        exchange.server_moved = true;
        if exchange.is_tunnel && stream.is_none() {
            // The next read from the server reports a failure.
            let _ =
                upstream.transport.commit(&mut core.wire).and_then(|()| upstream.transport.finish_sending());
        }
        Ok(self.body_moved())
    }

    /// Records that a part of the request's body has moved. Returns whether the request's copy is due.
    fn body_moved(&mut self) -> bool {
        let Self { exchange, upstream, core, .. } = self;
        exchange.request.settle();
        let is_done = exchange.request.is_done();
        if is_done {
            exchange.times.sent = Some(core.net.now());
            upstream.moved = true;
        }
        let is_complete = is_done && exchange.copy.is_some();
        self.touch_upstream();
        is_complete
    }

    /// The server's connection is open, so the server may receive the request: drops the stored request, unless another
    /// attempt may need it.
    #[cold]
    pub(crate) fn opened(self) {
        let Self { exchange, core, .. } = self;
        let is_too_long = exchange.sent_body.as_ref().is_some_and(|sent| sent.is_too_long());
        // Over HTTP/2, any request may need another attempt: the server may refuse it unprocessed.
        let may_be_sent_again = exchange.upstream_stream().is_some()
            || (exchange.is_repeatable && !exchange.policy().retry.on.is_empty());
        if !may_be_sent_again || is_too_long {
            core.forget_request(exchange);
        }
    }
}

pub(super) struct ToStream<'a, S> {
    pub no: StreamNo,
    pub h2: &'a mut H2,
    pub transport: &'a mut Transport<S>,
}

impl<S: Socket> ToStream<'_, S> {
    /// Ends the stream after a complete body, with the trailers that the gateway forwards.
    pub(super) fn finish(self, body: &Body, trailers: &[u8], wire: &mut Wire) {
        let mut lines = Vec::new();
        body.write_trailers(trailers, &mut lines);
        self.h2.finish(self.no, lines, self.transport, wire);
    }
}

/// As [`Body::pass`], to a stream.
#[inline(never)]
pub(super) fn pass_to_stream<S: Socket>(
    body: &mut Body,
    input: &[u8],
    to: ToStream<'_, S>,
    wire: &mut Wire,
    mut tap: impl FnMut(&[u8]),
) -> Result<Passed, BodyError> {
    let consumed = body.decode(input, |data, end| {
        tap(data);
        if end || !data.is_empty() {
            to.h2.push(to.no, data, end, to.transport, wire);
        }
    })?;
    if body.is_complete() && !body.trailers().is_empty() {
        to.finish(body, body.trailers(), wire);
    }
    Ok(Passed { consumed, receiver_lost: None })
}

/// The protocols that the client may switch to. `None` for a request with a body: the client sends it without waiting
/// for the response, so the gateway would have to trust the client about the body's end and the new protocol's start.
/// `None` for cleartext HTTP/2, which would carry requests past the gateway.
#[inline]
pub(crate) fn upgrade(head: &RequestHead, buf: &[u8]) -> Option<Span> {
    head.upgrade.filter(|protocols| head.framing.is_empty() && !names_h2c(protocols.of(buf)))
}

/// Whether a list of protocols, with or without versions, includes cleartext HTTP/2: the server may choose any protocol
/// in the list.
fn names_h2c(protocols: &[u8]) -> bool {
    protocols.split(|byte| *byte == b',').any(|protocol| {
        let name = protocol.split(|byte| *byte == b'/').next().unwrap_or_default();
        name.trim_ascii().eq_ignore_ascii_case(b"h2c")
    })
}
