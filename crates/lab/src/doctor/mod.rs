//! What disturbs a measurement on this machine: read, never written.
//!
//! Each check gives one [`Finding`]. What the system does not tell is `unknown`, which is no error: a virtual machine has
//! no frequency governor to be asked for.

mod activity;
mod hypervisor;
mod kernel;
mod network;
mod process;
mod processor;
mod system;
mod table;

pub use table::table;

use activity::Sample;
use serde::{Deserialize, Serialize};
use std::io::{self, Write as _};
use std::path::Path;
use std::time::Duration;
use system::System;

/// One thing that may disturb, and what can be done about it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// Its name, the same in every version.
    pub id: String,
    /// How it is here; `unknown` where the system does not tell.
    pub value: String,
    /// Whether that is well.
    pub level: Level,
    /// What to do, or to know; empty where all is well.
    pub advice: String,
    /// The command that mends it, where there is one. It is never run from here.
    pub mend: Option<String>,
    /// Why it matters.
    pub why: String,
}

/// How much a finding weighs; the worst first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// Results are not to be trusted like this.
    Bad,
    /// To be known when results are read.
    Note,
    /// As it should be.
    Good,
}

/// How long the cores are watched.
const WATCHED: Duration = Duration::from_secs(1);

/// Examines this machine, which takes a second.
pub fn examine() -> Vec<Finding> {
    let system = System::new(Path::new("/"));
    let before = Sample::take(&system);
    std::thread::sleep(WATCHED);
    findings(&system, &before, &Sample::take(&system))
}

/// Says on standard error what makes results untrustworthy, before anything is measured.
pub(crate) fn warn(findings: &[Finding]) {
    for finding in findings.iter().filter(|finding| finding.level == Level::Bad) {
        let _ = writeln!(io::stderr(), "doctor: {}: {}. {}", finding.id, finding.value, finding.advice);
    }
}

/// Whether a hypervisor is below this machine; `None` where the system does not tell.
pub fn is_virtual() -> Option<bool> {
    hypervisor::is_below(&System::new(Path::new("/")))
}

/// All findings: what was seen between two samples, and what stands in files.
fn findings(system: &System, before: &Sample, after: &Sample) -> Vec<Finding> {
    let mut findings = vec![
        activity::others(system, before, after),
        activity::load(system),
        activity::steal(system, before, after),
        activity::cgroup(system, before, after),
        activity::swap(system, before, after),
    ];
    let checks = [processor::CHECKS, process::CHECKS, kernel::CHECKS, network::CHECKS];
    findings.extend(checks.concat().into_iter().map(|check| check(system)));
    findings
}

/// What stands in files.
type Check = fn(&System) -> Finding;

/// What is examined.
#[derive(Clone, Copy, Debug)]
struct Subject {
    id: &'static str,
    why: &'static str,
}

/// How something is that the system does not tell.
const UNKNOWN: &str = "unknown";

impl Subject {
    const fn new(id: &'static str, why: &'static str) -> Self {
        Self { id, why }
    }

    fn good(self, value: impl Into<String>) -> Finding {
        self.found(Level::Good, value.into(), "")
    }

    fn note(self, value: impl Into<String>, advice: &str) -> Finding {
        self.found(Level::Note, value.into(), advice)
    }

    fn bad(self, value: impl Into<String>, advice: &str) -> Finding {
        self.found(Level::Bad, value.into(), advice)
    }

    fn unknown(self) -> Finding {
        self.note(UNKNOWN, "The system does not tell.")
    }

    fn found(self, level: Level, value: String, advice: &str) -> Finding {
        let (id, why) = (self.id.to_owned(), self.why.to_owned());
        // A cgroup may have any name, and a terminal would follow what is in it.
        let value = value.chars().map(|c| if c.is_control() { '?' } else { c }).collect();
        Finding { id, value, level, advice: advice.to_owned(), mend: None, why }
    }
}

impl Finding {
    fn mend(self, command: &str) -> Self {
        Self { mend: Some(command.to_owned()), ..self }
    }
}

#[cfg(test)]
mod tests;
