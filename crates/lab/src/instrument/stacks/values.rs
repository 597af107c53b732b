//! One run of a runner, and its value of each metric.

use super::key::{HANDSHAKE, MEMORY, PRIMITIVE, TRANSFER};
use super::output::{Seen, Side};
use crate::experiment::metric::Metric;
use crate::planning::cell::Cell;
use crate::store::run::Run;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// A run of a runner.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Ran {
    /// The runner's program and arguments.
    pub command: Vec<String>,
    /// The engine's directory, in which it ran.
    pub folder: PathBuf,
    /// Additions to its environment, as `NAME=VALUE`.
    pub environment: Vec<String>,
    pub scenario: String,
    /// The versions in its description.
    pub described: Option<Described>,
    /// Why it was killed, or its output is unreadable.
    pub failure: Option<String>,
    pub seen: Seen,
    pub exit: String,
    /// The end of its standard error.
    pub stderr: String,
    /// Milliseconds from start to exit.
    pub elapsed_ms: u64,
    /// The share of its cores that other processes used meanwhile; `None` if unavailable.
    pub foreign_cpu: Option<f64>,
    /// The share that the hypervisor gave to other guests (steal time); `None` as above.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stolen_cpu: Option<f64>,
}

/// The versions that a runner must report: of the TLS library and of the crypto backend.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Described {
    pub version: String,
    pub crypto: String,
}

/// Metrics that are counted once, without blocks or intervals.
pub(super) const COUNTED: [Metric; 2] = [Metric::ServerInstructions, Metric::ClientInstructions];

/// A run's value of a metric, if it has one.
pub(super) fn of_run(metric: Metric, run: &Run<Ran>) -> Option<f64> {
    let seen = &run.seen.seen;
    let is_of = |what: &str| run.run.cell.levels.word("do") == what;
    let is_handshake = is_of(HANDSHAKE);
    let us = |side| seen.mean_ns(side).map(|ns| ns / 1000.0);
    match metric {
        Metric::ServerUsPerHandshake if is_handshake => us(Side::Server),
        Metric::ClientUsPerHandshake if is_handshake => us(Side::Client),
        Metric::HandshakesPerSecond if is_handshake => units_per_second(seen),
        Metric::WaitsPerHandshake if is_handshake => {
            let waits: Option<u64> = seen.threads.iter().map(|thread| thread.voluntary_switches).sum();
            Some(waits? as f64 / units(seen)? as f64)
        }
        Metric::LockNsPerHandshake if is_handshake && !seen.locks.is_empty() => {
            let held: u64 = seen.locks.iter().map(|lock| lock.held_ns).sum();
            Some(held as f64 / units(seen)? as f64)
        }
        Metric::SendMbPerSecond => mb_per_second(seen, Side::Server),
        Metric::ReceiveMbPerSecond => mb_per_second(seen, Side::Client),
        Metric::KibPerSession => {
            let memory = seen.memory?;
            let grown = memory.after_kib.checked_sub(memory.before_kib)?;
            Some(grown as f64 / memory.sessions as f64)
        }
        Metric::OperationUs => us(Side::Operation),
        Metric::CpuUsPerHandshake if is_handshake => Some(cpu_us(seen)? / units(seen)? as f64),
        Metric::CpuUsPerOperation if is_of(PRIMITIVE) => Some(cpu_us(seen)? / units(seen)? as f64),
        Metric::CpuUsPerMb if is_of(TRANSFER) => {
            let bytes = *seen.moved.get(&Side::Server).filter(|bytes| **bytes > 0)?;
            Some(cpu_us(seen)? * 1e6 / bytes as f64)
        }
        _ => None,
    }
}

/// The sum of the threads' rates.
fn units_per_second(seen: &Seen) -> Option<f64> {
    let rates = seen
        .threads
        .iter()
        .map(|thread| (thread.wall_ns > 0).then(|| thread.units as f64 * 1e9 / thread.wall_ns as f64));
    rates.sum::<Option<f64>>().filter(|rate| *rate > 0.0)
}

/// CPU of all threads, by their own clocks: of both sides, as each thread runs both.
fn cpu_us(seen: &Seen) -> Option<f64> {
    let ns: u64 = seen.threads.iter().map(|thread| thread.cpu_ns).sum();
    (ns > 0).then_some(ns as f64 / 1000.0)
}

fn units(seen: &Seen) -> Option<u64> {
    let units = seen.threads.iter().map(|thread| thread.units).sum();
    (units > 0).then_some(units)
}

/// Megabytes (10^6) per second of one side's own time.
fn mb_per_second(seen: &Seen, side: Side) -> Option<f64> {
    let bytes = *seen.moved.get(&side)?;
    let ns = seen.times.get(&side).filter(|times| times.total_ns > 0)?.total_ns;
    Some(bytes as f64 * 1000.0 / ns as f64)
}

/// The metrics compared for a cell.
pub(super) fn compared(cell: &Cell) -> &'static [Metric] {
    match cell.levels.word("do") {
        HANDSHAKE => &[Metric::ServerUsPerHandshake, Metric::ClientUsPerHandshake],
        TRANSFER => &[Metric::SendMbPerSecond, Metric::ReceiveMbPerSecond],
        MEMORY => &[Metric::KibPerSession],
        PRIMITIVE => &[Metric::OperationUs],
        _ => &[],
    }
}

/// The metrics compared for a cell that shares its core: no wall-clock times.
pub(super) fn compared_in_duets(cell: &Cell) -> &'static [Metric] {
    match cell.levels.word("do") {
        HANDSHAKE => &[Metric::CpuUsPerHandshake],
        TRANSFER => &[Metric::CpuUsPerMb],
        PRIMITIVE => &[Metric::CpuUsPerOperation],
        // Other processes do not affect memory.
        _ => compared(cell),
    }
}

/// All metrics that a run of a cell can have.
pub(super) fn measured(cell: &Cell) -> &'static [Metric] {
    match cell.levels.word("do") {
        HANDSHAKE => &[
            Metric::ServerUsPerHandshake,
            Metric::ClientUsPerHandshake,
            Metric::HandshakesPerSecond,
            Metric::LockNsPerHandshake,
            Metric::WaitsPerHandshake,
            Metric::CpuUsPerHandshake,
        ],
        TRANSFER => &[Metric::SendMbPerSecond, Metric::ReceiveMbPerSecond, Metric::CpuUsPerMb],
        PRIMITIVE => &[Metric::OperationUs, Metric::CpuUsPerOperation],
        _ => compared(cell),
    }
}
