//! From the upstream to the client.

use super::Worker;
use super::core::HEADROOM;
use crate::exchange::{AnswerHalf, Event, Exchange, Head, HeadStep, Replay};
use crate::heads::rewrite::{self, Back, Connection, Cookie};
use crate::keys::{ExchangeId, OfExchange, OfMirror, Store, UpstreamId};
use crate::mirror::{Fate, Mirror};
use crate::observe::Context;
use crate::observe::access::Entry;
use crate::reason::Reason;
use crate::upstream::{Job, Upstream};
use std::time::Duration;
use weir_http1::{Framing, Limits, Parse, Version};
use weir_reactor::{Net, Ready, Socket};
use weir_transport::{End, Fault, Wire};

/// What a head of an answer led to.
pub(super) enum Passed {
    /// Another head follows.
    Interim,
    /// The body follows.
    Final,
    /// Not HTTP follows.
    Switched,
    /// The exchange has ended.
    Ended,
}

impl<N: Net> Worker<N> {
    pub(super) fn upstream_ready(&mut self, id: UpstreamId, ready: Ready) {
        let Some(upstream) = self.upstreams.get_mut(id) else { return };
        if !upstream.transport.is_open() {
            keep_staged(upstream, &mut self.exchanges, &mut self.core.wire);
        }
        let transport = &mut upstream.transport;
        let connecting = transport.is_connecting();
        let mut asked = true;
        if ready.writable && (connecting || transport.pending() > 0) {
            // What is there before the first byte of the request leaves is no answer to it.
            let may_be_early = connecting && ready.readable && !ready.hangup;
            asked = !may_be_early || transport.is_quiet();
            match transport.advance(&mut self.core.wire) {
                Ok(()) => self.request_moved(id, connecting),
                // Its response before the close can still be read.
                Err(Fault::Socket(_)) if ready.readable && !connecting => self.discard_request(id),
                Err(fault) => return self.lose_upstream(id, fault),
            }
        }
        if ready.readable
            && self.upstreams.get(id).is_some_and(|upstream| !upstream.transport.is_connecting())
        {
            self.read_upstream(id, asked);
        }
        self.touch_upstream(id);
    }

    /// The upstream read more of the request, or the connection was established.
    fn request_moved(&mut self, id: UpstreamId, connected: bool) {
        let Some(upstream) = self.upstreams.get_mut(id) else { return };
        upstream.moved = true;
        let client = match upstream.job {
            Job::Exchange(exchange) => self.exchanges.get_mut(exchange).map(|exchange| {
                if connected {
                    let now = self.core.net.now();
                    match upstream.transport.is_open() {
                        true => exchange.times.connected = Some(now),
                        // A handshake follows.
                        false => exchange.times.reached = Some(now),
                    }
                }
                exchange.client
            }),
            Job::Tunnel(tunnel) => self.tunnels.get(tunnel).map(|tunnel| tunnel.client),
            Job::Idle | Job::Mirror(_) | Job::Closing => None,
        };
        let Some(id) = client else { return };
        if let Some(client) = self.clients.get_mut(id) {
            client.moved = true;
        }
        self.touch_client(id);
    }

    /// The upstream stopped reading the request.
    fn discard_request(&mut self, id: UpstreamId) {
        let Some(Job::Exchange(exchange)) = self.upstreams.get(id).map(|upstream| upstream.job) else {
            return;
        };
        if let Some(exchange) = self.exchanges.get_mut(exchange) {
            exchange.request.discard();
        }
    }

