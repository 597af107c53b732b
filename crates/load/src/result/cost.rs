//! What a run cost, and what held it down.

use serde::{Deserialize, Serialize};
use std::fmt;

/// CPU that a process used.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Cost {
    /// CPU time in microseconds.
    pub cpu_us: f64,
    /// CPU time per right answer.
    pub cpu_us_per_request: Option<f64>,
    /// CPU time per handshake, where there was at least one for each request.
    #[serde(default)]
    pub cpu_us_per_handshake: Option<f64>,
    /// Share of the time of `cores`: 1.0 is all of them all the time.
    pub utilisation: f64,
    /// The cores that its working threads can use at once: those that they are allowed, at most one for each thread.
    /// So a process with one worker on a machine of many cores can reach a utilisation of 1. 0 where that is not known, as
    /// by a command: `utilisation` is then of one core.
    pub cores: u32,
}

impl Cost {
    /// Whether nothing was told: of a server that ended, or whose command failed.
    pub fn is_unknown(&self) -> bool {
        self.cpu_us == 0.0 && self.cores == 0
    }
}

/// What a process did to the system besides using CPU, its descendants included. Each is `None` where the system does
/// not tell, and in older results.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Counters {
    /// Resident memory at the window's end in KiB. Memory that processes share counts for each of them.
    pub rss_end_kib: Option<u64>,
    /// How often a thread gave up its core within the window, mostly to wait. Threads and processes of servers that ended
    /// in it are not counted.
    pub voluntary_switches: Option<u64>,
    /// How often a thread was taken off its core within the window, since another was to run.
    pub involuntary_switches: Option<u64>,
    /// Page faults within the window that needed no disk.
    pub minor_faults: Option<u64>,
    /// Page faults within the window that waited for a disk.
    pub major_faults: Option<u64>,
    /// Open files at the window's end, sockets among them.
    pub open_files: Option<u64>,
}

/// What the engine itself used.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct EngineCost {
    /// The whole process.
    #[serde(flatten)]
    pub cost: Cost,
    /// Its peak resident memory in KiB; `None` in older results.
    #[serde(default)]
    pub rss_peak_kib: Option<u64>,
    /// What else it did.
    #[serde(flatten)]
    pub counters: Counters,
    /// Each worker's part, in their order.
    pub workers: Vec<WorkerCost>,
    /// 99th percentile of the time that a worker took from a poll to the end of the events that it told of: what the
    /// last of them waited for the others at most.
    pub loop_lag_p99_us: f64,
    /// The longest such time.
    pub loop_lag_max_us: f64,
}

/// One worker of the engine.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct WorkerCost {
    /// The core it was put on; `None` where the system chose.
    pub core: Option<usize>,
    /// CPU time in microseconds within the window.
    pub cpu_us: f64,
    /// Share of the window that it was on a CPU.
    pub utilisation: f64,
}

/// What a server used.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ServerCost {
    /// Which part of the system it is.
    pub role: Role,
    /// Where the figure comes from, such as `process 4711`, `cgroup /sys/fs/cgroup/x` or `command ssh host ..`.
    pub source: String,
    /// Its CPU, with that of its descendants.
    #[serde(flatten)]
    pub cost: Cost,
    /// Peak resident memory, summed over the processes, in KiB; `None` where only CPU is told.
    pub rss_peak_kib: Option<u64>,
    /// What else it did; nothing of it is told by a cgroup or a command.
    #[serde(flatten)]
    pub counters: Counters,
    /// The thread that used the most of those that were there all the time; `None` of a command, and in older results.
    #[serde(default)]
    pub busiest_thread: Option<BusyThread>,
}

/// A thread of a server.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct BusyThread {
    /// As the system knows it: what a server calls it, or its program's name.
    pub name: String,
    /// Share of the window that it was on a CPU: 1.0 is all that one thread can use.
    pub utilisation: f64,
}

/// What a named server is in the system under test.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// What the engine talks to.
    #[default]
    Gateway,
    /// What stands behind it.
    Origin,
}

/// What held the rate down.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Limit {
    /// The server that the engine talks to.
    Gateway,
    /// What stands behind it.
    Origin,
    /// The engine itself.
    Load,
    /// A core that several of them share was full, and none of them dominated it.
    #[serde(rename = "shared cores")]
    SharedCores,
    /// None of those that were accounted.
    #[default]
    Neither,
}

impl fmt::Display for Limit {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        // As in JSON.
        self.serialize(formatter)
    }
}

/// The engine's own ceiling, as `weir calibrate` measured it on this machine.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Ceiling {
    /// The calibrated cell that is most like this run.
    pub cell: String,
    /// Requests (or handshakes) per second that one worker can do at most.
    pub per_worker: f64,
    /// This run's rate over the ceiling of all its workers.
    pub share: f64,
}
