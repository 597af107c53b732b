//! A result of TLS stacks, as two of them are compared.

use super::matching::{Between, Matched, Pair};
use super::stored::{Named, Place, Sample, Stored};
use crate::error::ConfigError;
use crate::machine::Machine;
use crate::metric::Metric;
use crate::stacks::{Facts, StackCell, StackRun, StacksResults, select};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

impl Stored for StacksResults {
    type Cell = StackCell;
    type Run = StackRun;

    const SUBJECT: &'static str = "engine";
    const DRIFT: &'static str = "drift of the unchanged engines";
    const SESSIONS: &'static str = "";

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

    /// None: each cell has its scenario, which is compared key by key.
    fn factors(&self) -> BTreeMap<String, String> {
        BTreeMap::new()
    }

    fn cells(&self) -> Vec<Named<'_, Self>> {
        let mut runs: BTreeMap<&StackCell, Vec<&StackRun>> = BTreeMap::new();
        for record in &self.records {
            runs.entry(&record.run.cell).or_default().push(record);
        }
        let cells = self.plan.cells.iter().filter(|cell| !cell.is_again());
        cells.map(|cell| (cell.to_string(), cell, runs.remove(cell).unwrap_or_default())).collect()
    }

    /// Every level, those too that a name leaves out.
    fn conditions(&self, cell: &StackCell) -> Result<BTreeMap<String, String>, ConfigError> {
        let name = cell.to_string();
        let own = self.plan.cells.iter().find(|own| own.to_string() == name).unwrap_or(cell);
        Ok(own.scenario.levels().map(|(key, level)| (key.to_owned(), level.to_string())).collect())
    }

    fn selects(
        &self,
        option: &str,
        levels: &[(String, String)],
        cell: &StackCell,
    ) -> Result<bool, ConfigError> {
        select(option, levels, cell)
    }

    fn version(&self, subject: &str) -> &str {
        self.version(subject)
    }

    fn name(cell: &StackCell) -> &str {
        &cell.name
    }

    fn subject(cell: &StackCell) -> &str {
        &cell.engine
    }

    fn place(cell: &StackCell) -> Place {
        Place::Stack(cell.scenario.clone())
    }

    fn is_control(_: &StackCell) -> bool {
        false
    }

    fn metrics(cell: &StackCell) -> Vec<Metric> {
        cell.scenario.compared().to_vec()
    }

    /// Of a handshake that is the server's time.
    fn main_metric(cell: &StackCell) -> Option<Metric> {
        cell.scenario.compared().first().copied()
    }

    fn sample(metric: Metric, _: &StackCell, runs: &[&StackRun], name: &str) -> Sample {
        let valid: Vec<_> = runs.iter().filter(|run| run.validity.is_valid()).collect();
        let values: Vec<f64> = valid.iter().filter_map(|run| run.value(metric)).collect();
        let note = match (valid.len(), values.len()) {
            (0, _) => Some(format!("{name} has no valid run")),
            (_, 0) => Some(format!("no run of {name} has such a value")),
            _ => None,
        };
        Sample {
            values,
            valid: valid.len(),
            runs: runs.len(),
            first: runs.first().map(|run| run.validity.to_string()),
            rate: None,
            note,
        }
    }

    /// A library of the system is another one without a word in any description, and says so itself.
    fn is_other(_: Between<'_, Self>, pair: &Pair<'_, Self>) -> bool {
        told(pair).is_some_and(|[before, after]| before != after)
    }

    fn differences(between: Between<'_, Self>) -> Vec<String> {
        let [a, b] = between.results;
        let mut differences: BTreeSet<String> = BTreeSet::new();
        for pair in &Matched::new(a, b).both {
            let Some([before, after]) = told(pair) else { continue };
            let [first, second] = between.names;
            for (what, left, right) in [
                ("TLS", &before.tls, &after.tls),
                ("crypto", &before.crypto, &after.crypto),
                ("compiler", &before.compiler, &after.compiler),
                ("allocator", &before.allocator, &after.allocator),
                ("features", &before.features.join(" "), &after.features.join(" ")),
            ] {
                if left != right {
                    let engine = &pair.cell.engine;
                    differences.insert(format!("{engine}: {what}: {left} in {first}, {right} in {second}"));
                }
            }
        }
        let others = between.other_sources();
        differences.extend(others.map(|engine| format!("another description or runner of {engine}")));
        differences.into_iter().collect()
    }
}

/// What the engine of a cell said of itself, in both.
fn told<'a>(pair: &Pair<'a, StacksResults>) -> Option<[&'a Facts; 2]> {
    let facts = |runs: &[&'a StackRun]| runs.iter().find_map(|run| run.seen.facts.as_ref());
    Some([facts(&pair.runs[0])?, facts(&pair.runs[1])?])
}
