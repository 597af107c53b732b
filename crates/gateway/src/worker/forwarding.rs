//! Requests on their way to servers: the choice of a connection, the head, the body.

use super::Worker;
use super::awaiting_settings::must_wait;
use super::server_connections::Unavailable;
use crate::config::document::{Retries, Retry};
use crate::deadlines::Cause;
use crate::exchange::Attempt;
use crate::heads::websocket;
use crate::keys::ExchangeId;
use crate::proxy::{Taken, send_request, upgrade};
use crate::reason::Reason;
use crate::upstream::{PickContext, Use};
use weir_http::Method;
use weir_reactor::Net;

/// The outcome for a request that gets no connection.
enum Refused {
    /// The request waits in its service's queue.
    Queued,
    Ended(Reason),
    /// A part of the exchange is missing: an internal error.
    Broken(&'static str),
}

impl<N: Net> Worker<N> {
    /// Sends a request to a server, or queues it if no connection is free. `has_waited`: the request was the first in
    /// the queue.
    #[inline]
    pub(super) fn start(&mut self, id: ExchangeId, has_waited: bool) {
        match self.first_attempt(id, has_waited) {
            Ok(attempt) => self.send(id, attempt),
            Err(Refused::Queued) => self.queue(id, has_waited),
            Err(Refused::Ended(reason)) => self.end_exchange(id, reason),
            Err(Refused::Broken(what)) => self.broken(id, what),
        }
    }

    #[inline]
    fn first_attempt(&mut self, id: ExchangeId, has_waited: bool) -> Result<Attempt, Refused> {
        let Some(exchange) = self.exchanges.get_mut(id) else {
            return Err(Refused::Broken("a client without its exchange"));
        };
        let (Some(held), Some(found), Some(chosen)) = (
            exchange.head.as_deref(),
            exchange.plan.snapshot.routes.get(exchange.route),
            self.services.get_mut(exchange.service),
        ) else {
            return Err(Refused::Broken("a request without its head or its service"));
        };
        exchange.limits = chosen.config.limits;
        if !has_waited {
            chosen.retries.earn();
        }
        let mut context = PickContext::default();
        if let [_, more @ ..] = &chosen.servers[..]
            && !more.is_empty()
        {
            let client = self.clients.get(exchange.client).and_then(|client| client.client_address);
            context =
                PickContext::of(&chosen.config, &held.request, &held.bytes, client.map(|client| client.ip()));
            exchange.others = more.len().min(MOST_OTHERS) as u8;
        }
        exchange.key = context.key;
        if !chosen.waiting.is_empty() && !has_waited {
            return Err(Refused::Queued);
        }
        let server = chosen.choose(&mut self.servers, self.core.net.now(), context).ok_or(Refused::Queued)?;
        exchange.sets_cookie = exchange.others > 0
            && chosen.config.sticky.is_some()
            && (context.sticky.is_none() || context.sticky != chosen.cookie_of(server));
        let client = exchange.client;
        if let Some(to) = found.mirror
            && exchange.retries == 0
        {
            self.copy(id, to);
        }
        self.attempt(server, client).map_err(|unavailable| {
            // A request that is not sent is not mirrored.
            if let Some(exchange) = self.exchanges.get_mut(id) {
                exchange.copy = None;
            }
            match unavailable {
                // Another worker took the last slot, or needs one more urgently.
                Unavailable::Full => Refused::Queued,
                Unavailable::NoDescriptors | Unavailable::Failed(_) => Refused::Ended(unavailable.into()),
            }
        })
    }

