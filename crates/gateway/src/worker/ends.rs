//! How exchanges and clients' connections end.

use super::Worker;
use super::record::{Head, Own};
use crate::config::Route;
use crate::downstream::Phase;
use crate::exchange::{Event, Exchange, RequestLine, Step};
use crate::heads::own::{self, Terms};
use crate::heads::rewrite::Connection;
use crate::keys::{ClientId, ExchangeId};
use crate::mirror::Fate;
use crate::observe::{Bytes, Context};
use crate::reason::Reason;
use crate::upstream::Counted;
use std::rc::Rc;
use weir_http1::{Method, Version};
use weir_reactor::Net;
use weir_tls::TlsError;
use weir_transport::Fault;

impl<N: Net> Worker<N> {
    /// Tells an exchange what has happened, and does what it decides.
    pub(super) fn on(&mut self, id: ExchangeId, event: Event) {
        let Some(exchange) = self.exchanges.get_mut(id) else { return };
        let client = exchange.client;
        match exchange.on(event) {
            Step::Wait => {}
            Step::Retry => self.retry(id),
            Step::Elsewhere(reason) => self.elsewhere(id, reason),
            Step::End(reason) => self.end(client, reason),
        }
    }

    /// The response is complete: both connections go on to their next exchange, or are closed.
    pub(super) fn complete(&mut self, id: ExchangeId, upstream_is_clean: bool) {
        let Some(exchange) = self.exchanges.get_mut(id) else { return };
        let (outcome, client_id, upstream) = (exchange.outcome(), exchange.client, exchange.attempt.upstream);
        let (service, status) = (exchange.service, exchange.status);
        // What the client has not taken yet is held to the same as before.
        let is_special = exchange.policy().has_own_answers || !Rc::ptr_eq(&exchange.plan, &self.core.plan);
        let has_tempo = self.clients.get(client_id).is_some_and(|client| client.tempo.is_some());
        let held_to = (is_special || has_tempo).then(|| (Rc::clone(&exchange.plan), Some(exchange.route)));
        exchange.cancel_timer(self.core.net.wheel());
        if exchange.copy.is_some() {
            self.core.counters.mirror(Fate::Incomplete);
        }
        self.record(id, None, 0);
        self.exchanges.discard(id);
        self.release(upstream, service, outcome.upstream_persists && upstream_is_clean, status);
        let Some(client) = self.clients.get_mut(client_id) else { return };
        client.request_is_over();
        if held_to.is_some() {
            client.tempo.get_or_insert_default().held_to = held_to;
        }
        if !outcome.client_persists || client.is_done() {
            return self.close(client_id);
        }
        if !client.held.is_empty() {
            self.resumable.push(client_id);
        }
        self.touch_client(client_id);
    }

    /// Ends the client's exchange early, or its connection where it has none, for one reason. Answers with it, if no
    /// response has started, and closes the connection after that; else all that is left is to cut it off.
    pub(crate) fn end(&mut self, id: ClientId, reason: Reason) {
        let Some(client) = self.clients.get(id) else { return };
        let (phase, exchange) = (client.phase, client.exchange());
        self.note_end_of(id, &reason);
        let answered = self.answer_end(id, &reason);
        let sent = answered.map_or(0, |(_, sent)| sent);
        match exchange {
            Some(exchange) => self.record(exchange, Some(&reason), sent),
            // Between requests there is nothing to record, unless this is answered.
            None if matches!(phase, Phase::Head { started: true } | Phase::Buffering | Phase::Queued)
                || (phase == Phase::Head { started: false } && reason.status().is_some()) =>
            {
                let Some(client) = self.clients.get(id) else { return };
                let (head, status) = (client.head().to_vec(), reason.status().unwrap_or_default());
                let received = client.buffered.as_ref().map_or(0, |buffered| buffered.passed);
                let own = Own { status, reason: Some(&reason), received, sent };
                self.record_own(id, Head::Fragment(&head), own);
            }
            None => {}
        }
        if let Some(failure) = reason.failure()
            && let Some(exchange) = exchange.and_then(|exchange| self.exchanges.get(exchange))
            && let Some(upstream) = self.upstreams.get(exchange.attempt.upstream)
        {
            // It was recorded with the reason's status.
            self.blame(exchange.service, upstream.server, failure, Counted::Yes);
        }
        let exchange = self.take_exchange(id);
        match answered {
            None => {}
            Some((Connection::Closes, _)) => return self.close(id),
            Some((Connection::Persists | Connection::PersistsByConsent, _)) => return self.go_on(id),
        }
        let Some(client) = self.clients.get_mut(id) else { return };
        // Without framing the end of the connection is the end of the response: it must not look clean.
        if exchange.is_some_and(|exchange| exchange.version == Version::Http10) {
            client.transport.reset();
        }
        self.cut(id);
    }

