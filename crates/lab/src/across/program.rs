//! Whether the programs of two results are the same, as far as the results tell.

use super::matching::{Between, Matched, Pair};
use crate::machine::Machine;
use crate::run::RunRecord;
use std::collections::BTreeSet;

/// The gateways that are known to be others in the second result: by `named`, by their version, or by what they were made
/// from. One that tells no version is not known to be the same.
pub(super) fn changed<'a>(
    between: Between<'_>,
    matched: &Matched<'a>,
    named: &[String],
) -> BTreeSet<&'a str> {
    let is_other = |pair: &&Pair<'_>| {
        let target = &pair.cell.target;
        let [before, after] = between.results.map(|results| results.machine.versions.get(target));
        let is_one_version = before == after && before.is_some_and(|version| !version.is_empty());
        !is_one_version
            || named.contains(target)
            || between.is_other_source(target)
            || (between.is_other_source(Machine::THIS_PROGRAM) && is_this_program(pair))
    };
    let gateways = matched.both.iter().filter(|pair| pair.cell.mode.upstream().is_some());
    gateways.filter(is_other).map(|pair| pair.cell.target.as_str()).collect()
}

/// What the runs were made of and is another in the second result.
pub(super) fn differences(between: Between<'_>) -> Vec<String> {
    let mut differences = Vec::new();
    if between.is_other_source(Machine::THIS_PROGRAM) {
        differences.push("another build of this program: load engine and origin differ".to_owned());
    }
    let targets = between.results[0].machine.versions.keys();
    let targets = targets.filter(|target| between.is_other_source(target));
    differences.extend(targets.map(|target| format!("another build, description or template of {target}")));
    differences
}

/// Which of the results do not tell what they were made of.
pub(super) fn untold(between: Between<'_>) -> Vec<&str> {
    let sides = between.names.into_iter().zip(between.results);
    let untold = sides.filter(|(_, results)| !results.machine.sources.contains_key(Machine::THIS_PROGRAM));
    untold.map(|(name, _)| name).collect()
}

/// Whether the gateway is this program in another role: it was started by the file that the load engine was started by.
fn is_this_program(pair: &Pair<'_>) -> bool {
    let is_one_file = |run: &&RunRecord| {
        let words = |role: &str| -> &[String] {
            let process = run.observation.processes.iter().find(|process| process.role == role);
            process.map_or(&[], |process| &process.command)
        };
        // What enters a network namespace stands before the program, and its first word is the subcommand.
        let load = words("load").windows(2).find(|two| two[1] == "load");
        load.is_some_and(|two| words("target").contains(&two[0]))
    };
    pair.runs.iter().flatten().any(is_one_file)
}