    /// Sends the head of a request on the connection of an attempt, or queues the request for the server's SETTINGS.
    #[inline]
    fn send(&mut self, id: ExchangeId, mut attempt: Attempt) {
        let Some(exchange) = self.exchanges.get_mut(id) else {
            return self.broken(id, "a client without its exchange");
        };
        let (Some(held), Some(client), Some(upstream)) = (
            exchange.head.take(),
            self.clients.get_mut(exchange.client),
            self.upstreams.get_mut(attempt.upstream),
        ) else {
            return self.broken(id, "a request without its head or its connections");
        };
        let Some(server) = self.servers.get_mut(upstream.server) else {
            return self.broken(id, "a connection without its server");
        };
        let core = &mut self.core;
        let mut opens_tunnel = false;
        if let Some(h2) = &mut upstream.h2 {
            opens_tunnel = websocket::is_opening(&held.request, &held.bytes);
            if opens_tunnel {
                // Further attempts ask for the tunnel, too.
                exchange.asks_upgrade = true;
                if exchange.stream.is_none() {
                    exchange.accept = websocket::accept(&held.request, &held.bytes).map(Box::new);
                }
            }
            if must_wait(exchange, held.request.framing, h2, server) {
                exchange.head = Some(held);
                return self.await_settings(id, attempt.upstream);
            }
            attempt.stream = h2.open(id, exchange.method == Method::Head);
            if attempt.stream.is_none() {
                exchange.head = Some(held);
                return self.broken(id, "a connection without a free stream");
            }
            core.counters.upstream_http2_requests += u64::from(exchange.retries == 0);
        }
        exchange.attempt = Some(attempt);
        let is_stream = attempt.stream.is_some();
        exchange.asks_upgrade = match is_stream {
            false => upgrade(&held.request, &held.bytes).is_some(),
            true => opens_tunnel,
        };
        send_request(exchange, &held, client, upstream, server, core);
        let now = core.net.now();
        exchange.times.attempt = now;
        let is_complete = held.request.framing.is_empty();
        if is_complete {
            exchange.times.sent = Some(now);
        }
        if attempt.reused {
            exchange.times.connected = Some(now);
        }
        let Retries { requests, on } = exchange.policy().retry;
        exchange.is_repeatable = match requests {
            Retry::Idempotent => held.request.method.is_idempotent(),
            Retry::Always => true,
            Retry::Never => false,
        };
        let may_repeat = exchange.is_repeatable && (attempt.reused || !on.is_empty());
        let may_fail_over = !attempt.reused && exchange.others > 0;
        // Keeps the head for another attempt: an HTTP/2 server may refuse any request unprocessed.
        match may_repeat || may_fail_over || is_stream {
            true => exchange.head = Some(held),
            false => core.give_back_head(held),
        }
        exchange.moved = true;
        client.touch_leg(exchange.leg(), &mut core.touched.clients);
        if !is_stream {
            upstream.used_for = Use::Exchange(id);
        }
        upstream.moved = true;
        upstream.touch_leg(attempt.upstream, attempt.stream, &mut core.touched.upstreams);
        server.in_flight.begin();
        // A request counts once: a server may have refused it before it waited in the queue.
        core.counters.requests += u64::from(!is_stream || exchange.retries == 0);
        let (server, is_copy_due) = (upstream.server, is_complete && exchange.copy.is_some());
        if is_stream {
            self.note_room(server);
        }
        if is_copy_due {
            self.settle_copy(id);
        }
    }

    /// Sets the timer for an exchange's total time.
    #[cold]
    pub(super) fn limit(&mut self, id: ExchangeId) {
        if let Some(exchange) = self.exchanges.get_mut(id)
            && let Some((at, total)) = exchange.total()
        {
            exchange.set_timer(Some((at, Cause::Limit(total))), self.core.net.wheel(), id.key());
        }
    }

    /// Forwards the part of the request's body in `input[at..]`; returns its length.
    pub(super) fn pass_request_body(&mut self, id: ExchangeId, input: &mut [u8], at: usize) -> usize {
        let Some(exchange) = self.exchanges.get_mut(id) else {
            self.broken(id, "a client without its exchange");
            return 0;
        };
        if exchange.attempt.is_none() {
            return self.hold_body(id, &input[at..]);
        }
        let Some(flow) = self.flow(id) else {
            self.broken(id, "a request without its connections");
            return 0;
        };
        match flow.take_body(input, at) {
            Ok(Taken { bytes, is_complete }) => {
                if is_complete {
                    self.settle_copy(id);
                }
                bytes
            }
            Err((reason, bytes)) => {
                self.end_exchange(id, reason);
                bytes
            }
        }
    }
}

/// The maximum number of further servers to try for one request: each may take the full connect timeout.
const MOST_OTHERS: usize = 2;