    /// `asked`: whether what comes can be an answer.
    fn read_upstream(&mut self, id: UpstreamId, mut asked: bool) {
        let Some(upstream) = self.upstreams.get_mut(id) else { return };
        let Upstream { transport, held, part, .. } = upstream;
        let limits = match held.is_empty() {
            true => None,
            false => limits_of_part(upstream.job, &self.exchanges, &self.mirrors),
        };
        let (mut inbox, received) = match &limits {
            Some(limits) => self.core.receive_more(transport, held, *part, limits),
            None => {
                let mut inbox = self.core.take_inbox(held);
                let received = transport.receive(&mut self.core.wire, &mut inbox);
                (inbox, received)
            }
        };
        match received {
            Ok(received) => {
                upstream.may_have_more = received.is_full;
                upstream.ended |= received.end.is_some();
                let job = upstream.job;
                if received.handshake_finished {
                    self.core.counters.upstream_handshake(upstream.transport.facts());
                    // The request left when the handshake was done, after these bytes had come.
                    asked &= received.bytes == 0;
                    self.request_moved(id, true);
                }
                match job {
                    Job::Exchange(exchange) if asked || received.bytes == 0 => {
                        self.take_answer(id, exchange, &mut inbox, received.end);
                    }
                    Job::Exchange(exchange) => {
                        if let Some(client) = self.client_of(exchange) {
                            self.end(client, Reason::UpstreamUnasked);
                        }
                    }
                    Job::Tunnel(tunnel) => self.pass_down(tunnel, &mut inbox, HEADROOM),
                    Job::Mirror(mirror) => self.take_mirrored(id, mirror, &inbox, received.end),
                    // The end of a pooled connection, or unsolicited bytes.
                    Job::Idle => {
                        if received.bytes > 0 {
                            self.note_stray(received.bytes);
                        }
                        if received.bytes > 0 || received.end.is_some() {
                            self.forget_pooled(id);
                        }
                    }
                    Job::Closing => {}
                }
            }
            Err(fault) => self.lose_upstream(id, fault),
        }
        self.core.put_inbox(inbox);
    }

    /// Processes an upstream's input.
    fn take_answer(&mut self, from: UpstreamId, id: ExchangeId, inbox: &mut [u8], end: Option<End>) {
        let mut at = HEADROOM;
        self.answer_begins(id, inbox.len() > at);
        // How much was staged for the client before the answer's head, if that came in this call.
        let mut before_head = None;
        loop {
            let Some(exchange) = self.exchanges.get_mut(id) else { return };
            let Some(client) = self.clients.get_mut(exchange.client) else { return };
            let core = &mut self.core;
            match &mut exchange.answer {
                AnswerHalf::Awaiting if at == inbox.len() => break,
                AnswerHalf::Awaiting => {
                    let staged = client.transport.staged();
                    let (len, passed) = match core.response.parse(&inbox[at..], &exchange.limits) {
                        Ok(Parse::Complete(len)) => (len, self.pass_head(id, &inbox[at..at + len])),
                        Ok(Parse::Partial) => break,
                        Err(error) => match self.mend_answer(id, &inbox[at..], error) {
                            Some(passed) => passed,
                            None => break,
                        },
                    };
                    at += len;
                    match passed {
                        Passed::Interim => {}
                        Passed::Final => before_head = Some(staged),
                        Passed::Switched => return self.switch(id, inbox, at),
                        Passed::Ended => return,
                    }
                }
                AnswerHalf::Forwarding { body, .. } => {
                    let id = exchange.client;
                    match body.pass(inbox, at, &mut client.transport, &mut core.wire, None) {
                        Ok(passed) => {
                            at += passed.consumed;
                            if let Some(fault) = passed.receiver_lost {
                                return self.lose_client(id, fault);
                            }
                        }
                        Err(error) => {
                            if let Some(staged) = before_head.filter(|_| !body.is_direct()) {
                                // Nothing of it has left.
                                client.transport.unstage(staged);
                                exchange.answer = AnswerHalf::Awaiting;
                            }
                            return self.end(id, Reason::BadResponseBody(error));
                        }
                    }
                    break;
                }
            }
        }
        self.answer_taken(from, id, &inbox[at..], end);
    }

    /// Notes the first bytes of an answer: there is no second attempt after them.
    fn answer_begins(&mut self, id: ExchangeId, has_come: bool) {
        let Some(exchange) = self.exchanges.get_mut(id).filter(|_| has_come) else { return };
        exchange.times.first_byte.get_or_insert(self.core.net.now());
        if exchange.may_ask_another() {
            return;
        }
        if let Some(bytes) = exchange.replay.take() {
            self.core.wire.give_back(bytes);
        }
    }

