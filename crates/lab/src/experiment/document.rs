//! The experiment file as it is written, and how the options of the command line change it.

use super::check::{self, Blame};
use super::factor::{self, canonical};
use super::{Claim, Compare, Experiment, Factor, Level, Precision, Selector, Stop, load_table};
use crate::error::{ConfigError, said};
use crate::options::RunOptions;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use toml::{Table, Value};

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

/// The file's keys.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    name: String,
    question: String,
    analysis: Option<String>,
    #[serde(default = "default_targets_directory")]
    targets_directory: PathBuf,
    #[serde(default)]
    baseline: Vec<String>,
    aa: Option<String>,
    factors: Table,
    #[serde(default)]
    leave_out: Vec<Selector>,
    #[serde(default)]
    constants: Table,
    #[serde(default = "default_calibration_runs")]
    calibration_runs: u32,
    #[serde(default = "default_rate_share")]
    rate_share: f64,
    blocks: Option<u32>,
    minutes: Option<f64>,
    precision: Option<Precision>,
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
    quick: Quick,
}

/// What `--quick` cuts an experiment down to.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Quick {
    blocks: Option<u32>,
    /// Constants with other values.
    #[serde(default)]
    set: Table,
    /// The levels that are left of some factors.
    #[serde(default)]
    only: Table,
}

/// Where `--quick` is not said to be anything else: does it work here?
const QUICK_BLOCKS: u32 = 2;
const QUICK_MS: i64 = 100;

/// The document's keys that `--set` can change.
const SETTABLE: [&str; 14] = [
    "name",
    "question",
    "analysis",
    "targets_directory",
    "baseline",
    "aa",
    "calibration_runs",
    "rate_share",
    "blocks",
    "minutes",
    "precision",
    "order",
    "seed",
    "margin",
];

/// Of these, those that each say how many blocks there are.
const STOPS: [&str; 3] = ["blocks", "minutes", "precision"];

fn default_targets_directory() -> PathBuf {
    PathBuf::from("../targets")
}

fn default_calibration_runs() -> u32 {
    2
}

fn default_rate_share() -> f64 {
    0.5
}

fn default_margin() -> f64 {
    0.03
}

/// Reads the file's text and applies the options.
pub(super) fn parse(file: &Path, text: &str, options: &RunOptions) -> Result<Experiment, ConfigError> {
    let source = file.display();
    let of_file: Document = toml::from_str(text).map_err(|error| ConfigError::toml(&source, text, &error))?;
    let changed = (!options.set.is_empty()).then(|| with_settings(text, options)).transpose()?;
    let document = changed.as_ref().unwrap_or(&of_file);
    let wrong = blame(file, text, options);
    let absolute = std::path::absolute(file)
        .map_err(|error| ConfigError::new(&source, format!("its folder cannot be found: {error}")))?;
    let folder = absolute.parent().unwrap_or(Path::new("/"));
    let mut experiment = document.experiment(options, folder, &wrong)?;
    if options.set.is_empty() {
        check::all_but_claims(&experiment, &wrong)?;
        check::claims(&experiment, &wrong)?;
    } else {
        // What claims are about is the file's own affair: `--set` may leave no cell of it.
        check::claims(&of_file.experiment(options, folder, &wrong)?, &wrong)?;
        experiment.forget_unknown_targets(options);
        check::all_but_claims(&experiment, &wrong)?;
    }
    if options.quick {
        document.quick.cut(&mut experiment, options, folder, &wrong)?;
        check::all_but_claims(&experiment, &wrong)?;
    }
    experiment.settle_selectors();
    if let Some(blocks) = options.blocks {
        experiment.stop = Stop::Blocks(blocks);
    }
    Ok(experiment)
}

/// Blames a key on the option of `--set` that gave it, or else on its line in the file.
pub(crate) fn blame<'a>(
    file: &'a Path,
    text: &'a str,
    options: &'a RunOptions,
) -> impl Fn(&str, String) -> ConfigError + 'a {
    move |key: &str, message: String| {
        let names = |name: &str| name == key || factor::alias(key) == Some(name);
        match options.set.iter().rev().find(|(set, _)| names(canonical(set))) {
            Some((set, value)) => ConfigError::new(format!("--set {set}={value}"), message),
            None => {
                let alias = factor::alias(key).unwrap_or(key);
                let places = ["factors.", "constants.", ""].into_iter();
                let places = places.flat_map(|place| [key, alias].map(|key| format!("{place}{key}")));
                ConfigError::one_of_keys(file.display(), text, &places.collect::<Vec<_>>(), key, message)
            }
        }
    }
}

