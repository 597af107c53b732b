//! The ends of exchanges and of client connections.

use super::Worker;
use super::request_log::{self, Head};
use crate::config::Route;
use crate::downstream::{Client, Phase};
use crate::exchange::{Event, Leg, RequestLine, Stage, Step};
use crate::grpc::Status;
use crate::heads::own::{Own, Terms};
use crate::heads::rewrite::Connection;
use crate::keys::{ClientId, ExchangeId, UpstreamId};
use crate::limits::Kind;
use crate::mirror::Fate;
use crate::observe::{Bytes, Context};
use crate::plan::Plan;
use crate::proxy::Completed;
use crate::reason::Reason;
use crate::upstream::Counted;
use std::rc::Rc;
use weir_http::Method;
use weir_http1::Version;
use weir_http2::ErrorCode;
use weir_reactor::Net;
use weir_tls::TlsError;
use weir_transport::Fault;

impl<N: Net> Worker<N> {
    /// Passes an event to an exchange, and carries out the step that it returns.
    pub(super) fn on(&mut self, id: ExchangeId, event: Event) {
        let Some(exchange) = self.exchanges.present_mut(id) else { return };
        match exchange.on(event) {
            Step::Wait => {}
            Step::Retry => self.retry(id),
            Step::SendElsewhere(reason) => self.send_elsewhere(id, reason),
            Step::FailOver(reason) => self.fail_over(id, reason),
            Step::End(reason) => self.end_exchange(id, reason),
        }
    }

    /// Ends an exchange after its complete response, and releases its connections: each stays open for further
    /// exchanges, or closes.
    #[inline(always)]
    pub(super) fn complete(&mut self, upstream: UpstreamId, id: ExchangeId, completed: Completed) {
        let Completed { client, client_persists, upstream_persists, upstream_stream, service, status, stray } =
            completed;
        if stray > 0 {
            self.note_end_of_exchange(id, &Reason::UpstreamStray(stray));
        }
        if self.core.access.is_some() {
            self.log_exchange(id, status, None, 0);
        }
        match upstream_stream {
            None => {
                self.exchanges.discard(id);
                self.release(upstream, service, upstream_persists, status);
            }
            Some(no) => {
                let call = self.exchanges.take(id).and_then(|exchange| exchange.grpc);
                let of_call = call.and_then(|call| call.status).map(Status::as_http);
                self.release_stream(upstream, no, service, of_call.unwrap_or(status));
            }
        }
        if !client_persists {
            self.close(client);
        }
    }

    /// Ends a client's exchange early or, without an exchange, the client's connection.
    pub(crate) fn end(&mut self, id: ClientId, reason: Reason) {
        match self.clients.get(id).and_then(Client::exchange) {
            Some(exchange) => self.end_exchange(exchange, reason),
            None => self.end_client(id, &reason),
        }
    }

    /// Ends an exchange early: logs and counts it, and sends the gateway's own response, if the reason has a status and
    /// no response is in progress. Closes the server's connection or, over HTTP/2, resets its stream. A client's HTTP/2
    /// connection persists. An HTTP/1.1 connection persists only after a response for a reason that concerns the server
    /// alone; without a response, the gateway cuts it.
    pub(super) fn end_exchange(&mut self, id: ExchangeId, reason: Reason) {
        self.note_end_of_exchange(id, &reason);
        let responded = self.respond_to_exchange(id, &reason);
        self.record(id, Some(&reason), responded.map_or(0, |(_, sent)| sent));
        if let Some(failure) = reason.failure()
            && let Some(exchange) = self.exchanges.get(id)
            && let Some(upstream) = exchange.upstream().and_then(|id| self.upstreams.get(id))
        {
            // `record` has counted the reason's status among the server's responses.
            self.record_failure(exchange.service, upstream.server, failure, Counted::Yes);
        }
        if matches!(reason, Reason::ExchangeTimeout) && responded.is_none() {
            self.end_call(id);
        }
        let Some(exchange) = self.exchanges.present(id) else { return };
        // Without framing, the end of the connection would end the response: a reset marks the response as incomplete.
        let is_unframed = exchange.version == Version::Http10 || exchange.is_tunnel;
        let leg = exchange.leg();
        self.take_exchange(id);
        if leg.stream.is_some() {
            return;
        }
        let client_id = leg.client;
        match responded {
            Some((Connection::Closes, _)) => return self.close(client_id),
            Some((Connection::Persists | Connection::PersistsByConsent, _)) => {
                if let Some(client) = self.clients.get_mut(client_id) {
                    client.request_is_over();
                    client.goes_on(client_id, &mut self.core);
                }
                return;
            }
            None => {}
        }
        if let Some(client) = self.clients.get_mut(client_id)
            && is_unframed
        {
            client.transport.reset();
        }
        self.cut(client_id);
    }