    /// Checks for completion after input; `rest` was not used.
    fn answer_taken(&mut self, from: UpstreamId, id: ExchangeId, rest: &[u8], end: Option<End>) {
        let Some(exchange) = self.exchanges.get_mut(id) else { return };
        let client_id = exchange.client;
        let Some(client) = self.clients.get_mut(client_id) else { return };
        let mut complete = exchange.answer.is_complete();
        if let (AnswerHalf::Forwarding { body, .. }, Some(End::Clean), false) =
            (&mut exchange.answer, end, complete)
        {
            complete = body.end(client.transport.stage(&mut self.core.wire)).is_ok();
        }
        if complete {
            exchange.times.last_byte = Some(self.core.net.now());
            if !rest.is_empty() {
                self.note_end_of(client_id, &Reason::UpstreamStray(rest.len()));
            }
            return self.complete(id, rest.is_empty() && end.is_none());
        }
        if end.is_some() {
            return self.on(id, Event::UpstreamEnded { partial: !rest.is_empty() });
        }
        if let Some(upstream) = self.upstreams.get_mut(from) {
            upstream.moved |= !exchange.answer.is_awaiting();
            if !rest.is_empty() {
                upstream.part = self.core.note_part(rest);
                upstream.held = rest.to_vec();
            }
        }
        self.touch_client(client_id);
    }

    /// Passes on a head of an answer, which was parsed from `buf`.
    pub(super) fn pass_head(&mut self, id: ExchangeId, buf: &[u8]) -> Passed {
        let status = self.core.response.status;
        if status >= 400 && self.ask_another(id, status) {
            return Passed::Ended;
        }
        let Some(exchange) = self.exchanges.get_mut(id) else { return Passed::Ended };
        let client_id = exchange.client;
        let Some(client) = self.clients.get_mut(client_id) else { return Passed::Ended };
        let core = &mut self.core;
        let head = &core.response;
        let facts = Head {
            length: buf.len(),
            status: head.status,
            framing: head.framing(exchange.method),
            persistent: head.persistent,
            authenticates_connection: head.authenticates_connection,
            announces_absent_body: head.announces_absent_body(exchange.method),
        };
        let step = exchange.on_head(facts, core.drain.is_on());
        let via = exchange.plan.snapshot.via.responses.as_deref();
        let edits = exchange.plan.response_edits(exchange.route);
        match step {
            HeadStep::Skip => Passed::Interim,
            HeadStep::Interim => {
                rewrite::interim(buf, head, via, edits, client.transport.stage(&mut core.wire));
                Passed::Interim
            }
            HeadStep::Switch => {
                rewrite::switching(buf, head, via, edits, client.transport.stage(&mut core.wire));
                Passed::Switched
            }
            HeadStep::Final { framing } => {
                let connection = match (exchange.persistent, exchange.version) {
                    (false, _) => Connection::Closes,
                    (true, Version::Http11) => Connection::Persists,
                    (true, Version::Http10) => Connection::PersistsByConsent,
                };
                if let Some(seconds) = head.idle_timeout
                    && let Some(upstream) = self.upstreams.get_mut(exchange.attempt.upstream)
                {
                    upstream.life.kept = Some(Duration::from_secs(seconds.into()));
                }
                if let Some(tempo) = &mut client.tempo {
                    tempo.answer_begins();
                }
                let cookie = match exchange.sets_cookie {
                    true => {
                        let upstream = self.upstreams.get(exchange.attempt.upstream);
                        let service = self.services.get(exchange.service);
                        let secure = client.frontend.tls.is_some();
                        service.zip(upstream).and_then(|(service, upstream)| {
                            let name = &service.config.sticky.as_ref()?.name;
                            Some(Cookie { name, value: service.cookie_of(upstream.server)?, secure })
                        })
                    }
                    false => None,
                };
                let trailers = exchange.accepts_trailers && framing == Framing::Chunked;
                let date = core.date.line(core.net.now());
                let back = Back { framing, trailers, connection, edits, cookie, date, via };
                rewrite::response(buf, head, back, client.transport.stage(&mut core.wire));
                Passed::Final
            }
            HeadStep::End(reason) => {
                self.end(client_id, reason);
                Passed::Ended
            }
        }
    }

