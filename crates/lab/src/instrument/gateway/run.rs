//! What one run of a gateway saw.

use super::{Conditions, Place as _, gc};
use crate::run::{PlannedRun, Run};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use weir_load::result::{Limit, LoadResult, Role, ServerCost};
use weir_netem::NetReport;

/// What a run was made under, and what was seen.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Seen {
    /// Requests per second that were offered; `None` in a closed loop.
    pub rate: Option<f64>,
    /// Milliseconds of load that its processes had served before.
    #[serde(default)]
    pub served_ms: u64,
    /// Milliseconds of load before the window.
    pub warmup_ms: u64,
    /// Milliseconds of the window.
    pub window_ms: u64,
    /// What held the rate down; `None` where no window was measured.
    pub limit: Option<Limit>,
    /// What was seen.
    pub observation: Observation,
}

/// What an executor saw.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Observation {
    /// The load engine's result, if it came to one.
    pub load: Option<LoadResult>,
    /// Why there is no result, or why it is not to be trusted.
    pub failure: Option<String>,
    /// The processes, in the order in which they were started.
    pub processes: Vec<ProcessReport>,
    /// Connections that the origin accepted while the load engine ran, by its own count; `None` without a gateway.
    pub upstream_connections: Option<u64>,
    /// The share of the run's cores that processes outside it used meanwhile; `None` where the system does not tell.
    pub foreign_cpu: Option<f64>,
    /// The share that the hypervisor gave to other guests; `None` as above.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stolen_cpu: Option<f64>,
    /// In a duet, the share of the window in which the other was measured as well.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub common_share: Option<f64>,
    /// The network between the processes.
    pub net: Option<NetReport>,
    /// What is not known of the run, and why; it may be used all the same.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// Garbage collection of a target that is a JVM; `None` for all others, or where it is not known.
    pub gc: Option<gc::Report>,
    /// Where the processes' logs are kept since the run failed, in the directory of the results.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub logs: Option<PathBuf>,
    /// Milliseconds from the first process's start to the last one's end.
    pub elapsed_ms: u64,
}

impl Observation {
    pub(super) fn process(&self, role: &str) -> Option<&ProcessReport> {
        self.processes.iter().find(|process| process.role == role)
    }

    /// Where the process in such a role ran.
    pub(super) fn cores(&self, role: &str) -> &[usize] {
        self.process(role).map_or(&[], |process| &process.cores)
    }
}

/// One process of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessReport {
    /// `origin`, `target` or `load`.
    pub role: String,
    /// Program and arguments.
    pub command: Vec<String>,
    /// The cores that it was placed on.
    pub cores: Vec<usize>,
    /// How it ended.
    pub exit: String,
    /// Whether it did not end when it was asked to, and was killed.
    #[serde(default)]
    pub killed: bool,
    /// The last of its standard error.
    pub stderr: String,
}

/// What a run is asked to do.
#[derive(Clone, Debug)]
pub(crate) struct Asked<'a> {
    pub(crate) run: &'a PlannedRun,
    pub(crate) conditions: Conditions,
    /// Requests per second; `None` in a closed loop.
    pub(crate) rate: Option<f64>,
}

impl Asked<'_> {
    pub(crate) fn seen(&self, observation: Observation) -> Seen {
        Seen {
            rate: self.rate,
            served_ms: self.conditions.served_ms,
            warmup_ms: self.conditions.warmup_ms,
            window_ms: self.conditions.window_ms(self.run.stage),
            limit: None,
            observation,
        }
    }
}

/// What a run came to, by part.
#[derive(Clone, Copy, Debug)]
pub(super) struct Parts<'a> {
    pub(super) load: &'a LoadResult,
    /// `None` without a gateway.
    pub(super) gateway: Option<&'a ServerCost>,
    pub(super) origin: Option<&'a ServerCost>,
    /// Garbage collection, where the target is a JVM.
    pub(super) gc: Option<&'a gc::Report>,
}

/// Each part; `None` where no window was measured.
pub(super) fn parts(run: &Run<Seen>) -> Option<Parts<'_>> {
    let seen = &run.seen.observation;
    let load = seen.load.as_ref()?;
    let with_gateway = run.run.cell.mode().upstream().is_some();
    let server = |role| load.servers.iter().find(|server| server.role == role);
    Some(Parts {
        load,
        gateway: server(Role::Gateway).filter(|_| with_gateway),
        origin: server(Role::Origin),
        gc: seen.gc.as_ref(),
    })
}

/// Whether the gateway is this program in another role: it was started by the file that the load engine was started by.
pub(super) fn is_this_program(runs: [&[&Run<Seen>]; 2]) -> bool {
    let is_one_file = |run: &&Run<Seen>| {
        let words = |role| run.seen.observation.process(role).map_or(&[][..], |process| &process.command);
        // What enters a network namespace stands before the program, and its first word is the subcommand.
        let load = words("load").windows(2).find(|two| two[1] == "load");
        load.is_some_and(|two| words("target").contains(&two[0]))
    };
    runs.into_iter().flatten().any(is_one_file)
}
