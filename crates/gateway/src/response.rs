//! From the upstream to the client.

use crate::client::{Client, MAX_PENDING, State};
use crate::core::count_handshake;
use crate::exchange::{Answer, Body, Exchange, flush};
use crate::reason::Reason;
use crate::rewrite::{self, Connection};
use crate::worker::Worker;
use weir_http1::{Framing, Parse, Version};
use weir_reactor::{Key, Ready};
use weir_transport::{End, Fault};

impl Worker {
    pub(crate) fn upstream_ready(&mut self, key: Key, ready: Ready) {
        let Some(upstream) = self.upstreams.get_mut(key) else { return };
        if ready.writable && (upstream.transport.pending() > 0 || upstream.transport.is_connecting()) {
            match upstream.transport.advance(&mut self.core.wire) {
                Ok(()) => self.request_moved(key),
                // Its response before the close can still be read.
                Err(Fault::Socket(_)) if ready.readable => self.discard_request(key),
                Err(fault) => return self.lose_upstream(key, fault),
            }
        }
        if ready.readable
            && self.upstreams.get(key).is_some_and(|upstream| !upstream.transport.is_connecting())
        {
            self.read_upstream(key);
        }
        self.settle_upstream(key);
    }

    /// Updates the poller's interest: an upstream is not read while its client has enough pending.
    pub(crate) fn settle_upstream(&mut self, key: Key) {
        let Some(upstream) = self.upstreams.get_mut(key) else { return };
        let client_pending = upstream
            .client
            .and_then(|client| self.clients.get(client))
            .map_or(0, |client| client.transport.pending());
        let read = client_pending < MAX_PENDING;
        if let Err(error) = upstream.transport.watch(&self.core.reactor, key, read) {
            self.lose_upstream(key, Fault::Socket(error));
        }
    }

    /// The upstream read more of the request, or the connection was established.
    fn request_moved(&mut self, key: Key) {
        let Some(client_key) = self.upstreams.get(key).and_then(|upstream| upstream.client) else { return };
        if let Some(client) = self.clients.get_mut(client_key)
            && matches!(&client.state, State::Exchange(exchange) if !exchange.request.is_complete())
        {
            let stalled = self.core.reactor.now() + self.core.settings.timeouts.stall;
            client.deadline.set(stalled, &mut self.core.reactor, client_key);
        }
        self.await_answer(key);
        self.settle_client(client_key);
    }

    /// Sets the upstream's deadline after progress of the request. Its time starts at the request's last byte; until
    /// then the client's deadline applies.
    pub(crate) fn await_answer(&mut self, key: Key) {
        let Some(upstream) = self.upstreams.get_mut(key).filter(|upstream| upstream.transport.is_open())
        else {
            return;
        };
        let Some(client) = upstream.client.and_then(|client| self.clients.get(client)) else { return };
        let State::Exchange(exchange) = &client.state else { return };
        let (now, timeouts) = (self.core.reactor.now(), &self.core.settings.timeouts);
        match exchange.answer {
            Answer::Awaited if !exchange.request.is_complete() => upstream.deadline.clear(),
            Answer::Awaited => upstream.deadline.set(now + timeouts.response, &mut self.core.reactor, key),
            Answer::Body { .. } => upstream.deadline.set(now + timeouts.stall, &mut self.core.reactor, key),
        }
    }

    /// The upstream stopped reading the request.
    fn discard_request(&mut self, key: Key) {
        let client = self.upstreams.get(key).and_then(|upstream| upstream.client);
        if let Some(Client { state: State::Exchange(exchange), .. }) =
            client.and_then(|key| self.clients.get_mut(key))
        {
            exchange.request_discarded = true;
        }
    }

