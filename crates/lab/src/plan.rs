//! From an experiment to the order of its runs: cells, calibration, blocks.

pub use crate::cell::{Cell, Group};
use crate::error::{ConfigError, LabError};
use crate::experiment::{AGAIN, Case, Conditions, Experiment, Level, Load, Mode, OWN, Order, Stop};
use crate::options::RunOptions;
use crate::stats::{ErrorRate, MOST_BLOCKS};
use crate::target::Target;
use crate::verdict::Rule;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;
use toml::Value;
use weir_load::plural;
use weir_load::rng::Rng;

/// What a run costs beyond its phases, until it has been measured and where the target's description does not say:
/// starting, connecting, stopping.
pub const ASSUMED_OVERHEAD_MS: u64 = 700;

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
    /// Version of this layout: [`Self::SCHEMA`].
    pub schema: u32,
    /// The experiment's file, as it was given.
    pub file: PathBuf,
    /// The options that changed the experiment, as they were given.
    pub arguments: Vec<String>,
    /// The levels that `--only` left.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub only: Vec<(String, String)>,
    /// What it was made from.
    pub experiment: Experiment,
    /// The cells.
    pub cells: Vec<Cell>,
    /// The baseline: the first of the experiment's candidates that is present.
    pub baseline: Option<String>,
    /// Targets that are absent, and why.
    pub absent: BTreeMap<String, String>,
    /// What the experiment names and is not run, though its target is present, and why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dropped: Vec<String>,
    /// The calibration runs, in order.
    pub calibration: Vec<PlannedRun>,
    /// The blocks. Empty until their number is fixed: before the first of them runs.
    pub blocks: Vec<Vec<PlannedRun>>,
    /// The equal rates in requests per second, once calibration has found them.
    pub rates: Vec<EqualRate>,
    /// Milliseconds that a run takes beyond its phases, by target: as its description says, and after calibration as it
    /// was. Where there is none it is [`ASSUMED_OVERHEAD_MS`].
    #[serde(default)]
    pub overheads_ms: BTreeMap<String, u64>,
    /// Whether the blocks ended early because the intervals were narrow enough.
    #[serde(default)]
    pub is_precise: bool,
    /// The numbers of blocks that it had each time that more were added to it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub extended: Vec<u32>,
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
    /// Its levels of the further factors.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub factors: BTreeMap<String, Level>,
    /// Requests per second.
    pub requests_per_second: f64,
    /// The target whose maximum was the lowest.
    pub slowest: String,
    /// That maximum.
    pub slowest_maximum: f64,
}

impl Plan {
    /// The layout's version.
    pub const SCHEMA: u32 = 1;

    /// Plans everything but the number of blocks that `minutes` asks for, which calibration has to find.
    pub fn new(experiment: Experiment, targets: &Targets, options: &RunOptions) -> Result<Self, LabError> {
        let all = all_cells(&experiment, targets)?;
        let is_present = |cell: &Cell| targets.present.contains_key(&cell.target);
        let nothing = |why: &str| Err(LabError::Nothing(why.to_owned()));
        if !all.iter().any(is_present) {
            return nothing("no present target supports any of the experiment's modes");
        }
        options.check_only(&all, &experiment)?;
        let (mut cells, mut left_out) = (Vec::new(), 0);
        for cell in all.into_iter().filter(is_present) {
            match options.selects(&cell, &experiment)? {
                true => cells.push(cell),
                false => left_out += 1,
            }
        }
        let mut dropped = unsupported_modes(&experiment, targets);
        if left_out > 0 {
            dropped.push(format!("{}, which --only leaves out", plural(left_out, "cell")));
        }
        if cells.is_empty() {
            return nothing("--only leaves no cell of a present target");
        }
        let baseline = experiment.baseline.iter().find_map(|name| subject(&cells, name));
        let calibration = calibration_runs(&experiment, &cells)?;
        let blocks = match experiment.stop {
            Stop::Blocks(blocks) => Some(blocks),
            Stop::Precision(rule) => Some(rule.most),
            Stop::Minutes(_) => None,
        };
        let absent = targets.absent.iter().map(|(name, absent)| (name.clone(), absent.why.clone())).collect();
        let overhead_ms = |(name, target): (&String, &Target)| Some((name.clone(), target.overhead_ms()?));
        let overheads_ms = targets.present.iter().filter_map(overhead_ms).collect();
        let (rates, no_blocks) = (Vec::new(), Vec::new());
        let mut plan = Self {
            schema: Self::SCHEMA,
            file: options.file.clone(),
            arguments: options.arguments(),
            only: options.only.clone(),
            experiment,
            cells,
            baseline,
            absent,
            dropped,
            calibration,
            blocks: no_blocks,
            rates,
            overheads_ms,
            is_precise: false,
            extended: Vec::new(),
        };
        if let Some(blocks) = blocks {
            plan.fix_blocks(blocks);
        }
        Ok(plan)
    }

