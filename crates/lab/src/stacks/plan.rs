//! From an experiment with stacks to the order of its runs.

use super::cell::{Scenario, StackCell};
use super::document::StacksExperiment;
use super::engine::Engine;
use super::key;
use super::run::PlannedStackRun;
use crate::error::{ConfigError, LabError};
use crate::experiment::{AGAIN, Level, Order};
use crate::plan::is_extension;
use crate::stats::ErrorRate;
use crate::verdict::Rule;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use weir_load::rng::Rng;

/// What is to be run, and why the rest is not.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct StacksPlan {
    /// Version of this layout: [`Self::SCHEMA`].
    pub(crate) schema: u32,
    /// The experiment's file, as it was given.
    pub(crate) file: PathBuf,
    /// The options that changed the experiment.
    pub(crate) arguments: Vec<String>,
    /// The levels that `--only` left.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) only: Vec<(String, String)>,
    /// Whether it was cut down by `--quick`.
    pub(crate) quick: bool,
    /// What it was made from.
    pub(crate) experiment: StacksExperiment,
    /// The cells that are run.
    pub(crate) cells: Vec<StackCell>,
    /// Engines that are not here or cannot be built, and why.
    pub(crate) absent: BTreeMap<String, String>,
    /// Cells that their engine cannot do, and what it lacks.
    pub(crate) unable: BTreeMap<String, String>,
    /// Cells whose timed lock many threads may hold at once.
    #[serde(default)]
    pub(crate) shared_locks: BTreeSet<String>,
    /// Whether `--only` named other engines and the A/A pair is run beside them.
    #[serde(default)]
    pub(crate) is_pair_kept: bool,
    /// The baseline: the first of the experiment's that is present.
    pub(crate) baseline: Option<String>,
    /// The blocks.
    pub(crate) blocks: Vec<Vec<PlannedStackRun>>,
    /// The numbers of blocks that it had each time that more were added to it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) extended: Vec<u32>,
}

/// What a run costs beyond its window: the runner's start, its warm-up, reading what it says.
const OVERHEAD_MS: u64 = 120;

impl StacksPlan {
    /// The layout's version.
    pub(super) const SCHEMA: u32 = 1;

    /// Plans the engines that are present; `only` leaves the cells with these levels, and beside them the A/A pair: without
    /// its noise floor they could not be judged. Where rows are chosen by their names, they are all.
    pub(super) fn new(
        experiment: StacksExperiment,
        engines: &BTreeMap<String, Engine>,
        absent: BTreeMap<String, String>,
        only: &[(String, String)],
    ) -> Result<Self, LabError> {
        let mut cells = Vec::new();
        let (mut unable, mut shared_locks) = (BTreeMap::new(), BTreeSet::new());
        let all = all_cells(&experiment);
        check_only(&all, only)?;
        let pair = Pair::beside(&experiment, &all, engines, only);
        let mut is_pair_kept = false;
        for cell in all.iter().cloned() {
            let is_kept = !is_selected(&cell, only);
            if is_kept && !pair.has(&cell) {
                continue;
            }
            is_pair_kept |= is_kept;
            let Some(engine) = engines.get(&cell.engine) else { continue };
            if engine.description.is_shared(&cell.scenario) {
                shared_locks.insert(cell.to_string());
            }
            match engine.description.lacks(&cell.scenario) {
                Some(why) => drop(unable.insert(cell.to_string(), why)),
                None => cells.push(cell),
            }
        }
        if cells.is_empty() {
            return Err(LabError::Nothing("no engine that is here can do any of the scenarios".into()));
        }
        let is_run = |name: &&String| cells.iter().any(|cell| cell.name == **name);
        let baseline = experiment.baseline.iter().find(is_run).cloned();
        let blocks = blocks(&experiment, &cells);
        Ok(Self {
            schema: Self::SCHEMA,
            file: PathBuf::new(),
            arguments: Vec::new(),
            only: only.to_vec(),
            quick: false,
            experiment,
            cells,
            absent,
            unable,
            shared_locks,
            is_pair_kept,
            baseline,
            blocks,
            extended: Vec::new(),
        })
    }

    /// What its ratios are held against.
    pub(crate) fn rule(&self) -> Rule {
        Rule { margin: self.experiment.margin, error_rate: ErrorRate::of_looks(1 + self.extended.len()) }
    }

    /// Makes it a plan of so many blocks, of which some were measured. The order of the first ones stays as it is.
    ///
    /// # Errors
    /// More were measured already.
    pub(super) fn extend(&mut self, count: u32, measured: u32) -> Result<(), String> {
        let planned = self.experiment.blocks;
        if is_extension(planned, measured, count)? {
            self.extended.push(planned);
        }
        self.experiment.blocks = count;
        self.blocks = blocks(&self.experiment, &self.cells);
        Ok(())
    }

    /// About how long all of it takes, builds apart.
    pub(super) fn expected_ms(&self) -> u64 {
        let window = |cell: &StackCell| cell.scenario.number("window_ms").unwrap_or(0);
        let block: u64 = self.cells.iter().map(|cell| window(cell) + OVERHEAD_MS).sum();
        block * self.blocks.len() as u64
    }
}

/// The cells of the A/A pair in the scenarios that some chosen engine can do.
struct Pair<'a> {
    engine: Option<&'a String>,
    scenarios: BTreeSet<&'a Scenario>,
}

