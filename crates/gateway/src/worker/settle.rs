//! The end of a turn: output leaves, the poller and the timers are told, once for each connection that was touched.

use super::Worker;
use crate::downstream::{Handshake, LEAST_BUFFER, MAX_PENDING, Patience, Phase, Upward, Why};
use crate::exchange::Exchange;
use crate::exchange::Replay;
use crate::keys::{ClientId, UpstreamId};
use crate::mirror::Fate;
use crate::upstream::{self, Job};
use weir_reactor::Net;
use weir_transport::Fault;

impl<N: Net> Worker<N> {
    pub(super) fn touch_client(&mut self, id: ClientId) {
        if let Some(client) = self.clients.get_mut(id)
            && !client.touched
        {
            client.touched = true;
            self.touched.push(id.key());
        }
    }

    pub(super) fn touch_upstream(&mut self, id: UpstreamId) {
        if let Some(upstream) = self.upstreams.get_mut(id)
            && !upstream.touched
        {
            upstream.touched = true;
            self.touched.push(id.key());
        }
    }

    /// First all output, then what depends on how much of it is left. A connection that fails here may touch others.
    pub(super) fn settle(&mut self) {
        let mut at = 0;
        while at < self.touched.len() {
            let from = at;
            while at < self.touched.len() {
                let key = self.touched[at];
                match (ClientId::of(key), UpstreamId::of(key)) {
                    (Some(id), _) => self.commit_client(id),
                    (_, Some(id)) => self.commit_upstream(id),
                    (None, None) => {}
                }
                at += 1;
            }
            for index in from..at {
                let key = self.touched[index];
                match (ClientId::of(key), UpstreamId::of(key)) {
                    (Some(id), _) => self.watch_client(id),
                    (_, Some(id)) => self.watch_upstream(id),
                    (None, None) => {}
                }
            }
        }
        self.touched.clear();
    }

    fn commit_client(&mut self, id: ClientId) {
        let Some(client) = self.clients.get_mut(id) else { return };
        client.touched = false;
        if let Phase::Tunnel(tunnel) = client.phase {
            return self.settle_tunnel(tunnel);
        }
        if let Err(fault) = client.transport.commit(&mut self.core.wire) {
            self.lose_client(id, fault);
        }
    }

    fn commit_upstream(&mut self, id: UpstreamId) {
        let Some(upstream) = self.upstreams.get_mut(id) else { return };
        upstream.touched = false;
        let wire = &mut self.core.wire;
        let exchange = match upstream.job {
            Job::Exchange(exchange) => exchange,
            Job::Tunnel(tunnel) => return self.settle_tunnel(tunnel),
            Job::Mirror(mirror) => {
                if upstream.transport.commit(wire).is_err() {
                    self.drop_mirror(mirror, Fate::Failed);
                }
                return;
            }
            Job::Idle | Job::Closing => return,
        };
        let Some(exchange) = self.exchanges.get_mut(exchange) else { return };
        let sent = match &mut exchange.replay {
            Replay::Kept(bytes) => upstream.transport.commit_keeping(bytes, wire),
            Replay::Impossible => upstream.transport.commit(wire),
        };
        if matches!(&exchange.replay, Replay::Kept(bytes) if bytes.len() > Replay::LONGEST)
            && let Some(bytes) = exchange.replay.take()
        {
            wire.give_back(bytes);
        }
        if sent.is_err() {
            // The upstream may have responded before it closed: its response, or the lack of one, decides.
            exchange.request.discard();
        }
    }