    /// What its ratios are held against.
    pub(crate) fn rule(&self) -> Rule {
        Rule { margin: self.experiment.margin, error_rate: ErrorRate::of_looks(1 + self.extended.len()) }
    }

    /// Fixes the number of blocks and the order in them.
    ///
    /// Within a block the groups come in random order, and so do the targets within a group: the runs that are compared
    /// lie close together in time, so that slow drift of the machine touches them alike.
    pub fn fix_blocks(&mut self, blocks: u32) {
        let mut rng = Rng::new(self.experiment.seed);
        let mut order = Vec::new();
        let mut planned = Vec::new();
        for block in 1..=blocks {
            match self.experiment.order {
                Order::Abba if block % 2 == 0 => order.reverse(),
                _ => order = self.order(&mut rng),
            }
            planned.push(numbered(block, &order));
        }
        self.blocks = planned;
    }

    /// Makes it a plan of so many blocks, of which some were measured. The order of the first ones stays as it is.
    ///
    /// # Errors
    /// More were measured already.
    pub(crate) fn extend(&mut self, blocks: u32, measured: u32) -> Result<(), String> {
        let planned = self.blocks.len() as u32;
        if is_extension(planned, measured, blocks)? {
            self.extended.push(planned);
        }
        if blocks != planned {
            self.is_precise = false;
            self.fix_blocks(blocks);
        }
        self.experiment.stop = Stop::Blocks(blocks);
        Ok(())
    }

    fn order(&self, rng: &mut Rng) -> Vec<&Cell> {
        let mut groups: BTreeMap<Group, Vec<&Cell>> = BTreeMap::new();
        for cell in &self.cells {
            groups.entry(cell.group()).or_default().push(cell);
        }
        let mut groups: Vec<Vec<&Cell>> = groups.into_values().collect();
        rng.shuffle(&mut groups);
        for group in &mut groups {
            rng.shuffle(group);
        }
        groups.into_iter().flatten().collect()
    }

    /// The number of whole blocks that fit into what is left of `minutes`, from one to [`MOST_BLOCKS`].
    pub fn blocks_that_fit(&self, minutes: f64, spent_ms: u64) -> u32 {
        let left = (minutes * 60_000.0 - spent_ms as f64).max(0.0);
        ((left / self.block_ms() as f64).floor() as u32).clamp(1, MOST_BLOCKS)
    }

    /// How long a block takes, in milliseconds.
    pub fn block_ms(&self) -> u64 {
        self.cells.iter().map(|cell| self.run_ms(cell, Stage::Block(1))).sum()
    }

    /// How long the calibration takes, in milliseconds.
    pub fn calibration_total_ms(&self) -> u64 {
        self.calibration.iter().map(|run| self.run_ms(&run.cell, Stage::Calibration)).sum()
    }

