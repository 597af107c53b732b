//! Tunnels between two connections, from their start to the end of both directions. A tunnel on a stream of HTTP/2
//! remains an exchange.

use super::Worker;
use super::server_connections::Unavailable;
use crate::downstream::Phase;
use crate::keys::{ClientId, ExchangeId, ServiceId, TunnelId, UpstreamId};
use crate::observe::Context;
use crate::reason::Reason;
use crate::tunnel::{Origin, Tunnel};
use crate::upstream::{Counted, PickContext, Use};
use weir_reactor::Net;

impl<N: Net> Worker<N> {
    /// Opens a tunnel for a new client connection to a listener with [`Role::Tunnel`](crate::config::Role::Tunnel).
    pub(super) fn open_floor_tunnel(&mut self, id: ClientId) {
        match self.core.plan.services.first().copied() {
            Some(service) => self.open_tunnel(id, service),
            None => self.broken_client(id, "a tunnel without a service"),
        }
    }

    /// Opens a tunnel to a server of a service, and forwards the bytes that the client has sent so far.
    pub(super) fn open_tunnel(&mut self, id: ClientId, service: ServiceId) {
        let client = self.clients.get(id).and_then(|client| client.client_address).map(|origin| origin.ip());
        let chosen = self.choose(service, PickContext::of_client(client));
        let upstream = match chosen.map_err(Unavailable::Failed).and_then(|server| self.dial(server, id)) {
            Ok(upstream) => upstream,
            Err(unavailable) => {
                self.note_end_of_client(id, &unavailable.into());
                return self.cut(id);
            }
        };
        let idle = self.core.plan.policy().timeouts.tunnel;
        self.join(Tunnel { client: id, upstream, service, idle, origin: Origin::Passed });
    }

    /// Joins the connections of a new tunnel, and forwards the bytes that the client has sent so far.
    pub(super) fn join(&mut self, tunnel: Tunnel) {
        let (id, upstream) = tunnel.ends();
        let tunnel = self.tunnels.insert(tunnel);
        let Some(client) = self.clients.present_mut(id) else { return };
        client.phase = Phase::Tunnel(tunnel);
        self.handshakes.end(client);
        let mut held = std::mem::take(&mut client.held);
        self.assign(upstream, Use::Tunnel(tunnel));
        self.core.counters.tunnels += 1;
        self.pass_up(tunnel, &mut held, 0);
    }

    /// The upstream switched protocols: both connections become a tunnel. Forwards `inbox[at..]`, the bytes after the
    /// upstream's head, and the held bytes that the client sent after its request.
    pub(super) fn switch(&mut self, id: ExchangeId, inbox: &mut [u8], at: usize) {
        self.record(id, None, 0);
        let Some(mut exchange) = self.exchanges.remove(id) else {
            return self.broken(id, "a switch of protocols without an exchange");
        };
        exchange.cancel_timer(self.core.net.wheel());
        self.core.forget_request(&mut exchange);
        let Some(upstream_id) = exchange.upstream() else {
            return self.broken_client(exchange.client, "a switch of protocols without a connection");
        };
        let client_id = exchange.client;
        let (service, origin) = (exchange.service, Origin::Request(exchange.line, exchange.times));
        let idle = exchange.policy().timeouts.tunnel;
        let tunnel = Tunnel { client: client_id, upstream: upstream_id, service, idle, origin };
        let tunnel = self.tunnels.insert(tunnel);
        if let Some(upstream) = self.upstreams.get_mut(upstream_id) {
            upstream.used_for = Use::Tunnel(tunnel);
        }
        let Some(client) = self.clients.present_mut(client_id) else { return };
        client.phase = Phase::Tunnel(tunnel);
        client.moved = true;
        let mut held = std::mem::take(&mut client.held);
        self.core.counters.tunnels += 1;
        self.pass_down(tunnel, inbox, at);
        self.pass_up(tunnel, &mut held, 0);
    }

    /// Forwards a client's bytes, `inbox[at..]`, to its upstream.
    pub(super) fn pass_up(&mut self, id: TunnelId, inbox: &mut [u8], at: usize) {
        if let Some(connection) = self.tunnels.get_mut(id).and_then(Tunnel::tcp_mut) {
            connection.received += (inbox.len() - at) as u64;
        }
        self.forward_up(id, inbox, at);
    }

    /// As [`Self::pass_up`], for bytes that are already counted.
    pub(super) fn forward_up(&mut self, id: TunnelId, inbox: &mut [u8], at: usize) {
        // The other direction may have ended the tunnel.
        let Some((client, upstream)) = self.tunnels.get(id).map(Tunnel::ends) else { return };
        if let Some(to) = self.upstreams.get_mut(upstream)
            && at < inbox.len()
            && let Err(fault) = to.transport.send_in_place(inbox, at, &mut self.core.wire)
        {
            return self.lose_upstream(upstream, fault);
        }
        self.tunnel_moved(client, upstream);
    }

