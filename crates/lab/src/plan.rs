//! From an experiment to the order of its runs: cells, calibration, blocks.

use crate::cell::{Cell, Levels};
use crate::experiment::{Experiment, Order, Stop};
use crate::run::{PlannedRun, Stage};
use crate::stats::rng::Rng;
use crate::stats::verdict::Rule;
use crate::stats::{ErrorRate, MOST_BLOCKS};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::collections::BTreeMap;
use std::path::PathBuf;
use weir_load::plural;

/// The plan of an experiment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// Version of this layout: [`crate::run::SCHEMA`].
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
    /// Subjects that are absent, and why.
    pub absent: BTreeMap<String, String>,
    /// What the experiment names and is not run, though its subject is present, and why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dropped: Vec<String>,
    /// What has to be known of some cells whatever they come to, by their names.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub remarks: BTreeMap<String, String>,
    /// Whether `--only` named other subjects and the A/A pair is run beside them.
    #[serde(default)]
    pub is_pair_kept: bool,
    /// The calibration runs, in order.
    pub calibration: Vec<Turn>,
    /// The blocks. Empty until their number is fixed: before the first of them runs.
    pub blocks: Vec<Vec<Turn>>,
    /// The equal rates, once calibration has found them.
    pub rates: Vec<EqualRate>,
    /// Milliseconds that a run takes beyond its phases, by subject: as its description says, and after calibration as it was.
    #[serde(default)]
    pub overheads_ms: BTreeMap<String, u64>,
    /// Milliseconds of a run's phases, and what it costs beyond them where nothing else is known.
    #[serde(default)]
    pub phases: Phases,
    /// Whether the blocks ended early because the intervals were narrow enough.
    #[serde(default)]
    pub is_precise: bool,
    /// The numbers of blocks that it had each time that more were added to it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub extended: Vec<u32>,
}

/// The runs that are made at the same time: most often one.
#[derive(Clone, Debug, PartialEq)]
pub struct Turn(pub Vec<PlannedRun>);

/// The rate that all subjects of one place are offered.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EqualRate {
    /// What its cells have in common.
    pub place: Levels,
    /// Requests per second.
    pub requests_per_second: f64,
    /// The subject whose maximum was the lowest.
    pub slowest: String,
    /// That maximum.
    pub slowest_maximum: f64,
}

/// How long runs take, by their cells' names, in milliseconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Phases {
    /// Of a run in a block.
    pub block_ms: BTreeMap<String, u64>,
    /// Of a calibration run.
    pub calibration_ms: BTreeMap<String, u64>,
    /// Beyond them, where the subject's own is not known.
    pub overhead_ms: u64,
}

impl Plan {
    /// What its ratios are held against.
    pub(crate) fn rule(&self) -> Rule {
        Rule { margin: self.experiment.margin, error_rate: ErrorRate::of_looks(1 + self.extended.len()) }
    }

    /// Every run that is planned.
    pub(crate) fn runs(&self) -> impl Iterator<Item = &PlannedRun> {
        self.calibration.iter().chain(self.blocks.iter().flatten()).flat_map(|turn| &turn.0)
    }

    /// Plans so many blocks. Those that it has already stay as they are.
    pub fn fix_blocks(&mut self, blocks: u32) {
        let mut rng = Rng::new(self.experiment.seed);
        let mut planned: Vec<Vec<Turn>> = Vec::new();
        let mut order = Vec::new();
        for block in 1..=blocks {
            match self.experiment.order {
                Order::Abba if block % 2 == 0 => order.reverse(),
                _ => order = self.order(&mut rng),
            }
            planned.push(numbered(&format!("b{block:03}"), Stage::Block(block), &order));
        }
        let kept = self.blocks.len().min(blocks as usize);
        planned.splice(..kept, self.blocks.drain(..).take(kept));
        self.blocks = planned;
    }

