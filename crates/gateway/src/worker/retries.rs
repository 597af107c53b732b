//! Further attempts of an exchange: on a new connection, or at another server. `exchange/retry_rules.rs` decides
//! whether the gateway may make one.

use super::Worker;
use super::awaiting_settings::must_wait;
use super::server_connections::Unavailable;
use crate::exchange::{Attempt, Exchange};
use crate::keys::{ExchangeId, ServerId, ServiceId};
use crate::observe::RetryRule;
use crate::proxy::send_request;
use crate::reason::Reason;
use crate::upstream::{Counted, PickContext};
use weir_http::Method;
use weir_http1::Framing;
use weir_reactor::Net;

impl<N: Net> Worker<N> {
    /// Sends the request of an exchange again, on another connection or stream to the same server. If that server has
    /// become unavailable, or a reload removed it, another server gets the request. Ends the exchange if the retry
    /// budget is used up.
    pub(super) fn retry(&mut self, id: ExchangeId) {
        let Some(flow) = self.flow(id) else { return self.broken(id, "a retry without its connections") };
        let (client, service) = (flow.exchange.client, flow.exchange.service);
        let (lost, server) = (flow.exchange.attempt, flow.upstream.server);
        let context = other_than(server, flow.exchange);
        if !self.spend_retry(service) {
            return self.end_exchange(id, Reason::UpstreamClosed);
        }
        self.leave(id, lost);
        let again = self.server_again(service, server, context);
        match again.and_then(|server| self.further_attempt(server, client)) {
            Ok(attempt) => self.resend(id, attempt, RetryRule::ReusedConnection),
            Err(unavailable) => self.end_exchange(id, unavailable.into()),
        }
    }

    /// Sends a request again that its server has not processed. This is not a failure, so it does not use up the retry
    /// budget. The request waits in the queue if the chosen server has reached its connection limit.
    #[cold]
    pub(super) fn send_elsewhere(&mut self, id: ExchangeId, reason: Reason) {
        let rule = match reason {
            Reason::UpstreamReset(_) => RetryRule::RefusedStream,
            _ => RetryRule::GoAway,
        };
        let Some(flow) = self.flow(id) else { return self.broken(id, "a retry without its connections") };
        let (client, service) = (flow.exchange.client, flow.exchange.service);
        let (lost, server) = (flow.exchange.attempt, flow.upstream.server);
        let context = other_than(server, flow.exchange);
        self.leave(id, lost);
        let again = self.server_again(service, server, context);
        match again.and_then(|server| self.further_attempt(server, client)) {
            Ok(attempt) => self.resend(id, attempt, rule),
            Err(Unavailable::Full) => {
                let Some(exchange) = self.exchanges.present_mut(id) else { return };
                exchange.retries += 1;
                exchange.request.resume();
                self.core.counters.retry(rule);
                self.queue(id, true);
            }
            Err(Unavailable::NoDescriptors | Unavailable::Failed(_)) => self.end_exchange(id, reason),
        }
    }

    /// Releases the connection of a failed attempt, since the next attempt may need its slot.
    fn leave(&mut self, id: ExchangeId, lost: Option<Attempt>) {
        if let Some(exchange) = self.exchanges.present_mut(id) {
            exchange.attempt = None;
        }
        if let Some(lost) = lost {
            self.abandon(lost);
        }
    }

    /// The server of the last attempt or, if it has become unavailable, one that `other` allows.
    fn server_again(
        &mut self,
        service: ServiceId,
        server: ServerId,
        other: PickContext,
    ) -> Result<ServerId, Unavailable> {
        let now = self.core.net.now();
        match self.servers.get_mut(server).is_some_and(|server| server.is_available(now)) {
            true => Ok(server),
            false => Ok(self.choose(service, other)?),
        }
    }

    /// Sends the request of an exchange to another server instead of forwarding this server's response. Returns `false`
    /// if no server or retry is left: the client then gets this response.
    #[cold]
    pub(super) fn ask_another(&mut self, id: ExchangeId, status: u16) -> bool {
        let Some(flow) = self.flow(id) else {
            self.broken(id, "a response without its connections");
            return true;
        };
        let (client, service) = (flow.exchange.client, flow.exchange.service);
        let (lost, server) = (flow.exchange.attempt, flow.upstream.server);
        let asked = [Some(server), flow.exchange.asked[0]];
        let context = PickContext { key: flow.exchange.key, asked, ..PickContext::default() };
        flow.exchange.others -= 1;
        let others = std::mem::take(&mut flow.exchange.others);
        let Ok(chosen) = self.choose_other(service, context) else { return false };
        if !self.spend_retry(service) {
            return false;
        }
        let Ok(attempt) = self.further_attempt(chosen, client) else { return false };
        if let Some(exchange) = self.exchanges.get_mut(id) {
            exchange.asked = asked;
            exchange.others = others;
            exchange.times.first_byte = None;
        }
        if !self.note_failure(service, server, status)
            && let Some(server) = self.servers.get_mut(server)
        {
            server.succeeded();
            server.count(status);
        }
        self.leave(id, lost);
        self.resend(id, attempt, RetryRule::Status);
        true
    }

