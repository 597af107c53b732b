//! Timers of exchanges, and of clients that read the last bytes of a response. The gateway's current wait and the
//! limits on bodies determine each deadline.

use super::Worker;
use crate::config::document::Timeouts;
use crate::config::{MinRates, Policy};
use crate::deadlines::{BodyDeadlines, BodyProgress, Cause, Limit, ServerWait, Wait, deadline_of, nearest};
use crate::downstream::{Client, Phase};
use crate::drain::ClientDrain;
use crate::keys::{ClientId, ExchangeId};
use crate::plan::Plan;
use std::rc::Rc;
use std::time::Instant;
use weir_http2::StreamNo;
use weir_reactor::{Net, Socket};

impl<N: Net> Worker<N> {
    /// Sets the timer of an exchange: to the deadline of its current wait, or to the instant at which it exceeds a
    /// limit, whichever comes first.
    #[cold]
    pub(super) fn time_exchange(&mut self, id: ExchangeId) {
        let limit = self.exchange_limit(id);
        // The exchange may have ended with its client's connection.
        let Some(exchange) = self.exchanges.get_mut(id) else { return };
        let client = self.clients.get(exchange.client);
        let pending = client.is_some_and(|client| client.pending(exchange.stream) > 0);
        let drain = client.map_or(ClientDrain::No, |client| client.drain);
        let server = match exchange.upstream_stream() {
            None => None,
            Some(_) => self.server_deadline(id),
        };
        let Some(exchange) = self.exchanges.get_mut(id) else { return };
        let moved = std::mem::take(&mut exchange.moved);
        let before = exchange.timer.as_ref().and_then(|timer| timer.waits);
        let (timeouts, now) = (exchange.policy().timeouts, self.core.net.now());
        let waits =
            deadline_of(before, exchange.wait(pending), moved, |want| now + want.timeout(&timeouts, drain));
        let server_before = exchange.timer.as_ref().and_then(|timer| timer.server);
        if (waits, server) != (before, server_before) {
            let timer = exchange.timer.get_or_insert_default();
            (timer.waits, timer.server) = (waits, server);
        }
        exchange.set_timer(nearest(waits, server, limit), self.core.net.wheel(), id.key());
    }

    /// The deadline of an exchange's wait for its server's stream. A wait that continues keeps its deadline.
    fn server_deadline(&mut self, id: ExchangeId) -> Option<(Instant, ServerWait)> {
        let want = self.exchange_upstream_wait(id);
        let exchange = self.exchanges.get_mut(id)?;
        let moved = std::mem::take(&mut exchange.server_moved);
        let before = exchange.timer.as_ref().and_then(|timer| timer.server);
        let want = want?;
        let continued = before.filter(|(_, wait)| wait.continues(want, moved));
        Some(
            continued
                .unwrap_or_else(|| (self.core.net.now() + want.timeout(&exchange.policy().timeouts), want)),
        )
    }

    /// The wait of an exchange for its server's stream, if any.
    pub(super) fn exchange_upstream_wait(&self, id: ExchangeId) -> Option<ServerWait> {
        let exchange = self.exchanges.get(id)?;
        let upstream = self.upstreams.get(exchange.upstream()?)?;
        upstream.wait(Some(exchange), self.is_blocked(id))
    }

    /// The nearest limit of an exchange, and the instant at which the exchange exceeds it.
    pub(super) fn exchange_limit(&mut self, id: ExchangeId) -> Option<(Instant, Limit)> {
        let now = self.core.net.now();
        let exchange = self.exchanges.get_mut(id)?;
        let client = self.clients.get(exchange.client)?;
        let upstream = exchange.upstream().and_then(|id| self.upstreams.get(id));
        let stream = exchange.upstream_stream();
        let body = exchange.body_progress(upstream.is_some_and(|upstream| upstream.pending(stream) == 0));
        let response =
            progress(client, exchange.stream, !exchange.response.is_awaiting() && !exchange.is_tunnel);
        let Policy { min_rates, timeouts, .. } = *exchange.policy();
        let bodies = limit_of(&mut exchange.body_deadlines, now, (body, response), min_rates, &timeouts);
        bodies.into_iter().chain(exchange.total()).min_by_key(|(at, _)| *at)
    }

