//! An experiment: what is asked, what is varied, what is kept, and what is to be checked. `crate::reader` makes it from a
//! file; what its keys mean is the instrument's affair.

mod claim;
mod factor;
mod level;
mod levels;

pub use claim::{Claim, Compare, Predicate};
pub use factor::{Factor, SUBJECTS, canonical, is_setting};
pub(crate) use factor::{alias, combinations, get, insert, is_levels, is_of_subjects, leaves, remove};
pub use level::Level;
pub use levels::Levels;

use crate::metric::Metric;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use toml::{Table, Value};

/// The suffix of the second subject of the A/A pair.
pub const AGAIN: &str = "-again";

/// An experiment as it will be run: the file, with `--set`, `--blocks` and `--quick` applied.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Experiment {
    /// Its name, which becomes part of the results' directory: letters, digits, `-`, `_`.
    pub name: String,
    /// What it is measured with, by the name of its instrument.
    pub instrument: String,
    /// What it asks, in a sentence or two.
    pub question: String,
    /// What its author makes of the results, for the report; paragraphs are apart by an empty line.
    pub analysis: Option<String>,
    /// The folder of its subjects, relative to the experiment file's; what is not there comes from where one stands, or from
    /// the program.
    pub directory: PathBuf,
    /// What the others are compared with: the first of these subjects that is present.
    pub baseline: Vec<String>,
    /// The subject that is run twice in every block; the comparison with itself is the noise floor.
    pub aa: Option<String>,
    /// Subjects that are installed where they are absent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub install: Vec<String>,
    /// What is varied, the subjects among it.
    pub factors: Vec<Factor>,
    /// Families of cells beside each other: each varies keys of its own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub scenarios: Vec<Table>,
    /// Combinations of levels that make no cell.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub leave_out: Vec<Levels>,
    /// What is the same in all cells, as the file gives it.
    pub constants: Table,
    /// Calibration runs of each subject, of which the best counts: a disturbance can only lower it.
    pub calibration_runs: u32,
    /// The equal rate is this share of the slowest subject's maximum.
    pub rate_share: f64,
    /// How many blocks there are.
    pub stop: Stop,
    /// Which runs of a block are made at the same time.
    #[serde(default)]
    pub layout: Layout,
    /// In a layout of duets, the number of blocks in which each cell is also run alone, for what a duet does not tell: its
    /// rate and its times.
    #[serde(default)]
    pub alone_blocks: u32,
    /// The share of the turns that may be made again since others took much of the cores meanwhile.
    #[serde(default = "one_turn_in_five")]
    pub repeats: f64,
    /// In which order a block runs its cells.
    pub order: Order,
    /// Seed of the order.
    pub seed: u64,
    /// Two subjects within this ratio of each other are called equivalent: 0.03 is 3 %.
    pub margin: f64,
    /// Comparisons beside those of the subjects.
    pub compare: Vec<Compare>,
    /// Statements to check.
    pub claims: Vec<Claim>,
    /// Whether instructions are counted as well, after the blocks.
    #[serde(default)]
    pub instructions: bool,
    /// Whether it was cut down by `--quick`.
    pub quick: bool,
}

/// Which runs of a block are made at the same time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Layout {
    /// None: each cell runs once, alone.
    #[default]
    Blocks,
    /// Two cells that are compared, on the same cores, so that what disturbs one disturbs the other (Bulej et al., "Duet
    /// Benchmarking", ICPE 2020).
    Duet,
}

/// In which order a block runs its cells.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Order {
    /// Each block in an order of its own, drawn from the seed.
    #[default]
    Random,
    /// Every second block runs backwards what the one before ran: what drifts steadily cancels out.
    Abba,
}

/// How many blocks there are. Fixed before the first, or a rule on precision alone: never "until significant".
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stop {
    /// So many.
    Blocks(u32),
    /// As many whole ones as fit.
    Minutes(f64),
    /// Until the intervals are narrow.
    Precision(Precision),
}

/// A stopping rule on the intervals' width, which what the ratios are cannot touch.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Precision {
    /// The metric whose comparisons are looked at.
    pub metric: Metric,
    /// No interval may be wider: 0.05 is an upper end 5 % above the lower.
    pub width: f64,
    /// Blocks before which it is not looked at.
    #[serde(default = "least_blocks")]
    pub least: u32,
    /// Blocks after which it ends in any case.
    pub most: u32,
}

/// What [`Experiment::repeats`] is where nothing is said.
pub(crate) fn one_turn_in_five() -> f64 {
    0.2
}

fn least_blocks() -> u32 {
    crate::stats::BLOCKS_FOR_VERDICT as u32
}

impl Experiment {
    /// The names of a factor's levels; a constant has one, what is not given none.
    pub fn levels(&self, key: &str) -> Vec<Level> {
        match self.factors.iter().find(|factor| factor.key == key) {
            Some(factor) => factor.names(),
            None => get(&self.constants, key).map(Level::of).into_iter().collect(),
        }
    }

    /// The subjects' names, in the file's order.
    pub fn subjects(&self) -> Vec<String> {
        let levels = SUBJECTS.iter().flat_map(|key| self.levels(key));
        levels.map(|level| level.as_str().to_owned()).collect()
    }

    /// Whether a name is a subject's, or that of one with such settings, as the results have it: `nginx+pool=50`.
    pub(crate) fn has_subject(&self, name: &str) -> bool {
        self.subjects().iter().any(|subject| name.split('+').next() == Some(subject))
    }

    /// The combinations of all factors but the subjects and their settings, without those that are left out.
    pub(crate) fn combinations(&self) -> Vec<Vec<(&str, &Value)>> {
        let varied = self.factors.iter().filter(|factor| !is_of_subjects(&factor.key));
        let mut combinations = combinations(&varied.collect::<Vec<_>>());
        combinations.retain(|combination| !self.is_left_out(combination));
        combinations
    }

    fn is_left_out(&self, combination: &[(&str, &Value)]) -> bool {
        let level = |key: &str| {
            let varied = combination.iter().find(|(varied, _)| *varied == key);
            varied.map(|(_, value)| *value).or_else(|| get(&self.constants, key)).map(Level::of)
        };
        let has = |levels: &Levels| levels.iter().all(|(key, wanted)| level(key).as_ref() == Some(wanted));
        self.leave_out.iter().any(has)
    }

    /// The combinations of those settings that a subject has.
    pub(crate) fn settings_of(&self, has: impl Fn(&str) -> bool) -> Vec<Vec<(&str, &Value)>> {
        let of_subject = |factor: &&Factor| factor.key.strip_prefix("settings.").is_some_and(&has);
        combinations(&self.factors.iter().filter(of_subject).collect::<Vec<_>>())
    }
}
