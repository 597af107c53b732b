//! Client connections: reading, and the start of exchanges.

use super::Worker;
use super::core::{Core, HEADROOM};
use super::handshakes::{EventSource, Handshakes};
use super::own_responses::{LocalResponse, stopped};
use crate::config::document::HalfClose;
use crate::config::{Action, Route};
use crate::deadlines::BodyDeadlines;
use crate::downstream::{Client, Handshake, MAX_PENDING, Phase};
use crate::exchange::{
    Attempt, AwaitsContinue, Body, Event, Exchange, ExchangeTimer, Interims, Leg, RequestHalf, RequestLine,
    ResponseHalf, Stage, Times, Trailers,
};
use crate::grpc::Call;
use crate::heads::client_address::client_address;
use crate::heads::lookup::cookie;
use crate::keys::{ClientId, ExchangeId, ServiceId};
use crate::limits::ClientKey;
use crate::observe::access::Entry;
use crate::plan::{Among, Plan, Unrouted};
use crate::reason::Reason;
use crate::route::{Split, next_point};
use std::io::ErrorKind;
use std::rc::Rc;
use std::sync::Arc;
use weir_http::Method;
use weir_http1::{Framing, Limits, Parse, RequestHead};
use weir_reactor::{Net, Ready};
use weir_tls::ClientCertificate;
use weir_transport::{Fault, Received};

impl<N: Net> Worker<N> {
    pub(super) fn client_ready(&mut self, id: ClientId, ready: Ready, source: EventSource) {
        // An event may belong to a connection that was closed in this turn.
        let Some(client) = self.clients.get_mut(id) else { return };
        if source == EventSource::Poller && client.is_in_handshake() {
            // The gateway does not read from a client that waits for its turn. A hang-up is handled now, since the
            // poller would report it until the connection is dropped.
            let is_gone = client.handshake == Handshake::Ready && ready.hangup;
            if !is_gone {
                return self.queue_handshake(id);
            }
        }
        client.touch(id, &mut self.core.touched.clients);
        let has_room = ready.writable && client.transport.pending() > 0;
        if has_room || ready.hangup {
            return self.client_changed(id, ready);
        }
        if ready.readable {
            let input = receive(client, &mut self.core, &mut self.handshakes);
            self.take_input(id, input);
        }
    }

    /// A client's socket accepts more output, or both directions of its connection have ended.
    fn client_changed(&mut self, id: ClientId, ready: Ready) {
        if ready.writable {
            self.push_client(id);
        }
        match ready.hangup {
            true => self.client_hung_up(id, ready.readable),
            false if ready.readable => self.read_client(id),
            false => {}
        }
    }

    /// Both directions of a client's connection have ended: reads its last bytes and the end of its stream.
    #[cold]
    fn client_hung_up(&mut self, id: ClientId, is_readable: bool) {
        let Some(client) = self.clients.get(id) else { return };
        match client.phase {
            _ if client.ended => self.lose_client(id, Fault::Socket(ErrorKind::ConnectionReset.into())),
            Phase::Closing => self.end_linger(id),
            _ if is_readable => self.read_client(id),
            _ => {}
        }
    }

    /// Closes a connection whose directions have both ended. First reads the remaining input: the kernel would reset a
    /// connection with unread input, and the client might lose the end of its response.
    fn end_linger(&mut self, id: ClientId) {
        let Some(client) = self.clients.present_mut(id) else { return };
        let mut inbox = self.core.take_inbox(&mut client.held);
        let received = client.transport.receive(&mut self.core.wire, &mut inbox);
        self.core.put_inbox(inbox);
        if !received.is_ok_and(|received| received.is_full) {
            self.drop_client(id);
        }
    }

    /// Sends the client's pending output, as much as its socket accepts.
    #[inline]
    pub(super) fn push_client(&mut self, id: ClientId) {
        let Some(client) = self.clients.present_mut(id) else { return };
        let pending = client.transport.pending();
        if let Err(fault) = client.transport.advance(&mut self.core.wire) {
            return self.lose_client(id, fault);
        }
        if client.transport.pending() < pending {
            client.moved = true;
            self.response_moved(id);
        }
    }

