//! The cost of a run, and its limit.

use serde::{Deserialize, Serialize};
use std::fmt;

/// CPU used by a process.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Cost {
    /// CPU time in microseconds.
    pub cpu_us: f64,
    /// CPU time per correct response.
    pub cpu_us_per_request: Option<f64>,
    /// CPU time per handshake, if there was at least one per request.
    #[serde(default)]
    pub cpu_us_per_handshake: Option<f64>,
    /// Utilisation of `cores`: 1.0 is all of them all the time.
    pub utilisation: f64,
    /// The cores that its working threads can use at once: their allowed cores, at most one per thread.
    /// So a process with one worker on a many-core machine can reach a utilisation of 1. 0 if unknown, as
    /// for a command: `utilisation` is then relative to one core.
    pub cores: u32,
}

impl Cost {
    /// Whether it is unknown: the server exited, or its command failed.
    pub fn is_unknown(&self) -> bool {
        self.cpu_us == 0.0 && self.cores == 0
    }
}

/// Counters of a process other than CPU, descendants included. Each is `None` if unavailable,
/// and in older results.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Counters {
    /// Resident memory at the window's end in KiB. Shared memory counts once per process.
    pub rss_end_kib: Option<u64>,
    /// Voluntary context switches within the window. Excludes threads and processes of servers that exited
    /// during it.
    pub voluntary_switches: Option<u64>,
    /// Involuntary context switches within the window.
    pub involuntary_switches: Option<u64>,
    /// Minor page faults within the window.
    pub minor_faults: Option<u64>,
    /// Major page faults within the window.
    pub major_faults: Option<u64>,
    /// Open files at the window's end, sockets included.
    pub open_files: Option<u64>,
}

/// The engine's cost.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct EngineCost {
    /// The whole process.
    #[serde(flatten)]
    pub cost: Cost,
    /// Its peak resident memory in KiB; `None` in older results.
    #[serde(default)]
    pub rss_peak_kib: Option<u64>,
    /// Other counters.
    #[serde(flatten)]
    pub counters: Counters,
    /// Per worker, in order.
    pub workers: Vec<WorkerCost>,
    /// 99th percentile of the time from a poll to the end of its events: an upper bound on how
    /// long the last event waited for the others.
    pub loop_lag_p99_us: f64,
    /// Maximum of that time.
    pub loop_lag_max_us: f64,
}

/// One worker of the engine.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct WorkerCost {
    /// The core it was pinned to; `None` if unpinned.
    pub core: Option<usize>,
    /// CPU time in microseconds within the window.
    pub cpu_us: f64,
    /// Share of the window spent on a CPU.
    pub utilisation: f64,
}

/// The cost of a server.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ServerCost {
    /// Its role.
    pub role: Role,
    /// The source of the figure, such as `process 4711`, `cgroup /sys/fs/cgroup/x` or `command ssh host ..`.
    pub source: String,
    /// CPU, descendants included.
    #[serde(flatten)]
    pub cost: Cost,
    /// Peak resident memory, summed over the processes, in KiB; `None` if only CPU is known.
    pub rss_peak_kib: Option<u64>,
    /// Other counters; none for a cgroup or a command.
    #[serde(flatten)]
    pub counters: Counters,
    /// The busiest thread among those that ran throughout; `None` for a command, and in older results.
    #[serde(default)]
    pub busiest_thread: Option<BusyThread>,
}

/// A thread of a server.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct BusyThread {
    /// Its name in the kernel: set by the server, or the program's name.
    pub name: String,
    /// Share of the window spent on a CPU: 1.0 is the maximum for one thread.
    pub utilisation: f64,
}

/// The role of a server in the system under test.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// The server the engine talks to.
    #[default]
    Gateway,
    /// The server behind it.
    Origin,
}

/// What limited the rate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Limit {
    /// The server that the engine talks to.
    Gateway,
    /// The server behind it.
    Origin,
    /// The engine itself.
    Load,
    /// A core shared by several of them was full, and none of them dominated it.
    #[serde(rename = "shared cores")]
    SharedCores,
    /// None of the accounted parts.
    #[default]
    Neither,
}

impl fmt::Display for Limit {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        // As in JSON.
        self.serialize(formatter)
    }
}

/// The engine's ceiling, as measured by `weir calibrate` on this machine.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Ceiling {
    /// The calibrated cell closest to this run.
    pub cell: String,
    /// Requests (or handshakes) per second of one saturated worker.
    pub per_worker: f64,
    /// This run's rate over the ceiling of all its workers.
    pub share: f64,
}
