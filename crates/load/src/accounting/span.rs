//! The window of one worker, by the clocks at its edges.

use super::counters::Own;
use std::time::{Duration, Instant};

/// CPU times at one instant: ours, with our counters, and each server's. Some system calls in all.
#[derive(Clone, Debug)]
pub(crate) struct Reading {
    pub(crate) own: Duration,
    /// Our counters; `None` where the system does not tell.
    pub(crate) counted: Option<Own>,
    /// For each server its processes' clocks, or its cgroup's; nothing for a command.
    pub(crate) servers: Vec<Vec<Option<Duration>>>,
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