    /// The client has read more of its response: reads from the upstream again. The timeout of a response in progress
    /// restarts, since the upstream may have been silent only because the gateway did not read from it.
    fn response_moved(&mut self, id: ClientId) {
        let Some(client) = self.clients.present(id) else { return };
        match client.phase {
            Phase::Streams => self.responses_moved(id),
            Phase::Exchange(exchange) => self.client_has_read(exchange, true),
            Phase::Tunnel(tunnel) => {
                if let Some(upstream) = self.tunnels.get(tunnel).map(|tunnel| tunnel.upstream)
                    && let Some(connection) = self.upstreams.get_mut(upstream)
                {
                    connection.moved = true;
                    connection.touch(upstream, &mut self.core.touched.upstreams);
                }
            }
            Phase::Preface(_) | Phase::Head { .. } | Phase::Closing => {}
        }
    }

    /// The client has read more: the gateway may read from this exchange's server again. `has_moved`: the client has
    /// read, or may have read, bytes of this response.
    pub(super) fn client_has_read(&mut self, id: ExchangeId, has_moved: bool) {
        let Some(exchange) = self.exchanges.present_mut(id) else { return };
        exchange.moved |= has_moved;
        let is_responding = !exchange.response.is_awaiting();
        exchange.server_moved |= is_responding;
        let Some(Attempt { upstream: id, stream, .. }) = exchange.attempt else { return };
        if let Some(upstream) = self.upstreams.get_mut(id) {
            upstream.moved |= is_responding;
            upstream.touch_leg(id, stream, &mut self.core.touched.upstreams);
        }
    }

    pub(super) fn read_client(&mut self, id: ClientId) {
        // The client may have been lost while the gateway sent its output.
        let Some(client) = self.clients.get_mut(id) else { return };
        let input = receive(client, &mut self.core, &mut self.handshakes);
        self.take_input(id, input);
    }

    /// Processes a client's input, as the phase of the connection requires.
    #[inline]
    pub(super) fn take_input(&mut self, id: ClientId, input: Input) {
        match input {
            Input::Preface => self.read_preface(id),
            Input::Bytes { phase, ended, mut inbox } => {
                match phase {
                    Phase::Tunnel(tunnel) => self.pass_up(tunnel, &mut inbox, HEADROOM),
                    Phase::Streams => self.take_frames(id, &mut inbox, HEADROOM, ended),
                    _ => self.take_requests(id, &mut inbox, HEADROOM, ended, false),
                }
                self.core.put_inbox(inbox);
            }
            Input::Failed(fault) => self.lose_client(id, fault),
        }
    }

    /// Continues with a client's held input, such as pipelined requests or postponed frames.
    pub(super) fn resume_client(&mut self, id: ClientId) {
        // The client may have failed since its input was held.
        let Some(client) = self.clients.get_mut(id) else { return };
        client.touch(id, &mut self.core.touched.clients);
        let (mut held, ended) = (std::mem::take(&mut client.held), client.ended);
        match client.phase {
            Phase::Streams => self.take_frames(id, &mut held, 0, ended),
            _ => self.take_requests(id, &mut held, 0, ended, true),
        }
    }

    /// Processes a client's input from `at` on, up to the next request that must wait. `ended`: the client's stream has
    /// ended; `was_held`: the input arrived earlier.
    fn take_requests(&mut self, id: ClientId, input: &mut [u8], at: usize, ended: bool, was_held: bool) {
        let at = self.take_some(id, input, at);
        if at < input.len()
            && let Some(client) = self.clients.get_mut(id)
            && client.phase != Phase::Closing
        {
            if client.phase == (Phase::Head { started: true }) {
                client.part = self.core.note_part(&input[at..]);
            }
            client.held.extend_from_slice(&input[at..]);
        }
        if ended {
            self.client_ended(id, was_held);
        }
    }

