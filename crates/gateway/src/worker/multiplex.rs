//! Connections to HTTP/2 servers: each request is a stream on a connection with room, or on a new one.

use super::Worker;
use super::server_connections::Unavailable;
use crate::config::document::Pool;
use crate::deadlines::ServerWait;
use crate::exchange::Attempt;
use crate::h2::H2;
use crate::keys::{ClientId, ExchangeId, ServerId, ServiceId, UpstreamId};
use crate::upstream::{Intake, Upstream, Use};
use std::time::Instant;
use weir_http2::{ErrorCode, StreamNo};
use weir_reactor::Net;

impl<N: Net> Worker<N> {
    /// Finds a connection for another stream: the fullest one with room, or a new one if none has room. The emptier
    /// ones thus become idle and close. When the connections are nearly full, also opens another one for later
    /// requests.
    #[cold]
    pub(super) fn attempt_on_stream(
        &mut self,
        id: ServerId,
        client: ClientId,
    ) -> Result<Attempt, Unavailable> {
        let now = self.core.net.now();
        let Some(server) = self.servers.get(id) else { return self.dial_multiplexed(id, client) };
        let (mut fullest, mut used, mut most, mut is_dialling) = (None, 0, 0, false);
        for id in &server.multiplexed {
            let Some(upstream) = self.upstreams.get(*id) else { continue };
            let Some(streams) = streams_of(upstream, server.allowed_streams, &server.config.pool, now) else {
                continue;
            };
            used += streams.open;
            most += streams.most;
            is_dialling |= !upstream.transport.is_open();
            if streams.open < streams.most && fullest.is_none_or(|(open, _)| open < streams.open) {
                fullest = Some((streams.open, *id));
            }
        }
        let Some((_, upstream)) = fullest else {
            self.close_used_up(id);
            return self.dial_multiplexed(id, client);
        };
        let is_nearly_full = used >= most / 4 * 3 && most >= AHEAD;
        if is_nearly_full && !is_dialling && server.may_have_more_idle(server.multiplexed.len()) {
            // Best effort: if this fails, the request that needs another connection dials it.
            let _ = self.dial_multiplexed(id, client);
        }
        if self.upstreams.get(upstream).is_none() {
            // The dial ahead evicted this connection because descriptors had run out.
            return self.dial_multiplexed(id, client);
        }
        let is_used = self.upstreams.get(upstream).is_some_and(|upstream| upstream.life.requests > 0);
        Ok(Attempt { upstream, stream: None, reused: is_used })
    }

    /// Closes the idle connections to a server that have reached their maximum age or number of requests: new
    /// connections may need their slots.
    fn close_used_up(&mut self, id: ServerId) {
        let Some(server) = self.servers.get(id) else { return };
        let (pool, now) = (server.config.pool, self.core.net.now());
        for id in server.multiplexed.clone() {
            // A connection whose intake is closed closes at the end of the turn anyway.
            let is_used_up = self.upstreams.get(id).is_some_and(|upstream| {
                upstream.intake == Intake::Open && upstream.is_idle() && upstream.life.is_used_up(&pool, now)
            });
            if is_used_up {
                self.finish_multiplexed(id);
            }
        }
    }

    fn dial_multiplexed(&mut self, id: ServerId, client: ClientId) -> Result<Attempt, Unavailable> {
        if self.servers.get(id).is_some_and(|server| server.is_wanted_elsewhere(self.peers.own)) {
            // Another worker without a connection takes precedence over a second connection of this worker.
            return Err(Unavailable::Full);
        }
        let upstream = self.dial(id, client)?;
        let limits = self.limits_of(id);
        if let (Some(server), Some(dialled)) = (self.servers.get_mut(id), self.upstreams.get_mut(upstream)) {
            dialled.used_for = Use::Streams;
            dialled.transport.require_http2();
            dialled.h2 = Some(Box::new(H2::to_server(&limits, server.config.pool.max_streams())));
            dialled.touch(upstream, &mut self.core.touched.upstreams);
            server.multiplexed.push(upstream);
        }
        self.core.counters.upstream_http2_connections += 1;
        Ok(Attempt { upstream, stream: None, reused: false })
    }

    fn limits_of(&self, id: ServerId) -> weir_http1::Limits {
        let mut services = self.core.plan.services.iter().filter_map(|id| self.services.get(*id));
        let service = services.find(|service| service.servers.contains(&id));
        service.map(|service| service.config.limits).unwrap_or_default()
    }

    /// Counts an attempt as in flight, and assigns its connection to the exchange unless it has a stream.
    pub(super) fn enter(&mut self, attempt: Attempt, id: ExchangeId) {
        if attempt.stream.is_none() {
            return self.assign(attempt.upstream, Use::Exchange(id));
        }
        let Some(upstream) = self.upstreams.present(attempt.upstream) else { return };
        let server = upstream.server;
        if let Some(server) = self.servers.get_mut(server) {
            server.in_flight.begin();
        }
        self.note_room(server);
    }

