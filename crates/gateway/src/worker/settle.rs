//! The end of a turn: each touched connection sends its output, and its poller interest and deadline follow from its
//! state.

use super::{Core, Worker};
use crate::deadlines::{Cause, ServerWait, Wait};
use crate::downstream::{Client, Handshake, LEAST_BUFFER, MAX_PENDING, Phase, Upward};
use crate::exchange::{Exchange, Leg, Stage};
use crate::keys::{ClientId, TunnelId, UpstreamId};
use crate::mirror::Fate;
use crate::tunnel::Tunnel;
use crate::upstream::{Upstream, Use};
use std::io;
use weir_reactor::{Net, Socket};
use weir_transport::Fault;

impl<N: Net> Worker<N> {
    pub(super) fn touch_client(&mut self, id: ClientId) {
        if let Some(client) = self.clients.get_mut(id) {
            client.touch(id, &mut self.core.touched.clients);
        }
    }

    /// As [`Self::touch_client`]; also marks the stream of this leg.
    pub(super) fn touch_leg(&mut self, leg: Leg) {
        if let Some(client) = self.clients.get_mut(leg.client) {
            client.touch_leg(leg, &mut self.core.touched.clients);
        }
    }

    pub(super) fn touch_upstream(&mut self, id: UpstreamId) {
        if let Some(upstream) = self.upstreams.get_mut(id) {
            upstream.touch(id, &mut self.core.touched.upstreams);
        }
    }

    /// Sends all output, and updates poller interests and deadlines. The failure of a connection in this step may touch
    /// other connections.
    pub(super) fn settle(&mut self) {
        let (mut clients, mut upstreams) = (0, 0);
        loop {
            while let Some(id) = self.core.touched.clients.get(clients).copied() {
                clients += 1;
                if !self.settle_client(id) {
                    self.dependent.push(id);
                }
            }
            while let Some(id) = self.core.touched.upstreams.get(upstreams).copied() {
                upstreams += 1;
                self.settle_upstream(id);
            }
            while let Some(id) = self.dependent.pop() {
                self.settle_dependent(id);
            }
            let touched = &mut self.core.touched;
            if clients == touched.clients.len() && upstreams == touched.upstreams.len() {
                touched.clients.clear();
                touched.upstreams.clear();
                break;
            }
        }
    }

    /// Sends a client's output, and updates its poller interest and deadline. Returns `false`, without the update, if
    /// the update depends on the output of the server's connection.
    fn settle_client(&mut self, id: ClientId) -> bool {
        // A touched connection may have been closed.
        let Some(client) = self.clients.get_mut(id) else { return true };
        client.touched = false;
        match client.phase {
            Phase::Tunnel(tunnel) => {
                self.settle_tunnel(tunnel);
                return false;
            }
            Phase::Streams => {
                self.settle_streams(id);
                return false;
            }
            _ => {}
        }
        if let Err(fault) = client.transport.commit(&mut self.core.wire) {
            self.lose_client(id, fault);
            return true;
        }
        let (exchange_id, pending) = (client.exchange(), client.transport.pending() > 0);
        let exchange = exchange_id.and_then(|exchange| self.exchanges.get(exchange));
        if exchange.is_some_and(|exchange| !exchange.request.is_done()) {
            return false;
        }
        let is_timed = exchange.is_some_and(|exchange| exchange.is_timed(pending));
        let watched = watch_client(id, client, None, Upward::Complete, &mut self.core);
        self.watched(id, watched);
        if let Some(exchange) = exchange_id.filter(|_| is_timed) {
            self.time_exchange(exchange);
        }
        true
    }

    /// Updates the poller interest and deadline of a client whose server's connection has sent its output.
    fn settle_dependent(&mut self, id: ClientId) {
        // The end of the server's connection may have removed the client.
        let Some(client) = self.clients.get_mut(id) else { return };
        if client.phase == Phase::Streams {
            self.settle_held(id);
        }
        let Some(client) = self.clients.get_mut(id) else { return };
        let exchange_id = client.exchange();
        let exchange = exchange_id.and_then(|exchange| self.exchanges.get(exchange));
        let tunnel = match client.phase {
            Phase::Tunnel(tunnel) => self.tunnels.get(tunnel),
            Phase::Streams => None,
            Phase::Preface(_) | Phase::Head { .. } | Phase::Exchange(_) | Phase::Closing => None,
        };
        let unfinished = exchange.filter(|exchange| !exchange.request.is_done());
        let upstream = tunnel.map(|tunnel| tunnel.upstream).or(unfinished.and_then(Exchange::upstream));
        let is_held = exchange.is_some_and(|exchange| matches!(exchange.stage, Stage::Holding(_)));
        let upward = match upstream.and_then(|upstream| self.upstreams.get(upstream)) {
            Some(upstream) => {
                let stream = exchange.and_then(Exchange::upstream_stream);
                Upward::Flowing { pending: upstream.pending(stream) }
            }
            None if is_held => Upward::Flowing { pending: 0 },
            None => Upward::Complete,
        };
        let watched = watch_client(id, client, tunnel, upward, &mut self.core);
        self.watched(id, watched);
        match exchange_id {
            Some(exchange) => self.time_exchange(exchange),
            None => self.time_streams(id),
        }
    }

