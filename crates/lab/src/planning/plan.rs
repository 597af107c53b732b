//! From an experiment to the order of its runs: cells, calibration, blocks.

use crate::experiment::{Experiment, Order, Stop, canonical};
use crate::planning::cell::{Cell, Levels};
use crate::planning::planned_run::{PlannedRun, Stage};
use crate::planning::schedule::{self, is_with_alone};
use crate::stats::rng::Rng;
use crate::stats::verdict::Rule;
use crate::stats::{ErrorRate, MOST_BLOCKS};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::collections::BTreeMap;
use std::path::PathBuf;
use weir_load::plural;
use weir_report::markup::quote;

/// The plan of an experiment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// The schema's version: [`super::planned_run::SCHEMA`].
    pub schema: u32,
    /// The experiment's file, as given.
    pub file: PathBuf,
    /// The options that changed the experiment, as given.
    pub arguments: Vec<String>,
    /// The levels that `--only` left.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub only: Vec<(String, String)>,
    /// The experiment.
    pub experiment: Experiment,
    /// The cells.
    pub cells: Vec<Cell>,
    /// The baseline: the first of the experiment's candidates that is present.
    pub baseline: Option<String>,
    /// Subjects that are absent, and why.
    pub absent: BTreeMap<String, String>,
    /// Skipped cells of present subjects, and why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dropped: Vec<String>,
    /// Remarks on cells, by their names.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub remarks: BTreeMap<String, String>,
    /// Whether `--only` named other subjects and the A/A pair runs beside them.
    #[serde(default)]
    pub is_pair_kept: bool,
    /// The calibration runs, in order.
    pub calibration: Vec<Turn>,
    /// The blocks. Empty until their number is fixed, before the first one runs.
    pub blocks: Vec<Vec<Turn>>,
    /// The equal rates, once calibration has found them.
    pub rates: Vec<EqualRate>,
    /// Milliseconds of a run beyond its phases, by subject: from its description, and after calibration as measured.
    #[serde(default)]
    pub overheads_ms: BTreeMap<String, u64>,
    /// Milliseconds of a run's phases, and of its overhead where nothing else is known.
    #[serde(default)]
    pub phases: Phases,
    /// Whether the blocks ended early because the intervals were narrow enough.
    #[serde(default)]
    pub is_precise: bool,
    /// The number of blocks before each extension.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub extended: Vec<u32>,
}

/// The runs that are made at the same time: usually one.
#[derive(Clone, Debug, PartialEq)]
pub struct Turn(pub Vec<PlannedRun>);

/// The rate offered to all subjects of one place.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EqualRate {
    /// The common levels of its cells.
    pub place: Levels,
    /// Requests per second.
    pub requests_per_second: f64,
    /// The subject with the lowest maximum.
    pub slowest: String,
    /// That maximum.
    pub slowest_maximum: f64,
}

/// The duration of runs in milliseconds, by their cells' names.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Phases {
    /// A run of a block.
    pub block_ms: BTreeMap<String, u64>,
    /// A calibration run.
    pub calibration_ms: BTreeMap<String, u64>,
    /// The overhead of a subject without one of its own.
    pub overhead_ms: u64,
}

impl Plan {
    /// The limits for its ratios.
    pub(crate) fn rule(&self) -> Rule {
        Rule { margin: self.experiment.margin, error_rate: ErrorRate::of_looks(1 + self.extended.len()) }
    }

    /// The options of the command line that made it, quoted for a shell, but those about the key `without`.
    pub(crate) fn options_without(&self, without: Option<&str>) -> Vec<String> {
        let is_other = |name: &str| Some(canonical(name)) != without;
        let mut words = Vec::new();
        let mut arguments = self.arguments.iter();
        while let Some(word) = arguments.next() {
            let name = arguments.as_slice().first().and_then(|pair| pair.split('=').next());
            match (word.as_str(), name) {
                ("--set", Some(name)) if !is_other(name) => drop(arguments.next()),
                _ => words.push(quote(word)),
            }
        }
        let only = self.only.iter().filter(|(name, _)| is_other(name));
        let only: Vec<String> = only.map(|(name, value)| format!("{name}={value}")).collect();
        if !only.is_empty() {
            words.extend(["--only".into(), quote(&only.join(","))]);
        }
        words
    }

