//! From the client to the upstream.

use super::Worker;
use super::attempts::Unavailable;
use super::core::HEADROOM;
use super::local::{Answer, stopped, values};
use crate::config::document::{HalfClose, Retries, Retry, Underscores};
use crate::config::{Action, Route};
use crate::downstream::{Client, MAX_PENDING, Past, Phase};
use crate::exchange::{
    AnswerHalf, Body, Event, Exchange, Interims, Overdue, Replay, RequestHalf, RequestLine, Times, Trailers,
};
use crate::heads::origin::origin;
use crate::heads::rewrite::{self, Along};
use crate::keys::{ClientId, ExchangeId, ServiceId};
use crate::limits::ClientKey;
use crate::plan::{Among, Plan, Unrouted};
use crate::reason::Reason;
use crate::upstream::{Job, Wish};
use std::io::ErrorKind;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;
use weir_http1::{Framing, Method, Parse, RequestHead, Span};
use weir_reactor::{Net, Ready};
use weir_tls::ClientCertificate;
use weir_transport::{Fault, Received};

impl<N: Net> Worker<N> {
    pub(super) fn client_ready(&mut self, id: ClientId, ready: Ready) {
        let Some(client) = self.clients.get_mut(id) else { return };
        if ready.writable && client.transport.pending() > 0 {
            self.push_client(id);
            if self.clients.get(id).is_none() {
                return;
            }
        }
        if ready.hangup && self.clients.get(id).is_some_and(|client| client.ended) {
            // Both directions have ended: the client is gone.
            return self.lose_client(id, Fault::Socket(ErrorKind::ConnectionReset.into()));
        }
        if ready.readable {
            self.read_client(id);
        }
        // Both directions have ended: all that a closed client has left to say, and its end, are there.
        let is_over = |client: &Client<_>| client.phase == Phase::Closing && !client.ended;
        if ready.hangup && self.clients.get(id).is_some_and(is_over) {
            self.read_client(id);
        }
        self.touch_client(id);
    }

    /// Sends what waits for the client, as far as its socket takes it.
    #[inline]
    pub(super) fn push_client(&mut self, id: ClientId) {
        let Some(client) = self.clients.get_mut(id) else { return };
        let pending = client.transport.pending();
        if let Err(fault) = client.transport.advance(&mut self.core.wire) {
            return self.lose_client(id, fault);
        }
        if client.transport.pending() < pending {
            client.moved = true;
            self.answer_moved(id);
        }
    }

    /// The client read more of its response: the upstream may be read again. It may have been silent only because it was not.
    fn answer_moved(&mut self, id: ClientId) {
        let Some(client) = self.clients.get(id) else { return };
        let (upstream, answering) = match client.phase {
            Phase::Exchange(exchange) => match self.exchanges.get(exchange) {
                Some(exchange) => (exchange.attempt.upstream, !exchange.answer.is_awaiting()),
                None => return,
            },
            Phase::Tunnel(tunnel) => match self.tunnels.get(tunnel) {
                Some(tunnel) => (tunnel.upstream, true),
                None => return,
            },
            Phase::Preface(_) | Phase::Head { .. } | Phase::Buffering | Phase::Queued | Phase::Closing => {
                return;
            }
        };
        if let Some(upstream) = self.upstreams.get_mut(upstream) {
            upstream.moved |= answering;
        }
        self.touch_upstream(upstream);
    }

    pub(super) fn read_client(&mut self, id: ClientId) {
        let Some(client) = self.clients.get_mut(id) else { return };
        if matches!(client.phase, Phase::Preface(_)) {
            return self.read_preface(id);
        }
        if client.phase == (Phase::Head { started: true }) {
            let Client { transport, held, part, frontend, .. } = client;
            let (inbox, received) = self.core.receive_more(transport, held, *part, &frontend.limits);
            return self.received(id, received, inbox);
        }
        let mut inbox = self.core.take_inbox(&mut client.held);
        let received = client.transport.receive(&mut self.core.wire, &mut inbox);
        self.received(id, received, inbox);
    }

