//! An experiment: its question, factors, constants and claims. `reader` parses it from a file; the instrument
//! defines the meaning of its keys.

mod claim;
mod factor;
mod grammar;
mod level;
mod levels;
pub mod metric;
pub mod options;
pub(crate) mod reader;

pub use claim::{Claim, Compare, Predicate};
pub use factor::{Factor, SUBJECTS, canonical, is_setting};
pub(crate) use factor::{alias, combinations, get, insert, is_levels, is_of_subjects, leaves, remove};
pub use grammar::{Blame, Grammar};
pub use level::Level;
pub use levels::Levels;

use crate::experiment::metric::Metric;
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
    /// The name of its instrument.
    pub instrument: String,
    /// The question, in a sentence or two.
    pub question: String,
    /// The author's analysis of the results, for the report; an empty line separates paragraphs.
    pub analysis: Option<String>,
    /// The directory of its subjects, relative to the experiment file; those missing there come from the current
    /// directory or from the program.
    pub directory: PathBuf,
    /// The baseline of comparisons: the first of these subjects that is present.
    pub baseline: Vec<String>,
    /// The subject that runs twice in every block; the comparison with itself is the noise floor.
    pub aa: Option<String>,
    /// Subjects to install if they are absent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub install: Vec<String>,
    /// The factors, including the subjects.
    pub factors: Vec<Factor>,
    /// Families of cells; each varies its own keys.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub scenarios: Vec<Table>,
    /// Combinations of levels that make no cell.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub leave_out: Vec<Levels>,
    /// The conditions common to all cells, as given in the file.
    pub constants: Table,
    /// Calibration runs of each subject; the best one counts, as a disturbance can only lower the rate.
    pub calibration_runs: u32,
    /// The equal rate, as a share of the slowest subject's maximum.
    pub rate_share: f64,
    /// The number of blocks, or the rule for it.
    pub stop: Stop,
    /// Which runs of a block run at the same time.
    #[serde(default)]
    pub layout: Layout,
    /// With duets, the number of blocks in which each cell also runs alone, to measure its rate and times, which a duet
    /// cannot.
    #[serde(default)]
    pub alone_blocks: u32,
    /// The share of turns that may be repeated because other processes took much of the cores.
    #[serde(default = "one_turn_in_five")]
    pub repeats: f64,
    /// The order of cells within a block.
    pub order: Order,
    /// Seed of the order.
    pub seed: u64,
    /// Two subjects within this ratio of each other are equivalent: 0.03 is 3 %.
    pub margin: f64,
    /// Comparisons in addition to those of the subjects.
    pub compare: Vec<Compare>,
    /// Statements to check.
    pub claims: Vec<Claim>,
    /// Whether instructions are counted too, after the blocks.
    #[serde(default)]
    pub instructions: bool,
    /// Whether it was cut down by `--quick`.
    pub quick: bool,
}

/// Which runs of a block run at the same time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Layout {
    /// None: each cell runs once, alone.
    #[default]
    Blocks,
    /// The two cells of a comparison, on the same cores, so that a disturbance affects both (Bulej et al., "Duet
    /// Benchmarking", ICPE 2020).
    Duet,
}

/// The order of cells within a block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Order {
    /// Each block in its own order, drawn from the seed.
    #[default]
    Random,
    /// Every second block reverses the order of the one before, so that steady drift cancels out.
    Abba,
}

/// The number of blocks: fixed before the first, or by a rule on precision only, never "until significant".
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stop {
    /// A fixed number.
    Blocks(u32),
    /// The number of whole blocks that fit into this time.
    Minutes(f64),
    /// Until the intervals are narrow.
    Precision(Precision),
}

/// A stopping rule on the width of the intervals, which is independent of the ratios.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Precision {
    /// The metric whose intervals count.
    pub metric: Metric,
    /// The maximum width of an interval: 0.05 is an upper bound 5 % above the lower.
    pub width: f64,
    /// The minimum number of blocks.
    #[serde(default = "least_blocks")]
    pub least: u32,
    /// The maximum number of blocks.
    pub most: u32,
}

/// The default of [`Experiment::repeats`].
pub(crate) fn one_turn_in_five() -> f64 {
    0.2
}

fn least_blocks() -> u32 {
    crate::stats::BLOCKS_FOR_VERDICT as u32
}

impl Experiment {
    /// The names of a factor's levels: one for a constant, none for an unknown key.
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

    /// Whether a name is a subject's, possibly with settings, as in results: `nginx+pool=50`.
    pub(crate) fn has_subject(&self, name: &str) -> bool {
        self.subjects().iter().any(|subject| name.split('+').next() == Some(subject))
    }

    /// The combinations of all factors but the subjects and their settings, without those of `leave_out`.
    pub(crate) fn combinations(&self) -> Vec<Vec<(&str, &Value)>> {
        let mut combinations = self.combinations_of(|key| !is_of_subjects(key));
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

    /// The combinations of a subject's settings.
    pub(crate) fn settings_of(&self, has: impl Fn(&str) -> bool) -> Vec<Vec<(&str, &Value)>> {
        self.combinations_of(|key| key.strip_prefix("settings.").is_some_and(&has))
    }

    fn combinations_of(&self, is_varied: impl Fn(&str) -> bool) -> Vec<Vec<(&str, &Value)>> {
        let varied = self.factors.iter().filter(|factor| is_varied(&factor.key));
        let varied = varied.map(|factor| (factor.key.as_str(), factor.levels.iter().collect()));
        combinations(&varied.collect::<Vec<_>>())
    }
}
