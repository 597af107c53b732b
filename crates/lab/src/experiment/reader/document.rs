//! The experiment file as written, and its conversion to an experiment.

use super::quick::Quick;
use crate::base::error::{ConfigError, message_of};
use crate::experiment::options::RunOptions;
use crate::experiment::{
    self, Blame, Claim, Compare, Experiment, Factor, Grammar, Layout, Level, Levels, Order, Precision, Stop,
    canonical, is_of_subjects, leaves, one_turn_in_five,
};
use serde::Deserialize;
use std::path::{Path, PathBuf};
use toml::{Table, Value};

/// The file's keys.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Document {
    name: String,
    /// Evaluated before the rest of the file.
    #[serde(rename = "instrument")]
    _instrument: Option<String>,
    question: String,
    analysis: Option<String>,
    #[serde(alias = "targets_directory", alias = "engines_directory")]
    directory: Option<PathBuf>,
    #[serde(default)]
    baseline: Vec<String>,
    aa: Option<String>,
    #[serde(default)]
    factors: Table,
    /// Short for `factors.engine`.
    engines: Option<Vec<Value>>,
    #[serde(default)]
    scenarios: Vec<Table>,
    #[serde(default)]
    leave_out: Vec<Levels>,
    #[serde(default)]
    constants: Table,
    calibration_runs: Option<u32>,
    rate_share: Option<f64>,
    #[serde(default)]
    instructions: bool,
    blocks: Option<u32>,
    minutes: Option<f64>,
    precision: Option<Precision>,
    #[serde(default)]
    layout: Layout,
    #[serde(default)]
    alone_blocks: u32,
    repeats: Option<f64>,
    #[serde(default)]
    order: Order,
    seed: u64,
    #[serde(default = "default_margin")]
    margin: f64,
    #[serde(default)]
    compare: Vec<Compare>,
    #[serde(default)]
    claims: Vec<Claim>,
    #[serde(default)]
    pub(super) quick: Quick,
}

fn default_margin() -> f64 {
    0.03
}

impl Document {
    pub(super) fn experiment<I: Grammar>(
        &self,
        options: &RunOptions,
        folder: &Path,
        wrong: &Blame<'_>,
    ) -> Result<Experiment, ConfigError> {
        let Self { name, question, analysis, baseline, aa, claims, leave_out, scenarios, .. } = self.clone();
        let Self { layout, alone_blocks, order, seed, margin, instructions, .. } = *self;
        let mut install = Vec::new();
        let mut factors = factors(&self.factors, &mut install, wrong)?;
        if let Some(levels) = self.engines.clone() {
            factors.insert(0, Factor { key: I::SUBJECT.into(), levels });
        }
        let mut constants = Table::new();
        for (key, value) in leaves(&self.constants) {
            let known = canonical(&key);
            if factors.iter().any(|factor| factor.key == known) {
                return Err(wrong(known, "duplicate key, as a factor and a constant; remove one".into()));
            }
            experiment::insert(&mut constants, known, I::placed(known, value, folder));
        }
        for Factor { key, levels } in &mut factors {
            levels.iter_mut().for_each(|level| *level = I::placed(key, level, folder));
        }
        let of_compare = |compare: &Compare| Compare {
            factor: canonical(&compare.factor).to_owned(),
            baseline: compare.baseline.clone(),
            cell: compare.cell.clone(),
        };
        Ok(Experiment {
            name,
            instrument: I::NAME.into(),
            question,
            analysis,
            directory: self.directory.clone().unwrap_or_else(|| I::DIRECTORY.into()),
            baseline,
            aa,
            install,
            factors,
            scenarios,
            leave_out,
            constants,
            calibration_runs: self.calibration_runs.unwrap_or(2),
            rate_share: self.rate_share.unwrap_or(0.5),
            stop: self.stop(options, wrong)?,
            layout,
            alone_blocks,
            repeats: self.repeats.unwrap_or_else(one_turn_in_five),
            order,
            seed,
            margin,
            compare: self.compare.iter().map(of_compare).collect(),
            claims,
            instructions,
            quick: options.quick,
        })
    }

    fn stop(&self, options: &RunOptions, wrong: &Blame<'_>) -> Result<Stop, ConfigError> {
        match (self.blocks, self.minutes, self.precision) {
            (Some(blocks), None, None) => Ok(Stop::Blocks(blocks)),
            (None, Some(minutes), None) => Ok(Stop::Minutes(minutes)),
            (None, None, Some(precision)) => Ok(Stop::Precision(precision)),
            (None, None, None) if options.blocks.is_some() => Ok(Stop::Blocks(1)),
            (None, None, None) => {
                Err(wrong("blocks", "missing; set `blocks`, `minutes` or `precision`".into()))
            }
            (blocks, ..) => {
                let key = if blocks.is_some() && self.minutes.is_some() { "minutes" } else { "precision" };
                let message = "conflicting keys: expected only one of `blocks`, `minutes`, `precision`";
                Err(wrong(key, message.into()))
            }
        }
    }
}

/// A subject with options.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Subject {
    name: String,
    #[serde(default)]
    install: bool,
}

/// Parses the `[factors]` table; `install` receives the subjects to install.
fn factors(table: &Table, install: &mut Vec<String>, wrong: &Blame<'_>) -> Result<Vec<Factor>, ConfigError> {
    let mut factors: Vec<Factor> = Vec::new();
    for (key, value) in leaves(table) {
        let key = canonical(&key).to_owned();
        let Value::Array(levels) = value else {
            let message = format!("invalid value `{value}`: expected a list of levels, such as [{value}]");
            return Err(wrong(&key, message));
        };
        if levels.is_empty() {
            return Err(wrong(&key, "empty: expected at least one level".into()));
        }
        let mut levels = levels.clone();
        for level in levels.iter_mut().filter(|level| is_of_subjects(&key) && level.is_table()) {
            let subject: Subject =
                level.clone().try_into().map_err(|error| wrong(&key, message_of(&error)))?;
            install.extend(subject.install.then(|| subject.name.clone()));
            *level = subject.name.into();
        }
        let names: Vec<Level> = levels.iter().map(Level::of).collect();
        if let Some(twice) = names.iter().enumerate().find(|(index, name)| names[..*index].contains(name)) {
            return Err(wrong(&key, format!("duplicate level `{}`", twice.1)));
        }
        if factors.iter().any(|factor| factor.key == key) {
            return Err(wrong(&key, "duplicate key, under both of its names; remove one".into()));
        }
        factors.push(Factor { key, levels });
    }
    Ok(factors)
}
