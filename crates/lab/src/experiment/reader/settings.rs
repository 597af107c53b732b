//! The values of `--set`, which override those of the file.

use super::document::Document;
use super::quick::STOPS;
use crate::base::error::{ConfigError, message_of};
use crate::experiment::options::{RunOptions, parse_value};
use crate::experiment::{self, Experiment, Grammar, canonical};
use toml::{Table, Value};

/// The keys of the document that `--set` can override.
pub(super) const SETTABLE: [&str; 18] = [
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
    "layout",
    "alone_blocks",
    "repeats",
    "order",
    "seed",
    "margin",
];

/// The file, parsed again with the values of `--set`.
pub(super) fn with_settings<I: Grammar>(text: &str, options: &RunOptions) -> Result<Document, ConfigError> {
    let mut table: Table =
        toml::from_str(text).map_err(|error| ConfigError::toml(options.file.display(), text, &error))?;
    for (key, words) in &options.set {
        let source = format!("--set {key}={words}");
        let value = parse_value(words);
        if SETTABLE.contains(&key.as_str()) {
            // These keys exclude each other: setting one replaces the others.
            if STOPS.contains(&key.as_str()) {
                STOPS.iter().for_each(|other| drop(table.remove(*other)));
            }
            table.insert(key.clone(), value);
        } else {
            set_condition(&mut table, key, meant::<I>(canonical(key), value, words));
        }
        // One at a time, so that the error names the option with the invalid value.
        if let Err(error) = table.clone().try_into::<Document>() {
            return Err(ConfigError::new(source, message_of(&error)));
        }
    }
    table.try_into().map_err(|error| ConfigError::toml(options.file.display(), "", &error))
}

/// Makes a key a factor if the value is a list of levels, else a constant, regardless of its place in the file.
fn set_condition(table: &mut Table, key: &str, value: Value) {
    let key = match canonical(key) {
        "engines" => "engine",
        key => key,
    };
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
        let is_its_place = experiment::is_levels(key, &value) == (place == "factors");
        if is_its_place {
            experiment::insert(inner, key, value.clone());
        }
    }
}

/// `tls.version=1.2` is a number in TOML, but a word for the instrument.
fn meant<I: Grammar>(key: &str, value: Value, text: &str) -> Value {
    let word = Value::from(text);
    match !value.is_array() && !I::takes(key, &value) && I::takes(key, &word) {
        true => word,
        false => value,
    }
}

/// Removes the file's baseline and A/A subject if `--set` removed the subjects, unless the command line sets them.
pub(super) fn remove_unknown_subjects(experiment: &mut Experiment, options: &RunOptions) {
    let is_said = |key: &str| options.set.iter().any(|(set, _)| set == key);
    if !is_said("baseline") {
        let known = experiment.baseline.iter().filter(|name| experiment.has_subject(name)).cloned();
        experiment.baseline = known.collect();
    }
    if !is_said("aa") {
        experiment.aa = experiment.aa.take().filter(|name| experiment.has_subject(name));
    }
}