    fn watched(&mut self, id: ClientId, watched: Watched) {
        match watched {
            Watched::Done => {}
            Watched::Finished => self.drop_client(id),
            Watched::Slow { want, moved, read } => {
                self.time_slow_client(id, want, moved);
                let Some(client) = self.clients.present_mut(id) else { return };
                if let Err(error) = client.transport.watch(&self.core.net, id.key(), read) {
                    self.lose_client(id, Fault::Socket(error));
                }
            }
            Watched::Failed(error) => self.lose_client(id, Fault::Socket(error)),
        }
    }

    /// Sends the output of a server's connection, and updates its poller interest and deadline.
    fn settle_upstream(&mut self, id: UpstreamId) {
        // A touched connection may have been closed.
        let Some(upstream) = self.upstreams.get_mut(id) else { return };
        upstream.touched = false;
        let core = &mut self.core;
        let (exchange, client) = match upstream.used_for {
            Use::Exchange(exchange) => {
                let Some(exchange) = self.exchanges.get_mut(exchange) else {
                    return self.drop_upstream(id);
                };
                if upstream.transport.commit(&mut core.wire).is_err() {
                    // The server may have responded before it closed the connection: the exchange continues until the
                    // worker has read the response, or the end of the stream.
                    exchange.request.discard();
                }
                (Some(&*exchange), Some(exchange.client))
            }
            Use::Tunnel(tunnel) => return self.settle_tunnelled(id, tunnel),
            Use::Streams => return self.settle_server_streams(id),
            Use::Mirror(mirror) => {
                if upstream.transport.commit(&mut core.wire).is_err() {
                    return self.drop_mirror(mirror, Fate::Failed);
                }
                (None, None)
            }
            Use::Closing if upstream.transport.pending() == 0 => return self.drop_upstream(id),
            Use::Idle | Use::Closing => (None, None),
        };
        let client = client.and_then(|client| self.clients.get(client));
        let blocked = client.is_some_and(|client| is_full(pending(client, exchange), exchange));
        if let Err(error) = watch_upstream(id, upstream, exchange, blocked, core) {
            self.lose_upstream(id, Fault::Socket(error));
        }
    }

    /// As [`Self::settle_upstream`], for a connection in a tunnel.
    fn settle_tunnelled(&mut self, id: UpstreamId, tunnel: TunnelId) {
        self.settle_tunnel(tunnel);
        // The tunnel may have ended, or changed to another server: then this connection is dropped, or touched again in
        // order to close.
        let Some(tunnel) = self.tunnels.get(tunnel).filter(|tunnel| tunnel.upstream == id) else { return };
        let client = self.clients.get(tunnel.client);
        let blocked = client.is_some_and(|client| is_full(client.transport.pending(), None));
        let Some(upstream) = self.upstreams.present_mut(id) else { return };
        if let Err(error) = watch_upstream(id, upstream, None, blocked, &mut self.core) {
            self.lose_upstream(id, Fault::Socket(error));
        }
    }

    /// The gateway's current wait for the server, if any.
    pub(super) fn upstream_wait(&self, id: UpstreamId) -> Option<ServerWait> {
        let upstream = self.upstreams.get(id)?;
        let exchange = match upstream.used_for {
            Use::Exchange(exchange) => self.exchanges.get(exchange),
            Use::Idle | Use::Streams | Use::Tunnel(_) | Use::Mirror(_) | Use::Closing => None,
        };
        let client = exchange.and_then(|exchange| self.clients.get(exchange.client));
        let blocked = client.is_some_and(|client| is_full(pending(client, exchange), exchange));
        upstream.wait(exchange, blocked)
    }
}