    fn read_upstream(&mut self, key: Key) {
        let Some(upstream) = self.upstreams.get_mut(key) else { return };
        let mut inbox = std::mem::take(&mut self.core.inbox);
        inbox.clear();
        if !upstream.held.is_empty() {
            inbox.append(&mut std::mem::take(&mut upstream.held));
        }
        match upstream.transport.receive(&mut self.core.wire, &mut inbox) {
            Ok(received) => {
                upstream.may_have_more = received.is_full;
                if received.handshake_finished {
                    count_handshake(&mut self.core.counts.upstream_handshakes, upstream.transport.facts());
                    self.request_moved(key);
                }
                self.take_answer(key, &inbox, received.end);
            }
            Err(fault) => self.lose_upstream(key, fault),
        }
        self.core.inbox = inbox;
    }

    /// Processes an upstream's input.
    fn take_answer(&mut self, key: Key, inbox: &[u8], end: Option<End>) {
        let Some(client_key) = self.upstreams.get(key).and_then(|upstream| upstream.client) else {
            // No exchange: the end of a pooled connection, or unsolicited bytes.
            if !inbox.is_empty() {
                self.note_stray(inbox.len());
            }
            if end.is_some() || !inbox.is_empty() {
                self.pool.forget(key);
                self.upstreams.remove(key);
            }
            return;
        };
        let mut at = 0;
        let mut is_head_unsent = false;
        loop {
            let Some(client) = self.clients.get_mut(client_key) else { return };
            let State::Exchange(exchange) = &mut client.state else { return };
            let (core, input) = (&mut self.core, &inbox[at..]);
            match &mut exchange.answer {
                Answer::Awaited if input.is_empty() => break,
                Answer::Awaited => match core.response.parse(input, &core.settings.limits) {
                    Ok(Parse::Complete(len)) => {
                        at += len;
                        if !self.pass_head(client_key, &input[..len]) {
                            return;
                        }
                        is_head_unsent = true;
                    }
                    Ok(Parse::Partial) => break,
                    Err(error) => return self.refuse(client_key, Reason::BadResponse(error)),
                },
                Answer::Body { body, .. } => {
                    let passed = body.pass(input, &mut core.outbox, &mut client.transport, &mut core.wire);
                    match passed {
                        Ok(passed) => {
                            at += passed.consumed;
                            if let Some(fault) = passed.receiver_lost {
                                core.outbox.clear();
                                return self.lose_client(client_key, fault);
                            }
                        }
                        Err(error) => {
                            core.outbox.clear();
                            if is_head_unsent && !body.is_flushed() {
                                exchange.answer = Answer::Awaited;
                                return self.refuse(client_key, Reason::BadResponseBody(error));
                            }
                            return self.abort(client_key, Reason::BadResponseBody(error));
                        }
                    }
                    break;
                }
            }
        }
        self.answer_taken(key, client_key, &inbox[at..], end);
    }

    /// Sends the buffered output to the client, and checks for completion.
    fn answer_taken(&mut self, key: Key, client_key: Key, rest: &[u8], end: Option<End>) {
        let Some(client) = self.clients.get_mut(client_key) else { return };
        let State::Exchange(exchange) = &mut client.state else { return };
        let core = &mut self.core;
        let mut complete = match &mut exchange.answer {
            Answer::Awaited => false,
            Answer::Body { body, .. } => body.is_complete(),
        };
        let mut broken = None;
        // The failed write consumed the socket's error, so a reset now reads as end of stream.
        let end = if exchange.request_discarded { end.map(|_| End::Truncated) } else { end };
        match (&mut exchange.answer, end) {
            (Answer::Body { body, .. }, Some(End::Clean)) if !complete => match body.end(&mut core.outbox) {
                Ok(()) => complete = true,
                Err(_) => broken = Some(Reason::UpstreamTruncated),
            },
            (Answer::Body { .. }, Some(End::Truncated)) if !complete => {
                broken = Some(Reason::UpstreamTruncated);
            }
            (Answer::Awaited, Some(_)) if rest.is_empty() => broken = Some(Reason::UpstreamClosed),
            (Answer::Awaited, Some(_)) => broken = Some(Reason::UpstreamTruncated),
            _ => {}
        }
        if let Err(fault) = flush(&mut core.outbox, &mut client.transport, &mut core.wire) {
            return self.lose_client(client_key, fault);
        }
        if let Some(reason) = broken {
            return self.refuse(client_key, reason);
        }
        if complete {
            if !rest.is_empty() {
                self.note_end(client_key, &Reason::UpstreamStray(rest.len()));
            }
            return self.finish(client_key, rest.is_empty() && end.is_none());
        }
        let now = core.reactor.now();
        if client.transport.pending() > 0 {
            client.deadline.set(now + core.settings.timeouts.stall, &mut core.reactor, client_key);
        }
        let Some(upstream) = self.upstreams.get_mut(key) else { return };
        if matches!(exchange.answer, Answer::Body { .. }) {
            upstream.deadline.set(now + core.settings.timeouts.stall, &mut core.reactor, key);
        }
        upstream.held = rest.to_vec();
        self.settle_client(client_key);
    }

