//! The experiment file as it is written, and how the options of the command line change it.

use super::check;
use crate::error::{ConfigError, said};
use crate::experiment::{
    self, Claim, Compare, Experiment, Factor, Level, Levels, Order, Precision, Stop, canonical, leaves,
};
use crate::instrument::{Blame, Instrument};
use crate::options::{RunOptions, parse_value};
use serde::Deserialize;
use std::path::{Path, PathBuf};
use toml::{Table, Value};

/// The file's keys.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    name: String,
    /// Which was looked at before all else.
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
    /// `factors.engine` in a shorter form.
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
    /// `only.engine` in a shorter form.
    engines: Option<Vec<Value>>,
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
const SETTABLE: [&str; 15] = [
    "name",
    "question",
    "analysis",
    "directory",
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

fn default_margin() -> f64 {
    0.03
}

/// Keys that belong to some instruments alone.
const OWN_KEYS: [&str; 6] =
    ["calibration_runs", "rate_share", "engines", "engines_directory", "scenarios", "instructions"];

/// Reads the file that the options name and applies them. Returns the text as given, too.
///
/// # Errors
/// What is unknown, missing, contradictory or without effect, with its place and what is allowed.
pub(crate) fn load<I: Instrument>(options: &RunOptions) -> Result<(Experiment, String), ConfigError> {
    let file = &options.file;
    let text = std::fs::read_to_string(file)
        .map_err(|error| ConfigError::new(file.display(), format!("cannot be read: {error}")))?;
    Ok((parse::<I>(file, &text, options)?, text))
}

/// Reads the file's text and applies the options.
pub(crate) fn parse<I: Instrument>(
    file: &Path,
    text: &str,
    options: &RunOptions,
) -> Result<Experiment, ConfigError> {
    let source = file.display();
    let of_file: Document = toml::from_str(text).map_err(|error| ConfigError::toml(&source, text, &error))?;
    let wrong = blame(file, text, options);
    check_own_keys::<I>(text, &wrong)?;
    let changed = (!options.set.is_empty()).then(|| with_settings::<I>(text, options)).transpose()?;
    let document = changed.as_ref().unwrap_or(&of_file);
    let absolute = std::path::absolute(file)
        .map_err(|error| ConfigError::new(&source, format!("its folder cannot be found: {error}")))?;
    let folder = absolute.parent().unwrap_or(Path::new("/"));
    let mut experiment = document.experiment::<I>(options, folder, &wrong)?;
    if options.set.is_empty() {
        check::all_but_claims::<I>(&experiment, &wrong)?;
        check::claims::<I>(&experiment, &wrong)?;
    } else {
        // What claims are about is the file's own affair: `--set` may leave no cell of it.
        check::claims::<I>(&of_file.experiment::<I>(options, folder, &wrong)?, &wrong)?;
        forget_unknown_subjects(&mut experiment, options);
        check::all_but_claims::<I>(&experiment, &wrong)?;
    }
    if options.quick {
        document.quick.cut::<I>(&mut experiment, options, folder, &wrong)?;
        check::all_but_claims::<I>(&experiment, &wrong)?;
    }
    settle_selectors(&mut experiment);
    experiment.instructions |= options.instructions;
    if let Some(blocks) = options.blocks {
        experiment.stop = Stop::Blocks(blocks);
    }
    Ok(experiment)
}

fn check_own_keys<I: Instrument>(text: &str, wrong: &Blame<'_>) -> Result<(), ConfigError> {
    let table: Table = toml::from_str(text).unwrap_or_default();
    let is_others = |key: &&&str| table.contains_key(**key) && !I::OWN_KEYS.contains(*key);
    match OWN_KEYS.iter().find(is_others) {
        Some(key) => Err(wrong(key, format!("is not for `instrument = \"{}\"`", I::NAME))),
        None => Ok(()),
    }
}

/// Blames a key on the option of `--set` that gave it, or else on its line in the file.
pub(crate) fn blame<'a>(
    file: &'a Path,
    text: &'a str,
    options: &'a RunOptions,
) -> impl Fn(&str, String) -> ConfigError + 'a {
    move |key: &str, message: String| {
        let names = |name: &str| name == key || experiment::alias(key) == Some(name);
        match options.set.iter().rev().find(|(set, _)| names(canonical(set))) {
            Some((set, value)) => ConfigError::new(format!("--set {set}={value}"), message),
            None => {
                let alias = experiment::alias(key).unwrap_or(key);
                let places = ["factors.", "constants.", ""].into_iter();
                let places = places.flat_map(|place| [key, alias].map(|key| format!("{place}{key}")));
                ConfigError::one_of_keys(file.display(), text, &places.collect::<Vec<_>>(), key, message)
            }
        }
    }
}