    /// Answers with a reason, if it has a status and no response has started; returns what becomes of the connection, and
    /// the length of the body.
    fn answer_end(&mut self, id: ClientId, reason: &Reason) -> Option<(Connection, u64)> {
        reason.status()?;
        let client = self.clients.get_mut(id)?;
        let exchange = client.exchange().and_then(|exchange| self.exchanges.get(exchange));
        let can_answer = match exchange {
            Some(exchange) => exchange.answer.is_awaiting(),
            None => matches!(client.phase, Phase::Head { .. } | Phase::Buffering | Phase::Queued),
        };
        if !can_answer {
            return None;
        }
        let persists = exchange.is_some_and(|exchange| exchange.outlives_its_end() && leaves_client(reason));
        let persists = persists && !client.ended && !self.core.drain.is_on();
        let (is_head, version, route) = match exchange {
            Some(exchange) => {
                (exchange.method == Method::Head, exchange.version, Some((&exchange.plan, exchange.route)))
            }
            None => (client.head().starts_with(b"HEAD "), Version::Http11, client.route()),
        };
        let connection = Connection::of(persists, version);
        let edits = route.and_then(|(plan, route)| plan.response_edits(route));
        let core = &mut self.core;
        let date = core.date.line(core.net.now());
        let pages = &core.plan.snapshot.pages;
        let terms = Terms { is_head, connection, edits, pages, date };
        // The route's edits may be the client's, which is about to be written to.
        let mut response = Vec::new();
        let sent = own::write(reason, &terms, &mut response);
        client.transport.stage(&mut core.wire).extend_from_slice(&response);
        Some((connection, sent))
    }

    /// Keeps the client's connection for its next request after one that ended early and has been read.
    fn go_on(&mut self, id: ClientId) {
        let Some(client) = self.clients.get_mut(id) else { return };
        client.request_is_over();
        if !client.held.is_empty() {
            self.resumable.push(id);
        }
        self.touch_client(id);
    }

    /// Refuses the request whose head was parsed from `buf`, before it becomes an exchange. `route`: where it was to go.
    pub(super) fn refuse(&mut self, id: ClientId, buf: &[u8], reason: Reason, route: Option<&Route>) {
        let Some(client) = self.clients.get_mut(id) else { return };
        let core = &mut self.core;
        let head = &core.request;
        let is_over = head.persistent && head.framing.is_empty() && head.upgrade.is_none();
        let persists = is_over && leaves_client(&reason) && !core.drain.is_on();
        let date = core.date.line(core.net.now());
        let terms = Terms {
            is_head: head.method == Method::Head,
            connection: Connection::of(persists, head.version),
            edits: route.map(|route| &route.response),
            pages: &core.plan.snapshot.pages,
            date,
        };
        let sent = own::write(&reason, &terms, client.transport.stage(&mut core.wire));
        client.request_is_over();
        let line = RequestLine::of(head, buf);
        let host = String::from_utf8_lossy(head.host.map_or(&b""[..], |host| host.of(buf)));
        let request = Some(line.as_str());
        let context = Context { client: client.peer, request, host: &host, ..Context::default() };
        self.core.note_end(&reason, context);
        let status = reason.status().unwrap_or_default();
        self.record_own(id, Head::Parsed(buf), Own { status, reason: Some(&reason), received: 0, sent });
        match persists {
            true => self.touch_client(id),
            false => self.close(id),
        }
    }

    /// Removes a client; what it was sent but has not taken is lost, and it can tell.
    pub(super) fn cut(&mut self, id: ClientId) {
        if let Some(client) = self.clients.get_mut(id) {
            let failed = client.transport.commit(&mut self.core.wire).is_err();
            if failed || client.transport.pending() > 0 {
                client.transport.reset();
            }
        }
        self.drop_client(id);
    }

