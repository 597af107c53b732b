//! Requests on their way to servers: the choice of a connection, the head, the body.

use super::Worker;
use super::attempts::Unavailable;
use crate::config::document::{Retries, Retry};
use crate::downstream::Phase;
use crate::exchange::{Attempt, Exchange, HeldHead, Overdue};
use crate::keys::ExchangeId;
use crate::proxy::{Taken, send_request, upgrade};
use crate::reason::Reason;
use crate::upstream::{PickContext, Use};
use std::time::Instant;
use weir_reactor::Net;

/// Why a request has no connection.
enum Refused {
    /// It waits for one.
    Queued,
    /// It ends.
    Ended(Reason),
}

impl<N: Net> Worker<N> {
    /// Sends a request to a server; queues it if no connection is free. `has_waited`: it was the first in the queue.
    pub(super) fn start(&mut self, mut exchange: Exchange, has_waited: bool) {
        let Some(held) = exchange.head.take() else {
            return self.broken_client(exchange.client, "a request without its head");
        };
        match self.first_attempt(&mut exchange, &held, has_waited) {
            Ok(attempt) => self.send(exchange, held, attempt),
            Err(refused) => {
                exchange.head = Some(held);
                match refused {
                    Refused::Queued => self.queue(exchange, has_waited),
                    Refused::Ended(reason) => self.give_up(exchange, reason),
                }
            }
        }
    }

    /// The connection for a request's first attempt.
    #[inline]
    fn first_attempt(
        &mut self,
        exchange: &mut Exchange,
        held: &HeldHead,
        has_waited: bool,
    ) -> Result<Attempt, Refused> {
        let id = exchange.client;
        let (Some(found), Some(chosen)) =
            (exchange.plan.snapshot.routes.get(exchange.route), self.services.get_mut(exchange.service))
        else {
            return Err(Refused::Ended(Reason::Internal("a request without its service")));
        };
        exchange.limits = chosen.config.limits;
        if !has_waited {
            chosen.retries.earn();
        }
        let mut context = PickContext::default();
        if let [_, more @ ..] = &chosen.servers[..]
            && !more.is_empty()
        {
            let client =
                self.clients.get(id).and_then(|client| client.client_address).map(|client| client.ip());
            context = PickContext::of(&chosen.config, &held.request, &held.bytes, client);
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
        if let Some(to) = found.mirror {
            exchange.copy = self.copy(id, held, found, to);
        }
        self.attempt(server, id).map_err(|unavailable| {
            exchange.copy = None;
            match unavailable {
                // Another worker was faster.
                Unavailable::Full => Refused::Queued,
                Unavailable::NoDescriptors | Unavailable::Failed(_) => Refused::Ended(unavailable.into()),
            }
        })
    }

    /// Sends the head of a request on the connection of its first attempt, and inserts the exchange.
    #[inline]
    fn send(&mut self, mut exchange: Exchange, held: Box<HeldHead>, attempt: Attempt) {
        let id = exchange.client;
        let (Some(client), Some(upstream)) =
            (self.clients.get_mut(id), self.upstreams.get_mut(attempt.upstream))
        else {
            return self.broken_client(id, "a request without its connections");
        };
        let Some(server) = self.servers.get_mut(upstream.server) else {
            return self.broken_client(id, "a connection without its server");
        };
        let core = &mut self.core;
        exchange.asks_upgrade = upgrade(&held.request, &held.bytes).is_some();
        send_request(&mut exchange, &held, client, upstream, server, core);
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
        match may_repeat || may_fail_over {
            true => exchange.head = Some(held),
            false => core.give_back_head(held),
        }
        exchange.attempt = Some(attempt);
        let is_copied = exchange.copy.is_some();
        let limit = exchange.limit();
        let exchange = self.exchanges.insert(exchange);
        client.phase = Phase::Exchange(exchange);
        client.moved = true;
        client.touch(id, &mut core.touched.clients);
        upstream.used_for = Use::Exchange(exchange);
        upstream.moved = true;
        upstream.touch(attempt.upstream, &mut core.touched.upstreams);
        server.in_flight += 1;
        core.counters.requests += 1;
        if let Some(at) = limit {
            self.limit(exchange, at);
        }
        if is_copied && is_complete {
            self.settle_copy(exchange);
        }
    }

    /// Makes an exchange that has no connection its client's.
    #[cold]
    pub(super) fn insert(&mut self, exchange: Exchange) -> ExchangeId {
        let (client, limit) = (exchange.client, exchange.limit());
        let id = self.exchanges.insert(exchange);
        if let Some(client) = self.clients.get_mut(client) {
            client.phase = Phase::Exchange(id);
        }
        if let Some(at) = limit {
            self.limit(id, at);
        }
        id
    }

    /// Takes an exchange that has no connection from its client, to go on with it.
    #[cold]
    pub(super) fn take(&mut self, id: ExchangeId) -> Option<Exchange> {
        let mut exchange = self.exchanges.remove(id)?;
        exchange.cancel_timer(self.core.net.wheel());
        if let Some(client) = self.clients.get_mut(exchange.client) {
            client.phase = Phase::Head { started: false };
        }
        Some(exchange)
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

/// Servers that are tried besides the first one: each may take the whole time for connecting.
const MOST_OTHERS: usize = 2;