    /// Every planned run.
    pub(crate) fn runs(&self) -> impl Iterator<Item = &PlannedRun> {
        self.calibration.iter().chain(self.blocks.iter().flatten()).flat_map(|turn| &turn.0)
    }

    /// Plans this many blocks. Existing ones are kept.
    pub fn fix_blocks(&mut self, blocks: u32) {
        let mut rng = Rng::new(self.experiment.seed);
        let alone = self.experiment.alone_blocks;
        let mut planned: Vec<Vec<Turn>> = Vec::new();
        let mut order = Vec::new();
        for block in 1..=blocks {
            match self.experiment.order {
                Order::Abba if block % 2 == 0 => order.reverse(),
                _ => order = schedule::block(self, is_with_alone(block, blocks, alone), &mut rng),
            }
            planned.push(schedule::numbered(&format!("b{block:03}"), Stage::Block(block), &order));
        }
        let kept = self.blocks.len().min(blocks as usize);
        planned.splice(..kept, self.blocks.drain(..).take(kept));
        self.blocks = planned;
    }

    /// Sets the number of blocks of a plan with some measured. The order of the first ones is kept.
    /// Errors: more are measured already.
    pub(crate) fn extend(&mut self, blocks: u32, measured: u32) -> Result<(), String> {
        let planned = self.blocks.len() as u32;
        if blocks < measured {
            let has = plural(measured.into(), "measured block");
            return Err(format!(
                "invalid value `{blocks}`: expected {measured} or more: the result has {has}"
            ));
        }
        // A finished result may have been read.
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

    /// The number of whole blocks that fit into the rest of `minutes`, from one to [`MOST_BLOCKS`].
    pub fn blocks_that_fit(&self, minutes: f64, spent_ms: u64) -> u32 {
        let left = (minutes * 60_000.0 - spent_ms as f64).max(0.0) as u64;
        let blocks_ms = self.time_of_blocks();
        (1..=MOST_BLOCKS).take_while(|blocks| blocks_ms(*blocks) <= left).last().unwrap_or(1)
    }

    /// The duration of this many blocks, in milliseconds.
    pub fn blocks_ms(&self, blocks: u32) -> u64 {
        self.time_of_blocks()(blocks)
    }

    fn time_of_blocks(&self) -> impl Fn(u32) -> u64 {
        let [plain, with_alone] = [false, true].map(|with_alone| {
            let slots = schedule::block(self, with_alone, &mut Rng::new(0));
            slots.iter().map(|slot| self.slot_ms(slot)).sum::<u64>()
        });
        let most_alone = self.experiment.alone_blocks;
        move |blocks| {
            let alone = blocks.min(most_alone);
            plain * u64::from(blocks - alone) + with_alone * u64::from(alone)
        }
    }

    /// The duration of a turn of these cells: their processes start one after the other, their phases run in parallel.
    fn slot_ms(&self, slot: &[&Cell]) -> u64 {
        let phases = slot.iter().map(|cell| self.phases.block_ms.get(&cell.id).copied().unwrap_or_default());
        let overheads: u64 = slot.iter().map(|cell| self.overhead_ms(cell)).sum();
        overheads + phases.max().unwrap_or_default()
    }

    /// The duration of the calibration, in milliseconds.
    pub fn calibration_total_ms(&self) -> u64 {
        let runs = self.calibration.iter().flat_map(|turn| &turn.0);
        let phases_ms = |cell: &Cell| self.phases.calibration_ms.get(&cell.id).copied().unwrap_or_default();
        runs.map(|run| phases_ms(&run.cell) + self.overhead_ms(&run.cell)).sum()
    }

    /// The overhead of a run beyond its phases.
    fn overhead_ms(&self, cell: &Cell) -> u64 {
        self.overheads_ms.get(&cell.subject).copied().unwrap_or(self.phases.overhead_ms)
    }

    /// The equal rate that calibration found for a cell.
    pub fn calibrated_rate(&self, cell: &Cell) -> Option<f64> {
        let place = cell.place();
        self.rates.iter().find(|rate| rate.place == place).map(|rate| rate.requests_per_second)
    }
}

/// A single run is itself; several are a list.
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
