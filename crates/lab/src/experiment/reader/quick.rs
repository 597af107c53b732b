//! `--quick`: cuts an experiment down to few levels, short windows and two blocks.

use crate::base::error::ConfigError;
use crate::experiment::options::RunOptions;
use crate::experiment::reader::check;
use crate::experiment::{self, Blame, Experiment, Grammar, Layout, Level, Levels, Stop, canonical, leaves};
use serde::Deserialize;
use std::path::Path;
use toml::{Table, Value};

/// The `[quick]` table of an experiment.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Quick {
    blocks: Option<u32>,
    layout: Option<Layout>,
    /// Short for `only.engine`.
    engines: Option<Vec<Value>>,
    /// Constants to override.
    #[serde(default)]
    set: Table,
    /// The levels to keep of some factors.
    #[serde(default)]
    only: Table,
    /// Further combinations to leave out.
    #[serde(default)]
    leave_out: Vec<Levels>,
}

/// Keys that determine the number of blocks.
pub(super) const STOPS: [&str; 3] = ["blocks", "minutes", "precision"];

/// The defaults of `--quick`: enough to see whether an experiment works on this machine.
const QUICK_BLOCKS: u32 = 2;
const QUICK_MS: i64 = 100;

impl Quick {
    pub(super) fn cut<I: Grammar>(
        &self,
        experiment: &mut Experiment,
        options: &RunOptions,
        folder: &Path,
        wrong: &Blame<'_>,
    ) -> Result<(), ConfigError> {
        // The command line overrides the file's `[quick]` table.
        let is_said =
            |key: &str| options.set.iter().any(|(set, _)| canonical(set) == key || is_short(set, key));
        let is_default = self.blocks.is_none() && self.set.is_empty() && self.only.is_empty();
        let is_unsaid = |levels: &&Levels| !levels.iter().any(|(key, _)| is_said(key));
        let leave_out: Vec<Levels> = self.leave_out.iter().filter(is_unsaid).cloned().collect();
        check::left_out::<I>(experiment, &leave_out, "quick.leave_out", wrong)?;
        experiment.leave_out.extend(leave_out);
        experiment.layout = self.layout.filter(|_| !is_said("layout")).unwrap_or(experiment.layout);
        if !STOPS.into_iter().any(is_said) {
            experiment.stop = Stop::Blocks(self.blocks.unwrap_or(QUICK_BLOCKS));
        }
        if !is_said("calibration_runs") {
            experiment.calibration_runs = 1;
        }
        experiment.instructions &= is_said("instructions");
        let phases = ["warmup_ms", "window_ms", "calibration_ms"].into_iter();
        for key in phases.filter(|key| is_default && !is_said(key)) {
            let is_longer = |value: &&Value| value.as_integer().is_some_and(|ms| ms > QUICK_MS);
            if experiment.constants.get(key).filter(is_longer).is_some() {
                experiment.constants.insert(key.into(), QUICK_MS.into());
            }
        }
        for (key, value) in leaves(&self.set) {
            let key = canonical(&key).to_owned();
            if is_said(&key) {
                continue;
            }
            experiment.factors.retain(|factor| factor.key != key);
            experiment.scenarios.iter_mut().for_each(|family| drop(family.remove(&key)));
            experiment::insert(&mut experiment.constants, &key, I::placed(&key, value, folder));
        }
        let engines = self.engines.clone().map(|engines| (I::SUBJECT.to_owned(), Value::Array(engines)));
        let only = leaves(&self.only).into_iter().map(|(key, value)| (key, value.clone()));
        let is_chosen = |key: &str| options.only.iter().any(|(only, _)| canonical(only) == key);
        for (key, value) in only.chain(engines) {
            let (key, place) = (canonical(&key), format!("quick.only.{key}"));
            if !is_said(key) && !is_chosen(key) {
                keep(experiment, key, &levels(&value)).map_err(|message| wrong(&place, message))?;
            }
        }
        // Removed subjects cannot be a baseline.
        let left = experiment.clone();
        experiment.baseline.retain(|name| left.has_subject(name));
        experiment.aa = experiment.aa.take().filter(|name| left.has_subject(name));
        Ok(())
    }
}

/// Whether `set` is short for this key: `engines` for `engine`.
fn is_short(set: &str, key: &str) -> bool {
    (set, key) == ("engines", "engine")
}

/// Keeps the wanted levels of a key, and removes families that have none of them.
fn keep(experiment: &mut Experiment, key: &str, wanted: &[Level]) -> Result<(), String> {
    let mut is_known = false;
    if let Some(factor) = experiment.factors.iter_mut().find(|factor| factor.key == key) {
        is_known = true;
        if let Some(unknown) = wanted.iter().find(|level| !factor.names().contains(level)) {
            let levels: Vec<String> = factor.names().iter().map(Level::to_string).collect();
            return Err(format!("invalid value `{unknown}`: expected one of {}", levels.join(", ")));
        }
        factor.levels.retain(|level| wanted.contains(&Level::of(level)));
    }
    for family in &mut experiment.scenarios {
        let Some(value) = family.get_mut(key) else { continue };
        is_known = true;
        let mut left = value.as_array().cloned().unwrap_or_else(|| vec![value.clone()]);
        left.retain(|level| wanted.contains(&Level::of(level)));
        *value = match left.as_slice() {
            [one] => one.clone(),
            _ => Value::Array(left),
        };
    }
    let has_none = |value: &Value| value.as_array().is_some_and(Vec::is_empty);
    experiment.scenarios.retain(|family| !family.get(key).is_some_and(has_none));
    if is_known { Ok(()) } else { Err("unknown factor".into()) }
}

/// The levels of a value; a list has several.
fn levels(value: &Value) -> Vec<Level> {
    match value {
        Value::Array(levels) => levels.iter().map(Level::of).collect(),
        one => vec![Level::of(one)],
    }
}