    /// A run's phases, and what it costs beyond them.
    fn run_ms(&self, cell: &Cell, stage: Stage) -> u64 {
        let conditions = self.experiment.conditions(cell);
        let phases_ms = conditions.map_or(0, |conditions| {
            let window_ms = conditions.window_ms(stage);
            conditions.served_ms + conditions.warmup_ms + window_ms
        });
        phases_ms + self.overheads_ms.get(&cell.target).copied().unwrap_or(ASSUMED_OVERHEAD_MS)
    }

    /// Whether calibration finds a cell's rate; else it is given, or there is none.
    pub fn is_calibrated(&self, cell: &Cell) -> bool {
        let is_given = |conditions: Conditions| conditions.rate.is_some();
        cell.load == Load::EqualRate && !self.experiment.conditions(cell).is_ok_and(is_given)
    }

    /// The equal rate of a group; `None` in a closed loop or before calibration.
    pub fn rate(&self, cell: &Cell) -> Option<f64> {
        let group = cell.group();
        let same = |rate: &&EqualRate| {
            (rate.mode, rate.connections, rate.bytes) == (cell.mode, cell.connections, cell.bytes)
                && rate.factors == group.factors
        };
        let given = || self.experiment.conditions(cell).ok().and_then(|conditions| conditions.rate);
        match cell.load {
            Load::Saturated => None,
            Load::EqualRate => {
                given().or_else(|| self.rates.iter().find(same).map(|rate| rate.requests_per_second))
            }
        }
    }
}

/// Whether a plan of other blocks extends a finished result, which somebody may have looked at.
///
/// # Errors
/// More were measured already.
pub(crate) fn is_extension(planned: u32, measured: u32, wanted: u32) -> Result<bool, String> {
    match wanted < measured {
        true => Err(format!(
            "{wanted}: it has {} already; expected {measured} or more",
            plural(measured.into(), "block")
        )),
        false => Ok(measured > 0 && measured == planned && wanted > planned),
    }
}

/// The targets of an experiment, as found on this machine.
#[derive(Clone, Debug, Default)]
pub struct Targets {
    /// Those that can run.
    pub present: BTreeMap<String, Target>,
    /// Those that cannot.
    pub absent: BTreeMap<String, Absent>,
}

/// A target that cannot run here.
#[derive(Clone, Debug)]
pub struct Absent {
    /// As it is described.
    pub target: Target,
    /// Why it cannot run.
    pub why: String,
}

impl Targets {
    /// Each of them, whether or not it can run here.
    pub fn all(&self) -> impl Iterator<Item = &Target> {
        self.present.values().chain(self.absent.values().map(|absent| &absent.target))
    }
}

/// The subject that a candidate for the baseline names: a target with its first settings, or those that it names.
fn subject(cells: &[Cell], name: &str) -> Option<String> {
    let exact = || cells.iter().find(|cell| cell.name == name);
    let first = || cells.iter().find(|cell| cell.target == name && !cell.is_again());
    exact().or_else(first).map(|cell| cell.name.clone())
}

fn numbered(block: u32, order: &[&Cell]) -> Vec<PlannedRun> {
    let run = |(index, cell): (usize, &&Cell)| PlannedRun {
        id: format!("b{block:03}-{:03}-{cell}", index + 1),
        stage: Stage::Block(block),
        cell: (*cell).clone(),
    };
    order.iter().enumerate().map(run).collect()
}

/// Those of the absent targets, too.
fn all_cells(experiment: &Experiment, targets: &Targets) -> Result<Vec<Cell>, ConfigError> {
    let mut cells = Vec::new();
    for subject in subjects(experiment, targets) {
        for combination in experiment.combinations() {
            let cell = subject.cell(experiment, &combination)?;
            cells.extend(Some(cell).filter(|cell| subject.modes.contains(&cell.mode)));
        }
    }
    Ok(cells)
}

