//! A worker over any [`Net`], without threads and signals, for simulations and benchmarks.

pub use crate::config::Role;
use crate::config::document::{Config, WhenFull};
use crate::config::{Findings, LogFormat, Override, Snapshot, UpstreamTls, compile, inherit_service_state};
use crate::health::Health;
use crate::keys;
use crate::limits::SharedLimits;
use crate::observe::access::{Access, Buffers};
use crate::observe::journal::{Entry, Journal};
use crate::observe::{Counters, Log};
use crate::worker::{Adoption, Control, Peers, Worker};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, sync_channel};
use weir_reactor::mailbox::{Mailbox, mailbox};
use weir_reactor::stop::Stop;
use weir_reactor::{Events, Net};
use weir_tls::{Client, PeerName, Server};

/// One worker with its log and its mailbox.
#[derive(Debug)]
pub struct WorkerHarness<N: Net> {
    worker: Worker<N>,
    events: Events,
    lines: Receiver<Entry>,
    /// The number of lookups in the worker's stores during turns; 0 in release builds.
    look_ups: u64,
    /// The receiver of buffers with whole access log lines; `None`: no access log.
    access: Option<Receiver<Vec<u8>>>,
    /// Messages from the other workers; `None` if it is the only worker.
    mailbox: Option<Mailbox<Control<N>>>,
}

/// A message to a worker, from another worker or a control thread.
#[derive(Debug)]
pub struct Message<N: Net>(Control<N>);

/// The numbers of live objects in a worker.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LeakCheck {
    /// Client connections.
    pub clients: usize,
    /// Upstream connections, including pooled ones.
    pub upstreams: usize,
    /// Idle upstream connections.
    pub pooled: usize,
    /// Exchanges.
    pub exchanges: usize,
    /// Tunnels.
    pub tunnels: usize,
    /// Copies of requests.
    pub mirrors: usize,
    /// Requests waiting for a connection to a server.
    pub waiting: usize,
    /// The sum of the servers' counts of requests in flight and tunnels.
    pub in_flight: usize,
    /// Connections that count against server limits, over all workers.
    pub slots: usize,
}

/// Counts of HTTP/2 streams, and of received bytes on them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StreamCheck {
    /// Streams that are not released.
    pub streams: usize,
    /// Received bytes for which the gateway has not yet returned credit to the peer.
    pub held: u64,
}

/// A compiled configuration for a worker, with TLS settings from memory.
#[derive(Clone, Debug)]
pub struct Bound {
    snapshot: Snapshot,
    limits: Arc<SharedLimits>,
}

impl Bound {
    /// Compiles the configuration. `server` and `client` replace its TLS settings, for all listeners and services.
    /// Errors: all findings, if there is a fault.
    pub fn new(
        role: Role,
        config: &Config,
        server: Option<Server>,
        client: Option<(Client, PeerName)>,
    ) -> Result<Self, Findings> {
        let mut findings = Findings::default();
        let Some(mut snapshot) = compile(config, &mut findings) else { return Err(findings) };
        for listener in &mut snapshot.listeners {
            listener.role = role;
            listener.tls.clone_from(&server);
        }
        if let Some((client, name)) = client {
            let tls = Arc::new(UpstreamTls { client });
            for service in &mut snapshot.services {
                let service = Arc::make_mut(service);
                service.tls = Some(Arc::clone(&tls));
                for server in &mut service.servers {
                    server.name = Some(name.clone());
                }
            }
        }
        Ok(Self { limits: Arc::new(SharedLimits::new(&snapshot)), snapshot })
    }

    /// Inherits the upstream TLS sessions, limit state and overrides of `before`, as after a reload.
    #[must_use]
    pub fn after(mut self, before: &Self) -> Self {
        for service in &mut self.snapshot.services {
            let service = Arc::make_mut(service);
            let Some(old) = before.snapshot.service_named(&service.name) else { continue };
            let old = &before.snapshot.services[old];
            if service.tls.is_some() && old.tls.is_some() {
                service.tls.clone_from(&old.tls);
            }
            inherit_service_state(service, old);
        }
        self.snapshot.take_overrides(before.snapshot.overrides.clone());
        let limits = SharedLimits::after(&self.snapshot, &before.snapshot, &before.limits);
        self.limits = Arc::new(limits);
        self
    }