    /// Makes it a plan of so many blocks, of which some were measured. The order of the first ones stays as it is.
    /// Errors: more were measured already.
    pub(crate) fn extend(&mut self, blocks: u32, measured: u32) -> Result<(), String> {
        let planned = self.blocks.len() as u32;
        if blocks < measured {
            let has = plural(measured.into(), "block");
            return Err(format!("{blocks}: it has {has} already; expected {measured} or more"));
        }
        // Somebody may have looked at a finished result.
        if measured > 0 && measured == planned && blocks > planned {
            self.extended.push(planned);
        }
        if blocks != planned {
            self.is_precise = false;
            self.fix_blocks(blocks);
        }
        self.experiment.stop = Stop::Blocks(blocks);
        Ok(())
    }

    /// The cells in a new order: places in random order, the subjects within one, and the levels that are compared of one
    /// subject, so that what is compared lies close together in time and slow drift of the machine touches it alike.
    fn order(&self, rng: &mut Rng) -> Vec<&Cell> {
        let mut places: BTreeMap<Levels, BTreeMap<&str, Vec<&Cell>>> = BTreeMap::new();
        for cell in &self.cells {
            let compared = self.experiment.compare.iter().map(|compare| &compare.factor);
            let common = compared.fold(cell.place(), |place, factor| place.without(factor));
            places.entry(common).or_default().entry(&cell.name).or_default().push(cell);
        }
        let of_place = |subjects: BTreeMap<&str, Vec<_>>| subjects.into_values().collect::<Vec<_>>();
        let mut places: Vec<Vec<Vec<&Cell>>> = places.into_values().map(of_place).collect();
        rng.shuffle(&mut places);
        for subjects in &mut places {
            rng.shuffle(subjects);
            subjects.iter_mut().for_each(|levels| rng.shuffle(levels));
        }
        places.concat().concat()
    }

    /// The number of whole blocks that fit into what is left of `minutes`, from one to [`MOST_BLOCKS`].
    pub fn blocks_that_fit(&self, minutes: f64, spent_ms: u64) -> u32 {
        let left = (minutes * 60_000.0 - spent_ms as f64).max(0.0);
        ((left / self.block_ms().max(1) as f64).floor() as u32).clamp(1, MOST_BLOCKS)
    }

    /// How long a block takes, in milliseconds.
    pub fn block_ms(&self) -> u64 {
        self.cells.iter().map(|cell| self.run_ms(cell, &self.phases.block_ms)).sum()
    }

    /// How long the calibration takes, in milliseconds.
    pub fn calibration_total_ms(&self) -> u64 {
        let runs = self.calibration.iter().flat_map(|turn| &turn.0);
        runs.map(|run| self.run_ms(&run.cell, &self.phases.calibration_ms)).sum()
    }

    /// A run's phases, and what it costs beyond them.
    fn run_ms(&self, cell: &Cell, phases_ms: &BTreeMap<String, u64>) -> u64 {
        let phases = phases_ms.get(&cell.id).copied().unwrap_or_default();
        phases + self.overheads_ms.get(&cell.subject).copied().unwrap_or(self.phases.overhead_ms)
    }

    /// The equal rate that calibration found for a cell.
    pub fn calibrated_rate(&self, cell: &Cell) -> Option<f64> {
        let place = cell.place();
        self.rates.iter().find(|rate| rate.place == place).map(|rate| rate.requests_per_second)
    }
}

/// Runs in such an order, one at a time.
pub(crate) fn numbered(prefix: &str, stage: Stage, order: &[&Cell]) -> Vec<Turn> {
    let run = |(index, cell): (usize, &&Cell)| PlannedRun {
        id: format!("{prefix}-{:03}-{cell}", index + 1),
        stage,
        cell: (*cell).clone(),
    };
    order.iter().enumerate().map(run).map(|run| Turn(vec![run])).collect()
}

/// One run stands for itself; several are a list.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Stored {
    One(PlannedRun),
    Several(Vec<PlannedRun>),
}

impl Serialize for Turn {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0.as_slice() {
            [one] => one.serialize(serializer),
            several => several.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for Turn {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(match Stored::deserialize(deserializer)? {
            Stored::One(run) => Self(vec![run]),
            Stored::Several(runs) => Self(runs),
        })
    }
}