    /// Sends the request of an exchange to another server, after an attempt that failed before any byte was sent.
    pub(super) fn fail_over(&mut self, id: ExchangeId, reason: Reason) {
        match self.flow(id).map(|flow| flow.upstream.server) {
            Some(server) => self.fail_over_from(id, server, reason),
            None => self.broken(id, "an attempt that failed without its connections"),
        }
    }

    /// As [`Self::fail_over`], with the failed `server`: the exchange may have no connection to it.
    pub(super) fn fail_over_from(&mut self, id: ExchangeId, server: ServerId, reason: Reason) {
        let Some(exchange) = self.exchanges.present_mut(id) else { return };
        let (client, service, lost) = (exchange.client, exchange.service, exchange.attempt);
        let context = other_than(server, exchange);
        if !exchange.is_kept() || !self.spend_retry(service) {
            return self.end_exchange(id, reason);
        }
        let chosen = self.choose_other(service, context).map_err(Unavailable::Failed);
        let Ok(attempt) = chosen.and_then(|server| self.further_attempt(server, client)) else {
            // `end_exchange` also records the server's failure.
            return self.end_exchange(id, reason);
        };
        self.leave(id, lost);
        if let Some(failure) = reason.failure() {
            self.record_failure(service, server, failure, Counted::No);
        }
        self.resend(id, attempt, RetryRule::BeforeSending);
    }

    /// Spends one retry of a service's budget; returns `false` if the budget is used up.
    pub(super) fn spend_retry(&mut self, service: ServiceId) -> bool {
        self.services.get_mut(service).is_some_and(|service| service.retries.spend())
    }

    /// Sends the request of an exchange again, on the connection of a further attempt.
    fn resend(&mut self, id: ExchangeId, mut attempt: Attempt, rule: RetryRule) {
        let Some(exchange) = self.exchanges.get_mut(id) else {
            return self.broken(id, "a further attempt without its connection");
        };
        let is_head = exchange.method == Method::Head;
        let framing = exchange.head.as_ref().map_or(Framing::None, |head| head.request.framing);
        if let Some(upstream) = self.upstreams.get_mut(attempt.upstream)
            && let Some(server) = self.servers.get(upstream.server)
            && let Some(h2) = &mut upstream.h2
        {
            if must_wait(exchange, framing, h2, server) {
                exchange.retries += 1;
                exchange.request.resume();
                self.core.counters.retry(rule);
                return self.await_settings(id, attempt.upstream);
            }
            attempt.stream = h2.open(id, is_head);
            if attempt.stream.is_none() {
                return self.broken(id, "a connection without a free stream");
            }
        }
        exchange.attempt = Some(attempt);
        self.enter(attempt, id);
        let (Some(exchange), Some(upstream)) =
            (self.exchanges.get_mut(id), self.upstreams.get_mut(attempt.upstream))
        else {
            return self.broken(id, "a further attempt without its connection");
        };
        let (Some(client), Some(server), Some(head)) =
            (self.clients.get_mut(exchange.client), self.servers.get(upstream.server), exchange.head.take())
        else {
            return self.broken(id, "a further attempt without its request");
        };
        exchange.retries += 1;
        exchange.request.resume();
        exchange.times.attempt = self.core.net.now();
        exchange.times.connected = attempt.reused.then_some(exchange.times.attempt);
        send_request(exchange, &head, client, upstream, server, &mut self.core);
        exchange.head = Some(head);
        self.core.counters.retry(rule);
        client.touch_leg(exchange.leg(), &mut self.core.touched.clients);
        upstream.touch_leg(attempt.upstream, attempt.stream, &mut self.core.touched.upstreams);
    }
}

/// The context for choosing another server after a failed attempt at `server`. Excludes servers that have already
/// responded to the request.
fn other_than(server: ServerId, exchange: &Exchange) -> PickContext {
    PickContext { key: exchange.key, sticky: None, avoid: Some(server), asked: exchange.asked }
}