    /// Tells the poller and the timer what the client is waited for; removes a finished client.
    fn watch_client(&mut self, id: ClientId) {
        let Some(client) = self.clients.get_mut(id) else { return };
        if client.phase == Phase::Closing && client.ended && client.transport.pending() == 0 {
            return self.drop_client(id);
        }
        let waits = client.phase == Phase::Head { started: false } && !client.held.is_empty();
        if waits && client.transport.pending() < MAX_PENDING {
            // Its requests have waited until it read the gateway's own answers to earlier ones.
            self.resumable.push(id);
        }
        let exchange = client.exchange().and_then(|exchange| self.exchanges.get(exchange));
        let request_done = exchange.is_none_or(|exchange| exchange.request.is_done());
        let upstream = match (client.phase, exchange) {
            (Phase::Tunnel(tunnel), _) => self.tunnels.get(tunnel).map(|tunnel| tunnel.upstream),
            (_, Some(exchange)) if !request_done => Some(exchange.attempt.upstream),
            _ => None,
        };
        let read = client.wants_read(match upstream.and_then(|upstream| self.upstreams.get(upstream)) {
            Some(upstream) => Upward::Flowing { pending: upstream.transport.pending() },
            None => Upward::Complete,
        });
        let want = client.patience(request_done);
        let moved = std::mem::take(&mut client.moved);
        let is_answering = exchange.is_some_and(|exchange| !exchange.answer.is_awaiting());
        let has_body = want == Some(Patience::Body) || is_answering || client.transport.pending() > 0;
        // What waits for the client before is of its handshake.
        let is_judged = client.transport.is_open() && !matches!(client.phase, Phase::Tunnel(_));
        if is_judged && (has_body || client.tempo.is_some()) {
            self.time_slow_client(id, want, moved);
            return self.watch_reading(id, read);
        }
        match (client.timer.pending(), want) {
            (None, None) => {}
            (Some(_), None) => client.timer.clear(),
            (Some((_, why)), Some(want)) if why == Why::Waited(want) && !(moved && want.extends()) => {}
            (_, Some(want)) => {
                let policy = exchange.map_or_else(|| self.core.plan.policy(), Exchange::policy);
                let tunnel = match (want, client.phase) {
                    (Patience::Tunnel, Phase::Tunnel(tunnel)) => self.tunnels.get(tunnel),
                    _ => None,
                };
                let within = match tunnel {
                    Some(tunnel) => self.core.drain.silent(tunnel.idle, &policy.timeouts),
                    None => want.within(&policy.timeouts, self.core.drain),
                };
                let at = self.core.net.now() + within;
                client.timer.set(at, Why::Waited(want), self.core.net.wheel(), id.key());
            }
        }
        let watched = match client.handshake {
            Handshake::Ready => client.transport.pause(&self.core.net, id.key()),
            Handshake::Over | Handshake::Awaited(_) => client.transport.watch(&self.core.net, id.key(), read),
        };
        if let Err(error) = watched {
            self.lose_client(id, Fault::Socket(error));
        }
    }

    /// Tells the poller whether to read a client.
    fn watch_reading(&mut self, id: ClientId, read: bool) {
        if let Some(client) = self.clients.get_mut(id)
            && let Err(error) = client.transport.watch(&self.core.net, id.key(), read)
        {
            self.lose_client(id, Fault::Socket(error));
        }
    }

    /// Likewise for an upstream: it is not read while its client has enough pending.
    fn watch_upstream(&mut self, id: UpstreamId) {
        let Some(upstream) = self.upstreams.get_mut(id) else { return };
        if upstream.job == Job::Closing && upstream.transport.pending() == 0 {
            return self.drop_upstream(id);
        }
        let exchange = match upstream.job {
            Job::Exchange(exchange) => self.exchanges.get(exchange),
            Job::Idle | Job::Tunnel(_) | Job::Mirror(_) | Job::Closing => None,
        };
        let client = match (upstream.job, exchange) {
            (Job::Tunnel(tunnel), _) => self.tunnels.get(tunnel).map(|tunnel| tunnel.client),
            (_, exchange) => exchange.map(|exchange| exchange.client),
        };
        let client = client.and_then(|client| self.clients.get(client));
        let blocked = client.is_some_and(|client| is_full(client.transport.pending(), exchange));
        let want = upstream.patience(exchange, blocked);
        let moved = std::mem::take(&mut upstream.moved);
        match (upstream.timer.pending(), want) {
            (None, None) => {}
            (Some(_), None) => upstream.timer.clear(),
            (Some((_, why)), Some(want)) if why == want && !(moved && want.extends()) => {}
            (_, Some(want)) => {
                let policy = exchange.map_or_else(|| self.core.plan.policy(), Exchange::policy);
                let at = self.core.net.now() + upstream.within(want, &policy.timeouts);
                upstream.timer.set(at, want, self.core.net.wheel(), id.key());
            }
        }
        let read = !blocked && !upstream.ended && upstream.job != Job::Closing;
        if let Err(error) = upstream.transport.watch(&self.core.net, id.key(), read) {
            self.lose_upstream(id, Fault::Socket(error));
        }
    }

    /// What the client is waited for now, if for anything.
    pub(super) fn client_patience(&self, id: ClientId) -> Option<Patience> {
        let client = self.clients.get(id)?;
        let exchange = client.exchange().and_then(|exchange| self.exchanges.get(exchange));
        client.patience(exchange.is_none_or(|exchange| exchange.request.is_done()))
    }

    /// What the server is waited for now, if for anything.
    pub(super) fn upstream_patience(&self, id: UpstreamId) -> Option<upstream::Patience> {
        let upstream = self.upstreams.get(id)?;
        let exchange = match upstream.job {
            Job::Exchange(exchange) => self.exchanges.get(exchange),
            Job::Idle | Job::Tunnel(_) | Job::Mirror(_) | Job::Closing => None,
        };
        let client = exchange.and_then(|exchange| self.clients.get(exchange.client));
        let blocked = client.is_some_and(|client| is_full(client.transport.pending(), exchange));
        upstream.patience(exchange, blocked)
    }
}

/// Whether so much waits for the client that its server is not read.
#[inline]
fn is_full(pending: usize, exchange: Option<&Exchange>) -> bool {
    let most = || exchange.map_or(MAX_PENDING, |exchange| exchange.policy().response_buffer);
    pending >= LEAST_BUFFER && pending >= most()
}