    /// The deadline of a gRPC call has passed: ends the response with the status for an expired deadline, since the
    /// client would take a reset for an internal error.
    #[cold]
    fn end_call(&mut self, id: ExchangeId) {
        let Some(exchange) = self.exchanges.get(id).filter(|exchange| exchange.grpc.is_some()) else {
            return;
        };
        let Some(client) = self.clients.present_mut(exchange.client) else { return };
        let (Some(no), Some(h2)) = (exchange.stream, &mut client.h2) else { return };
        let trailers = format!("Grpc-Status: {}\r\n", Status::of_http(504).number());
        h2.finish(no, trailers.into_bytes(), &mut client.transport, &mut self.core.wire);
    }

    /// Ends a client connection without an exchange. Before or within a request head, the client gets a response if the
    /// reason has a status.
    fn end_client(&mut self, id: ClientId, reason: &Reason) {
        let Some(client) = self.clients.present(id) else { return };
        if client.phase == Phase::Streams {
            return self.end_streams(id, reason);
        }
        self.note_end_of_client(id, reason);
        let Some(client) = self.clients.present(id) else { return };
        let Phase::Head { started } = client.phase else { return self.cut(id) };
        let head = client.held.clone();
        let status = reason.status();
        let leg = Leg { client: id, stream: None };
        let sent = status
            .map(|_| self.respond_with(leg, reason, head.starts_with(b"HEAD "), Connection::Closes, None));
        // Between requests there is nothing to record, except a response.
        if started || status.is_some() {
            let (status, sent) = (status.unwrap_or_default(), sent.unwrap_or_default());
            let own =
                request_log::Own { status, grpc: None, reason: Some(reason), route: None, received: 0, sent };
            self.record_own(id, Head::Fragment(&head), own);
        }
        match sent {
            Some(_) => self.close(id),
            None => self.cut(id),
        }
    }

    /// Sends the gateway's response to an early end, if the reason has a status and no response is in progress. Returns
    /// whether the client's connection persists, and the body's length.
    fn respond_to_exchange(&mut self, id: ExchangeId, reason: &Reason) -> Option<(Connection, u64)> {
        reason.status()?;
        let exchange = self.exchanges.get(id).filter(|exchange| exchange.response.is_awaiting())?;
        let client = self.clients.get(exchange.client)?;
        let persists = exchange.outlives_its_end() && leaves_client(reason);
        let persists = persists && !client.ended && !client.drain.is_on();
        let connection = Connection::of(persists, exchange.version);
        let (leg, is_head) = (exchange.leg(), exchange.method == Method::Head);
        let route = Some((Rc::clone(&exchange.plan), exchange.route));
        Some((connection, self.respond_with(leg, reason, is_head, connection, route)))
    }