    /// Forwards an upstream's bytes, `inbox[at..]`, to its client.
    pub(super) fn pass_down(&mut self, id: TunnelId, inbox: &mut [u8], at: usize) {
        // The other direction may have ended the tunnel.
        let Some(tunnel) = self.tunnels.get_mut(id) else { return };
        let (client, upstream) = tunnel.ends();
        if let Some(connection) = tunnel.tcp_mut() {
            connection.sent += (inbox.len() - at) as u64;
        }
        if let Some(to) = self.clients.get_mut(client)
            && at < inbox.len()
            && let Err(fault) = to.transport.send_in_place(inbox, at, &mut self.core.wire)
        {
            return self.lose_client(client, fault);
        }
        self.tunnel_moved(client, upstream);
    }

    /// Sends pending output, forwards the end of a stream, and removes the tunnel once both streams have ended.
    pub(super) fn settle_tunnel(&mut self, id: TunnelId) {
        let Some((client_id, upstream_id)) = self.tunnels.present(id).map(Tunnel::ends) else { return };
        let (Some(client), Some(upstream)) =
            (self.clients.get_mut(client_id), self.upstreams.get_mut(upstream_id))
        else {
            return self.end_tunnel(id, Reason::Internal("a tunnel without its connections"));
        };
        if client.ended && !client.transport.is_open() {
            // The client left during its handshake, as a load balancer's health check does.
            self.tunnels.remove(id);
            self.drop_upstream(upstream_id);
            return self.drop_client(client_id);
        }
        if upstream.ended && !upstream.transport.is_open() {
            return self.end_tunnel(id, Reason::UpstreamClosed);
        }
        let wire = &mut self.core.wire;
        let sent = client.transport.commit(wire);
        let closes = upstream.ended && client.transport.is_open();
        if let Err(fault) =
            sent.and_then(|()| if closes { client.transport.finish_sending() } else { Ok(()) })
        {
            return self.lose_client(client_id, fault);
        }
        let sent = upstream.transport.commit(wire);
        let closes = client.ended && upstream.transport.is_open();
        if let Err(fault) =
            sent.and_then(|()| if closes { upstream.transport.finish_sending() } else { Ok(()) })
        {
            return self.lose_upstream(upstream_id, fault);
        }
        if client.ended && upstream.ended && client.transport.is_open() && upstream.transport.is_open() {
            client.phase = Phase::Closing;
            upstream.used_for = Use::Closing;
            if let Some(tunnel) = self.tunnels.take(id)
                && let Origin::Tcp(connection) = &tunnel.origin
            {
                self.record_tcp(client_id, tunnel.service, connection, None);
            }
            self.touch_client(client_id);
            self.touch_upstream(upstream_id);
        }
    }

    /// Ends a tunnel early, by resets, so that neither side mistakes a truncated stream for a complete one. A tunnel
    /// that has not reached its server may continue with another.
    pub(super) fn end_tunnel(&mut self, id: TunnelId, reason: Reason) {
        let Err(reason) = self.reach_another(id, reason) else { return };
        let Some(tunnel) = self.tunnels.take(id) else { return };
        let upstream = self.upstreams.get(tunnel.upstream).map(|upstream| upstream.server);
        let client = self.clients.get(tunnel.client);
        let server = self.label_of(upstream.or(tunnel.last_server()));
        self.core.note_end(
            &reason,
            Context {
                client: client.and_then(|client| client.peer),
                request: tunnel.request(),
                times: tunnel.times(),
                service: self.services.get(tunnel.service).map_or("", |service| &service.config.name),
                server: &server,
                ..Context::default()
            },
        );
        if let Origin::Tcp(connection) = &tunnel.origin {
            self.record_tcp(tunnel.client, tunnel.service, connection, Some(&reason));
        } else if let Some(server) = upstream
            && let Some(failure) = reason.failure()
        {
            self.record_failure(tunnel.service, server, failure, Counted::No);
        }
        // The tunnel has no connection to a server if the last attempt to dial failed immediately.
        if let Some(upstream) = self.upstreams.get(tunnel.upstream) {
            upstream.transport.reset();
            self.drop_upstream(tunnel.upstream);
        }
        let Some(client) = self.clients.present_mut(tunnel.client) else { return };
        client.phase = Phase::Closing;
        if matches!(reason, Reason::ClientTls(_)) {
            // A reset would destroy the TLS alert before the client can read it.
            return self.close(tunnel.client);
        }
        client.transport.reset();
        self.drop_client(tunnel.client);
    }

    fn tunnel_moved(&mut self, client: ClientId, upstream: UpstreamId) {
        if let Some(client) = self.clients.get_mut(client) {
            client.moved = true;
        }
        self.touch_client(client);
        self.touch_upstream(upstream);
    }
}
