//! The experiment file: what is asked, what is varied, what is kept, and what is to be checked. Strict: an unknown key
//! or value is an error that names the file, the line and what is allowed.

mod case;
mod check;
mod claim;
mod conditions;
mod document;
mod factor;
mod factors;
mod here;
mod level;
mod load_table;
#[cfg(test)]
pub(crate) mod tests;

pub use case::Case;
pub use claim::{Claim, Compare, Predicate, Selector};
pub(crate) use conditions::echo;
pub use conditions::{Conditions, CoreSets, Framing, RequestKind};
pub use document::Order;
pub(crate) use document::{blame, parse_value};
pub use factor::{Factor, OWN, canonical, is_setting};
pub use factors::{CertificateKind, Group, Load, Mode, Side, Suite, Tls, TlsVersion};
pub use level::Level;

use crate::error::{ConfigError, LabError, said};
use crate::found::{ExperimentFile, Folders};
use crate::metric::Metric;
use crate::options::RunOptions;
use crate::plan::Cell;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use toml::{Table, Value};

/// The suffix of the second target of the A/A pair.
pub const AGAIN: &str = "-again";

/// An experiment as it will be run: the file, with `--set`, `--blocks` and `--quick` applied.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Experiment {
    /// Its name, which becomes part of the results' directory: letters, digits, `-`, `_`.
    pub name: String,
    /// What it asks, in a sentence or two.
    pub question: String,
    /// What its author makes of the results, for the report; paragraphs are apart by an empty line.
    pub analysis: Option<String>,
    /// The targets' folder, relative to the experiment file's; what is not there comes from where one stands, or from the
    /// program.
    pub targets_directory: PathBuf,
    /// What the others are compared with: the first of these targets that is present.
    pub baseline: Vec<String>,
    /// The target that is run twice in every block; the comparison with itself is the noise floor.
    pub aa: Option<String>,
    /// What is varied.
    pub factors: Vec<Factor>,
    /// Combinations of levels that make no cell.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub leave_out: Vec<Selector>,
    /// What is the same in all cells, as the file gives it.
    pub constants: Table,
    /// Calibration runs of each target, of which the best counts: a disturbance can only lower it.
    pub calibration_runs: u32,
    /// The equal rate is this share of the slowest target's maximum.
    pub rate_share: f64,
    /// How many blocks there are.
    pub stop: Stop,
    /// In which order a block runs its cells.
    pub order: Order,
    /// Seed of the order.
    pub seed: u64,
    /// Two targets within this ratio of each other are called equivalent: 0.03 is 3 %.
    pub margin: f64,
    /// Comparisons beside those of the targets.
    pub compare: Vec<Compare>,
    /// Statements to check.
    pub claims: Vec<Claim>,
    /// Whether it was cut down by `--quick`.
    pub quick: bool,
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

fn least_blocks() -> u32 {
    crate::stats::BLOCKS_FOR_VERDICT as u32
}

impl Experiment {
    /// Reads the file that `options` names and applies the options to it. Returns the text as given, too.
    pub fn load(options: &RunOptions) -> Result<(Self, String), LabError> {
        let text = std::fs::read_to_string(&options.file)
            .map_err(|error| ConfigError::new(options.file.display(), format!("cannot be read: {error}")))?;
        let experiment = document::parse(&options.file, &text, options)?;
        Ok((experiment, text))
    }

    /// Leaves out of claims and comparisons what is the same in all cells: it names no cell in particular.
    fn settle_selectors(&mut self) {
        let Self { factors, constants, .. } = self;
        let is_varied = |key: &str| OWN.contains(&key) || factors.iter().any(|factor| factor.key == key);
        let is_same = |key: &str, level: &Level| {
            !is_varied(key) && factor::get(constants, key).is_some_and(|value| Level::of(value) == *level)
        };
        for claim in &mut self.claims {
            claim.cell.retain(|key, level| !is_same(key, level));
        }
        for compare in &mut self.compare {
            compare.cell.retain(|key, level| !is_same(key, level));
        }
    }

    /// The names of a factor's levels; a constant has one, what is not given none.
    pub fn levels(&self, key: &str) -> Vec<Level> {
        match self.factors.iter().find(|factor| factor.key == key) {
            Some(factor) => factor.names(),
            None => factor::get(&self.constants, key).map(Level::of).into_iter().collect(),
        }
    }

    /// The targets' names.
    pub fn targets(&self) -> Vec<String> {
        self.levels("target").into_iter().map(|level| level.as_str().to_owned()).collect()
    }

    /// Whether a name is a target's, or that of one with such settings, as the results have it: `nginx+pool=50`.
    fn has_target(&self, name: &str) -> bool {
        self.targets().iter().any(|target| name.split('+').next() == Some(target))
    }

    /// The modes, in the file's order.
    pub fn modes(&self) -> Vec<Mode> {
        self.typed("mode")
    }

