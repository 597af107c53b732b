//! Slow clients: bodies that take longer than a turn must keep their minimum rate and total timeout.

use super::Worker;
use crate::config::document::Timeouts;
use crate::downstream::{BodyDeadlines, BodyProgress, Cause, Client, MinRates, Slow, Wait};
use crate::exchange::Stage;
use crate::keys::ClientId;
use std::rc::Rc;
use std::time::Instant;
use weir_reactor::Net;

impl<N: Net> Worker<N> {
    /// Sets the timer of a client that may be slow: to the end of its current wait, or to the instant at which it will
    /// be too slow, whichever is first. `moved`: bytes moved since the last call.
    pub(super) fn time_slow_client(&mut self, id: ClientId, want: Option<Wait>, moved: bool) {
        let slow = self.slowness(id);
        let (_, timeouts) = self.terms(id);
        let drain = self.core.drain;
        let Some(client) = self.clients.get_mut(id) else { return };
        let before = match (&client.body_deadlines, client.timer.pending()) {
            (Some(body_deadlines), _) if body_deadlines.waits.is_some() => body_deadlines.waits,
            (_, Some((at, Cause::Waited(why)))) => Some((at, why)),
            (_, Some((_, Cause::Slow(_))) | None) => None,
        };
        let waits = match (before, want) {
            (Some((at, why)), Some(want)) if why == want && !(moved && want.is_refreshed_by_progress()) => {
                Some((at, why))
            }
            (_, Some(want)) => Some((self.core.net.now() + want.timeout(&timeouts, drain), want)),
            (_, None) => None,
        };
        if let Some(body_deadlines) = &mut client.body_deadlines {
            body_deadlines.waits = waits;
        }
        let ends =
            [waits.map(|(at, why)| (at, Cause::Waited(why))), slow.map(|(at, why)| (at, Cause::Slow(why)))];
        match ends.into_iter().flatten().min_by_key(|(at, _)| *at) {
            Some((at, why)) => client.timer.set(at, why, self.core.net.wheel(), id.key()),
            None => client.timer.clear(),
        }
    }

    /// The timer of a slow client fired: ends its exchange or connection, unless enough bytes have moved meanwhile.
    #[cold]
    pub(super) fn slow_client_due(&mut self, id: ClientId) {
        if let Some((at, slow)) = self.slowness(id)
            && at <= self.core.net.now()
        {
            self.end(id, slow.reason());
        }
        self.touch_client(id);
    }

    /// The instant at which a client will be too slow, and the limit that it breaks then.
    fn slowness(&mut self, id: ClientId) -> Option<(Instant, Slow)> {
        let (body, response) = self.ways(id);
        let (rates, timeouts) = self.terms(id);
        let client = self.clients.get_mut(id)?;
        if (body, response) == (BodyProgress::Over, BodyProgress::Over) {
            client.body_deadlines = None;
            return None;
        }
        // The last bytes of a response keep their limits after a reload.
        let is_rest = client.exchange().is_none() && response != BodyProgress::Over;
        if client.body_deadlines.is_none()
            && !is_rest
            && !BodyDeadlines::is_needed(body, response, rates, &timeouts)
        {
            return None;
        }
        let body_deadlines = client.body_deadlines.get_or_insert_default();
        if is_rest && body_deadlines.limits_of.is_none() {
            body_deadlines.limits_of = Some((Rc::clone(&self.core.plan), None));
        }
        body_deadlines.update(self.core.net.now(), (body, response), rates, &timeouts)
    }

    /// The progress of a client's request body and of its response.
    fn ways(&self, id: ClientId) -> (BodyProgress, BodyProgress) {
        let Some(client) = self.clients.get(id).filter(|client| client.transport.is_open()) else {
            return (BodyProgress::Over, BodyProgress::Over);
        };
        let exchange = client.exchange().and_then(|exchange| self.exchanges.get(exchange));
        let body = match exchange.map(|exchange| (exchange, &exchange.stage)) {
            Some((_, Stage::Holding(held))) => {
                BodyProgress::Moving { bytes: held.passed, awaits_client: true }
            }
            Some((_, Stage::Queued)) => BodyProgress::Held,
            Some((exchange, Stage::Forwarding)) if exchange.wants_body() => {
                let upstream = exchange.upstream().and_then(|id| self.upstreams.get(id));
                // While the server has bytes to take, or is not connected, the delay is not the client's.
                let has_taken = |to: &crate::upstream::Upstream<_>| to.transport.pending() == 0;
                BodyProgress::Moving {
                    bytes: exchange.received,
                    awaits_client: upstream.is_some_and(has_taken),
                }
            }
            Some((_, Stage::Forwarding)) | None => BodyProgress::Over,
        };
        let awaits_client = client.transport.pending() > 0;
        let response =
            match awaits_client || exchange.is_some_and(|exchange| !exchange.response.is_awaiting()) {
                true => BodyProgress::Moving { bytes: client.transport.taken(), awaits_client },
                false => BodyProgress::Over,
            };
        (body, response)
    }

    /// The minimum rates and the timeouts that apply to a client.
    fn terms(&self, id: ClientId) -> (MinRates, Timeouts) {
        let client = self.clients.get(id);
        let exchange = client.and_then(Client::exchange).and_then(|exchange| self.exchanges.get(exchange));
        let limits_of = client
            .and_then(|client| client.body_deadlines.as_ref())
            .and_then(|body_deadlines| body_deadlines.limits_of.as_ref());
        let policy = match (exchange, limits_of) {
            (Some(exchange), _) => exchange.policy(),
            (None, Some((plan, Some(route)))) => plan.policy_of(*route),
            (None, Some((plan, None))) => plan.policy(),
            (None, None) => self.core.plan.policy(),
        };
        (policy.min_rates, policy.timeouts)
    }
}