    /// Sets an override that drains the server at index `server` of a service, or (`is_drained` is false) ends its
    /// drain.
    pub fn drain(&mut self, service: &str, server: usize, is_drained: bool) {
        if let Some(id) = self.id_of(service, server) {
            self.snapshot.overrides.set(service, id, Override { is_drained, ..Override::default() });
        }
    }

    /// A message that health checks found the server at index `server` of a service up or down; `None`: no such server.
    pub fn health<N: Net>(&self, service: &str, server: usize, up: bool) -> Option<Message<N>> {
        let server = self.id_of(service, server)?;
        Some(Message(Control::Health(Health { service: service.to_owned(), server, up })))
    }

    fn id_of(&self, service: &str, server: usize) -> Option<u64> {
        let found = self.snapshot.services.iter().find(|found| found.name == service)?;
        Some(found.servers.get(server)?.id)
    }
}

/// The maximum number of access log buffers between two calls of [`WorkerHarness::requests`]; further ones are dropped.
const MOST_BUFFERS: usize = 1024;

impl<N: Net> Message<N> {
    /// A message to adopt another configuration of the same listeners.
    pub fn adopt(bound: &Bound) -> Self {
        let (snapshot, limits) = (Arc::new(bound.snapshot.clone()), Arc::clone(&bound.limits));
        Self(Control::Adopt(Arc::new(Adoption::new(snapshot, limits, None)), Vec::new()))
    }

    /// A message to begin a drain, or to stop immediately.
    pub fn stop(stop: Stop) -> Self {
        Self(Control::Stop(stop))
    }
}

impl<N: Net> WorkerHarness<N> {
    /// A worker for the listeners of the configuration, in their order. Errors: the net rejects a listener.
    pub fn new(net: N, bound: Bound, listeners: Vec<N::Listener>) -> io::Result<Self> {
        let (journal, lines) = Journal::kept();
        let log = Log::new(journal, net.now());
        let ids = bound.snapshot.listeners.iter().map(|listener| listener.id);
        let listeners = ids.zip(listeners).collect();
        let worker = Worker::new(net, log, None, Arc::new(bound.snapshot), bound.limits, listeners)?;
        Ok(Self { worker, events: Events::default(), lines, look_ups: 0, access: None, mailbox: None })
    }

    /// Makes the worker write an access log in JSON, for [`Self::requests`].
    #[must_use]
    pub fn logging_requests(mut self) -> Self {
        let (queue, buffers) = sync_channel(MOST_BUFFERS);
        let writer = Buffers { queue, lost: Arc::default() };
        self.worker.core.access = Some(Access::new(LogFormat::Json, WhenFull::Drop, writer));
        Self { access: Some(buffers), ..self }
    }

    /// Lookups of connections, exchanges, services and servers in all turns so far; 0 in release builds.
    pub fn look_ups(&self) -> u64 {
        self.look_ups
    }

    /// The access log's lines since the last call.
    pub fn requests(&mut self) -> Vec<String> {
        let Some(buffers) = &self.access else { return Vec::new() };
        if let Some(access) = &mut self.worker.core.access {
            access.flush();
        }
        let bytes: Vec<u8> = buffers.try_iter().flatten().collect();
        String::from_utf8_lossy(&bytes).lines().map(str::to_owned).collect()
    }

    /// Several workers that share limits, one for each net with its listeners. Errors: as [`WorkerHarness::new`], or no
    /// descriptor is left for a mailbox.
    pub fn several(parts: Vec<(N, Vec<N::Listener>)>, bound: &Bound) -> io::Result<Vec<Self>> {
        let mut mailboxes = Vec::new();
        let mut all = Vec::new();
        for _ in &parts {
            let (mailbox, sender) = mailbox()?;
            mailboxes.push(mailbox);
            all.push(sender);
        }
        let Peers { limiter, descriptors, memory, .. } = Peers::<N>::none();
        let parts = parts.into_iter().zip(mailboxes).enumerate();
        let one = |(own, ((net, listeners), mailbox))| {
            let harness = Self::new(net, bound.clone(), listeners)?;
            let (limiter, descriptors) = (Arc::clone(&limiter), Arc::clone(&descriptors));
            let peers = Peers { own, all: all.clone(), limiter, descriptors, memory: Arc::clone(&memory) };
            Ok(Self { worker: harness.worker.among(peers), mailbox: Some(mailbox), ..harness })
        };
        parts.map(one).collect()
    }

