//! One core's worker: its state and its turn. Connections and exchanges make decisions; the submodules carry them out.

mod accept;
mod adopt_config;
mod awaiting_settings;
mod buffering;
mod client_streams;
mod control;
mod core;
mod corrected_requests;
mod ends;
mod forwarding;
mod handshakes;
mod last_output;
mod leaving_clients;
mod lending;
mod listeners;
mod memory;
mod mirrors;
mod multiplex;
mod overload;
mod overrides;
mod own_responses;
mod preface;
mod queue;
mod request_log;
mod requests;
mod responses;
mod retries;
mod server_connections;
mod server_streams;
mod settle;
mod slowed;
mod stream_credit;
mod tcp;
mod timeouts;
mod timers;
mod tunnels;

pub(crate) use self::core::Core;
pub(crate) use adopt_config::Adoption;
use adopt_config::services_of;
pub(crate) use control::Control;
use handshakes::EventSource;
pub(crate) use lending::Peers;

use crate::config::{ListenerId, Snapshot};
use crate::downstream::{Client, Frontend};
use crate::exchange::Exchange;
use crate::keys::{
    ClientId, ExchangeId, FRONTEND, OfClient, OfExchange, OfMirror, OfServer, OfService, OfTunnel,
    OfUpstream, Store, UpstreamId, take_missing,
};
use crate::limits::SharedLimits;
use crate::mirror::Mirror;
use crate::observe::access::Access;
use crate::observe::{Context, Log};
use crate::plan::Plan;
use crate::proxy::Flow;
use crate::reason::Reason;
use crate::tunnel::Tunnel;
use crate::upstream::{Server, Service, Upstream};
use crate::worker_latencies::RouteLatencies;
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use weir_reactor::{Events, Frontends, Net, Ready, earliest, frontends};

/// A worker: the connections, exchanges and configuration of one core.
#[derive(Debug)]
pub(crate) struct Worker<N: Net> {
    pub core: Core<N>,
    pub clients: Store<OfClient, Client<N::Socket>>,
    pub upstreams: Store<OfUpstream, Upstream<N::Socket>>,
    pub exchanges: Store<OfExchange, Exchange>,
    pub tunnels: Store<OfTunnel, Tunnel>,
    pub mirrors: Store<OfMirror, Mirror>,
    pub services: Store<OfService, Service>,
    pub servers: Store<OfServer, Server>,
    /// Clients that settle after their servers' connections; empty between turns.
    dependent: Vec<ClientId>,
    /// Poller events of handshakes with servers; empty between turns.
    dialling: Vec<Ready>,
    handshakes: handshakes::Handshakes,
    frontends: Frontends<N, Rc<Frontend>>,
    last_plans: leaving_clients::LastPlans,
    peers: Peers<N>,
    overload: overload::Overload,
    memory: memory::MemoryMeter,
    /// The number of requests that wait for a connection to a server.
    waiting: usize,
}

impl<N: Net> Worker<N> {
    /// A worker for these listening sockets and their listeners in the configuration. Errors: the net rejects a socket.
    pub(crate) fn new(
        net: N,
        log: Log,
        access: Option<Access>,
        snapshot: Arc<Snapshot>,
        limits: Arc<SharedLimits>,
        listeners: Vec<(ListenerId, N::Listener)>,
    ) -> io::Result<Self> {
        let (mut services, mut servers) = (Store::new(), Store::new());
        let plan = Plan {
            services: services_of(&snapshot, &limits, &mut services, &mut servers),
            route_latencies: RouteLatencies::new(snapshot.route_names.len()),
            snapshot,
            limits,
        };
        let with_frontend = |(id, socket): (ListenerId, N::Listener)| {
            let listener = plan.snapshot.listeners.iter().find(|listener| listener.id == id);
            let listener = listener.ok_or_else(|| io::Error::other("a socket without a listener"))?;
            Ok((socket, Rc::new(Frontend::new(listener, &plan.services, None))))
        };
        let listeners = listeners.into_iter().map(with_frontend).collect::<io::Result<_>>()?;
        let frontends = Frontends::new(listeners, FRONTEND, &net)?;
        let peers = Peers::none();
        peers.descriptors.allow(plan.snapshot.connections, plan.snapshot.health_checks());
        let mut worker = Self {
            core: Core::new(net, plan, log, access),
            clients: Store::new(),
            upstreams: Store::new(),
            exchanges: Store::new(),
            tunnels: Store::new(),
            mirrors: Store::new(),
            services,
            servers,
            dependent: Vec::new(),
            dialling: Vec::new(),
            handshakes: handshakes::Handshakes::default(),
            frontends,
            last_plans: leaving_clients::LastPlans::default(),
            peers,
            overload: overload::Overload::default(),
            memory: memory::MemoryMeter::default(),
            waiting: 0,
        };
        // The returned list is empty, since no exchange is queued yet.
        let services = worker.core.plan.services.clone();
        worker.apply_overrides(&services);
        Ok(worker)
    }

