//! A worker over any net, without threads, signals and streams: what a simulation or a bench drives.

pub use crate::config::Role;
use crate::config::document::Config;
use crate::config::{Fault, Snapshot, UpstreamTls, compile};
use crate::observe::journal::{Entry, Journal};
use crate::observe::{Counters, Log};
use crate::worker::{Control, Worker};
use std::io;
use std::sync::Arc;
use std::sync::mpsc::Receiver;
use weir_reactor::stop::Stop;
use weir_reactor::{Events, Net};
use weir_tls::{Client, PeerName, Server};

/// One worker and its log.
#[derive(Debug)]
pub struct Bare<N: Net> {
    worker: Worker<N>,
    events: Events,
    lines: Receiver<Entry>,
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
    /// Copies of requests.
    pub mirrors: usize,
}

/// A configuration with TLS from memory, for a worker.
#[derive(Clone, Debug)]
pub struct Bound(Snapshot);

impl Bound {
    /// Checks the configuration. `server` and `client` take the place of what it says about TLS, for all listeners and
    /// services. Errors: its first fault.
    pub fn new(
        role: Role,
        config: &Config,
        server: Option<Server>,
        client: Option<(Client, PeerName)>,
    ) -> Result<Self, Fault> {
        let mut snapshot = compile(config)?;
        for listener in &mut snapshot.listeners {
            listener.role = role;
            listener.tls.clone_from(&server);
        }
        if let Some((client, name)) = client {
            let tls = Arc::new(UpstreamTls { client });
            for service in &mut snapshot.services {
                service.tls = Some(Arc::clone(&tls));
                for server in &mut service.servers {
                    server.name = Some(name.clone());
                }
            }
        }
        Ok(Self(snapshot))
    }
}

impl<N: Net> Bare<N> {
    /// A worker for the listeners of the configuration, in their order. Errors: the net refuses a listener.
    pub fn new(net: N, bound: Bound, listeners: Vec<N::Listener>) -> io::Result<Self> {
        let (journal, lines) = Journal::kept();
        let log = Log::new(journal, net.now());
        let listeners = listeners.into_iter().enumerate().collect();
        let worker = Worker::new(net, log, None, Arc::new(bound.0), listeners)?;
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

    /// Goes on with another configuration of the same listeners.
    pub fn adopt(&mut self, bound: Bound) {
        self.worker.control(Control::Adopt(Arc::new(bound.0)));
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
        let lines = self.lines.try_iter().filter_map(|entry| match entry {
            Entry::Line(line) => Some(line),
            Entry::End => None,
        });
        lines.collect()
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
            pooled: self.worker.pooled(),
            exchanges: self.worker.exchanges.len(),
            tunnels: self.worker.tunnels.len(),
            mirrors: self.worker.mirrors.len(),
        }
    }
}