    /// Waits for events and handles them: one turn. Errors: the net failed.
    // Never inlined: a benchmark counts the instructions of this function.
    #[inline(never)]
    pub fn turn(&mut self) -> io::Result<()> {
        let before = keys::look_ups();
        self.worker.wait(&mut self.events)?;
        self.worker.turn(&self.events);
        self.look_ups += keys::look_ups() - before;
        Ok(())
    }

    /// Adopts another configuration of the same listeners. Computes the changes first, as a reload does.
    pub fn adopt(&mut self, bound: Bound) {
        let before = Some(&self.worker.core.plan.snapshot);
        let adoption = Adoption::new(Arc::new(bound.snapshot), bound.limits, before);
        self.worker.control(Control::Adopt(Arc::new(adoption), Vec::new()));
    }

    /// Messages from the other workers since the last call, in order, for [`WorkerHarness::receive`].
    pub fn messages(&mut self) -> Vec<Message<N>> {
        let messages = self.mailbox.as_ref().map(Mailbox::take).unwrap_or_default();
        messages.into_iter().map(Message).collect()
    }

    /// Handles a message from another worker or a control thread.
    pub fn receive(&mut self, message: Message<N>) {
        self.worker.control(message.0);
    }

    /// Begins a drain, or stops immediately.
    pub fn stop(&mut self, stop: Stop) {
        self.worker.control(Control::Stop(stop));
    }

    /// Whether the drain or stop is complete, so that the worker can be dropped.
    pub fn is_drained(&mut self) -> bool {
        self.worker.is_drained()
    }

    /// The lines for stderr since the last call.
    pub fn lines(&mut self) -> Vec<String> {
        let lines = self.lines.try_iter().filter_map(|entry| match entry {
            Entry::Line(_, line) | Entry::Ended(_, line) => Some(line),
            Entry::End => None,
        });
        lines.collect()
    }

    /// The worker's counters. Their byte counts do not include connections that are still open.
    pub fn counters(&self) -> &Counters {
        &self.worker.core.counters
    }

    /// Bytes of incomplete heads, summed over all parses: the work of parsing heads repeatedly.
    pub fn parsed_in_vain(&self) -> u64 {
        self.worker.core.in_vain
    }

    /// The streams of the client at this address, which a PROXY protocol header may have reported. `None`: the client
    /// has no HTTP/2 connection.
    pub fn streams_of(&self, client: SocketAddr) -> Option<StreamCheck> {
        let clients = &self.worker.clients;
        let mut all = clients.ids().into_iter().filter_map(|id| clients.get(id));
        let h2 = all.find(|found| found.peer == Some(client))?.h2.as_ref()?;
        Some(StreamCheck { streams: h2.connection.streams(), held: h2.connection.held() })
    }

    /// The streams of all connections to servers.
    pub fn server_streams(&self) -> StreamCheck {
        let upstreams = &self.worker.upstreams;
        let all = upstreams.ids().into_iter().filter_map(|id| upstreams.get(id)?.h2.as_ref());
        all.fold(StreamCheck::default(), |sum, h2| StreamCheck {
            streams: sum.streams + h2.connection.streams().max(h2.len()),
            held: sum.held + h2.connection.held(),
        })
    }

    /// The numbers of live objects, for tests that the worker leaks none.
    pub fn leak_check(&self) -> LeakCheck {
        LeakCheck {
            clients: self.worker.clients.len(),
            upstreams: self.worker.upstreams.len(),
            pooled: self.worker.pooled(),
            exchanges: self.worker.exchanges.len(),
            tunnels: self.worker.tunnels.len(),
            mirrors: self.worker.mirrors.len(),
            waiting: self.worker.waiting(),
            in_flight: self.worker.servers().map(|server| server.in_flight.count()).sum(),
            slots: self
                .worker
                .servers()
                .filter_map(|server| server.slots.as_ref())
                .map(|slots| slots.open())
                .sum(),
        }
    }
}