/// The key that names the folder of the subjects' folders, as it is spelled here: files of one instrument have their own word.
pub(crate) fn directory_key(text: &str, options: &RunOptions) -> &'static str {
    const SPELLINGS: [&str; 2] = ["targets_directory", "engines_directory"];
    let table: Table = toml::from_str(text).unwrap_or_default();
    let is_set = |key: &str| options.set.iter().any(|(set, _)| set == key) || table.contains_key(key);
    SPELLINGS.into_iter().find(|key| is_set(key)).unwrap_or("directory")
}

impl Document {
    fn experiment<I: Instrument>(
        &self,
        options: &RunOptions,
        folder: &Path,
        wrong: &Blame<'_>,
    ) -> Result<Experiment, ConfigError> {
        let Self { name, question, analysis, baseline, aa, claims, leave_out, scenarios, .. } = self.clone();
        let Self { order, seed, margin, instructions, .. } = *self;
        let mut factors = factors(&self.factors, wrong)?;
        if let Some(levels) = self.engines.clone() {
            factors.insert(0, Factor { key: I::SUBJECT.into(), levels });
        }
        let mut constants = Table::new();
        for (key, value) in leaves(&self.constants) {
            let known = canonical(&key);
            if factors.iter().any(|factor| factor.key == known) {
                return Err(wrong(known, "is a factor and a constant: allowed is one of them".into()));
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
            factors,
            scenarios,
            leave_out,
            constants,
            calibration_runs: self.calibration_runs.unwrap_or(2),
            rate_share: self.rate_share.unwrap_or(0.5),
            stop: self.stop(options, wrong)?,
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
                Err(wrong("blocks", "missing: give `blocks`, `minutes` or `precision`".into()))
            }
            (blocks, ..) => {
                let key = if blocks.is_some() && self.minutes.is_some() { "minutes" } else { "precision" };
                let message = "given beside another: allowed is one of `blocks`, `minutes`, `precision`";
                Err(wrong(key, message.into()))
            }
        }
    }
}

/// Reads the `[factors]` table.
fn factors(table: &Table, wrong: &Blame<'_>) -> Result<Vec<Factor>, ConfigError> {
    let mut factors: Vec<Factor> = Vec::new();
    for (key, value) in leaves(table) {
        let key = canonical(&key).to_owned();
        let Value::Array(levels) = value else {
            return Err(wrong(&key, format!("`{value}`: allowed is a list of levels, such as [{value}]")));
        };
        if levels.is_empty() {
            return Err(wrong(&key, "empty: at least one level is needed".into()));
        }
        let names: Vec<Level> = levels.iter().map(Level::of).collect();
        if let Some(twice) = names.iter().enumerate().find(|(index, name)| names[..*index].contains(name)) {
            return Err(wrong(&key, format!("`{}` is given twice", twice.1)));
        }
        if factors.iter().any(|factor| factor.key == key) {
            return Err(wrong(&key, "is given by both of its names: allowed is one".into()));
        }
        factors.push(Factor { key, levels: levels.clone() });
    }
    Ok(factors)
}

/// With other subjects the file's baseline and A/A subject may be gone, unless the command line names them.
fn forget_unknown_subjects(experiment: &mut Experiment, options: &RunOptions) {
    let is_said = |key: &str| options.set.iter().any(|(set, _)| set == key);
    if !is_said("baseline") {
        let known = experiment.baseline.iter().filter(|name| experiment.has_subject(name)).cloned();
        experiment.baseline = known.collect();
    }
    if !is_said("aa") {
        experiment.aa = experiment.aa.take().filter(|name| experiment.has_subject(name));
    }
}

/// Leaves out of claims and comparisons what is the same in all cells: it names no cell in particular.
fn settle_selectors(experiment: &mut Experiment) {
    let Experiment { factors, constants, claims, compare, scenarios, .. } = experiment;
    let is_varied = |key: &str| {
        !scenarios.is_empty() || OF_CELLS.contains(&key) || factors.iter().any(|factor| factor.key == key)
    };
    let is_same = |key: &str, level: &Level| {
        let constant = experiment::get(constants, key);
        !is_varied(key) && constant.is_some_and(|value| Level::of(value) == *level)
    };
    let selectors = claims.iter_mut().map(|claim| &mut claim.cell);
    for selector in selectors.chain(compare.iter_mut().map(|compare| &mut compare.cell)) {
        selector.retain(|key, level| !is_same(key, level));
    }
}

