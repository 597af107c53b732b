//! Timeouts: handles timers that have fired. `deadlines/client_wait.rs` and `server_wait.rs` have the reason of each
//! timeout, and `reason.rs` its status; `ends.rs` responds, or closes the connection.

use super::Worker;
use crate::deadlines::{Cause, Limit, ServerWait, Wait};
use crate::downstream::Phase;
use crate::exchange::Event;
use crate::keys::{ClientId, ExchangeId, UpstreamId};
use crate::mirror::Fate;
use crate::reason::Reason;
use crate::upstream::Use;
use weir_reactor::Net;

impl<N: Net> Worker<N> {
    pub(super) fn client_due(&mut self, id: ClientId) {
        // An event of this turn may have removed the client.
        let Some(client) = self.clients.get_mut(id) else { return };
        let now = self.core.net.now();
        let Some(why) = client.timer.due(now, self.core.net.wheel(), id.key()) else { return };
        if is_for_reading(why) {
            self.push_client(id);
        }
        let why = match why {
            Cause::Waited(why) => why,
            Cause::Limit(_) | Cause::Server(_) => return self.slow_client_due(id),
        };
        // The client may have been lost while the gateway sent its output.
        let Some(client) = self.clients.get(id) else { return };
        let (phase, moved) = (client.phase, client.moved && why.is_refreshed_by_progress());
        if moved || client.wait() != Some(why) {
            // The client has made progress or changed its state; the end of the turn resets the timer.
            return self.touch_client(id);
        }
        match (why, phase) {
            (Wait::Idle, _) => {
                // A request may have arrived in this turn.
                self.read_client(id);
                if self.clients.get(id).is_some_and(|client| client.is_idle() && client.held.is_empty()) {
                    self.close(id);
                }
            }
            (why, Phase::Closing) => {
                // The client stopped reading the last response, or has not closed its side after the response.
                if let Some(reason) = why.reason() {
                    self.note_end_of_client(id, &reason);
                }
                self.cut(id);
            }
            (why, Phase::Tunnel(tunnel)) => match why.reason() {
                Some(reason) => self.end_tunnel(tunnel, reason),
                None => self.cut(id),
            },
            (Wait::Response, Phase::Streams) if self.abort_last_output(id) => {}
            (Wait::Handshake, _) => self.give_up_handshake(id, &Reason::HandshakeTimeout),
            (why, _) => match why.reason() {
                Some(reason) => self.end(id, reason),
                None => self.cut(id),
            },
        }
        self.touch_client(id);
    }

    /// Handles an exchange whose timer has fired: ends it, or tries another server if it has no connection yet. No
    /// effect if its deadline has changed.
    pub(super) fn exchange_due(&mut self, id: ExchangeId) {
        let now = self.core.net.now();
        // An event of this turn may have ended the exchange.
        let Some(exchange) = self.exchanges.get_mut(id) else { return };
        let leg = exchange.leg();
        let timer = exchange.timer.as_mut().map(|timer| &mut timer.timer);
        let Some(why) = timer.and_then(|timer| timer.due(now, self.core.net.wheel(), id.key())) else {
            return;
        };
        if is_for_reading(why) {
            self.push_client(leg.client);
        }
        match (why, self.is_overdue(id, why)) {
            (_, None) => {}
            (Cause::Server(ServerWait::Connect | ServerWait::Handshake), Some(reason)) => {
                self.on(id, Event::NotConnected(reason));
            }
            (Cause::Server(_), Some(reason)) => {
                self.doubt_connection_of(id);
                self.end_exchange(id, reason);
            }
            (Cause::Waited(_) | Cause::Limit(_), Some(reason)) => self.end_exchange(id, reason),
        }
        self.touch_leg(leg);
    }

    /// As [`Self::is_overdue`], for an exchange that waits for its server's stream.
    fn is_server_overdue(&mut self, id: ExchangeId, why: ServerWait) -> Option<Reason> {
        let wait = self.exchange_upstream_wait(id);
        let exchange = self.exchanges.get(id)?;
        let has_moved = exchange.server_moved && why.is_refreshed_by_progress();
        if has_moved || wait != Some(why) { None } else { why.reason() }
    }

    /// The reason for ending an exchange whose deadline has passed; `None` if its deadline has changed since.
    fn is_overdue(&mut self, id: ExchangeId, why: Cause) -> Option<Reason> {
        let wait = match why {
            Cause::Waited(wait) => wait,
            Cause::Server(wait) => return self.is_server_overdue(id, wait),
            Cause::Limit(_) => {
                let (at, limit) = self.exchange_limit(id)?;
                return (at <= self.core.net.now()).then(|| limit.reason());
            }
        };
        let exchange = self.exchanges.get(id)?;
        let pending = self.clients.get(exchange.client)?.pending(exchange.stream) > 0;
        let has_moved = exchange.moved && wait.is_refreshed_by_progress();
        if has_moved || exchange.wait(pending) != Some(wait) {
            return None;
        }
        let upstream = exchange.upstream().and_then(|upstream| self.upstreams.get(upstream));
        match upstream {
            Some(upstream) if wait == Wait::Body && upstream.pending(exchange.upstream_stream()) > 0 => {
                Some(Reason::UpstreamTimeout)
            }
            _ => wait.reason(),
        }
    }

    pub(super) fn upstream_due(&mut self, id: UpstreamId) {
        // An event of this turn may have closed the connection.
        let Some(upstream) = self.upstreams.get_mut(id) else { return };
        let now = self.core.net.now();
        let Some(why) = upstream.timer.due(now, self.core.net.wheel(), id.key()) else { return };
        let (used_for, moved) = (upstream.used_for, upstream.moved && why.is_refreshed_by_progress());
        if moved || self.upstream_wait(id) != Some(why) {
            // The timer is stale: the connection has made progress or changed its state in this turn.
            return self.touch_upstream(id);
        }
        match (used_for, why.reason()) {
            (Use::Exchange(exchange), Some(reason))
                if matches!(why, ServerWait::Connect | ServerWait::Handshake) =>
            {
                self.on(exchange, Event::NotConnected(reason));
            }
            (Use::Exchange(exchange), Some(reason)) => self.end_exchange(exchange, reason),
            (Use::Streams, _) => self.streams_due(id, why),
            (Use::Tunnel(tunnel), Some(reason)) => self.end_tunnel(tunnel, reason),
            (Use::Mirror(mirror), _) => self.drop_mirror(mirror, Fate::Late),
            (Use::Idle, _) => {
                debug_assert_eq!(why, ServerWait::Pooled);
                self.retire_pooled(id);
            }
            (Use::Closing, _) | (_, None) => self.drop_upstream(id),
        }
    }
}

/// Whether the reason for the timeout is that a client has not read enough. If so, the caller first sends pending
/// output: the poller reports a socket as writable only once a third of its buffer is free, so the client may have read
/// some bytes unnoticed.
fn is_for_reading(why: Cause) -> bool {
    matches!(why, Cause::Waited(Wait::Response) | Cause::Limit(Limit::ResponseRate))
}
