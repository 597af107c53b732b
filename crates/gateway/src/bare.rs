//! A worker over any net, without threads, signals and streams: what a simulation or a bench drives.

pub use crate::config::Role;
use crate::config::{Settings, Snapshot};
use crate::observe::journal::Journal;
use crate::observe::{Counters, Log};
use crate::upstream::Service;
use crate::worker::{Control, Core, Worker};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::mpsc::Receiver;
use weir_reactor::stop::Stop;
use weir_reactor::{Events, Net};
use weir_tls::{Acceptor, Connector, PeerName};

/// One worker and its log.
#[derive(Debug)]
pub struct Bare<N: Net> {
    worker: Worker<N>,
    events: Events,
    lines: Receiver<String>,
}

/// What lives in a worker, for leak checks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Census {
    /// Connections of clients.
    pub clients: usize,
    /// Connections to upstreams, pooled ones too.
    pub upstreams: usize,
    /// Idle connections to upstreams.
    pub pooled: usize,
    /// Exchanges.
    pub exchanges: usize,
    /// Tunnels.
    pub tunnels: usize,
}

impl<N: Net> Bare<N> {
    /// A worker of the upstream at `address`, for the listeners, with TLS where given. Settings about listeners, the
    /// upstream's address and workers are ignored. Errors: the net refuses a listener.
    pub fn new(
        role: Role,
        net: N,
        settings: Settings,
        address: SocketAddr,
        tls: Option<(Connector, PeerName)>,
        listeners: Vec<(N::Listener, Option<Acceptor>)>,
    ) -> io::Result<Self> {
        let (journal, lines) = Journal::kept();
        let snapshot = Snapshot::new(&settings, role, address);
        let log = Log::new(journal, net.now());
        let core = Core::new(net, snapshot.policy, log);
        let worker = Worker::new(core, snapshot.role, Service::new(snapshot.service, tls), listeners)?;
        Ok(Self { worker, events: Events::default(), lines })
    }

    /// Waits for events and handles them: one turn. Errors: the net failed.
    // Never inlined: the bench counts what happens within.
    #[inline(never)]
    pub fn turn(&mut self) -> io::Result<()> {
        self.worker.wait(&mut self.events)?;
        self.worker.turn(&self.events);
        Ok(())
    }

    /// Goes on with other settings, of the same role.
    pub fn adopt(&mut self, settings: &Settings, address: SocketAddr) {
        let snapshot = Snapshot::new(settings, self.worker.role(), address);
        self.worker.control(Control::Adopt(Arc::new(snapshot)));
    }

    /// Begins a drain, or ends everything.
    pub fn stop(&mut self, stop: Stop) {
        self.worker.control(Control::Stop(stop));
    }

    /// Whether a stop is complete: then the worker is dropped.
    pub fn is_drained(&mut self) -> bool {
        self.worker.is_drained()
    }

    /// The log's lines since the last call.
    pub fn lines(&mut self) -> Vec<String> {
        self.lines.try_iter().collect()
    }

    /// What was counted.
    pub fn counters(&self) -> &Counters {
        &self.worker.core.counters
    }

    /// What lives.
    pub fn census(&self) -> Census {
        Census {
            clients: self.worker.clients.len(),
            upstreams: self.worker.upstreams.len(),
            pooled: self.worker.service.pool.len(),
            exchanges: self.worker.exchanges.len(),
            tunnels: self.worker.tunnels.len(),
        }
    }
}