    /// Goes on with what a client has sent, which is in `inbox` behind the headroom.
    #[inline]
    pub(super) fn received(&mut self, id: ClientId, received: Result<Received, Fault>, mut inbox: Vec<u8>) {
        let Some(client) = self.clients.get_mut(id) else { return };
        match received {
            Ok(received) => {
                client.ended |= received.end.is_some();
                if received.handshake_finished {
                    self.handshakes.end(client);
                    self.core.counters.handshake(client.transport.facts());
                    let leaf = client.transport.client_chain().and_then(<[_]>::first);
                    client.certificate = leaf.and_then(|leaf| ClientCertificate::read(leaf)).map(Box::new);
                }
                match client.phase {
                    Phase::Tunnel(tunnel) => self.pass_up(tunnel, &mut inbox, HEADROOM),
                    _ => self.take_requests(id, &mut inbox, HEADROOM, false),
                }
            }
            Err(fault) => self.lose_client(id, fault),
        }
        self.core.put_inbox(inbox);
    }

    /// Continues with input pipelined before the last response was complete.
    pub(super) fn resume_client(&mut self, id: ClientId) {
        let Some(client) = self.clients.get_mut(id) else { return };
        let mut held = std::mem::take(&mut client.held);
        self.take_requests(id, &mut held, 0, true);
        self.touch_client(id);
    }

    /// Processes a client's input from `at` on, up to the next request that must wait. `was_held`: it came before.
    fn take_requests(&mut self, id: ClientId, input: &mut [u8], at: usize, was_held: bool) {
        let at = self.take_some(id, input, at);
        let Some(client) = self.clients.get_mut(id) else { return };
        if at < input.len() && client.phase != Phase::Closing {
            if client.phase == (Phase::Head { started: true }) {
                client.part = self.core.note_part(&input[at..]);
            }
            client.held.extend_from_slice(&input[at..]);
        }
        if client.ended {
            self.client_ended(id, was_held);
        }
    }

    /// Likewise; returns where the rest begins, which must wait.
    pub(super) fn take_some(&mut self, id: ClientId, input: &mut [u8], mut at: usize) -> usize {
        while let Some(client) = self.clients.get_mut(id) {
            match client.phase {
                Phase::Closing | Phase::Preface(_) => break,
                Phase::Head { .. } if at == input.len() => break,
                // The client does not read the answers to its earlier requests.
                Phase::Head { .. } if client.transport.pending() >= MAX_PENDING => break,
                Phase::Head { .. } => {
                    let core = &mut self.core;
                    match core.request.parse(&input[at..], &client.frontend.limits) {
                        Ok(Parse::Complete(len)) => {
                            self.begin(id, &input[at..at + len], Past::default());
                            at += len;
                        }
                        Ok(Parse::Partial) => {
                            client.phase = Phase::Head { started: true };
                            break;
                        }
                        Err(error) => match self.mend_request(id, &input[at..], error) {
                            0 => break,
                            taken => at += taken,
                        },
                    }
                }
                Phase::Exchange(exchange) => match self.pass_request_body(exchange, input, at) {
                    0 => break,
                    taken => at += taken,
                },
                Phase::Buffering => match self.buffer_body(id, &input[at..]) {
                    0 => break,
                    taken => at += taken,
                },
                Phase::Queued | Phase::Tunnel(_) => break,
            }
        }
        at
    }