    /// Processes input as [`Self::take_requests`]; returns the position of the remaining input, which must wait.
    pub(super) fn take_some(&mut self, id: ClientId, input: &mut [u8], mut at: usize) -> usize {
        while at < input.len()
            && let Some(client) = self.clients.get_mut(id)
        {
            match client.phase {
                Phase::Closing | Phase::Preface(_) | Phase::Streams | Phase::Tunnel(_) => break,
                // The next request waits until the client has read more of the earlier responses.
                Phase::Head { .. } if client.transport.pending() >= MAX_PENDING => break,
                Phase::Head { .. } => {
                    let core = &mut self.core;
                    match core.request.parse(&input[at..], &client.frontend.limits) {
                        Ok(Parse::Complete(len)) => {
                            self.begin(Leg { client: id, stream: None }, &input[at..at + len], None);
                            at += len;
                        }
                        Ok(Parse::Partial) => {
                            client.phase = Phase::Head { started: true };
                            break;
                        }
                        Err(_) if self.may_be_h2(id, &input[at..]) => break,
                        Err(error) => match self.recover_request(id, &input[at..], error) {
                            0 => break,
                            taken => at += taken,
                        },
                    }
                }
                Phase::Exchange(exchange) => match self.pass_request_body(exchange, input, at) {
                    0 => break,
                    taken => at += taken,
                },
            }
        }
        at
    }

    /// A request head is complete: begins its exchange, or responds itself. `before`: the request's earlier exchange,
    /// if the request needs another route after a reload.
    pub(super) fn begin(&mut self, leg: Leg, buf: &[u8], before: Option<&mut Exchange>) {
        let core = &mut self.core;
        let head = &core.request;
        if head.method == Method::Connect {
            return self.refuse(leg, buf, Reason::ConnectMethod, None);
        }
        let Some(client) = self.clients.present_mut(leg.client) else { return };
        if client.is_trusted {
            client.client_address = client_address(head, buf, client.peer, &client.frontend);
        }
        if client.may_object
            && let Some(reason) = client.objection(head, buf)
        {
            return self.refuse(leg, buf, reason, None);
        }
        let plan = Rc::clone(client.frontend.plan(&core.plan));
        let listener = &client.frontend.name;
        let redirect = plan.redirect(listener);
        let among = if redirect.is_none() { Among::All } else { Among::Challenges };
        let (mut route, mut found) =
            match plan.route(head, buf, client.client_address.as_ref(), listener, among) {
                Ok(found) => found,
                Err(Unrouted::NoRoute) => {
                    return self.respond_locally(
                        leg,
                        buf,
                        redirect.map_or(LocalResponse::NoRoute, LocalResponse::Redirected),
                    );
                }
                Err(Unrouted::Ambiguous) => return self.refuse(leg, buf, Reason::AmbiguousPath, None),
            };
        if let Some(rate) = found.rate.and_then(|_| plan.limits.rate(route))
            && before.is_none()
            && let Err(wait) =
                rate.take(ClientKey::of(client.client_address.map(|client| client.ip())), core.net.now())
        {
            return self.respond_locally(leg, buf, LocalResponse::TooMany(found, wait));
        }
        if matches!(head.method, Method::Options | Method::Trace) {
            match stopped(head, buf, found) {
                Ok(None) => {}
                Ok(Some(response)) => return self.respond_locally(leg, buf, response),
                Err(reason) => return self.refuse(leg, buf, reason, Some(found)),
            }
        }
        if matches!(head.framing, Framing::Length(length) if length > found.policy.max_body) {
            return self.refuse(leg, buf, Reason::BodyTooLarge, Some(found));
        }
        if let Action::Split(split) = &found.action {
            let has_tls = client.frontend.tls.is_some();
            match share_of(split, &mut core.split_point, &plan, &core.request, buf, has_tls) {
                Some(of_share) => (route, found) = of_share,
                None => return self.broken_client(leg.client, "a split without its routes"),
            }
        }
        let service = match found.action {
            Action::Pass { service } => plan.services.get(service).copied(),
            Action::Split(_) | Action::Redirect(_) | Action::Respond { .. }
                if leg.stream.is_some() && core.request.upgrade.is_some() =>
            {
                // The request asks for a tunnel, and a successful response would tell the client that the tunnel is
                // open.
                return self.refuse(leg, buf, Reason::ConnectMethod, Some(found));
            }
            Action::Split(_) | Action::Redirect(_) | Action::Respond { .. } => {
                return self.respond_locally(leg, buf, LocalResponse::Set(found));
            }
        };
        let Some(service) = service else {
            return self.broken_client(leg.client, "a route without its service");
        };
        if !Rc::ptr_eq(&plan, &core.plan) && self.services.get(service).is_none() {
            return self.refuse(leg, buf, Reason::ListenerGone, Some(found));
        }
        let is_again = before.is_some();
        let was_held = before.as_ref().is_some_and(|before| before.was_held);
        let is_held = found.policy.request_buffer > 0 && !was_held && !core.request.framing.is_empty();
        let is_limited = found.policy.timeouts.exchange.is_some() || client.is_grpc(leg.stream);
        let of_route = (&plan, route, found);
        let exchange =
            self.exchanges.insert(exchange(leg, client, &mut self.core, buf, of_route, service, before));
        match (leg.stream, &mut client.h2) {
            (Some(no), Some(h2)) => h2.has_begun(no, exchange),
            _ => client.phase = Phase::Exchange(exchange),
        }
        if is_limited {
            self.limit(exchange);
        }
        match is_held {
            true => self.hold(exchange),
            false => self.start(exchange, is_again),
        }
    }