    /// Forwards a response head (into the outbox). Returns whether the exchange continues.
    fn pass_head(&mut self, client_key: Key, buf: &[u8]) -> bool {
        let Some(client) = self.clients.get_mut(client_key) else { return false };
        let State::Exchange(exchange) = &mut client.state else { return false };
        let core = &mut self.core;
        let head = &core.response;
        match head.status {
            101 => {
                self.refuse(client_key, Reason::UpstreamSwitched);
                return false;
            }
            // An HTTP/1.0 client does not understand interim responses (RFC 9110 section 15.2).
            100..200 if exchange.version == Version::Http10 => return true,
            100..200 => {
                rewrite::interim(buf, head, &mut core.outbox);
                return true;
            }
            _ => {}
        }
        let from = head.framing(exchange.method);
        let to = match (from, exchange.version) {
            (Framing::None | Framing::Length(_), _) => from,
            (Framing::Chunked | Framing::UntilClose, Version::Http11) => Framing::Chunked,
            (Framing::Chunked | Framing::UntilClose, Version::Http10) => Framing::UntilClose,
        };
        // The upstream responded before the request was complete: do not wait for the rest.
        let cut_short = head.status >= 300 && !exchange.request.is_complete();
        exchange.persistent &= to != Framing::UntilClose && !cut_short && !core.draining;
        let connection = match (exchange.persistent, exchange.version) {
            (false, _) => Connection::Closes,
            (true, Version::Http11) => Connection::Persists,
            (true, Version::Http10) => Connection::PersistsByConsent,
        };
        rewrite::response(buf, head, to, connection, &mut core.outbox);
        let body = Body::new(from, to == Framing::Chunked, &core.settings.limits);
        exchange.authenticates_connection |= head.authenticates_connection;
        let upstream_persistent = head.persistent
            && !exchange.authenticates_connection
            && !head.announces_absent_body(exchange.method);
        exchange.answer = Answer::Body { body, upstream_persistent };
        true
    }

    /// Whether nothing has come on an upstream connection since its last response. What has come may be its end, which the
    /// poller reports too late for the next request, or bytes that the next client must not get.
    pub(crate) fn is_quiet(&mut self, key: Key) -> bool {
        let Some(upstream) = self.upstreams.get_mut(key) else { return false };
        if upstream.transport.is_quiet() {
            return true;
        }
        let mut inbox = Vec::new();
        let received = upstream.transport.receive(&mut self.core.wire, &mut inbox);
        let is_open = matches!(&received, Ok(received) if received.end.is_none());
        // A TLS ticket is no response.
        let is_quiet = is_open && inbox.is_empty() && upstream.transport.is_quiet();
        if !inbox.is_empty() {
            self.note_stray(inbox.len());
        }
        is_quiet
    }

