//! What has to be known of an experiment with gateways beside its cells.

use super::run::Seen;
use crate::run::Run;
use std::collections::BTreeMap;
use weir_load::plural;

/// The targets that had to be killed, how they were to end, and how often it came to that.
pub(super) fn killed(runs: &[Run<Seen>]) -> Vec<String> {
    let mut found: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    let mut all: BTreeMap<&str, usize> = BTreeMap::new();
    for run in runs {
        let target = run.run.cell.subject.as_str();
        for process in run.seen.observation.processes.iter().filter(|process| process.role == "target") {
            *all.entry(target).or_default() += 1;
            if process.killed {
                *found.entry((target, &process.exit)).or_default() += 1;
            }
        }
    }
    let line = |((target, how), count): ((&str, &str), usize)| {
        format!("{target} was {how}: in {count} of {}.", plural(all[target] as u64, "run"))
    };
    found.into_iter().map(line).collect()
}

/// Whether the gateway is this program in another role: it was started by the file that the load engine was started by.
pub(super) fn is_this_program(runs: [&[&Run<Seen>]; 2]) -> bool {
    let is_one_file = |run: &&Run<Seen>| {
        let words = |role: &str| -> &[String] {
            let process = run.seen.observation.processes.iter().find(|process| process.role == role);
            process.map_or(&[], |process| &process.command)
        };
        // What enters a network namespace stands before the program, and its first word is the subcommand.
        let load = words("load").windows(2).find(|two| two[1] == "load");
        load.is_some_and(|two| words("target").contains(&two[0]))
    };
    runs.into_iter().flatten().any(is_one_file)
}
