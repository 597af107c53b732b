//! The measurements of one run of a gateway.

use super::{Conditions, Place as _, gc};
use crate::planning::planned_run::PlannedRun;
use crate::store::run::Run;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;
use weir_load::result::{Limit, LoadResult, Role, ServerCost};
use weir_netem::NetReport;
use weir_profile::Recorded;

/// The conditions of a run, and its measurements.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Seen {
    /// Requests per second offered; `None` in a closed loop.
    pub rate: Option<f64>,
    /// Milliseconds of load on its processes before the warm-up.
    #[serde(default)]
    pub served_ms: u64,
    /// Milliseconds of load before the window.
    pub warmup_ms: u64,
    /// Milliseconds of the window.
    pub window_ms: u64,
    /// The limit; `None` without a measured window.
    pub limit: Option<Limit>,
    /// The measurements.
    pub observation: Observation,
}

/// The measurements of an executor.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Observation {
    /// The load engine's result, if it printed one.
    pub load: Option<LoadResult>,
    /// Why there is no result, or why it is not to be trusted.
    pub failure: Option<String>,
    /// The processes, in the order of their start.
    pub processes: Vec<ProcessReport>,
    /// Connections that the origin accepted during the load, by its own count; `None` without a gateway.
    pub upstream_connections: Option<u64>,
    /// Requests that reached the origin by HTTP/1.1 during the load; `None` without HTTP/2 to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub upstream_http1: Option<u64>,
    /// TLS handshakes that the origin saw during the load; `None` without TLS to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub upstream_handshakes: Option<UpstreamHandshakes>,
    /// The share of the run's cores used by processes outside it; `None` if the system does not report it.
    pub foreign_cpu: Option<f64>,
    /// The share that the hypervisor gave to other guests; `None` as above.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stolen_cpu: Option<f64>,
    /// In a duet, the share of the window in which the other was measured too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub common_share: Option<f64>,
    /// The network between the processes.
    pub net: Option<NetReport>,
    /// Missing facts of the run, and why; it may be valid all the same.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// Garbage collection of a target that is a JVM; `None` for others, or if unknown.
    pub gc: Option<gc::Report>,
    /// The samples of the target, in the run that profiles it; stored on their own.
    #[serde(skip)]
    pub profile: Option<Recorded>,
    /// The kept logs of a failed run's processes, in the results directory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub logs: Option<PathBuf>,
    /// Milliseconds from the first process's start to the last one's exit.
    pub elapsed_ms: u64,
}

impl Observation {
    pub(super) fn process(&self, role: &str) -> Option<&ProcessReport> {
        self.processes.iter().find(|process| process.role == role)
    }

    /// The cores of the process in this role.
    pub(super) fn cores(&self, role: &str) -> &[usize] {
        self.process(role).map_or(&[], |process| &process.cores)
    }
}

/// Handshakes between the target and the origin, counted by the origin.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UpstreamHandshakes {
    /// Full ones.
    pub full: u64,
    /// Resumptions.
    pub resumed: u64,
    /// By version, suite, group, certificate (its key and its issuer's signature) and kind, if the origin counts so.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub negotiated: BTreeMap<String, u64>,
}

/// One process of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessReport {
    /// `origin`, `target` or `load`.
    pub role: String,
    /// Program and arguments.
    pub command: Vec<String>,
    /// Its cores.
    pub cores: Vec<usize>,
    /// Its exit.
    pub exit: String,
    /// Whether it did not exit on its stop signal, and was killed.
    #[serde(default)]
    pub killed: bool,
    /// The tail of its standard error.
    pub stderr: String,
}

/// The settings of a run.
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

/// The results of a run, by part.
#[derive(Clone, Copy, Debug)]
pub(super) struct Parts<'a> {
    pub(super) load: &'a LoadResult,
    /// `None` without a gateway.
    pub(super) gateway: Option<&'a ServerCost>,
    pub(super) origin: Option<&'a ServerCost>,
    /// Garbage collection, where the target is a JVM.
    pub(super) gc: Option<&'a gc::Report>,
}

/// Each part; `None` without a measured window.
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

/// Whether the gateway is this program in another role: started from the same file as the load engine.
pub(super) fn is_this_program(runs: [&[&Run<Seen>]; 2]) -> bool {
    let is_one_file = |run: &&Run<Seen>| {
        let words = |role| run.seen.observation.process(role).map_or(&[][..], |process| &process.command);
        // The command that enters a network namespace precedes the program, whose first argument is the subcommand.
        let load = words("load").windows(2).find(|two| two[1] == "load");
        load.is_some_and(|two| words("target").contains(&two[0]))
    };
    runs.into_iter().flatten().any(is_one_file)
}
