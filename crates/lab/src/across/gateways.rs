//! A result of gateways, as two of them are compared.

use super::matching::{Between, Pair, leaves};
use super::stored::{Named, Place, Sample, Stored};
use crate::cell::Cell;
use crate::error::ConfigError;
use crate::experiment::Level;
use crate::machine::Machine;
use crate::metric::Metric;
use crate::options::select;
use crate::pairing;
use crate::results::Results;
use crate::run::RunRecord;
use crate::summary::by_cell;
use std::collections::BTreeMap;
use std::path::Path;

impl Stored for Results {
    type Cell = Cell;
    type Run = RunRecord;

    const SUBJECT: &'static str = "target";
    const DRIFT: &'static str = "drift of the unchanged targets";
    const SESSIONS: &'static str =
        "Nightly runs of one program differ by 5 % from one day to the next, and by 28 % in one of ten.";

    fn directory(&self) -> &Path {
        &self.directory
    }

    fn machine(&self) -> &Machine {
        &self.machine
    }

    fn experiment(&self) -> &str {
        &self.plan.experiment.name
    }

    fn margin(&self) -> f64 {
        self.plan.experiment.margin
    }

    /// But for the target: which targets were there is no part of the plan.
    fn factors(&self) -> BTreeMap<String, String> {
        let factors = self.plan.experiment.factors.iter().filter(|factor| factor.key != "target");
        let names = |levels: Vec<Level>| levels.iter().map(Level::as_str).collect::<Vec<_>>().join(", ");
        factors.map(|factor| (factor.key.clone(), names(factor.names()))).collect()
    }

    fn cells(&self) -> Vec<Named<'_, Self>> {
        let cells = by_cell(&self.plan, &self.records).into_iter();
        // The settings of a target are in its name, and their order there is the file's: the cell's own name is stable.
        cells
            .filter(|(cell, _)| !cell.is_again())
            .map(|(cell, runs)| (cell.to_string(), cell, runs))
            .collect()
    }

    fn conditions(&self, cell: &Cell) -> Result<BTreeMap<String, String>, ConfigError> {
        self.plan.experiment.conditions(cell).map(|conditions| leaves(&conditions))
    }

    fn selects(&self, option: &str, levels: &[(String, String)], cell: &Cell) -> Result<bool, ConfigError> {
        select(option, levels, cell, &self.plan.experiment)
    }

    fn version(&self, subject: &str) -> &str {
        self.machine.versions.get(subject).map_or("", String::as_str)
    }

    fn name(cell: &Cell) -> &str {
        &cell.name
    }

    fn subject(cell: &Cell) -> &str {
        &cell.target
    }

    fn place(cell: &Cell) -> Place {
        Place::Gateway(cell.group())
    }

    fn is_control(cell: &Cell) -> bool {
        cell.mode.upstream().is_none()
    }

    fn metrics(cell: &Cell) -> Vec<Metric> {
        let all = Metric::of_load(cell.load, cell.case).into_iter();
        all.filter(|metric| !Self::is_control(cell) || !metric.is_cpu()).collect()
    }

    fn main_metric(cell: &Cell) -> Option<Metric> {
        Metric::of_load(cell.load, cell.case).first().copied()
    }

    fn sample(metric: Metric, cell: &Cell, runs: &[&RunRecord], name: &str) -> Sample {
        let valid = pairing::valid(runs);
        Sample {
            values: pairing::values(metric, &valid).into_values().collect(),
            valid: valid.len(),
            runs: runs.len(),
            first: runs.first().map(|run| run.validity.to_string()),
            rate: runs.iter().find_map(|run| run.rate),
            note: pairing::unsupported(metric, cell.load, name, &valid)
                .or_else(|| metric.has_no_value(name, &valid)),
        }
    }

    fn is_other(between: Between<'_, Self>, pair: &Pair<'_, Self>) -> bool {
        between.is_other_source(Machine::THIS_PROGRAM) && is_this_program(pair)
    }

    fn differences(between: Between<'_, Self>) -> Vec<String> {
        let mut differences = Vec::new();
        if between.is_other_source(Machine::THIS_PROGRAM) {
            differences.push("another build of this program: load engine and origin differ".to_owned());
        }
        let others = between.other_sources();
        differences
            .extend(others.map(|target| format!("another build, description or template of {target}")));
        differences
    }
}

/// Whether the gateway is this program in another role: it was started by the file that the load engine was started by.
fn is_this_program(pair: &Pair<'_, Results>) -> bool {
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