    /// The client closed its sending side. Its exchange continues only if the request is complete and either the
    /// listener serves half-closed clients, or the gateway holds pipelined requests of the client, now or before this
    /// call (`was_pipelined`).
    #[cold]
    fn client_ended(&mut self, id: ClientId, was_pipelined: bool) {
        // One of the client's requests may have closed the connection.
        let Some(client) = self.clients.get_mut(id) else { return };
        let pipelined = !client.held.is_empty();
        let waits = pipelined || was_pipelined || client.frontend.half_close == HalfClose::Serve;
        match client.phase {
            Phase::Closing | Phase::Tunnel(_) | Phase::Preface(_) | Phase::Streams => {}
            // The pipelined requests wait until the client has read more of the pending responses.
            Phase::Head { started: false } if pipelined => {}
            Phase::Head { .. } => self.close(id),
            Phase::Exchange(exchange) if self.exchanges.get(exchange).is_some_and(|of| of.is_tunnel) => {
                if !pipelined {
                    self.end_request_body(exchange, b"");
                }
            }
            Phase::Exchange(exchange) => self.on(exchange, Event::ClientEnded { pipelined, waits }),
        }
    }
}

pub(super) enum Input {
    /// The connection is in its preface, which another function reads.
    Preface,
    /// Bytes in `inbox` after the headroom. `ended`: the stream has ended.
    Bytes { phase: Phase, ended: bool, inbox: Vec<u8> },
    /// The connection failed.
    Failed(Fault),
}

/// Receives from a client. While only part of a request head is known, the bytes may wait for more before they are
/// parsed.
#[inline]
fn receive<N: Net>(client: &mut Client<N::Socket>, core: &mut Core<N>, handshakes: &mut Handshakes) -> Input {
    let (inbox, received) = match client.phase {
        Phase::Preface(_) => return Input::Preface,
        Phase::Head { started: true } => {
            let Client { transport, held, part, frontend, .. } = client;
            core.receive_more(transport, held, *part, &frontend.limits)
        }
        Phase::Head { started: false }
        | Phase::Exchange(_)
        | Phase::Streams
        | Phase::Tunnel(_)
        | Phase::Closing => {
            let mut inbox = core.take_inbox(&mut client.held);
            let received = client.transport.receive(&mut core.wire, &mut inbox);
            (inbox, received)
        }
    };
    input(client, received, inbox, core, handshakes)
}

/// The route that a split selects for the request whose head was parsed from `buf`, with the route's index.
#[cold]
fn share_of<'a>(
    split: &Split,
    point: &mut u32,
    plan: &'a Plan,
    head: &RequestHead,
    buf: &[u8],
    has_tls: bool,
) -> Option<(usize, &'a Route)> {
    *point = next_point(*point);
    let cookie = split.cookie.as_ref().and_then(|name| cookie(name, head, buf));
    let route = split.choose(*point, cookie, has_tls)?;
    Some((route, plan.snapshot.routes.get(route)?))
}

