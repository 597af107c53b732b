//! The examination: activity between two samples, and settings in files.

use crate::activity::{self, Sample};
use crate::finding::{Check, Finding};
use crate::system::System;
use crate::{cgroup, kernel, ports, process, processor};
use std::time::Duration;

/// How long to sample the cores.
const WATCHED: Duration = Duration::from_secs(1);

/// Checks of settings, by subject.
const CHECKS: [&[Check]; 4] = [processor::CHECKS, process::CHECKS, kernel::CHECKS, ports::CHECKS];

/// Examines this machine; takes a second.
pub fn examine() -> Vec<Finding> {
    let system = System::local();
    let before = Sample::take(&system);
    std::thread::sleep(WATCHED);
    findings(&system, &before, &Sample::take(&system))
}

fn findings(system: &System, before: &Sample, after: &Sample) -> Vec<Finding> {
    let mut findings = vec![
        activity::others(system, before, after),
        activity::load(system),
        activity::steal(before, after),
        cgroup::quota(system, before.cgroup.as_ref(), after.cgroup.as_ref()),
        activity::swap(system, before, after),
    ];
    findings.extend(CHECKS.concat().into_iter().map(|check| check(system)));
    findings
}

#[cfg(test)]
mod tests;