/// The modes of the experiment that a target does not have, where it has others of their kind: with a gateway or without.
fn unsupported_modes(experiment: &Experiment, targets: &Targets) -> Vec<String> {
    let is_of_gateway = |mode: &Mode| mode.upstream().is_some();
    let lacks = |target: &Target| {
        let kind = target.modes.iter().any(is_of_gateway);
        let wanted = experiment.modes().into_iter().filter(|mode| is_of_gateway(mode) == kind);
        let lacking: Vec<String> =
            wanted.filter(|mode| !target.modes.contains(mode)).map(|mode| mode.to_string()).collect();
        let has: Vec<String> = target.modes.iter().map(ToString::to_string).collect();
        (!lacking.is_empty())
            .then(|| format!("{} in {}: its modes are {}", target.name, lacking.join(", "), has.join(", ")))
    };
    targets.present.values().filter_map(lacks).collect()
}

/// What is measured: a target with settings of its own, or its second in the A/A pair.
struct Subject<'a> {
    name: String,
    target: &'a str,
    modes: &'a [Mode],
    settings: BTreeMap<String, Level>,
}

impl Subject<'_> {
    fn cell(&self, experiment: &Experiment, combination: &[(&str, &Value)]) -> Result<Cell, ConfigError> {
        let conditions = experiment.under(combination)?;
        let further = combination.iter().filter(|(key, _)| !OWN.contains(key));
        let further = further.map(|(key, value)| ((*key).to_owned(), Level::of(value)));
        let case = Case::of(&conditions.load_options()?.policy, conditions.mode.client());
        Ok(Cell {
            name: self.name.clone(),
            target: self.target.to_owned(),
            case,
            mode: conditions.mode,
            connections: conditions.connections,
            bytes: conditions.bytes,
            load: conditions.load_model,
            factors: further.chain(self.settings.clone()).collect(),
        })
    }
}

/// The targets in the experiment's order, each with each of its settings; the A/A target a second time right after
/// itself.
fn subjects<'a>(experiment: &Experiment, targets: &'a Targets) -> Vec<Subject<'a>> {
    let mut subjects = Vec::new();
    for name in experiment.targets() {
        let Some(found) = targets.all().find(|target| target.name == name) else { continue };
        let target = &found.name;
        for (index, settings) in
            experiment.settings_of(|key| found.settings().contains_key(key)).iter().enumerate()
        {
            let words = settings
                .iter()
                .map(|(key, value)| format!("+{}={}", key.trim_start_matches("settings."), Level::of(value)));
            let settings: BTreeMap<String, Level> =
                settings.iter().map(|(key, value)| ((*key).to_owned(), Level::of(value))).collect();
            let name = format!("{name}{}", words.collect::<String>());
            let subject = |name| Subject { name, target, modes: &found.modes, settings: settings.clone() };
            let again = (index == 0 && experiment.aa.as_ref() == Some(target))
                .then(|| subject(format!("{name}{AGAIN}")));
            subjects.push(subject(name));
            subjects.extend(again);
        }
    }
    subjects
}

/// Saturated runs for each target that has an equal-rate cell whose rate is not given. The A/A target is calibrated once.
fn calibration_runs(experiment: &Experiment, cells: &[Cell]) -> Result<Vec<PlannedRun>, ConfigError> {
    let mut wanted = Vec::new();
    for cell in cells.iter().filter(|cell| cell.load == Load::EqualRate) {
        if experiment.conditions(cell)?.rate.is_none() {
            let name = cell.subject().to_owned();
            wanted.push(Cell { name, load: Load::Saturated, ..cell.clone() });
        }
    }
    wanted.sort();
    wanted.dedup();
    let mut wanted = vec![wanted; experiment.calibration_runs as usize].concat();
    // The seed's next order after those of the blocks would depend on their number; a seed of its own does not.
    Rng::new(!experiment.seed).shuffle(&mut wanted);
    let numbered = wanted.into_iter().enumerate();
    Ok(numbered
        .map(|(index, cell)| PlannedRun {
            id: format!("cal-{:03}-{cell}", index + 1),
            stage: Stage::Calibration,
            cell,
        })
        .collect())
}