    /// The upstream's connection has failed.
    pub(super) fn lose_upstream(&mut self, id: UpstreamId, fault: Fault) {
        let Some(upstream) = self.upstreams.get(id) else { return };
        match upstream.job {
            Job::Idle => self.forget_pooled(id),
            Job::Closing => self.drop_upstream(id),
            Job::Mirror(mirror) => self.drop_mirror(mirror, Fate::Failed),
            Job::Exchange(exchange) => {
                let event = match (upstream.transport.is_open(), fault) {
                    (false, fault @ Fault::Connect(_)) => Event::NotConnected(Reason::UpstreamConnect(fault)),
                    (false, fault @ Fault::Tls(_)) => Event::NotConnected(Reason::UpstreamTls(fault)),
                    (_, fault) => Event::UpstreamFailed { fault, partial: !upstream.held.is_empty() },
                };
                self.on(exchange, event);
            }
            Job::Tunnel(tunnel) => self.end_tunnel(
                tunnel,
                match fault {
                    Fault::Connect(_) => Reason::UpstreamConnect(fault),
                    Fault::Tls(_) => Reason::UpstreamTls(fault),
                    Fault::Socket(_) => Reason::UpstreamTruncated,
                },
            ),
        }
    }

    /// Counts and logs an early end of the client's exchange, or of its connection.
    pub(super) fn note_end_of(&mut self, id: crate::keys::ClientId, reason: &Reason) {
        let Some(client) = self.clients.get(id) else { return };
        let client_address = client.peer;
        let Some(exchange) = client.exchange().and_then(|exchange| self.exchanges.get(exchange)) else {
            let entry = Entry::of_fragment(client.head());
            let line = entry.line();
            let request = Some(&*line).filter(|line| !line.is_empty());
            let context =
                Context { client: client_address, request, host: entry.host(), ..Context::default() };
            return self.core.note_end(reason, context);
        };
        let upstream = self.upstreams.get(exchange.attempt.upstream);
        let server = upstream.and_then(|upstream| self.servers.get(upstream.server));
        let server = server.map(|server| server.config.label()).unwrap_or_default();
        let context = Context {
            client: client_address,
            request: Some(exchange.line.as_str()),
            host: exchange.entry.as_deref().map_or("", Entry::host),
            route: Some(exchange.route),
            service: self.services.get(exchange.service).map_or("", |service| &service.config.name),
            server: &server,
            times: Some(exchange.times),
        };
        self.core.note_end(reason, context);
    }
}

/// Until a connection opens, the whole request so far is staged for it, and leaves as it opens. If the request may be sent
/// again, a copy is kept first.
#[cold]
fn keep_staged<S: Socket>(
    upstream: &mut Upstream<S>,
    exchanges: &mut Store<OfExchange, Exchange>,
    wire: &mut Wire,
) {
    let Job::Exchange(exchange) = upstream.job else { return };
    if let Some(Replay::Kept(bytes)) = exchanges.get_mut(exchange).map(|exchange| &mut exchange.replay) {
        bytes.clear();
        bytes.extend_from_slice(upstream.transport.stage(wire));
    }
}

/// The limits of the head of which a server's connection holds a part, if that is what it holds.
#[cold]
fn limits_of_part(
    job: Job,
    exchanges: &Store<OfExchange, Exchange>,
    mirrors: &Store<OfMirror, Mirror>,
) -> Option<Limits> {
    match job {
        Job::Exchange(id) => {
            let exchange = exchanges.get(id).filter(|exchange| exchange.answer.is_awaiting())?;
            Some(exchange.limits)
        }
        Job::Mirror(id) => {
            mirrors.get(id).filter(|mirror| mirror.answer.is_none()).map(|mirror| mirror.limits)
        }
        Job::Idle | Job::Tunnel(_) | Job::Closing => None,
    }
}