impl<'a> Pair<'a> {
    fn beside(
        experiment: &'a StacksExperiment,
        all: &'a [StackCell],
        engines: &BTreeMap<String, Engine>,
        only: &[(String, String)],
    ) -> Self {
        let can = |cell: &StackCell| {
            engines.get(&cell.engine).is_some_and(|engine| engine.description.lacks(&cell.scenario).is_none())
        };
        let is_by_name = only.iter().any(|(key, _)| key == NAME);
        let engine = experiment.aa.as_ref().filter(|_| !is_by_name);
        let chosen = all.iter().filter(|cell| is_selected(cell, only) && can(cell));
        Self { engine, scenarios: chosen.map(|cell| &cell.scenario).collect() }
    }

    /// Of what the pair's engine cannot do nothing is said: nobody has asked for it.
    fn has(&self, cell: &StackCell) -> bool {
        self.engine == Some(&cell.engine) && self.scenarios.contains(&cell.scenario)
    }
}

/// Each scenario with each engine, and with the second of the A/A pair.
fn all_cells(experiment: &StacksExperiment) -> Vec<StackCell> {
    let mut cells = Vec::new();
    for scenario in experiment.scenarios() {
        for engine in &experiment.engines {
            let cell = |name: String| StackCell { name, engine: engine.clone(), scenario: scenario.clone() };
            cells.push(cell(engine.clone()));
            if experiment.aa.as_ref() == Some(engine) {
                cells.push(cell(format!("{engine}{AGAIN}")));
            }
        }
    }
    cells
}

/// The order of each block: scenarios in random order, the engines within one, and the levels that are compared of one
/// engine, so that what is compared lies close together in time.
fn blocks(experiment: &StacksExperiment, cells: &[StackCell]) -> Vec<Vec<PlannedStackRun>> {
    let mut rng = Rng::new(experiment.seed);
    let mut families = families(experiment, cells);
    let mut blocks: Vec<Vec<&StackCell>> = Vec::new();
    for block in 1..=experiment.blocks {
        let before = blocks.last().filter(|_| experiment.order == Order::Abba && block % 2 == 0);
        let order = match before {
            Some(before) => before.iter().rev().copied().collect(),
            None => {
                rng.shuffle(&mut families);
                for engines in &mut families {
                    rng.shuffle(engines);
                    engines.iter_mut().for_each(|levels| rng.shuffle(levels));
                }
                families.concat().concat()
            }
        };
        blocks.push(order);
    }
    let planned = |(block, cells): (u32, Vec<&StackCell>)| {
        let run = |(position, cell): (usize, &StackCell)| PlannedStackRun {
            id: format!("b{block:03}-{position:04}-{cell}"),
            block,
            cell: cell.clone(),
        };
        (1..).zip(cells).map(run).collect()
    };
    (1..).zip(blocks).map(planned).collect()
}

/// The cells by scenario, but for the factors of which levels are compared; and in each by engine.
fn families<'a>(experiment: &StacksExperiment, cells: &'a [StackCell]) -> Vec<Vec<Vec<&'a StackCell>>> {
    let mut families: BTreeMap<Scenario, BTreeMap<&str, Vec<&StackCell>>> = BTreeMap::new();
    for cell in cells {
        let compared = experiment.compare.iter().map(|compare| &compare.factor);
        let common = compared.fold(cell.scenario.clone(), |scenario, factor| scenario.without(factor));
        families.entry(common).or_default().entry(&cell.name).or_default().push(cell);
    }
    families.into_values().map(|engines| engines.into_values().collect()).collect()
}

/// Whether a cell has such levels; those of one key are alternatives.
pub(super) fn is_selected(cell: &StackCell, only: &[(String, String)]) -> bool {
    let has = |key: &str, value: &str| is_level(cell, key, value);
    only.iter().all(|(key, _)| only.iter().any(|(other, value)| other == key && has(key, value)))
}

pub(super) fn unknown_key() -> String {
    let keys = ["engine", NAME].into_iter().chain(key::KEYS.iter().map(|key| key.name));
    format!("no such key: allowed are {}", keys.collect::<Vec<_>>().join(", "))
}

/// By which one row of the results is chosen: an engine, or the second in the A/A pair.
pub(super) const NAME: &str = "name";

fn is_level(cell: &StackCell, key: &str, value: &str) -> bool {
    (key == "engine" && cell.name == value) || level(cell, key) == Some(Level::new(value))
}

fn level(cell: &StackCell, key: &str) -> Option<Level> {
    match key {
        NAME => Some(Level::new(&cell.name)),
        key => cell.level(key),
    }
}

fn check_only(cells: &[StackCell], only: &[(String, String)]) -> Result<(), ConfigError> {
    for (key, value) in only {
        if cells.iter().any(|cell| is_level(cell, key, value)) {
            continue;
        }
        let mut known: Vec<Level> = cells.iter().filter_map(|cell| level(cell, key)).collect();
        known.sort();
        known.dedup();
        let known: Vec<&str> = known.iter().map(Level::as_str).collect();
        let message = match known.as_slice() {
            [] => unknown_key(),
            known => format!("`{value}`: allowed are {}", known.join(", ")),
        };
        return Err(ConfigError::new(format!("--only {key}={value}"), message));
    }
    Ok(())
}
