//! Messages to a worker: drain, stop, new settings, queries of its state.

use super::Worker;
use super::adopt_config::Adoption;
use super::lending::Handed;
use super::overload::EvictRequest;
use crate::config::ListenerId;
use crate::downstream::Phase;
use crate::drain::{ClientDrain, Why};
use crate::health::Health;
use crate::keys::{ClientId, ServiceId, UpstreamId};
use crate::limits::Open;
use crate::observe::access::Access;
use crate::observe::{Bytes, Context, Counters, Process, Report, ServerReport};
use crate::reason::Reason;
use crate::upstream::{Slots, Upstream, Use};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::mpsc::Sender;
use weir_reactor::stop::Stop;
use weir_reactor::{Net, Reactor};

#[derive(Debug)]
pub(crate) enum Control<N: Net = Reactor> {
    /// Drain, or stop immediately.
    Stop(Stop),
    /// Drain: another process takes over, and accepts from these listeners.
    HandOver(Arc<[ListenerId]>),
    /// Apply these settings, and accept from the sockets of new listeners; exchanges in progress keep their settings.
    Adopt(Arc<Adoption>, Vec<(ListenerId, N::Listener)>),
    /// Confirm that all messages before this one have been handled.
    Confirm(Sender<()>),
    /// A server's health has changed.
    Health(Health),
    /// Report counters and state.
    Tell(Sender<Report>),
    /// Report the servers of this service alone.
    TellService(Arc<str>, Sender<Report>),
    /// Worker `to` has requests that wait for a connection within the limit of `slots`.
    Lend { slots: Arc<Slots>, to: usize },
    /// An idle connection from another worker, for requests that wait here.
    Take(Box<Handed<N::Socket>>),
    /// A descriptor or a slot is free: paused listeners and queued requests may continue. Also wakes the drained
    /// workers once all have drained.
    Room,
    /// Another worker needs room for connections: close idle ones.
    EvictRequest(EvictRequest),
}

impl<N: Net> From<Stop> for Control<N> {
    fn from(stop: Stop) -> Self {
        Self::Stop(stop)
    }
}

impl<N: Net> Worker<N> {
    /// Handles a message, and settles the connections that it affects.
    pub(crate) fn control(&mut self, message: Control<N>) {
        match message {
            Control::Stop(Stop::Drain) => self.drain(Why::Stopped, None),
            Control::Stop(Stop::Now) => self.drain(Why::Killed, None),
            Control::HandOver(taken) => self.drain(Why::Replaced, Some(&taken)),
            Control::Adopt(adoption, sockets) => self.adopt(&adoption, sockets),
            Control::Health(health) => self.note_health(&health),
            Control::Lend { slots, to } => self.lend(&slots, to),
            Control::Take(handed) => self.take_over(*handed),
            Control::Room => {}
            Control::EvictRequest(shed) => self.evict_for(shed),
            // The requester may have stopped waiting.
            Control::Confirm(reply) => drop(reply.send(())),
            Control::Tell(reply) => drop(reply.send(self.report())),
            Control::TellService(service, reply) => drop(reply.send(self.report_of(&service))),
        }
        self.settle_all();
        self.wake_listeners();
    }

    /// Whether the drain is complete. Ends all connections at the drain's deadline.
    pub(crate) fn is_drained(&mut self) -> bool {
        let Some(until) = self.core.drain.until() else { return false };
        let is_over = until <= self.core.net.now();
        if is_over {
            self.end_all();
        }
        self.frontends.is_closed() && self.clients.is_empty() && (is_over || self.upstreams_have_all())
    }

    /// Whether every server connection is idle, or serves only a mirrored copy: no exchange or tunnel needs one, and
    /// none is still sending its last bytes.
    fn upstreams_have_all(&self) -> bool {
        let ids = self.upstreams.ids().into_iter();
        let mut upstreams = ids.filter_map(|id| self.upstreams.get(id));
        upstreams.all(|upstream| upstream.is_idle() || matches!(upstream.used_for, Use::Mirror(_)))
    }

    /// Applies a server's health. Closes the idle connections to a server that is down.
    fn note_health(&mut self, health: &Health) {
        let (plan, now) = (&self.core.plan, self.core.net.now());
        let place = plan.snapshot.service_named(&health.service);
        let Some(service) = place.and_then(|at| self.services.get(*plan.services.get(at)?)) else { return };
        for id in service.servers.clone() {
            let Some(server) = self.servers.get_mut(id).filter(|server| server.config.id == health.server)
            else {
                continue;
            };
            server.note_health(health.up, now);
            if !health.up {
                self.close_idle(id);
            }
        }
    }

    fn report(&mut self) -> Report {
        let plan = Rc::clone(&self.core.plan);
        Report {
            service_latencies: self.core.service_latencies.by_name(&self.services),
            route_latencies: plan.route_latencies.by_name(&plan.snapshot.route_names),
            counters: self.counted(),
            draining: self.core.drain.is_on(),
            servers: plan.services.iter().flat_map(|id| self.servers_of(*id)).collect(),
        }
    }

    /// A report that contains only a service's servers; none if the service is unknown.
    fn report_of(&mut self, service: &str) -> Report {
        let plan = &self.core.plan;
        let id = plan.snapshot.service_named(service).and_then(|at| plan.services.get(at)).copied();
        let servers = id.map(|id| self.servers_of(id)).unwrap_or_default();
        Report { draining: self.core.drain.is_on(), servers, ..Report::default() }
    }