/// The result of [`watch_client`]: the remaining work for the client.
enum Watched {
    Done,
    /// All output is sent, and both sides are closed.
    Finished,
    /// The client reads the last bytes of a response, to which a minimum rate may apply.
    Slow {
        want: Option<Wait>,
        moved: bool,
        read: bool,
    },
    Failed(io::Error),
}

/// Updates the poller interest and the deadline of a client. `tunnel`: the client's tunnel, if it has one.
#[inline]
fn watch_client<N: Net>(
    id: ClientId,
    client: &mut Client<N::Socket>,
    tunnel: Option<&Tunnel>,
    upward: Upward,
    core: &mut Core<N>,
) -> Watched {
    if client.phase == Phase::Closing && client.ended && client.transport.pending() == 0 {
        return Watched::Finished;
    }
    let waits = client.phase == Phase::Head { started: false } && !client.held.is_empty();
    if waits && client.transport.pending() < MAX_PENDING {
        // The client's held requests continue once it has read enough of the earlier responses.
        core.resumable.push(id);
    }
    let read = client.wants_read(upward);
    let want = client.wait();
    let moved = std::mem::take(&mut client.moved);
    // Here, the limits on slow readers do not apply to the output of an exchange or a tunnel, which have their own
    // limits, or to that of a handshake.
    let has_output = match client.phase {
        Phase::Tunnel(_) | Phase::Exchange(_) => false,
        Phase::Streams => want == Some(Wait::Response) || client.body_deadlines.is_some(),
        _ => client.transport.pending() > 0 || client.body_deadlines.is_some(),
    };
    if has_output && client.transport.is_open() {
        return Watched::Slow { want, moved, read };
    }
    match (client.timer.pending(), want) {
        (None, None) => {}
        (Some(_), None) => client.timer.clear(),
        (Some((_, Cause::Waited(before))), Some(want)) if before.continues(want, moved) => {}
        (_, Some(want)) => {
            let policy = core.plan.policy();
            let within = match tunnel.filter(|_| want == Wait::Tunnel) {
                Some(tunnel) => client.drain.silent(tunnel.idle, &policy.timeouts),
                None => want.timeout(&policy.timeouts, client.drain),
            };
            let at = core.net.now() + within;
            client.timer.set(at, Cause::Waited(want), core.net.wheel(), id.key());
        }
    }
    let watched = match client.handshake {
        Handshake::Ready => client.transport.pause(&core.net, id.key()),
        Handshake::Over | Handshake::Awaited(_) => client.transport.watch(&core.net, id.key(), read),
    };
    watched.map_or_else(Watched::Failed, |()| Watched::Done)
}

/// Updates the poller interest and the deadline of a server's connection. `blocked`: the client's pending output fills
/// its buffer, so the gateway does not read from the server. Errors: those of epoll_ctl(2).
// Inlined into the path of HTTP/1.1, regardless of other callers.
#[inline(always)]
pub(super) fn watch_upstream<N: Net>(
    id: UpstreamId,
    upstream: &mut Upstream<N::Socket>,
    exchange: Option<&Exchange>,
    blocked: bool,
    core: &mut Core<N>,
) -> io::Result<()> {
    let want = upstream.wait(exchange, blocked);
    let moved = std::mem::take(&mut upstream.moved);
    match (upstream.timer.pending(), want) {
        (None, None) => {}
        (Some(_), None) => upstream.timer.clear(),
        (Some((_, before)), Some(want)) if before.continues(want, moved) => {}
        (_, Some(want)) => {
            let policy = exchange.map_or_else(|| core.plan.policy(), Exchange::policy);
            let at = core.net.now() + upstream.timeout(want, &policy.timeouts);
            upstream.timer.set(at, want, core.net.wheel(), id.key());
        }
    }
    let read = !blocked && !upstream.ended && upstream.used_for != Use::Closing;
    upstream.transport.watch(&core.net, id.key(), read)
}

/// Bytes of an exchange's response that the client has not taken yet.
#[inline]
fn pending<S: Socket>(client: &Client<S>, exchange: Option<&Exchange>) -> usize {
    client.pending(exchange.and_then(|exchange| exchange.stream))
}

/// Whether the client's pending output fills its buffer, so that the gateway does not read from the server.
#[inline]
pub(super) fn is_full(pending: usize, exchange: Option<&Exchange>) -> bool {
    let most = || exchange.map_or(MAX_PENDING, |exchange| exchange.policy().response_buffer);
    pending >= LEAST_BUFFER && pending >= most()
}