    /// Writes the gateway's own response for `reason` to the client of `leg`. Returns the length of the response body;
    /// 0 if there is no client or no response for the reason.
    fn respond_with(
        &mut self,
        leg: Leg,
        reason: &Reason,
        is_head: bool,
        connection: Connection,
        route: Option<(Rc<Plan>, usize)>,
    ) -> u64 {
        let Some(client) = self.clients.present_mut(leg.client) else { return 0 };
        let edits = route.as_ref().and_then(|(plan, route)| plan.response_edits(*route));
        let core = &mut self.core;
        let date = core.date.line(core.net.now());
        let Some(own) = Own::of_reason(reason, &core.plan.snapshot.pages) else { return 0 };
        let terms = Terms { is_head, connection, edits, date };
        client.respond(leg.stream, &own, &terms, &mut core.wire, &mut core.lines)
    }

    /// Rejects the request whose head was parsed from `buf`, before it becomes an exchange. `route`: the request's
    /// route, if known.
    pub(super) fn refuse(&mut self, leg: Leg, buf: &[u8], reason: Reason, route: Option<&Route>) {
        let Some(client) = self.clients.present_mut(leg.client) else { return };
        let core = &mut self.core;
        let head = &core.request;
        let is_over = head.persistent && head.framing.is_empty() && head.upgrade.is_none();
        let persists = is_over && leaves_client(&reason) && !client.drain.is_on();
        let date = core.date.line(core.net.now());
        let terms = Terms {
            is_head: head.method == Method::Head,
            connection: Connection::of(persists, head.version),
            edits: route.map(|route| &route.response),
            date,
        };
        let own = Own::of_reason(&reason, &core.plan.snapshot.pages);
        let sent =
            own.map_or(0, |own| client.respond(leg.stream, &own, &terms, &mut core.wire, &mut core.lines));
        let line = RequestLine::of(head, buf);
        let host = String::from_utf8_lossy(head.host.map_or(&b""[..], |host| host.of(buf)));
        let request = Some(line.as_str());
        let context = Context { client: client.peer, request, host: &host, ..Context::default() };
        self.core.note_end(&reason, context);
        let status = reason.status().unwrap_or_default();
        let grpc = client.grpc_status(leg.stream, status);
        let own = request_log::Own { status, grpc, reason: Some(&reason), route, received: 0, sent };
        self.record_own(leg.client, Head::Parsed(buf), own);
        self.has_responded(leg, persists);
    }

    /// The gateway has responded to a request without an exchange: the client's connection `persists`, or closes.
    pub(super) fn has_responded(&mut self, leg: Leg, persists: bool) {
        let Some(client) = self.clients.present_mut(leg.client) else { return };
        match (leg.stream, &mut client.h2) {
            (Some(no), Some(h2)) => {
                h2.exchange_is_over(no, ErrorCode::NO_ERROR);
                client.touch(leg.client, &mut self.core.touched.clients);
            }
            _ => {
                client.request_is_over();
                match persists {
                    true => client.touch(leg.client, &mut self.core.touched.clients),
                    false => self.close(leg.client),
                }
            }
        }
    }