/// Records the results of a read: the end of the client's stream, the end of its handshake.
#[inline]
pub(super) fn input<N: Net>(
    client: &mut Client<N::Socket>,
    received: Result<Received, Fault>,
    inbox: Vec<u8>,
    core: &mut Core<N>,
    handshakes: &mut Handshakes,
) -> Input {
    let received = match received {
        Ok(received) => received,
        Err(fault) => {
            core.put_inbox(inbox);
            return Input::Failed(fault);
        }
    };
    client.ended |= received.end.is_some();
    if received.handshake_finished {
        handshakes.end(client);
        let facts = client.transport.facts();
        core.counters.handshake(facts);
        if facts.and_then(|facts| facts.alpn.as_deref()) == Some(b"h2") {
            client.begin_h2();
            core.counters.http2_connections += 1;
        }
        let leaf = client.transport.client_chain().and_then(<[_]>::first);
        client.certificate = leaf.and_then(|leaf| ClientCertificate::read(leaf)).map(Box::new);
        client.note_certificate();
    }
    Input::Bytes { phase: client.phase, ended: client.ended, inbox }
}

/// A new exchange for a request to a service. The request's head was parsed last, from `buf`. `before`: the request's
/// earlier exchange, if a reload has removed its service.
#[inline]
fn exchange<N: Net>(
    leg: Leg,
    client: &mut Client<N::Socket>,
    core: &mut Core<N>,
    buf: &[u8],
    (plan, route, found): (&Rc<Plan>, usize, &Route),
    service: ServiceId,
    mut before: Option<&mut Exchange>,
) -> Exchange {
    let head = &core.request;
    let now = core.net.now();
    let body_deadlines = match &mut before {
        Some(before) => before.body_deadlines.take(),
        // The client may still be reading the previous response.
        None => client.body_deadlines.take().map(BodyDeadlines::for_next_request),
    };
    let waits = before.as_mut().and_then(|before| before.timer.take()?.waits);
    let was_held = before.as_ref().is_some_and(|before| before.was_held);
    let request = match head.framing.is_empty() {
        true => RequestHalf::Done { passed_on: true },
        false => {
            let is_chunked = head.framing == Framing::Chunked;
            let mut body = Body::new(leg.framing(head.framing), is_chunked, &client.frontend.limits);
            if let Some(names) = &found.request_trailers {
                body.pass_trailers(Trailers::Named(Arc::clone(names)));
            }
            RequestHalf::Forwarding(body)
        }
    };
    Exchange {
        client: leg.client,
        stream: leg.stream,
        stage: Stage::Forwarding,
        attempt: None,
        method: head.method,
        version: head.version,
        persistent: head.persistent,
        authenticates_connection: head.authenticates_connection,
        asks_upgrade: false,
        accept: None,
        // Every HTTP/2 client accepts trailers, and gRPC depends on them.
        accepts_trailers: head.accepts_trailers || leg.stream.is_some(),
        awaits_continue: AwaitsContinue::of(head, was_held),
        was_held,
        request,
        response: ResponseHalf::Awaiting,
        interims: Interims::default(),
        sent_body: None,
        is_repeatable: false,
        ids: None,
        times: Times::new(client.accepted, before.as_ref().map_or(now, |before| before.times.head), now),
        timer: waits.map(|waits| Box::new(ExchangeTimer { waits: Some(waits), ..ExchangeTimer::default() })),
        body_deadlines,
        moved: false,
        server_moved: false,
        line: RequestLine::of(head, buf),
        plan: Rc::clone(plan),
        route,
        service,
        limits: Limits::default(),
        key: 0,
        others: 0,
        asked: [None; 2],
        sets_cookie: false,
        status: 0,
        received: before.as_ref().map_or(0, |before| before.received),
        retries: 0,
        grpc: if client.is_grpc(leg.stream) { Some(Box::new(Call::of(head, buf))) } else { None },
        is_tunnel: false,
        copy: None,
        entry: core.access.as_ref().map(|_| Box::new(Entry::of(head, buf))),
        // Takes the head last, since other fields are read from it.
        head: Some(core.hold_head(buf)),
    }
}
