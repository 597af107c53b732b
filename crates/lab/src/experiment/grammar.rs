//! What an instrument adds to the grammar of experiment files: its keys, their values, and its metrics.

use super::metric::Metric;
use super::{Experiment, Level};
use crate::base::error::ConfigError;
use std::fmt::Debug;
use std::path::Path;

/// Makes an error about a key, with its place.
pub type Blame<'a> = dyn Fn(&str, String) -> ConfigError + 'a;

/// The keys, values and metrics of an instrument's experiments.
pub trait Grammar: Copy + Debug + Sized + 'static {
    /// Its name in an experiment's `instrument`.
    const NAME: &'static str;
    /// Its subject: the factor's key, and the word for it.
    const SUBJECT: &'static str;
    /// The default directory of the subjects, relative to the experiment's file.
    const DIRECTORY: &'static str;
    /// Keys of its own in the file.
    const OWN_KEYS: &'static [&'static str];
    /// Its metrics, in display order.
    const METRICS: &'static [Metric];

    /// Checks the rules of this instrument for an experiment.
    ///
    /// # Errors
    /// An unknown, missing, contradictory or ineffective key, with what was expected.
    fn check(experiment: &Experiment, wrong: &Blame<'_>) -> Result<(), ConfigError>;
    /// The keys that distinguish cells, beside their subject.
    fn keys(experiment: &Experiment) -> Vec<String> {
        let keys = experiment.factors.iter().map(|factor| factor.key.clone());
        keys.filter(|key| key != Self::SUBJECT).collect()
    }
    /// The levels of a key.
    fn levels(experiment: &Experiment, key: &str) -> Vec<Level> {
        experiment.levels(key)
    }
    /// Whether a key takes this value if all others are valid.
    fn takes(key: &str, value: &toml::Value) -> bool;
    /// Why a key of the conditions has no effect in an experiment, whatever its value, with what was expected.
    fn ignored(experiment: &Experiment, key: &str) -> Option<String>;
    /// A value of a file in `folder`, with paths made absolute.
    fn placed(_key: &str, value: &toml::Value, _folder: &Path) -> toml::Value {
        value.clone()
    }
}