    /// Removes a client immediately. If this loses output, the connection ends with a reset, so that the client
    /// notices.
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
        let Some(client) = self.clients.present_mut(id) else { return };
        client.phase = Phase::Closing;
        client.held = Vec::new();
        if client.finish(&mut self.core.wire).is_err() {
            return self.drop_client(id);
        }
        self.touch_client(id);
    }

    /// Ends a client whose connection has failed. After a TLS fault, the client still gets an alert, or a response in
    /// cleartext, unless the connection was closing already.
    pub(super) fn lose_client(&mut self, id: ClientId, fault: Fault) {
        let Some(client) = self.clients.present_mut(id) else { return };
        match (client.phase, fault) {
            (Phase::Closing, _) => {}
            (phase, fault @ Fault::Tls(_)) => {
                let plain_http = matches!(fault, Fault::Tls(TlsError::NotTls { .. }));
                // A reset must not destroy the alert. A client that spoke cleartext cannot read an alert, so respond to
                // it in cleartext.
                client.transport.give_up_tls();
                if let Phase::Tunnel(tunnel) = phase {
                    return self.end_tunnel(tunnel, Reason::ClientTls(fault));
                }
                if plain_http {
                    return self.end(id, Reason::NotTls);
                }
                let reason = Reason::ClientTls(fault);
                match phase {
                    Phase::Exchange(exchange) => self.lose_exchange(exchange, &reason),
                    Phase::Streams => return self.end_streams(id, &reason),
                    _ => self.note_end_of_client(id, &reason),
                }
                return self.close(id);
            }
            (Phase::Exchange(exchange), _) => self.lose_exchange(exchange, &Reason::ClientClosed),
            (Phase::Streams, _) => self.end_streams(id, &Reason::ClientClosed),
            (Phase::Tunnel(tunnel), _) => return self.end_tunnel(tunnel, Reason::ClientClosed),
            (Phase::Head { .. } | Phase::Preface(_), _) => {}
        }
        self.drop_client(id);
    }

    /// Ends an exchange without a response, since its client's connection or stream has failed.
    pub(super) fn lose_exchange(&mut self, id: ExchangeId, reason: &Reason) {
        self.note_end_of_exchange(id, reason);
        self.record(id, Some(reason), 0);
        self.take_exchange(id);
    }

    pub(super) fn drop_client(&mut self, id: ClientId) {
        match self.clients.get(id).map(|client| (client.h2.is_some(), client.exchange())) {
            Some((true, _)) => self.take_exchanges(id),
            Some((false, Some(exchange))) => self.take_exchange(exchange),
            Some((false, None)) | None => {}
        }
        if let Some(mut client) = self.clients.remove(id) {
            self.core.counters.client_bytes(Bytes::of(&client.transport));
            if let Some(h2) = &mut client.h2 {
                h2.count(Kind::Client, self.core.net.now(), &mut self.core.counters);
            }
            client.timer.cancel(self.core.net.wheel());
            self.handshakes.end(&mut client);
            drop(client.descriptor.take());
            self.offer_descriptor();
        }
    }

    /// Removes an unfinished exchange, and closes its server connection or resets its stream. The connection ends with
    /// a reset in two cases: if the request is incomplete, since a clean close would hide the truncation, and if the
    /// client uses HTTP/2 or has closed its side, since the server could take our FIN for a half-close.
    pub(super) fn take_exchange(&mut self, id: ExchangeId) {
        let Some(mut exchange) = self.exchanges.take(id) else { return };
        let mut has_given_up = false;
        if let Some(client) = self.clients.get_mut(exchange.client) {
            match (exchange.stream, &mut client.h2) {
                (Some(no), Some(h2)) => {
                    has_given_up = true;
                    h2.exchange_is_over(no, ErrorCode::INTERNAL_ERROR);
                    client.touch(exchange.client, &mut self.core.touched.clients);
                }
                _ => {
                    has_given_up = client.ended;
                    client.phase = Phase::Head { started: false };
                    client.body_deadlines = exchange.body_deadlines.take();
                }
            }
        }
        exchange.cancel_timer(self.core.net.wheel());
        if exchange.copy.is_some() {
            self.core.counters.mirror(Fate::Incomplete);
        }
        self.core.forget_request(&mut exchange);
        if matches!(exchange.stage, Stage::Queued) {
            self.stop_waiting(id, exchange.service);
        }
        let Some(attempt) = exchange.attempt else { return };
        if attempt.stream.is_none()
            && (has_given_up || !exchange.request.is_done())
            && let Some(upstream) = self.upstreams.get(attempt.upstream)
        {
            upstream.transport.reset();
        }
        self.abandon(attempt);
    }
}

/// Whether a reason concerns the server alone, so that the client's connection may persist. Exceptions:
/// `UpstreamSwitched`, since the client may have asked for the new protocol, and `QueueTimeout`, since the client would
/// queue again.
fn leaves_client(reason: &Reason) -> bool {
    let closes = matches!(reason, Reason::UpstreamSwitched | Reason::QueueTimeout);
    matches!(reason.status(), Some(502..=504)) && !closes
}
