//! WebSockets to servers of HTTP/2: a request for one waits until the server's SETTINGS say whether it takes tunnels.

use super::Worker;
use crate::exchange::{Exchange, Stage};
use crate::keys::{ExchangeId, UpstreamId};
use crate::reason::Reason;
use weir_reactor::Net;

impl<N: Net> Worker<N> {
    /// A request needs a tunnel on a connection whose server does not take tunnels, or has not sent its SETTINGS: ends
    /// the exchange, or makes it wait for them. As in a queue, it waits up to `timeouts.queue`.
    #[cold]
    pub(super) fn await_tunnels(&mut self, id: ExchangeId, upstream: UpstreamId) {
        let (Some(exchange), Some(connection)) =
            (self.exchanges.get_mut(id), self.upstreams.get_mut(upstream))
        else {
            return self.broken(id, "a request for a tunnel without its connection");
        };
        // A tunnel is not mirrored.
        (exchange.attempt, exchange.copy) = (None, None);
        if connection.h2.as_ref().is_some_and(|h2| h2.takes_tunnels().is_some()) {
            return self.end_exchange(id, Reason::ConnectMethod);
        }
        exchange.stage = Stage::Queued;
        let leg = exchange.leg();
        connection.awaiting.push(id);
        self.touch_leg(leg);
        self.touch_upstream(upstream);
    }

    /// The server's SETTINGS have arrived: continues with the requests that wait for them.
    pub(super) fn open_awaited_tunnels(&mut self, id: UpstreamId) {
        for exchange in self.take_awaiting(id) {
            if self.exchanges.get(exchange).is_some_and(is_queued) {
                self.admit(exchange);
            }
        }
    }

    /// Takes the requests that wait for a connection's SETTINGS.
    fn take_awaiting(&mut self, id: UpstreamId) -> Vec<ExchangeId> {
        let connection = self.upstreams.get_mut(id);
        connection.map(|connection| std::mem::take(&mut connection.awaiting)).unwrap_or_default()
    }

    /// The connection of requests that wait for its SETTINGS has ended: they go to another server, if there is one.
    /// `reason`: the reason for each.
    pub(super) fn end_awaiting(&mut self, connection: UpstreamId, reason: impl Fn(ExchangeId) -> Reason) {
        let Some(server) = self.upstreams.get(connection).map(|connection| connection.server) else { return };
        for id in self.take_awaiting(connection) {
            let Some(exchange) = self.exchanges.get_mut(id).filter(|exchange| is_queued(exchange)) else {
                continue;
            };
            exchange.stage = Stage::Forwarding;
            match exchange.others {
                0 => self.end_exchange(id, reason(id)),
                _ => {
                    exchange.others -= 1;
                    self.fail_over_from(id, server, reason(id));
                }
            }
        }
    }
}

/// Whether an exchange still waits: its client may be gone, or its time over.
fn is_queued(exchange: &Exchange) -> bool {
    matches!(exchange.stage, Stage::Queued)
}