    /// A request head is complete: begins its exchange, or rejects it.
    pub(super) fn begin(&mut self, id: ClientId, buf: &[u8], past: Past) {
        let head = &self.core.request;
        if head.method == Method::Connect {
            return self.refuse(id, buf, Reason::ConnectMethod, None);
        }
        let Some(client) = self.clients.get_mut(id) else { return };
        if past.is_none()
            && let Some(tempo) = &mut client.tempo
        {
            tempo.request_begins();
        }
        if client.is_trusted {
            client.origin = origin(head, buf, client.peer, &client.frontend);
        }
        if client.frontend.underscores == Underscores::Reject
            && head.fields.iter().any(|field| field.underscore)
        {
            return self.refuse(id, buf, Reason::UnderscoreInName, None);
        }
        let plan = Rc::clone(&self.core.plan);
        let listener = &client.frontend.name;
        let redirect = plan.redirect(listener);
        let among = if redirect.is_none() { Among::All } else { Among::Challenges };
        let (route, found) = match plan.route(head, buf, client.origin.as_ref(), listener, among) {
            Ok(found) => found,
            Err(Unrouted::NoRoute) => {
                return self.answer_self(id, buf, redirect.map_or(Answer::NoRoute, Answer::Elsewhere));
            }
            Err(Unrouted::Ambiguous) => return self.refuse(id, buf, Reason::AmbiguousPath, None),
        };
        if let Some(rate) = found.rate.and_then(|_| plan.limits.rate(route))
            && past.is_none()
            && let Err(wait) =
                rate.take(ClientKey::of(client.origin.map(|client| client.ip())), self.core.net.now())
        {
            return self.answer_self(id, buf, Answer::TooMany(found, wait));
        }
        if matches!(head.method, Method::Options | Method::Trace) {
            match stopped(head, buf, found) {
                Ok(None) => {}
                Ok(Some(answer)) => return self.answer_self(id, buf, answer),
                Err(reason) => return self.refuse(id, buf, reason, Some(found)),
            }
        }
        if matches!(head.framing, Framing::Length(length) if length > found.policy.max_body) {
            return self.refuse(id, buf, Reason::BodyTooLarge, Some(found));
        }
        match found.action {
            Action::Pass { service } => match plan.services.get(service) {
                Some(_) if found.policy.request_buffer > 0 && !past.buffered && !head.framing.is_empty() => {
                    self.buffer(id, buf, &plan, route);
                }
                Some(service) => self.pass_on(id, buf, (&plan, route, found), *service, past),
                None => self.broken(id, "a route without its service"),
            },
            Action::Redirect(_) | Action::Respond { .. } => {
                self.answer_self(id, buf, Answer::Set(found));
            }
        }
    }

    /// Begins a request whose head was held; it was parsed before, and the limits may be others since.
    #[cold]
    pub(super) fn begin_held(&mut self, id: ClientId, head: &[u8], past: Past) {
        let Some(client) = self.clients.get_mut(id) else { return };
        match self.core.request.parse_mended(head, &client.frontend.limits) {
            Ok(Parse::Complete(_)) => self.begin(id, head, past),
            Ok(Parse::Partial) => self.broken(id, "a part of a head was held"),
            Err(error) => self.end(id, Reason::BadRequest(error, None)),
        }
    }