impl Document {
    fn experiment(
        &self,
        options: &RunOptions,
        folder: &Path,
        wrong: &impl Blame,
    ) -> Result<Experiment, ConfigError> {
        let Self { name, question, analysis, targets_directory, baseline, aa, .. } = self.clone();
        let Self { calibration_runs, rate_share, order, seed, margin, .. } = *self;
        let mut factors = factor::read(&self.factors, wrong)?;
        let mut constants = Table::new();
        for (key, value) in factor::leaves(&self.constants) {
            let known = canonical(&key);
            if factors.iter().any(|factor| factor.key == known) {
                return Err(wrong(known, "is a factor and a constant: allowed is one of them".into()));
            }
            factor::insert(&mut constants, known, placed(known, value, folder));
        }
        for Factor { key, levels } in &mut factors {
            levels.iter_mut().for_each(|level| *level = placed(key, level, folder));
        }
        let stop = match (self.blocks, self.minutes, self.precision) {
            (Some(blocks), None, None) => Stop::Blocks(blocks),
            (None, Some(minutes), None) => Stop::Minutes(minutes),
            (None, None, Some(precision)) => Stop::Precision(precision),
            (None, None, None) if options.blocks.is_some() => Stop::Blocks(1),
            (None, None, None) => {
                return Err(wrong("blocks", "missing: give `blocks`, `minutes` or `precision`".into()));
            }
            (blocks, ..) => {
                let key = if blocks.is_some() && self.minutes.is_some() { "minutes" } else { "precision" };
                return Err(wrong(
                    key,
                    "given beside another: allowed is one of `blocks`, `minutes`, `precision`".into(),
                ));
            }
        };
        let (claims, leave_out) = (self.claims.clone(), self.leave_out.clone());
        let of_compare = |compare: &Compare| Compare {
            factor: canonical(&compare.factor).to_owned(),
            baseline: compare.baseline.clone(),
            cell: compare.cell.clone(),
        };
        Ok(Experiment {
            name,
            question,
            analysis,
            targets_directory,
            baseline,
            aa,
            factors,
            leave_out,
            constants,
            calibration_runs,
            rate_share,
            stop,
            order,
            seed,
            margin,
            compare: self.compare.iter().map(of_compare).collect(),
            claims,
            quick: options.quick,
        })
    }
}

impl Experiment {
    /// With other targets the file's baseline and A/A target may be gone, unless the command line names them.
    /// [`Self::check_baseline`] refuses where gateways are left that nothing is compared with.
    fn forget_unknown_targets(&mut self, options: &RunOptions) {
        let is_said = |key: &str| options.set.iter().any(|(set, _)| set == key);
        if !is_said("baseline") {
            let known = self.baseline.iter().filter(|name| self.has_target(name)).cloned();
            self.baseline = known.collect();
        }
        if !is_said("aa") {
            self.aa = self.aa.take().filter(|name| self.has_target(name));
        }
    }
}