    /// As [`Self::time_exchange`], for a client that reads the last bytes of a response. `moved`: bytes moved since the
    /// last call.
    pub(super) fn time_slow_client(&mut self, id: ClientId, want: Option<Wait>, moved: bool) {
        let limit = match self.clients.get(id).map(|client| client.phase) {
            Some(Phase::Streams) => self.last_output_limit(id),
            _ => self.client_limit(id),
        };
        let now = self.core.net.now();
        let Some(client) = self.clients.present_mut(id) else { return };
        let drain = client.drain;
        let (_, timeouts) = terms(client.body_deadlines.as_deref(), &self.core.plan);
        let before = match (&client.body_deadlines, client.timer.pending()) {
            (Some(body_deadlines), _) if body_deadlines.waits.is_some() => body_deadlines.waits,
            (_, Some((at, Cause::Waited(why)))) => Some((at, why)),
            (_, Some((_, Cause::Limit(_) | Cause::Server(_))) | None) => None,
        };
        let waits = deadline_of(before, want, moved, |want| now + want.timeout(&timeouts, drain));
        if let Some(body_deadlines) = &mut client.body_deadlines {
            body_deadlines.waits = waits;
        }
        match nearest(waits, None, limit) {
            Some((at, why)) => client.timer.set(at, why, self.core.net.wheel(), id.key()),
            None => client.timer.clear(),
        }
    }

    /// The timer of a slow client fired: ends its connection, or its slow streams, unless enough bytes have moved in
    /// the meantime.
    #[cold]
    pub(super) fn slow_client_due(&mut self, id: ClientId) {
        let now = self.core.net.now();
        match self.clients.get(id).map(|client| client.phase) {
            Some(Phase::Streams) => self.end_slow_streams(id),
            _ => {
                if let Some((_, limit)) = self.client_limit(id).filter(|(at, _)| *at <= now) {
                    self.end(id, limit.reason());
                }
            }
        }
        self.touch_client(id);
    }

    /// The nearest limit of a client without an exchange, and the instant at which the client exceeds it.
    fn client_limit(&mut self, id: ClientId) -> Option<(Instant, Limit)> {
        let client = self.clients.get_mut(id)?;
        let response = progress(client, None, false);
        last_limit_of(&mut client.body_deadlines, self.core.net.now(), response, &self.core.plan)
    }
}

pub(super) fn last_limit_of(
    deadlines: &mut Option<Box<BodyDeadlines>>,
    now: Instant,
    response: BodyProgress,
    plan: &Rc<Plan>,
) -> Option<(Instant, Limit)> {
    if response != BodyProgress::Over {
        // The last bytes of a response keep their limits after a reload.
        deadlines.get_or_insert_default().limits_of.get_or_insert_with(|| (Rc::clone(plan), None));
    }
    let (rates, timeouts) = terms(deadlines.as_deref(), plan);
    limit_of(deadlines, now, (BodyProgress::Over, response), rates, &timeouts)
}

/// The minimum rates and the timeouts that apply to a response whose exchange is over.
fn terms(deadlines: Option<&BodyDeadlines>, plan: &Plan) -> (MinRates, Timeouts) {
    let policy = match deadlines.and_then(|deadlines| deadlines.limits_of.as_ref()) {
        Some((plan, Some(route))) => plan.policy_of(*route),
        Some((plan, None)) => plan.policy(),
        None => plan.policy(),
    };
    (policy.min_rates, policy.timeouts)
}

/// The progress of a response. `is_responding`: the gateway forwards its body.
pub(super) fn progress<S: Socket>(
    client: &Client<S>,
    stream: Option<StreamNo>,
    is_responding: bool,
) -> BodyProgress {
    let has_pending = client.pending(stream) > 0;
    match client.transport.is_open() && (has_pending || is_responding) {
        true => BodyProgress::Moving {
            bytes: client.taken(stream),
            awaits_client: has_pending && !client.yields(stream),
        },
        false => BodyProgress::Over,
    }
}

/// The nearest limit on bodies with this progress. Accounting begins with the first limit, and ends with the bodies.
fn limit_of(
    deadlines: &mut Option<Box<BodyDeadlines>>,
    now: Instant,
    (body, response): (BodyProgress, BodyProgress),
    rates: MinRates,
    timeouts: &Timeouts,
) -> Option<(Instant, Limit)> {
    if (body, response) == (BodyProgress::Over, BodyProgress::Over) {
        *deadlines = None;
        return None;
    }
    if deadlines.is_none() && !BodyDeadlines::is_needed(body, response, rates, timeouts) {
        return None;
    }
    deadlines.get_or_insert_default().update(now, (body, response), rates, timeouts)
}
