//! Requests that wait for the SETTINGS of an HTTP/2 server: tunnel requests, since the server may not support tunnels,
//! and requests whose body may be too long to store for another attempt, since the server may refuse their stream.

use super::Worker;
use crate::exchange::{Exchange, SentBody, Stage};
use crate::h2::H2;
use crate::keys::{ExchangeId, UpstreamId};
use crate::reason::Reason;
use crate::upstream::Server;
use weir_http1::Framing;
use weir_reactor::Net;

impl<N: Net> Worker<N> {
    /// Queues a request until the connection's server has sent SETTINGS, for up to `timeouts.queue`. A request for a
    /// tunnel ends if the server does not support tunnels.
    #[cold]
    pub(super) fn await_settings(&mut self, id: ExchangeId, upstream: UpstreamId) {
        let (Some(exchange), Some(connection)) =
            (self.exchanges.get_mut(id), self.upstreams.get_mut(upstream))
        else {
            return self.broken(id, "a request without its connection");
        };
        exchange.attempt = None;
        // Drops the mirrored copy: a tunnel is not mirrored, and the next attempt of a request without retries makes a
        // new copy.
        if exchange.asks_upgrade || exchange.retries == 0 {
            exchange.copy = None;
        }
        if exchange.asks_upgrade && connection.h2.as_ref().is_some_and(|h2| h2.takes_tunnels().is_some()) {
            return self.end_exchange(id, Reason::ConnectMethod);
        }
        exchange.stage = Stage::Queued;
        let leg = exchange.leg();
        connection.awaiting.push(id);
        self.touch_leg(leg);
        self.touch_upstream(upstream);
    }

    /// The server's SETTINGS have arrived: continues with the requests that wait for them.
    pub(super) fn admit_awaiting(&mut self, id: UpstreamId) {
        for exchange in self.take_awaiting(id) {
            if self.exchanges.get(exchange).is_some_and(is_queued) {
                self.admit(exchange);
            }
        }
    }

    fn take_awaiting(&mut self, id: UpstreamId) -> Vec<ExchangeId> {
        let connection = self.upstreams.get_mut(id);
        connection.map(|connection| std::mem::take(&mut connection.awaiting)).unwrap_or_default()
    }

    /// A connection has ended before its server sent SETTINGS: sends each waiting request to another server if the
    /// request may still try one, else ends the request with this `reason`.
    pub(super) fn end_awaiting(&mut self, connection: UpstreamId, reason: impl Fn(ExchangeId) -> Reason) {
        let Some(server) = self.upstreams.present(connection).map(|connection| connection.server) else {
            return;
        };
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

/// Whether a request with this framing must wait for a server's SETTINGS. A request for a tunnel waits until the server
/// has announced support. A request whose body may be too long to store waits for the stream limit. It need not wait if
/// an earlier connection has shown the limit, or if the connection has no stream yet: nearly every server allows at
/// least one.
pub(super) fn must_wait(exchange: &Exchange, framing: Framing, h2: &H2, server: &Server) -> bool {
    if exchange.asks_upgrade {
        return h2.takes_tunnels() != Some(true);
    }
    SentBody::may_be_too_long(framing)
        && !h2.connection.has_peer_settings()
        && server.allowed_streams.is_none()
        && !h2.is_idle()
}

/// Whether an exchange still waits for a connection. Its ID may stay in a connection's `awaiting` longer.
fn is_queued(exchange: &Exchange) -> bool {
    matches!(exchange.stage, Stage::Queued)
}