    fn servers_of(&mut self, service: ServiceId) -> Vec<ServerReport> {
        let Some(service) = self.services.get(service) else { return Vec::new() };
        let (now, mut servers) = (self.core.net.now(), Vec::with_capacity(service.servers.len()));
        for id in &service.servers {
            let Some(server) = self.servers.get_mut(*id) else { continue };
            let is_idle = |id: &&UpstreamId| self.upstreams.get(**id).is_some_and(Upstream::is_idle);
            let idle = server.pool.len() + server.multiplexed.iter().filter(is_idle).count();
            servers.push(ServerReport {
                service: service.config.name.clone(),
                server: server.config.label().into_owned(),
                in_flight: server.in_flight.count(),
                idle,
                responses: server.responses,
                ejected: usize::from(!server.is_down() && server.is_ejected(now)),
                down: server.is_down(),
                state: server.state(now),
                from: (&service.config.servers_from).into(),
                weight: server.weight(),
                configured_weight: server.config.weight,
            });
        }
        servers
    }

    /// The counters, including those of open connections and of current TLS acceptors, and the gauges.
    fn counted(&mut self) -> Counters {
        let mut counters = self.core.counters.clone();
        for client in self.clients.ids().into_iter().filter_map(|id| self.clients.get(id)) {
            counters.client_bytes(Bytes::of(&client.transport));
        }
        for upstream in self.upstreams.ids().into_iter().filter_map(|id| self.upstreams.get(id)) {
            counters.server_bytes(Bytes::of(&upstream.transport));
        }
        let indexes = self.frontends.indexes().into_iter();
        for frontend in indexes.filter_map(|index| self.frontends.of(index)) {
            if let Some(acceptor) = &frontend.tls {
                counters.tickets(acceptor.tickets());
            }
        }
        counters.redeem();
        counters.clients = self.clients.len() as u64;
        let exchanges = self.exchanges.ids().into_iter().filter_map(|id| self.exchanges.get(id));
        let on_streams = exchanges.filter(|exchange| exchange.is_tunnel).count();
        counters.open_tunnels = (self.tunnels.len() + on_streams) as u64;
        counters.waiting = self.waiting as u64;
        counters.timers = self.core.net.wheel().len() as u64;
        counters.lost_lines = Process([self.core.access.as_ref().map_or(0, Access::lost)]);
        counters.memory = self.weigh() as u64;
        counters.memory_limited = Process([self.core.is_short.into()]);
        counters.handshakes_unfinished = self.handshakes.open() as u64;
        counters.handshakes_waiting = self.handshakes.waiting() as u64;
        let Open { limit, connections, most_clients, clients, upstreams } = self.peers.descriptors.open();
        counters.descriptors =
            Process([limit, connections, most_clients, clients, upstreams].map(|count| count as u64));
        counters
    }

    /// Starts a drain, or advances it to its next state. The worker leaves the listeners in `taken` to another process
    /// immediately. Before it closes the other listeners, it accepts their queued connections.
    fn drain(&mut self, why: Why, taken: Option<&[ListenerId]>) {
        let timeouts = &self.core.plan.policy().timeouts;
        let Some(next) = self.core.drain.next(why, self.core.net.now(), timeouts) else { return };
        self.core.drain = next;
        self.leave_listeners(taken.unwrap_or_default());
        self.drop_mirrors();
        for id in self.clients.ids() {
            self.drain_client(id, next.of_client());
        }
        for id in self.exchanges.ids() {
            if let Some(exchange) = self.exchanges.get_mut(id).filter(|exchange| exchange.is_tunnel) {
                // The drain may shorten a tunnel's timeout, which then counts from now. `drain_client` restarts it only
                // for tunnels that are not exchanges.
                exchange.moved = true;
                self.time_exchange(id);
            }
        }
    }

    /// Begins or continues the drain of a client's connection, with the timeouts of [`ClientDrain`].
    pub(super) fn drain_client(&mut self, id: ClientId, drain: ClientDrain) {
        let Some(client) = self.clients.get_mut(id) else { return };
        client.drain = client.drain.max(drain);
        if client.is_idle() || matches!(client.phase, Phase::Tunnel(_) | Phase::Streams) {
            // The drain changes the client's timeout.
            client.timer.clear();
            self.touch_client(id);
        }
    }

    /// Ends a client's connection at the deadline of its drain.
    pub(super) fn end_drained(&mut self, id: ClientId) {
        let Some(client) = self.clients.get(id) else { return };
        match client.phase {
            Phase::Exchange(_) | Phase::Streams => self.end(id, Reason::DrainTimeout),
            Phase::Tunnel(tunnel) => self.end_tunnel(tunnel, Reason::DrainTimeout),
            Phase::Preface(_) | Phase::Head { .. } | Phase::Closing if client.transport.pending() > 0 => {
                self.note_end_of_client(id, &Reason::DrainTimeout);
            }
            Phase::Preface(_) | Phase::Head { .. } | Phase::Closing => {}
        }
        self.settle();
        self.cut(id);
    }

    /// Ends all connections at the drain's deadline.
    fn end_all(&mut self) {
        for index in self.frontends.indexes() {
            self.close_listener(index);
        }
        for id in self.clients.ids() {
            self.end_drained(id);
        }
        for id in self.upstreams.ids() {
            let Some(upstream) = self.upstreams.get(id) else { continue };
            if upstream.used_for == Use::Closing && upstream.transport.pending() > 0 {
                // With a clean close, the server could take a truncated request for a complete one.
                upstream.transport.reset();
                self.core.note_end(&Reason::DrainTimeout, Context::default());
                self.drop_upstream(id);
            }
        }
    }
}