/// Constants that cells have among their levels all the same.
const OF_CELLS: [&str; 5] = ["target", "mode", "load_model", "connections", "bytes"];

impl Quick {
    fn cut<I: Instrument>(
        &self,
        experiment: &mut Experiment,
        options: &RunOptions,
        folder: &Path,
        wrong: &Blame<'_>,
    ) -> Result<(), ConfigError> {
        // What the command line says goes before what the file makes of `--quick`.
        let is_said = |key: &str| options.set.iter().any(|(set, _)| canonical(set) == key);
        let is_default = self.blocks.is_none() && self.set.is_empty() && self.only.is_empty();
        if !STOPS.into_iter().any(is_said) {
            experiment.stop = Stop::Blocks(self.blocks.unwrap_or(QUICK_BLOCKS));
        }
        experiment.calibration_runs = 1;
        experiment.instructions = false;
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
        for (key, value) in only.chain(engines) {
            let (key, place) = (canonical(&key), format!("quick.only.{key}"));
            if !is_said(key) {
                keep(experiment, key, &levels(&value)).map_err(|message| wrong(&place, message))?;
            }
        }
        // Subjects that are gone are compared with no more.
        let left = experiment.clone();
        experiment.baseline.retain(|name| left.has_subject(name));
        experiment.aa = experiment.aa.take().filter(|name| left.has_subject(name));
        Ok(())
    }
}

/// Keeps some levels of a key; families that have it and none of them go.
fn keep(experiment: &mut Experiment, key: &str, wanted: &[Level]) -> Result<(), String> {
    let mut is_known = false;
    if let Some(factor) = experiment.factors.iter_mut().find(|factor| factor.key == key) {
        is_known = true;
        if let Some(unknown) = wanted.iter().find(|level| !factor.names().contains(level)) {
            let levels: Vec<String> = factor.names().iter().map(Level::to_string).collect();
            return Err(format!("`{unknown}`: allowed are {}", levels.join(", ")));
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
    if is_known { Ok(()) } else { Err("is no factor".into()) }
}

/// The levels of a value: a list has several.
fn levels(value: &Value) -> Vec<Level> {
    match value {
        Value::Array(levels) => levels.iter().map(Level::of).collect(),
        one => vec![Level::of(one)],
    }
}

/// The file read again with the values of `--set` in place of its own.
fn with_settings<I: Instrument>(text: &str, options: &RunOptions) -> Result<Document, ConfigError> {
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
            set_condition(&mut table, key, meant::<I>(canonical(key), value, words));
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
    if key == "engine" {
        table.remove("engines");
    }
    for family in table.get_mut("scenarios").and_then(Value::as_array_mut).into_iter().flatten() {
        if let Some(family) = family.as_table_mut() {
            family.remove(key);
        }
    }
    for place in ["factors", "constants"] {
        let entry = table.entry(place).or_insert_with(|| Value::Table(Table::new()));
        let Some(inner) = entry.as_table_mut() else { continue };
        for name in [Some(key), experiment::alias(key)].into_iter().flatten() {
            experiment::remove(inner, name);
        }
        let is_here = experiment::is_levels(key, &value) == (place == "factors");
        if is_here {
            experiment::insert(inner, key, value.clone());
        }
    }
}

/// `tls.version=1.2` is a number in TOML, but no number is meant.
fn meant<I: Instrument>(key: &str, value: Value, text: &str) -> Value {
    let word = Value::from(text);
    match !value.is_array() && !I::takes(key, &value) && I::takes(key, &word) {
        true => word,
        false => value,
    }
}

/// For the tests, which change levels.
#[cfg(test)]
impl Experiment {
    pub(crate) fn set_constant(&mut self, key: &str, value: Value) {
        self.factors.retain(|factor| factor.key != key);
        experiment::insert(&mut self.constants, key, value);
    }

    pub(crate) fn set_factor(&mut self, key: &str, levels: Vec<Value>) {
        self.factors.retain(|factor| factor.key != key);
        self.factors.push(Factor { key: key.to_owned(), levels });
    }
}
