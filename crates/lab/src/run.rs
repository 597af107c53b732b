//! One process run: what is asked of an executor, what it saw, and what is stored.

use crate::error::LabError;
use crate::gc;
use crate::limit::Limit;
use crate::net::NetReport;
use crate::plan::PlannedRun;
use crate::validity::{self, Validity};
use crate::{experiment::Conditions, limit};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use weir_load::result::{LoadResult, Role, ServerCost};

/// Makes one run. The lab's own starts processes; tests give results that they made up.
pub trait Executor {
    /// Starts everything afresh, loads, measures, stops. A target that fails is an [`Observation`], not an error.
    fn execute(&mut self, request: &Request<'_>) -> Result<Observation, LabError>;
}

/// What a run is asked to do.
#[derive(Clone, Debug)]
pub struct Request<'a> {
    /// Which cell, which block.
    pub run: &'a PlannedRun,
    /// What it is run under.
    pub conditions: Conditions,
    /// Requests per second; `None` in a closed loop.
    pub rate: Option<f64>,
    /// Milliseconds of load before the window.
    pub warmup_ms: u64,
    /// Milliseconds of the window.
    pub window_ms: u64,
}

impl<'a> Request<'a> {
    /// The request for a planned run.
    pub fn new(run: &'a PlannedRun, conditions: Conditions, rate: Option<f64>) -> Self {
        let (warmup_ms, window_ms) = (conditions.warmup_ms, conditions.window_ms(run.stage));
        Self { run, conditions, rate, warmup_ms, window_ms }
    }
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
    #[serde(default)]
    pub foreign_cpu: Option<f64>,
    /// The network between the processes.
    #[serde(default)]
    pub net: Option<NetReport>,
    /// What is not known of the run, and why; it may be used all the same.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// Garbage collection of a target that is a JVM; `None` for all others, or where it is not known.
    #[serde(default)]
    pub gc: Option<gc::Report>,
    /// Where the processes' logs are kept since the run failed, in the directory of the results.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub logs: Option<PathBuf>,
    /// Milliseconds from the first process's start to the last one's end.
    pub elapsed_ms: u64,
}

/// One process of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
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

/// A run as it is stored.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunRecord {
    /// Version of this layout: [`Self::SCHEMA`].
    pub schema: u32,
    /// What was planned.
    #[serde(flatten)]
    pub run: PlannedRun,
    /// Requests per second that were offered; `None` in a closed loop.
    pub rate: Option<f64>,
    /// Milliseconds of load that its processes had served before.
    #[serde(default)]
    pub served_ms: u64,
    /// Milliseconds of load before the window.
    pub warmup_ms: u64,
    /// Milliseconds of the window.
    pub window_ms: u64,
    /// Whether it may be used.
    pub validity: Validity,
    /// What held the rate down; `None` where no window was measured.
    pub limit: Option<Limit>,
    /// What was seen.
    pub observation: Observation,
}

impl RunRecord {
    /// The layout's version.
    pub const SCHEMA: u32 = 1;

    /// Judges an observation.
    pub fn new(request: &Request<'_>, observation: Observation) -> Self {
        let mut record = Self {
            schema: Self::SCHEMA,
            run: request.run.clone(),
            rate: request.rate,
            served_ms: request.conditions.served_ms,
            warmup_ms: request.warmup_ms,
            window_ms: request.window_ms,
            validity: Validity::Valid,
            limit: None,
            observation,
        };
        record.judge(&request.conditions);
        record
    }

    /// Judges again, by the rules of this program: what was stored may come from another version.
    pub fn judge(&mut self, conditions: &Conditions) {
        self.limit = self.parts().map(|parts| limit::of(&parts));
        self.validity = validity::of(self, conditions);
    }

    /// The costs of each part; `None` where no window was measured.
    pub fn parts(&self) -> Option<Parts<'_>> {
        let load = self.observation.load.as_ref()?;
        let cores = |role: &str| -> &[usize] {
            let report = self.observation.processes.iter().find(|process| process.role == role);
            report.map_or(&[], |process| &process.cores)
        };
        let with_gateway = self.run.cell.mode.upstream().is_some();
        let server = |role| load.servers.iter().find(|server| server.role == role);
        Some(Parts {
            load,
            gateway: server(Role::Gateway).filter(|_| with_gateway),
            origin: server(Role::Origin),
            gc: self.observation.gc.as_ref(),
            gateway_cores: cores("target"),
            origin_cores: cores("origin"),
            load_cores: cores("load"),
        })
    }
}

/// The costs of a run, by part.
#[derive(Clone, Copy, Debug)]
pub struct Parts<'a> {
    /// The engine's whole result.
    pub load: &'a LoadResult,
    /// The target; `None` when there is no gateway.
    pub gateway: Option<&'a ServerCost>,
    /// The test server.
    pub origin: Option<&'a ServerCost>,
    /// Garbage collection, where the target is a JVM.
    pub gc: Option<&'a gc::Report>,
    /// Where the target ran.
    pub gateway_cores: &'a [usize],
    /// Where the test server ran.
    pub origin_cores: &'a [usize],
    /// Where the load engine ran.
    pub load_cores: &'a [usize],
}
