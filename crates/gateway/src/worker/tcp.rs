//! Connections to listeners with `tcp`, from the choice of a server to the line in the access log.

use super::Worker;
use super::core::HEADROOM;
use super::requests::{Input, input};
use super::server_connections::Unavailable;
use crate::downstream::{Phase, Preface, TcpTo};
use crate::keys::{ClientId, ServerId, ServiceId, TunnelId, UpstreamId};
use crate::observe::access::{Entry, Line};
use crate::observe::{Context, RetryRule};
use crate::reason::Reason;
use crate::tunnel::{Origin, TcpConnection, Tunnel};
use crate::upstream::{Counted, PickContext, Server, Use};
use weir_reactor::Net;
use weir_tls::Acceptor;

impl<N: Net> Worker<N> {
    /// A client's PROXY header is complete: its TLS handshake follows, or its tunnel opens.
    pub(super) fn begin_tcp(&mut self, id: ClientId, to: TcpTo) {
        let Some(client) = self.clients.present_mut(id) else { return };
        let Some(session) = client.frontend.tls.as_ref().map(Acceptor::accept) else {
            return self.open_tcp(id, to);
        };
        client.phase = Phase::Preface(Preface::Tls);
        client.transport.begin_tls(session);
        if let Some(input) = self.feed_held(id) {
            self.take_tls_preface(id, input);
        }
    }

    /// Takes a step of the TLS handshake before a tunnel. The gateway connects to a server only after the handshake.
    pub(super) fn read_tls_preface(&mut self, id: ClientId) {
        let Some(client) = self.clients.present_mut(id) else { return };
        let core = &mut self.core;
        let mut inbox = core.take_inbox(&mut client.held);
        let received = client.transport.receive(&mut core.wire, &mut inbox);
        let input = input(client, received, inbox, core, &mut self.handshakes);
        self.take_tls_preface(id, input);
    }

    fn take_tls_preface(&mut self, id: ClientId, input: Input) {
        let inbox = match input {
            Input::Bytes { inbox, .. } => inbox,
            Input::Failed(fault) => return self.lose_client(id, fault),
            Input::Preface => return self.broken_client(id, "a preface within a handshake"),
        };
        let Some(client) = self.clients.present_mut(id) else { return };
        client.held = inbox[HEADROOM..].to_vec();
        self.core.put_inbox(inbox);
        match (client.transport.is_open(), client.frontend.tcp) {
            (true, Some(to)) => self.open_tcp(id, to),
            (true, None) => self.broken_client(id, "a tunnel without a service"),
            // The client left during its handshake, as a load balancer's health check does.
            (false, _) if client.ended => self.drop_client(id),
            (false, _) => {}
        }
    }

    /// Opens the tunnel of a client, and forwards the bytes that the client has sent so far.
    pub(super) fn open_tcp(&mut self, id: ClientId, to: TcpTo) {
        let Some(client) = self.clients.present(id) else { return };
        let entry = self.core.access.as_ref().map(|_| Entry::of_connection());
        let mut connection = TcpConnection::new(entry, client.accepted, self.core.net.now());
        if let Some(service) = self.services.get_mut(to.service) {
            service.retries.earn();
        }
        let upstream = match self.reach(id, to.service, &mut connection, None) {
            Ok(upstream) => upstream,
            Err(reason) => return self.end_unreached(id, to.service, &connection, &reason),
        };
        let origin = Origin::Tcp(Box::new(connection));
        let tunnel = Tunnel { client: id, upstream, service: to.service, idle: to.idle, origin };
        self.join(tunnel);
    }

    /// Dials a server, then further ones while dialling fails immediately. `failed`: the previous attempt. Errors: the
    /// reason of the last failure, if no other server or no retry is left.
    fn reach(
        &mut self,
        client: ClientId,
        service: ServiceId,
        connection: &mut TcpConnection,
        mut failed: Option<(ServerId, Reason)>,
    ) -> Result<UpstreamId, Reason> {
        let address = self.clients.get(client).and_then(|client| client.client_address);
        loop {
            let may_retry = match &failed {
                Some((server, reason)) => {
                    if let Some(failure) = reason.failure() {
                        self.record_failure(service, *server, failure, Counted::No);
                    }
                    connection.note_failed(*server)
                }
                None => true,
            };
            let context = PickContext {
                asked: connection.failed,
                ..PickContext::of_client(address.map(|address| address.ip()))
            };
            let chosen = if may_retry { self.choose_other(service, context).ok() } else { None };
            let Some(server) = chosen.filter(|_| failed.is_none() || self.spend_retry(service)) else {
                return Err(failed.map_or_else(|| self.why_unavailable(service), |(_, reason)| reason));
            };
            if failed.take().is_some() {
                connection.retries += 1;
                self.core.counters.retry(RetryRule::BeforeSending);
            }
            connection.note_attempt(server, self.core.net.now());
            match self.dial(server, client) {
                Ok(upstream) => return Ok(upstream),
                // An idle connection for requests occupies the slot that this connection needs.
                Err(Unavailable::Full) => match self.take_idle(server) {
                    Some(idle) => self.drop_upstream(idle.id),
                    None => return Err(Reason::QueueFull),
                },
                // The server is not at fault, and a connection to another one would need a descriptor, too.
                Err(Unavailable::NoDescriptors) => return Err(Reason::NoDescriptors),
                Err(unavailable @ Unavailable::Failed(_)) => failed = Some((server, unavailable.into())),
            }
        }
    }