    /// How requests arrive, in the file's order.
    pub fn loads(&self) -> Vec<Load> {
        self.typed("load_model")
    }

    /// What a cell's runs are made under.
    ///
    /// # Errors
    /// When the cell is not one of this experiment: its levels were all looked at when the file was read.
    pub fn conditions(&self, cell: &Cell) -> Result<Conditions, ConfigError> {
        let Cell { mode, connections, bytes, load, factors, .. } = cell;
        let own = [
            ("mode", Value::from(mode.to_string())),
            ("load_model", Value::from(load.to_string())),
            ("connections", Value::from(i64::from(*connections))),
            ("bytes", Value::from(*bytes as i64)),
        ];
        let mut further = Vec::new();
        for (key, level) in factors {
            let found = self.factors.iter().find(|factor| factor.key == *key);
            let value =
                found.and_then(|factor| factor.levels.iter().find(|value| Level::of(value) == *level));
            let Some(value) = value else {
                let allowed = self.levels(key).iter().map(Level::as_str).collect::<Vec<_>>().join(", ");
                let message = format!("`{key}={level}` is none of the experiment's: allowed are {allowed}");
                return Err(ConfigError::new(cell, message));
            };
            further.push((key.as_str(), value));
        }
        let own = own.iter().map(|(key, value)| (*key, value));
        self.with(own.chain(further)).map_err(|error| ConfigError::new(cell, said(&error)))
    }

    /// The conditions with the first level of each factor: what is asked of it must be the same for all.
    pub(crate) fn any_conditions(&self) -> Result<Conditions, ConfigError> {
        self.under(self.combinations().first().map_or(&[], Vec::as_slice))
    }

    /// What joins the processes, in words.
    pub(crate) fn network(&self) -> String {
        let kinds = self.levels("net.kind");
        let veth = "veth pairs between network namespaces";
        match (kinds.contains(&Level::new("veth")), kinds.contains(&Level::new("loopback"))) {
            (true, true) => format!("loopback, and over {veth}"),
            (true, false) => veth.into(),
            (false, _) => "loopback".into(),
        }
    }

    /// What is run under such a combination of levels.
    pub(crate) fn under(&self, combination: &[(&str, &Value)]) -> Result<Conditions, ConfigError> {
        self.with(combination.iter().copied()).map_err(|error| ConfigError::new(&self.name, said(&error)))
    }

    /// The constants with such levels.
    fn with<'a>(
        &self,
        levels: impl IntoIterator<Item = (&'a str, &'a Value)>,
    ) -> Result<Conditions, toml::de::Error> {
        let mut table = self.constants.clone();
        table.remove("target");
        for (key, value) in levels {
            factor::insert(&mut table, key, value.clone());
        }
        table.try_into()
    }

    fn typed<T: serde::de::DeserializeOwned>(&self, key: &str) -> Vec<T> {
        // Each was read once already, when the file was checked.
        let read = |level: Level| serde_json::from_value(serde_json::Value::from(level.as_str())).ok();
        self.levels(key).into_iter().filter_map(read).collect()
    }

    /// The combinations of all factors but the targets and their settings, without those that are left out.
    pub(crate) fn combinations(&self) -> Vec<Vec<(&str, &Value)>> {
        let varied = self.factors.iter().filter(|factor| !factor.is_of_targets());
        let mut combinations = factor::combinations(&varied.collect::<Vec<_>>());
        combinations.retain(|combination| !self.is_left_out(combination));
        combinations
    }

    fn is_left_out(&self, combination: &[(&str, &Value)]) -> bool {
        let level = |key: &str| {
            let varied = combination.iter().find(|(varied, _)| *varied == key);
            varied.map(|(_, value)| *value).or_else(|| factor::get(&self.constants, key)).map(Level::of)
        };
        let has = |levels: &Selector| levels.iter().all(|(key, wanted)| level(key).as_ref() == Some(wanted));
        self.leave_out.iter().any(has)
    }

    /// The combinations of those settings that a target has.
    pub(crate) fn settings_of(&self, has: impl Fn(&str) -> bool) -> Vec<Vec<(&str, &Value)>> {
        let of_target = |factor: &&Factor| factor.key.strip_prefix("settings.").is_some_and(&has);
        factor::combinations(&self.factors.iter().filter(of_target).collect::<Vec<_>>())
    }

    /// Where its targets are: in its `targets_directory`, where one stands, beside the program, or built in.
    ///
    /// # Errors
    /// A `targets_directory` that is not there.
    pub(crate) fn folders(
        &self,
        file: &ExperimentFile,
        wrong: impl Fn(&str, String) -> ConfigError,
    ) -> Result<Folders, ConfigError> {
        let folders = Folders::targets(None).of_experiment(file, &self.targets_directory);
        folders.map_err(|message| wrong("targets_directory", message))
    }
}