    /// Closes our side after pending output, and lingers for the client's remaining input.
    pub(super) fn close(&mut self, id: ClientId) {
        let Some(client) = self.clients.get_mut(id) else { return };
        client.phase = Phase::Closing;
        client.held = Vec::new();
        client.buffered = None;
        let (waiting, finished) = (client.waiting.take(), client.transport.finish(&mut self.core.wire));
        if let Some(waiting) = waiting {
            self.stop_waiting(id, waiting.service);
        }
        if finished.is_err() {
            return self.drop_client(id);
        }
        self.touch_client(id);
    }

    /// The client's connection has failed.
    pub(super) fn lose_client(&mut self, id: ClientId, fault: Fault) {
        let Some(client) = self.clients.get_mut(id) else { return };
        match (client.phase, fault) {
            (Phase::Closing, _) => {}
            (phase, fault @ Fault::Tls(_)) => {
                let plain_http = matches!(fault, Fault::Tls(TlsError::NotTls { .. }));
                // The alert must not be lost to a reset; and a client that spoke cleartext
                // cannot read an alert, so respond in cleartext.
                client.transport.give_up_tls();
                if let Phase::Tunnel(tunnel) = phase {
                    return self.end_tunnel(tunnel, Reason::ClientTls(fault));
                }
                if plain_http {
                    return self.end(id, Reason::NotTls);
                }
                let reason = Reason::ClientTls(fault);
                self.note_end_of(id, &reason);
                if let Phase::Exchange(exchange) = phase {
                    self.record(exchange, Some(&reason), 0);
                }
                self.take_exchange(id);
                return self.close(id);
            }
            (Phase::Exchange(exchange), _) => {
                self.note_end_of(id, &Reason::ClientClosed);
                self.record(exchange, Some(&Reason::ClientClosed), 0);
            }
            (Phase::Tunnel(tunnel), _) => return self.end_tunnel(tunnel, Reason::ClientClosed),
            (Phase::Buffering | Phase::Queued, _) => self.note_end_of(id, &Reason::ClientClosed),
            (Phase::Head { .. } | Phase::Preface(_), _) => {}
        }
        self.drop_client(id);
    }

    /// Removes the client and its exchange.
    pub(super) fn drop_client(&mut self, id: ClientId) {
        self.take_exchange(id);
        if let Some(mut client) = self.clients.remove(id) {
            self.core.counters.client_bytes(Bytes::of(&client.transport));
            client.timer.cancel(self.core.net.wheel());
            self.handshakes.end(&mut client);
            drop(client.descriptor.take());
            self.offer_descriptor();
            if let Some(waiting) = client.waiting {
                self.stop_waiting(id, waiting.service);
            }
        }
    }

    /// Takes the unfinished exchange from the client and closes its upstream connection. A request that is cut off must
    /// not end as if it were complete, and a server whose client has given up must not take an end for that of the request alone.
    fn take_exchange(&mut self, id: ClientId) -> Option<Exchange> {
        let client = self.clients.get_mut(id)?;
        let (exchange, has_given_up) = (client.exchange()?, client.ended);
        client.phase = Phase::Head { started: false };
        let mut exchange = self.exchanges.remove(exchange)?;
        exchange.cancel_timer(self.core.net.wheel());
        if exchange.copy.is_some() {
            self.core.counters.mirror(Fate::Incomplete);
        }
        if let Some(bytes) = exchange.replay.take() {
            self.core.wire.give_back(bytes);
        }
        let upstream = exchange.attempt.upstream;
        if (has_given_up || !exchange.request.is_done())
            && let Some(upstream) = self.upstreams.get(upstream)
        {
            upstream.transport.reset();
        }
        self.drop_upstream(upstream);
        Some(exchange)
    }
}

/// Whether a reason is about the server's side alone, so that the client's connection can have its next request. A server that
/// switches to another protocol may have been asked to.
fn leaves_client(reason: &Reason) -> bool {
    matches!(reason.status(), Some(502..=504)) && !matches!(reason, Reason::UpstreamSwitched)
}