    /// Ends a stream whose response with this status is complete.
    pub(super) fn release_stream(&mut self, id: UpstreamId, no: StreamNo, service: ServiceId, status: u16) {
        self.note_response(id, service, status);
        if let Some(h2) = self.upstreams.get_mut(id).and_then(|upstream| upstream.h2.as_mut()) {
            h2.response_is_over(no);
        }
        self.stream_is_over(id);
    }

    /// Resets a stream whose exchange has ended early, or continues with another attempt.
    pub(super) fn abort_stream(&mut self, id: UpstreamId, no: StreamNo) {
        if let Some(h2) = self.upstreams.get_mut(id).and_then(|upstream| upstream.h2.as_mut()) {
            h2.abort(no, ErrorCode::CANCEL);
        }
        self.stream_is_over(id);
    }

    fn stream_is_over(&mut self, id: UpstreamId) {
        let Some(upstream) = self.upstreams.get_mut(id) else { return };
        let server = upstream.server;
        upstream.life.requests = upstream.life.requests.saturating_add(1);
        if upstream.timer.pending().is_some_and(|(_, why)| why == ServerWait::Pooled) {
            // Cleared, so that the idle timeout starts again.
            upstream.timer.clear();
        }
        upstream.touch(id, &mut self.core.touched.upstreams);
        // A reload may have removed the server.
        if let Some(server) = self.servers.get_mut(server) {
            server.in_flight.end();
        }
        self.note_room(server);
    }

    /// Updates whether a request may open a stream to a server whose connections have reached their limit.
    pub(super) fn note_room(&mut self, id: ServerId) {
        let now = self.core.net.now();
        let Some(server) = self.servers.get_mut(id).filter(|server| server.slots.is_some()) else { return };
        let (pool, allowed) = (server.config.pool, server.allowed_streams);
        let has_room = |id: &UpstreamId| {
            let streams =
                self.upstreams.get(*id).and_then(|upstream| streams_of(upstream, allowed, &pool, now));
            streams.is_some_and(|streams| streams.open < streams.most)
        };
        server.has_free_stream = server.multiplexed.iter().any(has_room);
    }

    /// Stores a server's stream limit from its SETTINGS: it applies to the server's next connections, too.
    pub(super) fn note_settings(&mut self, id: UpstreamId) {
        let Some(upstream) = self.upstreams.get(id) else { return };
        let allowed = upstream.h2.as_ref().map(|h2| h2.connection.most_streams());
        if let Some(server) = self.servers.get_mut(upstream.server) {
            server.allowed_streams = allowed.map(|allowed| allowed.max(1));
        }
        self.note_room(upstream.server);
    }

    /// Sends no further requests on a connection, so that it closes after its last stream.
    pub(super) fn retire_multiplexed(&mut self, id: UpstreamId) {
        let Some(upstream) = self.upstreams.get_mut(id) else { return };
        let server = upstream.server;
        upstream.intake = Intake::Closed;
        upstream.touch(id, &mut self.core.touched.upstreams);
        self.note_room(server);
    }

    /// Removes a connection from its server's list, so that no further request uses it.
    pub(super) fn forget_multiplexed(&mut self, id: UpstreamId) {
        let Some(upstream) = self.upstreams.get(id) else { return };
        let server = upstream.server;
        if let Some(server) = self.servers.get_mut(server) {
            server.multiplexed.retain(|known| *known != id);
        }
        self.note_room(server);
    }
}

struct Streams {
    open: usize,
    most: usize,
}

/// The streams of a connection; `None` if it takes no further requests. `allowed`: the limit to assume before the
/// server has sent SETTINGS.
fn streams_of<S>(
    upstream: &Upstream<S>,
    allowed: Option<usize>,
    pool: &Pool,
    now: Instant,
) -> Option<Streams> {
    let h2 = upstream.h2.as_ref()?;
    let takes = upstream.intake == Intake::Open && !upstream.ended && !upstream.life.is_used_up(pool, now);
    // Without a slot, the open streams are also the maximum: the server's limit is reached, the server has sent GOAWAY,
    // or the stream IDs are used up.
    let open = h2.len();
    let most = match (h2.connection.has_slot(), h2.connection.has_peer_settings()) {
        (false, _) => open,
        (true, true) => h2.connection.most_streams(),
        (true, false) => allowed.unwrap_or(usize::MAX).min(h2.connection.most_streams()),
    };
    takes.then_some(Streams { open, most })
}

/// The minimum total of allowed streams at which another connection is opened ahead of its use.
const AHEAD: usize = 8;