    /// The reason why no server of a service takes a connection.
    fn why_unavailable(&self, service: ServiceId) -> Reason {
        let mut servers = self.services.get(service).into_iter().flat_map(|service| &service.servers);
        match servers.any(|id| self.servers.get(*id).is_some_and(Server::is_open)) {
            true => Reason::QueueFull,
            false => Reason::NoServer,
        }
    }

    /// Connects a tunnel to another server, if the connection to its server failed before it was established, so that
    /// no byte of the client was sent. Errors: the reason of the last failure.
    pub(super) fn reach_another(&mut self, id: TunnelId, reason: Reason) -> Result<(), Reason> {
        if reason.failure().is_none() {
            return Err(reason);
        }
        let Some(tunnel) = self.tunnels.get_mut(id) else { return Err(reason) };
        let (client, lost, service) = (tunnel.client, tunnel.upstream, tunnel.service);
        let Origin::Tcp(connection) = &mut tunnel.origin else { return Err(reason) };
        let Some(upstream) = self.upstreams.get_mut(lost).filter(|upstream| !upstream.transport.is_open())
        else {
            return Err(reason);
        };
        let server = upstream.server;
        let mut held = std::mem::take(upstream.transport.stage(&mut self.core.wire));
        let now = self.core.net.now();
        let mut connection = std::mem::replace(&mut **connection, TcpConnection::new(None, now, now));
        // The next attempt may need the slot of the failed connection.
        self.drop_upstream(lost);
        let reached = self.reach(client, service, &mut connection, Some((server, reason)));
        let Some(tunnel) = self.tunnels.present_mut(id) else { return Ok(()) };
        tunnel.origin = Origin::Tcp(Box::new(connection));
        let upstream = reached?;
        tunnel.upstream = upstream;
        self.assign(upstream, Use::Tunnel(id));
        self.forward_up(id, &mut held, 0);
        Ok(())
    }

    /// A tunnel's connection to its server is established: records the time and, once no handshake is left, a success
    /// of the server.
    pub(super) fn tunnel_connected(&mut self, id: TunnelId, upstream: UpstreamId) {
        let Some(upstream) = self.upstreams.present(upstream) else { return };
        let (is_open, now) = (upstream.transport.is_open(), self.core.net.now());
        let Some(connection) = self.tunnels.get_mut(id).and_then(Tunnel::tcp_mut) else { return };
        connection.note_connected(is_open, now);
        if is_open && let Some(server) = self.servers.get_mut(upstream.server) {
            server.connected();
        }
    }

    /// Ends a client whose connection reached no server, with a reset, as for a tunnel that ends early.
    fn end_unreached(
        &mut self,
        id: ClientId,
        service: ServiceId,
        connection: &TcpConnection,
        reason: &Reason,
    ) {
        let server = self.label_of(connection.server);
        let context = Context {
            client: self.clients.get(id).and_then(|client| client.peer),
            service: self.services.get(service).map_or("", |service| &service.config.name),
            server: &server,
            times: Some(connection.times),
            ..Context::default()
        };
        self.core.note_end(reason, context);
        self.record_tcp(id, service, connection, Some(reason));
        if let Some(client) = self.clients.get(id) {
            client.transport.reset();
        }
        self.drop_client(id);
    }

    pub(super) fn label_of(&self, server: Option<ServerId>) -> String {
        let server = server.and_then(|server| self.servers.get(server));
        server.map(|server| server.config.label().into_owned()).unwrap_or_default()
    }

    /// Writes a connection's line in the access log. Call before the client is removed.
    pub(super) fn record_tcp(
        &mut self,
        id: ClientId,
        service: ServiceId,
        connection: &TcpConnection,
        reason: Option<&Reason>,
    ) {
        let Some(entry) = &connection.entry else { return };
        let (now, server) = (self.core.net.now(), self.label_of(connection.server));
        let (Some(access), Some(client)) = (&mut self.core.access, self.clients.present(id)) else { return };
        let line = Line {
            entry,
            client: client.client_address,
            listener: &client.frontend.name,
            protocol: "TCP",
            tls: client.transport.facts(),
            status: 0,
            grpc: None,
            reason: reason.map(Reason::as_str),
            received: connection.received,
            sent: connection.sent,
            service: self.services.get(service).map_or("", |service| &service.config.name),
            server: &server,
            retries: connection.retries,
            times: Some(connection.times),
            now,
        };
        access.record(&line, now);
    }
}