    /// Begins the exchange of a request that goes to a service.
    fn pass_on(
        &mut self,
        id: ClientId,
        buf: &[u8],
        (plan, route, found): (&Rc<Plan>, usize, &Route),
        service: ServiceId,
        past: Past,
    ) {
        let (mut wish, mut others, mut sticky) = (Wish::default(), 0, false);
        let Some(chosen) = self.services.get_mut(service) else {
            return self.broken(id, "a request without its service");
        };
        chosen.retries.earn();
        let limits = chosen.config.limits;
        if let [_, more @ ..] = &chosen.servers[..]
            && !more.is_empty()
        {
            let client = self.clients.get(id).and_then(|client| client.origin).map(|client| client.ip());
            wish = Wish::of(&chosen.config, &self.core.request, buf, client);
            others = more.len().min(MOST_OTHERS) as u8;
            if found.request.names_upstream() {
                // Its head says which server it is for.
                others = 0;
            }
            sticky = chosen.config.sticky.is_some();
        }
        let must_wait = !chosen.waiting.is_empty() && past.waits_since.is_none();
        let server = match must_wait {
            true => None,
            false => chosen.choose(&mut self.servers, self.core.net.now(), wish),
        };
        let Some(server) = server else {
            return self.wait_for_server(id, buf, (plan, route, found), service, past);
        };
        let copy = found.mirror.and_then(|to| self.copy(id, buf, found, to));
        let is_copied = copy.is_some();
        let mut entry = self.entry(buf);
        let attempt = match self.attempt(server, id) {
            Ok(attempt) => attempt,
            // Another worker was faster.
            Err(Unavailable::Full) => {
                return self.wait_for_server(id, buf, (plan, route, found), service, past);
            }
            Err(unavailable) => return self.refuse(id, buf, unavailable.into(), Some(found)),
        };
        let (Some(client), Some(upstream)) =
            (self.clients.get_mut(id), self.upstreams.get_mut(attempt.upstream))
        else {
            return self.broken(id, "a request without its connections");
        };
        let core = &mut self.core;
        let head = &core.request;
        let upgrade = upgrade(head, buf);
        let Some(server) = self.servers.get(upstream.server) else {
            return self.broken(id, "a connection without its server");
        };
        let sets_cookie = sticky
            && self.services.get(service).is_some_and(|chosen| {
                wish.sticky.is_none() || wish.sticky != chosen.cookie_of(upstream.server)
            });
        let mut values = values(client, head, buf, server.config.authority.as_bytes());
        let made;
        if let Some(tracing) = &plan.snapshot.tracing {
            made = core.ids.make();
            values.request_id = made.id(tracing, head, buf, client.is_trusted);
            values.traceparent = made.traceparent(head, buf);
            if let Some(entry) = &mut entry {
                entry.request_id = String::from_utf8_lossy(values.request_id).into();
            }
        }
        let along = Along {
            forwarded: &client.forwarded,
            proxy: client.proxy(),
            forms: plan.snapshot.forms,
            upgrade,
            path: found.path.as_ref(),
            was_buffered: past.buffered,
            announces_trailers: found.request_trailers.is_some() && head.framing == Framing::Chunked,
            via: plan.snapshot.via.requests.as_deref(),
            underscores: client.frontend.underscores,
            edits: &found.request,
            values: &values,
        };
        core.counters.underscored +=
            rewrite::request(buf, head, &along, upstream.transport.stage(&mut core.wire));
        let now = core.net.now();
        let mut times = Times::new(client.accepted, past.waits_since.unwrap_or(now), now);
        let is_complete = head.framing.is_empty();
        if is_complete {
            times.sent = Some(now);
        }
        if attempt.reused {
            times.connected = Some(now);
        }
        let Retries { requests, on } = found.policy.retry;
        let may_be_repeated = match requests {
            Retry::Idempotent => head.method.is_idempotent(),
            Retry::Always => true,
            Retry::Never => false,
        };
        let replay = match may_be_repeated && (attempt.reused || !on.is_empty()) {
            true => Replay::Kept(Vec::new()),
            false => Replay::Impossible,
        };
        let exchange = self.exchanges.insert(Exchange {
            client: id,
            attempt,
            method: head.method,
            version: head.version,
            persistent: head.persistent,
            authenticates_connection: head.authenticates_connection,
            asks_upgrade: upgrade.is_some(),
            accepts_trailers: head.accepts_trailers,
            awaits_continue: head.expect_continue && !past.buffered,
            request: RequestHalf::Done { passed_on: true },
            answer: AnswerHalf::Awaiting,
            interims: Interims::default(),
            replay,
            times,
            timer: None,
            line: RequestLine::of(head, buf),
            plan: Rc::clone(plan),
            route,
            service,
            limits,
            key: wish.key,
            others,
            asked: None,
            sets_cookie,
            status: 0,
            received: 0,
            retries: 0,
            copy,
            entry,
        });
        if !is_complete && let Some(exchange) = self.exchanges.get_mut(exchange) {
            let mut body = Body::new(head.framing, head.framing == Framing::Chunked, &client.frontend.limits);
            if let Some(names) = &found.request_trailers {
                body.pass_trailers(Trailers::Named(Arc::clone(names)));
            }
            exchange.request = RequestHalf::Forwarding(body);
        }
        let limit = found.policy.timeouts.exchange.map(|within| times.head + within);
        client.phase = Phase::Exchange(exchange);
        client.moved = true;
        upstream.moved = true;
        core.counters.requests += 1;
        self.assign(attempt.upstream, Job::Exchange(exchange));
        self.touch_client(id);
        self.touch_upstream(attempt.upstream);
        if let Some(at) = limit {
            self.limit(exchange, at);
        }
        if is_copied && is_complete {
            self.settle_copy(exchange);
        }
    }

    /// Sets the end of the time that an exchange may take.
    #[cold]
    fn limit(&mut self, id: ExchangeId, at: Instant) {
        if let Some(exchange) = self.exchanges.get_mut(id) {
            let timer = exchange.timer.get_or_insert_default();
            timer.set(at, Overdue, self.core.net.wheel(), id.key());
        }
    }