impl Quick {
    fn cut(
        &self,
        experiment: &mut Experiment,
        options: &RunOptions,
        folder: &Path,
        wrong: &impl Blame,
    ) -> Result<(), ConfigError> {
        // What the command line says goes before what the file makes of `--quick`.
        let is_said = |key: &str| options.set.iter().any(|(set, _)| canonical(set) == key);
        let is_default = self.blocks.is_none() && self.set.is_empty() && self.only.is_empty();
        if !STOPS.into_iter().any(is_said) {
            experiment.stop = Stop::Blocks(self.blocks.unwrap_or(QUICK_BLOCKS));
        }
        experiment.calibration_runs = 1;
        let phases = ["warmup_ms", "window_ms", "calibration_ms"].into_iter();
        for key in phases.filter(|key| is_default && !is_said(key)) {
            let is_longer = |value: &&Value| value.as_integer().is_some_and(|ms| ms > QUICK_MS);
            if experiment.constants.get(key).filter(is_longer).is_some() {
                experiment.constants.insert(key.into(), QUICK_MS.into());
            }
        }
        for (key, value) in factor::leaves(&self.set) {
            let key = canonical(&key).to_owned();
            if is_said(&key) {
                continue;
            }
            experiment.factors.retain(|factor| factor.key != key);
            factor::insert(&mut experiment.constants, &key, placed(&key, value, folder));
        }
        for (key, value) in factor::leaves(&self.only) {
            let (key, place) = (canonical(&key), format!("quick.only.{key}"));
            if is_said(key) {
                continue;
            }
            let Some(factor) = experiment.factors.iter_mut().find(|factor| factor.key == key) else {
                return Err(wrong(&place, "is no factor".into()));
            };
            let wanted: Vec<Level> = match value {
                Value::Array(levels) => levels.iter().map(Level::of).collect(),
                one => vec![Level::of(one)],
            };
            if let Some(unknown) = wanted.iter().find(|level| !factor.names().contains(level)) {
                let levels: Vec<String> = factor.names().iter().map(Level::to_string).collect();
                return Err(wrong(&place, format!("`{unknown}`: allowed are {}", levels.join(", "))));
            }
            factor.levels.retain(|level| wanted.contains(&Level::of(level)));
        }
        Ok(())
    }
}

/// A value, in which a file that a flag of `weir load` names is looked for beside the experiment.
fn placed(key: &str, value: &Value, folder: &Path) -> Value {
    let mut value = value.clone();
    if let Some(flag) = key.strip_prefix("load.") {
        load_table::resolve_file(flag, &mut value, folder);
    }
    value
}

/// The file read again with the values of `--set` in place of its own.
fn with_settings(text: &str, options: &RunOptions) -> Result<Document, ConfigError> {
    let mut table: Table =
        toml::from_str(text).map_err(|error| ConfigError::toml(options.file.display(), text, &error))?;
    for (key, words) in &options.set {
        let source = format!("--set {key}={words}");
        let value = parse_value(words);
        if SETTABLE.contains(&key.as_str()) {
            // The keys that exclude each other: setting one takes the others' place.
            if STOPS.contains(&key.as_str()) {
                STOPS.iter().for_each(|other| drop(table.remove(*other)));
            }
            table.insert(key.clone(), value);
        } else {
            set_condition(&mut table, key, meant(canonical(key), value, words));
        }
        // One at a time, so that a wrong value is blamed on the option that brought it.
        if let Err(error) = table.clone().try_into::<Document>() {
            return Err(ConfigError::new(source, said(&error)));
        }
    }
    table.try_into().map_err(|error| ConfigError::toml(options.file.display(), "", &error))
}

/// A list of levels makes a factor, a value a constant, whatever the file made of the key.
fn set_condition(table: &mut Table, key: &str, value: Value) {
    let key = canonical(key);
    for place in ["factors", "constants"] {
        let entry = table.entry(place).or_insert_with(|| Value::Table(Table::new()));
        let Some(inner) = entry.as_table_mut() else { continue };
        for name in [Some(key), factor::alias(key)].into_iter().flatten() {
            factor::remove(inner, name);
        }
        let is_here = factor::is_levels(key, &value) == (place == "factors");
        if is_here {
            factor::insert(inner, key, value.clone());
        }
    }
}

/// `tls.version=1.2` is a number in TOML, but no number is meant.
fn meant(key: &str, value: Value, text: &str) -> Value {
    let word = Value::from(text);
    match !value.is_array() && !check::takes(key, &value) && check::takes(key, &word) {
        true => word,
        false => value,
    }
}

/// A value as TOML writes it, or a bare word as a string.
pub(crate) fn parse_value(text: &str) -> Value {
    toml::from_str::<Table>(&format!("value = {text}"))
        .ok()
        .and_then(|mut table| table.remove("value"))
        .unwrap_or_else(|| Value::String(text.to_owned()))
}

/// For the tests, which change levels.
#[cfg(test)]
impl Experiment {
    pub(crate) fn set_constant(&mut self, key: &str, value: Value) {
        self.factors.retain(|factor| factor.key != key);
        factor::insert(&mut self.constants, key, value);
    }

    pub(crate) fn set_factor(&mut self, key: &str, levels: Vec<Value>) {
        self.factors.retain(|factor| factor.key != key);
        self.factors.push(Factor { key: key.to_owned(), levels });
    }
}
