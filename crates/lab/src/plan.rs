//! From an experiment to the order of its runs: cells, calibration, blocks.

use crate::error::{ConfigError, LabError};
use crate::experiment::{AGAIN, Case, Experiment, Load, Mode};
use crate::options::RunOptions;
use crate::target::Target;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use weir_load::rng::Rng;

/// What one run costs beyond warm-up and window, until it has been measured: starting, connecting, stopping.
pub const ASSUMED_OVERHEAD_MS: u64 = 300;

/// One combination of factors.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Cell {
    /// The target as the results name it: its own name, or that with `-again` for the second of the A/A pair.
    pub name: String,
    /// The folder that describes it.
    pub target: String,
    /// What a client does: it follows from the mode and the experiment's `[load]`.
    pub case: Case,
    /// Client side, upstream side.
    pub mode: Mode,
    /// Connections held open; with new connections, at once at most.
    pub connections: u32,
    /// Body bytes of an answer.
    pub bytes: u64,
    /// How requests arrive.
    pub load: Load,
}

impl fmt::Display for Cell {
    /// The stable name of a cell, its factors in a fixed order.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, case, mode, connections, bytes, load, .. } = self;
        write!(formatter, "{case}.{mode}.c{connections}.b{bytes}.{load}.{name}")
    }
}

impl Cell {
    /// The factors that two cells of one comparison share.
    pub fn group(&self) -> Group {
        let Self { case, mode, connections, bytes, load, .. } = *self;
        Group { case, mode, connections, bytes, load }
    }
}

/// The factors of a cell but its target: what is compared is compared within one group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Group {
    /// See [`Cell::case`].
    pub case: Case,
    /// See [`Cell::mode`].
    pub mode: Mode,
    /// See [`Cell::connections`].
    pub connections: u32,
    /// See [`Cell::bytes`].
    pub bytes: u64,
    /// See [`Cell::load`].
    pub load: Load,
}

impl fmt::Display for Group {
    /// What is loaded with, in words; the mode stands elsewhere.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { case, connections, bytes, .. } = self;
        match case.is_handshake() {
            false => write!(formatter, "{connections} connections, {bytes} bytes"),
            true => write!(formatter, "{case}, {connections} connections at once, {bytes} bytes"),
        }
    }
}

/// One process run that is to be made.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PlannedRun {
    /// Names its file: stage, position and cell.
    pub id: String,
    /// Calibration or which block.
    pub stage: Stage,
    /// What is run.
    pub cell: Cell,
}

/// The part of an experiment that a run belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Stage {
    /// Before the blocks: finds each target's maximum.
    Calibration,
    /// A block, counted from 1.
    Block(u32),
}

/// The plan of an experiment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// Version of this layout.
    pub schema: u32,
    /// The experiment's file, as it was given.
    pub file: PathBuf,
    /// The options that changed the experiment, as they were given.
    pub arguments: Vec<String>,
    /// What it was made from.
    pub experiment: Experiment,
    /// The cells.
    pub cells: Vec<Cell>,
    /// The baseline: the first of the experiment's candidates that is present.
    pub baseline: Option<String>,
    /// Targets that are absent, and why.
    pub absent: BTreeMap<String, String>,
    /// The calibration runs, in order.
    pub calibration: Vec<PlannedRun>,
    /// The blocks. Empty until their number is fixed: before the first of them runs.
    pub blocks: Vec<Vec<PlannedRun>>,
    /// The equal rates in requests per second, once calibration has found them.
    pub rates: Vec<EqualRate>,
}

/// The rate that all targets of one mode are offered.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EqualRate {
    /// The mode.
    pub mode: Mode,
    /// Connections held open.
    pub connections: u32,
    /// Body bytes of an answer.
    pub bytes: u64,
    /// Requests per second.
    pub requests_per_second: f64,
    /// The target whose maximum was the lowest.
    pub slowest: String,
    /// That maximum.
    pub slowest_maximum: f64,
}

impl Plan {
    /// Plans everything but the number of blocks that `minutes` asks for, which calibration has to find.
    pub fn new(experiment: Experiment, targets: &Targets, options: &RunOptions) -> Result<Self, LabError> {
        let mut cells = Vec::new();
        for cell in all_cells(&experiment, &targets.present)? {
            if options.selects(&cell)? {
                cells.push(cell);
            }
        }
        if cells.is_empty() {
            return Err(LabError::Nothing(match options.only.is_empty() {
                true => "no present target supports any of the experiment's modes".to_owned(),
                false => "--only leaves no cell of a present target".to_owned(),
            }));
        }
        let present = |name: &&String| targets.present.contains_key(*name);
        let baseline = experiment.baseline.iter().find(present).cloned();
        let calibration = calibration_runs(&experiment, &cells);
        let blocks = experiment.blocks;
        let absent = targets.absent.clone();
        let (rates, no_blocks) = (Vec::new(), Vec::new());
        let mut plan = Self {
            schema: 1,
            file: options.file.clone(),
            arguments: options.arguments(),
            experiment,
            cells,
            baseline,
            absent,
            calibration,
            blocks: no_blocks,
            rates,
        };
        if let Some(blocks) = blocks {
            plan.fix_blocks(blocks);
        }
        Ok(plan)
    }

