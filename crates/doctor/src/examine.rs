//! The examination: what was seen between two samples, and what stands in files.

use crate::activity::{self, Sample};
use crate::finding::{Check, Finding};
use crate::system::System;
use crate::{cgroup, kernel, network, process, processor};
use std::time::Duration;

/// How long the cores are watched.
const WATCHED: Duration = Duration::from_secs(1);

/// What stands in files, by subject.
const CHECKS: [&[Check]; 4] = [processor::CHECKS, process::CHECKS, kernel::CHECKS, network::CHECKS];

/// Examines this machine, which takes a second.
pub fn examine() -> Vec<Finding> {
    let system = System::here();
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
