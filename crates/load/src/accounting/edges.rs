//! Clocks at the edges of the window, read by the workers themselves.

use super::counters::Own;
use super::{Accounts, clock};
use std::time::{Duration, Instant};
use weir_reactor::cores;

/// CPU times at one instant: ours, with our counters, and each server's. Some system calls in all.
#[derive(Clone, Debug)]
pub(crate) struct Reading {
    pub(crate) own: Duration,
    /// Our counters; `None` where the system does not tell.
    pub(crate) counted: Option<Own>,
    /// For each server its processes' clocks, or its cgroup's; nothing for a command.
    pub(crate) servers: Vec<Vec<Option<Duration>>>,
}

/// One worker's readings at the edges of the window.
#[derive(Debug)]
pub(crate) struct Edges<'a> {
    index: usize,
    /// Only the first worker reads the clocks of the servers.
    accounts: Option<&'a Accounts>,
    cores: Vec<usize>,
    start: Option<Edge>,
    end: Option<Edge>,
}

/// Both edges of a worker.
#[derive(Debug)]
pub(crate) struct Span {
    pub(crate) index: usize,
    /// The cores that it is allowed.
    pub(crate) cores: Vec<usize>,
    pub(crate) from: Edge,
    pub(crate) to: Edge,
}

/// The clocks at one edge.
#[derive(Debug)]
pub(crate) struct Edge {
    pub(crate) at: Instant,
    pub(crate) thread: Duration,
    pub(crate) reading: Option<Reading>,
}

impl<'a> Edges<'a> {
    /// For worker `index`, on its own thread.
    pub(crate) fn new(index: usize, accounts: &'a Accounts) -> Self {
        let cores = cores::allowed().map(|cores| cores.0).unwrap_or_default();
        Self { index, accounts: (index == 0).then_some(accounts), cores, start: None, end: None }
    }

    pub(crate) fn start(&mut self) {
        self.start = Some(self.edge());
    }

    pub(crate) fn end(&mut self) {
        self.end = Some(self.edge());
    }

    /// Both edges, once the window is over.
    pub(crate) fn both(self) -> Option<Span> {
        let Self { index, cores, start, end, .. } = self;
        Some(Span { index, cores, from: start?, to: end? })
    }

    fn edge(&self) -> Edge {
        let reading = self.accounts.map(Accounts::read);
        Edge { at: Instant::now(), thread: clock::own_thread(), reading }
    }
}

impl Span {
    /// How long it was.
    pub(crate) fn window(&self) -> Duration {
        self.to.at - self.from.at
    }

    /// CPU of the worker's thread.
    pub(crate) fn cpu(&self) -> Duration {
        self.to.thread.saturating_sub(self.from.thread)
    }
}