    /// The response is complete: both connections go on to their next exchange, or are closed.
    fn finish(&mut self, client_key: Key, upstream_is_clean: bool) {
        let Some(client) = self.clients.get_mut(client_key) else { return };
        let State::Exchange(exchange) = std::mem::replace(&mut client.state, State::Head { started: false })
        else {
            return;
        };
        self.release(&exchange, upstream_is_clean);
        let Some(client) = self.clients.get_mut(client_key) else { return };
        if !exchange.persistent || !exchange.request.is_complete() || client.is_done() {
            return self.close(client_key);
        }
        let core = &mut self.core;
        let timeouts = &core.settings.timeouts;
        let within = if core.draining { timeouts.drain_idle } else { timeouts.idle };
        client.deadline.set(core.reactor.now() + within, &mut core.reactor, client_key);
        if !client.held.is_empty() {
            self.resumable.push(client_key);
        }
        self.settle_client(client_key);
    }

    /// Puts the upstream connection of a complete exchange into the pool, or closes it.
    fn release(&mut self, exchange: &Exchange, is_clean: bool) {
        let Answer::Body { upstream_persistent, .. } = exchange.answer else { return };
        let Some(upstream) = self.upstreams.get_mut(exchange.upstream) else { return };
        let request_taken = exchange.request.is_complete() && !exchange.request_discarded;
        let taken = request_taken && upstream.transport.pending() == 0;
        let mut reusable =
            taken && upstream_persistent && is_clean && !upstream.transport.has_partial_record();
        upstream.client = None;
        if reusable && upstream.may_have_more {
            reusable = self.is_quiet(exchange.upstream);
        }
        let Some(upstream) = self.upstreams.get_mut(exchange.upstream) else { return };
        if !reusable {
            self.upstreams.remove(exchange.upstream);
            return;
        }
        let until = self.core.reactor.now() + self.core.settings.timeouts.pooled;
        upstream.deadline.set(until, &mut self.core.reactor, exchange.upstream);
        self.pool.put(exchange.upstream);
    }

    /// The upstream's connection has failed.
    fn lose_upstream(&mut self, key: Key, fault: Fault) {
        let Some(upstream) = self.upstreams.remove(key) else { return };
        let Some(client_key) = upstream.client else { return self.pool.forget(key) };
        let Some(client) = self.clients.get(client_key) else { return };
        let State::Exchange(exchange) = &client.state else { return };
        let reason = match (fault, &exchange.answer) {
            (fault @ Fault::Connect(_), _) => Reason::UpstreamConnect(fault),
            (fault @ Fault::Tls(_), _) => Reason::UpstreamTls(fault),
            (Fault::Socket(_), Answer::Awaited) if upstream.held.is_empty() => Reason::UpstreamClosed,
            (Fault::Socket(_), _) => Reason::UpstreamTruncated,
        };
        self.refuse(client_key, reason);
    }

    pub(crate) fn upstream_due(&mut self, key: Key) {
        let Some(upstream) = self.upstreams.get_mut(key) else { return };
        if !upstream.deadline.has_come(&mut self.core.reactor, key) {
            return;
        }
        let Some(client_key) = upstream.client else {
            // A clean close is a courtesy.
            let _ = upstream.transport.finish();
            self.pool.forget(key);
            self.upstreams.remove(key);
            return;
        };
        let open = upstream.transport.is_open();
        let Some(client) = self.clients.get(client_key) else { return };
        let State::Exchange(exchange) = &client.state else { return };
        let reason = match exchange.answer {
            _ if !open => Reason::UpstreamConnectTimeout,
            Answer::Awaited => Reason::UpstreamTimeout,
            // It may be blocked by a slow client; the client's deadline covers that.
            Answer::Body { .. } if client.transport.pending() >= MAX_PENDING => return,
            Answer::Body { .. } => Reason::UpstreamStalled,
        };
        self.refuse(client_key, reason);
    }
}