    /// Fixes the number of blocks and the order in them.
    ///
    /// Within a block the groups come in random order, and so do the targets within a group: the runs that are compared
    /// lie close together in time, so that slow drift of the machine touches them alike.
    pub fn fix_blocks(&mut self, blocks: u32) {
        let mut rng = Rng::new(self.experiment.seed);
        self.blocks = (1..=blocks).map(|block| self.order(block, &mut rng)).collect();
    }

    fn order(&self, block: u32, rng: &mut Rng) -> Vec<PlannedRun> {
        let mut groups: BTreeMap<Group, Vec<&Cell>> = BTreeMap::new();
        for cell in &self.cells {
            groups.entry(cell.group()).or_default().push(cell);
        }
        let mut groups: Vec<Vec<&Cell>> = groups.into_values().collect();
        rng.shuffle(&mut groups);
        for group in &mut groups {
            rng.shuffle(group);
        }
        let ordered = groups.into_iter().flatten().enumerate();
        ordered
            .map(|(index, cell)| PlannedRun {
                id: format!("b{block:03}-{:03}-{cell}", index + 1),
                stage: Stage::Block(block),
                cell: cell.clone(),
            })
            .collect()
    }

    /// The number of whole blocks that fit into what is left of `minutes`, at least one.
    pub fn blocks_that_fit(&self, minutes: f64, spent_ms: u64, overhead_ms: u64) -> u32 {
        let left = (minutes * 60_000.0 - spent_ms as f64).max(0.0);
        ((left / self.block_ms(overhead_ms) as f64).floor() as u32).max(1)
    }

    /// How long a block takes when each run costs `overhead_ms` beyond warm-up and window.
    pub fn block_ms(&self, overhead_ms: u64) -> u64 {
        self.cells.len() as u64 * (self.experiment.warmup_ms + self.experiment.window_ms + overhead_ms)
    }

    /// How long the calibration takes.
    pub fn calibration_total_ms(&self, overhead_ms: u64) -> u64 {
        let run = self.experiment.warmup_ms + self.experiment.calibration_ms + overhead_ms;
        self.calibration.len() as u64 * run
    }

    /// The equal rate of a group; `None` in a closed loop or before calibration.
    pub fn rate(&self, cell: &Cell) -> Option<f64> {
        let same = |rate: &&EqualRate| {
            (rate.mode, rate.connections, rate.bytes) == (cell.mode, cell.connections, cell.bytes)
        };
        match cell.load {
            Load::Saturated => None,
            Load::EqualRate if self.experiment.rate.is_some() => self.experiment.rate,
            Load::EqualRate => self.rates.iter().find(same).map(|rate| rate.requests_per_second),
        }
    }
}

/// The targets of an experiment, as found on this machine.
#[derive(Clone, Debug, Default)]
pub struct Targets {
    /// Those that can run.
    pub present: BTreeMap<String, Target>,
    /// Those that cannot, and why.
    pub absent: BTreeMap<String, String>,
}

fn all_cells(experiment: &Experiment, present: &BTreeMap<String, Target>) -> Result<Vec<Cell>, ConfigError> {
    let with_case = |mode: &Mode| Ok((*mode, experiment.case(*mode)?));
    let modes: Vec<(Mode, Case)> =
        experiment.modes.iter().map(with_case).collect::<Result<_, ConfigError>>()?;
    let mut cells = Vec::new();
    for (name, target) in instances(experiment, present) {
        for &(mode, case) in modes.iter().filter(|(mode, _)| target.modes.contains(mode)) {
            for &connections in &experiment.connections {
                for &bytes in &experiment.bytes {
                    for &load in &experiment.loads {
                        let (name, target) = (name.clone(), target.name.clone());
                        cells.push(Cell { name, target, case, mode, connections, bytes, load });
                    }
                }
            }
        }
    }
    Ok(cells)
}

/// The present targets in the experiment's order, the A/A target a second time right after itself.
fn instances<'a>(
    experiment: &Experiment,
    present: &'a BTreeMap<String, Target>,
) -> Vec<(String, &'a Target)> {
    let mut instances = Vec::new();
    for name in &experiment.targets {
        let Some(target) = present.get(name) else { continue };
        instances.push((name.clone(), target));
        if experiment.aa.as_ref() == Some(name) {
            instances.push((format!("{name}{AGAIN}"), target));
        }
    }
    instances
}

/// Saturated runs for each target and mode that has an equal-rate cell. The A/A target is calibrated once.
fn calibration_runs(experiment: &Experiment, cells: &[Cell]) -> Vec<PlannedRun> {
    if experiment.rate.is_some() {
        return Vec::new();
    }
    let mut wanted: Vec<Cell> = cells
        .iter()
        .filter(|cell| cell.load == Load::EqualRate)
        .map(|cell| Cell { name: cell.target.clone(), load: Load::Saturated, ..cell.clone() })
        .collect();
    wanted.sort();
    wanted.dedup();
    let mut wanted = vec![wanted; experiment.calibration_runs as usize].concat();
    // The seed's next order after those of the blocks would depend on their number; a seed of its own does not.
    Rng::new(!experiment.seed).shuffle(&mut wanted);
    let numbered = wanted.into_iter().enumerate();
    numbered
        .map(|(index, cell)| PlannedRun {
            id: format!("cal-{:03}-{cell}", index + 1),
            stage: Stage::Calibration,
            cell,
        })
        .collect()
}