    /// Forwards the part of the request's body in `input[at..]`; returns its length.
    fn pass_request_body(&mut self, id: ExchangeId, input: &mut [u8], at: usize) -> usize {
        let Some(exchange) = self.exchanges.get_mut(id) else { return 0 };
        let Some(upstream) = self.upstreams.get_mut(exchange.attempt.upstream) else {
            let client = exchange.client;
            self.broken(client, "a request without its upstream connection");
            return 0;
        };
        let core = &mut self.core;
        let (client, to) = (exchange.client, exchange.attempt.upstream);
        let mut is_kept = true;
        let mut lost = false;
        let taken = match &mut exchange.request {
            RequestHalf::Done { .. } => return 0,
            RequestHalf::Forwarding(body) => {
                let copied = exchange.copy.as_deref_mut();
                body.pass(input, at, &mut upstream.transport, &mut core.wire, copied).map(|passed| {
                    is_kept = !body.is_direct();
                    lost = passed.receiver_lost.is_some();
                    (passed.consumed, body.passed())
                })
            }
            RequestHalf::Discarding(body) => {
                is_kept = false;
                body.discard(&input[at..]).map(|taken| (taken, 0))
            }
        };
        let (taken, passed) = match taken {
            Ok(taken) => taken,
            Err(error) => {
                self.end(client, Reason::BadRequestBody(error));
                return 0;
            }
        };
        exchange.awaits_continue &= taken == 0;
        exchange.received = exchange.received.max(passed);
        if passed > exchange.policy().max_body {
            self.end(client, Reason::BodyTooLarge);
            return taken;
        }
        if !is_kept && let Some(bytes) = exchange.replay.take() {
            core.wire.give_back(bytes);
        }
        if lost {
            exchange.request.discard();
        }
        exchange.request.settle();
        let copy_is_due = exchange.request.is_done() && exchange.copy.is_some();
        if exchange.request.is_done() {
            exchange.times.sent = Some(core.net.now());
            upstream.moved = true;
        }
        if let Some(client) = self.clients.get_mut(client) {
            client.moved |= taken > 0;
        }
        self.touch_upstream(to);
        if copy_is_due {
            self.settle_copy(id);
        }
        taken
    }

    /// The client closed its sending side. It has given up, unless it did so behind requests that are held, or were
    /// (`was_pipelined`).
    #[cold]
    fn client_ended(&mut self, id: ClientId, was_pipelined: bool) {
        let Some(client) = self.clients.get_mut(id) else { return };
        let pipelined = !client.held.is_empty();
        let waits = pipelined || was_pipelined || client.frontend.half_close == HalfClose::Serve;
        match client.phase {
            Phase::Queued if !waits => self.end(id, Reason::ClientClosed),
            Phase::Closing | Phase::Tunnel(_) | Phase::Preface(_) | Phase::Queued => {}
            // Its requests wait until it has read more of the answers.
            Phase::Head { started: false } if pipelined => {}
            Phase::Head { .. } => self.close(id),
            Phase::Buffering => self.end(id, Reason::ClientClosed),
            Phase::Exchange(exchange) => self.on(exchange, Event::ClientEnded { pipelined, waits }),
        }
    }
}

/// The protocols that the client may switch to. A request with a body may not: the client would not wait for the answer
/// before it sends the body, so the body's end and the new protocol's begin are a matter of trust. Cleartext HTTP/2
/// would carry requests past the gateway.
#[inline]
pub(super) fn upgrade(head: &RequestHead, buf: &[u8]) -> Option<Span> {
    head.upgrade.filter(|protocols| head.framing.is_empty() && !names_h2c(protocols.of(buf)))
}

/// Whether a list of protocols, each perhaps with a version, has cleartext HTTP/2: the server may choose any of them.
fn names_h2c(protocols: &[u8]) -> bool {
    protocols.split(|byte| *byte == b',').any(|protocol| {
        let name = protocol.split(|byte| *byte == b'/').next().unwrap_or_default();
        name.trim_ascii().eq_ignore_ascii_case(b"h2c")
    })
}

/// Servers that are tried besides the first one: each may take the whole time for connecting.
const MOST_OTHERS: usize = 2;