    /// Makes this worker one of several.
    pub(crate) fn among(self, peers: Peers<N>) -> Self {
        let snapshot = &self.core.plan.snapshot;
        peers.descriptors.allow(snapshot.connections, snapshot.health_checks());
        Self { peers, ..self }
    }

    pub(crate) fn pooled(&self) -> usize {
        self.servers().map(|server| server.pool.len()).sum()
    }

    pub(crate) fn waiting(&self) -> usize {
        self.waiting
    }

    pub(crate) fn servers(&self) -> impl Iterator<Item = &Server> {
        self.servers.ids().into_iter().filter_map(|id| self.servers.get(id))
    }

    /// Waits for events, at most until the drain ends, the access log is due, or the clients in [`Core::slowed`] may
    /// continue. Does not wait while work remains from the last turn.
    pub(crate) fn wait(&mut self, events: &mut Events) -> io::Result<()> {
        let is_idle = self.core.resumable.is_empty() && self.core.postponed.is_empty();
        let until = match is_idle && self.handshakes.waiting() == 0 {
            true => {
                let due = self.core.access.as_ref().and_then(Access::due);
                earliest(earliest(due, self.core.drain.until()), self.core.slowed.until())
            }
            false => Some(self.core.net.now()),
        };
        self.core.net.turn(events, until)
    }

    /// One turn. Server connections come first, so that no request takes a pooled connection that the server has just
    /// closed; then clients whose handshakes are complete; then handshakes, within the budget; then timers; then new
    /// connections; then held input. Finally, all connections send their output.
    pub(crate) fn turn(&mut self, events: &Events) {
        self.core.turn += 1;
        if !self.core.postponed.is_empty() {
            let postponed = std::mem::take(&mut self.core.postponed);
            self.core.resumable.extend(postponed);
        }
        self.core.slowed.resume(self.core.net.now(), &mut self.core.resumable);
        self.core.knows_all = !events.is_partial();
        self.look_at_memory();
        for ready in events.ready() {
            if let Some(id) = UpstreamId::of(ready.key) {
                self.upstream_ready(id, ready, EventSource::Poller);
            }
        }
        for ready in events.ready() {
            if let Some(id) = ClientId::of(ready.key) {
                self.client_ready(id, ready, EventSource::Poller);
            }
        }
        if self.handshakes.waiting() > 0 || !self.dialling.is_empty() {
            self.take_handshakes();
        }
        for due in events.due() {
            match (ClientId::of(*due), UpstreamId::of(*due)) {
                (Some(id), _) => self.client_due(id),
                (_, Some(id)) => self.upstream_due(id),
                (None, None) => match ExchangeId::of(*due) {
                    Some(id) => self.exchange_due(id),
                    None => self.listener_due(*due),
                },
            }
        }
        for ready in events.ready().filter(|ready| ready.key.tag() == FRONTEND) {
            let most = frontends::accepts(self.core.net.spent());
            self.accept(ready.key.index(), most);
        }
        while let Some(id) = self.core.resumable.pop() {
            self.resume_client(id);
        }
        self.settle_all();
        if let Some(what) = take_missing() {
            self.core.note_end(&Reason::Internal(what), Context::default());
        }
        self.wake_listeners();
        if let Some(access) = &mut self.core.access {
            access.settle(self.core.net.now());
        }
    }

    /// Settles all connections, and sends queued requests as connections become free.
    fn settle_all(&mut self) {
        self.settle();
        while self.waiting > 0 && self.admit_waiting() > 0 {
            self.settle();
        }
    }

    /// An exchange with both of its connections; `None` if one of the three no longer exists.
    #[inline]
    fn flow(&mut self, id: ExchangeId) -> Option<Flow<'_, N>> {
        let exchange = self.exchanges.get_mut(id)?;
        let client = self.clients.get_mut(exchange.client)?;
        let upstream_id = exchange.upstream()?;
        let upstream = self.upstreams.get_mut(upstream_id)?;
        Some(Flow { exchange, client, upstream, upstream_id, services: &self.services, core: &mut self.core })
    }

    /// Reports an internal error: ends the exchange with a reason that is counted and logged, so that it cannot hang.
    #[cold]
    fn broken(&mut self, id: ExchangeId, what: &'static str) {
        debug_assert!(false, "{what}");
        match self.exchanges.get(id) {
            Some(_) => self.end_exchange(id, Reason::Internal(what)),
            None => self.core.note_end(&Reason::Internal(what), Context::default()),
        }
    }

    /// As [`Self::broken`], for a listener.
    #[cold]
    fn broken_listener(&mut self, what: &'static str) {
        debug_assert!(false, "{what}");
        self.core.note_end(&Reason::Internal(what), Context::default());
    }

    /// As [`Self::broken`], for a client without an exchange.
    #[cold]
    fn broken_client(&mut self, id: ClientId, what: &'static str) {
        debug_assert!(false, "{what}");
        self.end(id, Reason::Internal(what));
    }
}
