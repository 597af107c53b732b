//! One run of a runner, as it is stored, and what it says of each metric.

use super::cell::StackCell;
use super::key::Task;
use super::output::{Seen, Side};
use crate::metric::Metric;
use crate::validity::Validity;
use serde::{Deserialize, Serialize};

/// A run that is to be made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlannedStackRun {
    /// Names its file: block, position and cell.
    pub id: String,
    /// Which block, counted from 1.
    pub block: u32,
    /// What is run.
    pub cell: StackCell,
}

/// A run as it is stored.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StackRun {
    /// Version of this layout: [`Self::SCHEMA`].
    pub schema: u32,
    /// What was planned.
    #[serde(flatten)]
    pub run: PlannedStackRun,
    /// Whether it may be used.
    pub validity: Validity,
    /// The runner's program and arguments.
    pub command: Vec<String>,
    /// What it was given in its environment, as `NAME=VALUE`.
    pub environment: Vec<String>,
    /// What it read.
    pub scenario: String,
    /// What it said.
    pub seen: Seen,
    /// How it ended.
    pub exit: String,
    /// The last of its standard error.
    pub stderr: String,
    /// Milliseconds from its start to its end.
    pub elapsed_ms: u64,
    /// The share of its cores that other processes used meanwhile; `None` where the system does not tell, and in older
    /// results.
    #[serde(default)]
    pub foreign_cpu: Option<f64>,
}

impl StackRun {
    /// The layout's version.
    pub const SCHEMA: u32 = 1;

    /// Its value of a metric, if it has one.
    pub fn value(&self, metric: Metric) -> Option<f64> {
        let seen = &self.seen;
        let scenario = &self.run.cell.scenario;
        let is = |task| scenario.task() == Some(task);
        let us = |side| seen.mean_ns(side).map(|ns| ns / 1000.0);
        match metric {
            Metric::ServerUsPerHandshake if is(Task::Handshake) => us(Side::Server),
            Metric::ClientUsPerHandshake if is(Task::Handshake) => us(Side::Client),
            Metric::HandshakesPerSecond if is(Task::Handshake) => self.units_per_second(),
            Metric::WaitsPerHandshake if is(Task::Handshake) => {
                let waits: Option<u64> = seen.threads.iter().map(|thread| thread.voluntary_switches).sum();
                Some(waits? as f64 / self.units()? as f64)
            }
            Metric::LockNsPerHandshake if is(Task::Handshake) && !seen.locks.is_empty() => {
                let held: u64 = seen.locks.iter().map(|lock| lock.held_ns).sum();
                Some(held as f64 / self.units()? as f64)
            }
            Metric::SendMbPerSecond => self.mb_per_second(Side::Server),
            Metric::ReceiveMbPerSecond => self.mb_per_second(Side::Client),
            Metric::KibPerSession => {
                let memory = seen.memory?;
                let grown = memory.after_kib.checked_sub(memory.before_kib)?;
                Some(grown as f64 / memory.sessions as f64)
            }
            Metric::OperationUs => us(Side::Operation),
            _ => None,
        }
    }

    /// All units of all threads over the time of each.
    fn units_per_second(&self) -> Option<f64> {
        let threads = &self.seen.threads;
        let rates = threads
            .iter()
            .map(|thread| (thread.wall_ns > 0).then(|| thread.units as f64 * 1e9 / thread.wall_ns as f64));
        rates.sum::<Option<f64>>().filter(|rate| *rate > 0.0)
    }

    fn units(&self) -> Option<u64> {
        let units = self.seen.threads.iter().map(|thread| thread.units).sum();
        (units > 0).then_some(units)
    }

    /// Megabytes (10^6) per second of one end's own time.
    fn mb_per_second(&self, side: Side) -> Option<f64> {
        let bytes = *self.seen.moved.get(&side)?;
        let ns = self.seen.times.get(&side).filter(|times| times.total_ns > 0)?.total_ns;
        Some(bytes as f64 * 1000.0 / ns as f64)
    }
}

/// What is compared of a task.
pub(super) fn compared(task: Task) -> &'static [Metric] {
    match task {
        Task::Handshake => &[Metric::ServerUsPerHandshake, Metric::ClientUsPerHandshake],
        Task::Transfer => &[Metric::SendMbPerSecond, Metric::ReceiveMbPerSecond],
        Task::Memory => &[Metric::KibPerSession],
        Task::Primitive => &[Metric::OperationUs],
    }
}

/// All that a run of a task can have.
pub(super) fn measured(task: Task) -> &'static [Metric] {
    match task {
        Task::Handshake => &[
            Metric::ServerUsPerHandshake,
            Metric::ClientUsPerHandshake,
            Metric::HandshakesPerSecond,
            Metric::LockNsPerHandshake,
            Metric::WaitsPerHandshake,
        ],
        _ => compared(task),
    }
}
