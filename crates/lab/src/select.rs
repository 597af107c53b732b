//! Which cells the command line means.

use crate::cell::Cell;
use crate::error::ConfigError;
use crate::experiment::{Experiment, Level, SUBJECTS, canonical, is_setting};
use crate::instrument::Instrument;
use std::collections::BTreeSet;

/// Levels by their keys, as an option gave them; those of one key are alternatives.
pub(crate) type Wanted = [(String, String)];

/// Whether each level that `--only` names is one of the experiment's, whose cells these are.
/// Errors: a key or a level that no cell has, with those that there are.
pub(crate) fn check_only<I: Instrument>(
    only: &Wanted,
    cells: &[Cell],
    experiment: &Experiment,
) -> Result<(), ConfigError> {
    for (key, value) in only {
        let known = known_levels(key, cells, experiment);
        if known.is_empty() {
            return Err(unknown_key::<I>("--only", cells, experiment, key, value));
        }
        if !known.contains(&Level::new(value)) {
            let known = known.iter().map(Level::as_str).collect::<Vec<_>>().join(", ");
            let message = format!("`{value}`: expected one of {known}");
            return Err(ConfigError::new(format!("--only {key}={value}"), message));
        }
    }
    Ok(())
}

/// Whether a cell has such levels. `option` is the one that gave them.
/// Errors: a key that no cell has.
pub(crate) fn select<I: Instrument>(
    option: &str,
    wanted: &Wanted,
    cell: &Cell,
    experiment: &Experiment,
) -> Result<bool, ConfigError> {
    for (key, _) in wanted {
        let mut any = false;
        for (_, value) in wanted.iter().filter(|(other, _)| other == key) {
            if !is_known::<I>(key, cell, experiment) {
                return Err(unknown_key::<I>(option, std::slice::from_ref(cell), experiment, key, value));
            }
            any |= is_level(cell, experiment, key, value);
        }
        if !any {
            return Ok(false);
        }
    }
    Ok(true)
}

/// By which one row of the results is chosen: a subject, or the second in the A/A pair.
pub(crate) const NAME: &str = "name";

fn is_known<I: Instrument>(key: &str, cell: &Cell, experiment: &Experiment) -> bool {
    let key = of_cells(key);
    key == NAME
        || cell.level(key).is_some()
        || !experiment.levels(key).is_empty()
        || I::keys(experiment).iter().any(|known| known == key)
}

fn is_level(cell: &Cell, experiment: &Experiment, key: &str, value: &str) -> bool {
    let wanted = Level::new(value);
    match of_cells(key) {
        NAME => cell.name == value,
        key if SUBJECTS.contains(&key) => cell.name == value || cell.level(key) == Some(wanted),
        key => match cell.level(key) {
            Some(level) => level == wanted,
            // A subject without such a setting is what it is.
            None => is_setting(key) || experiment.levels(key).contains(&wanted),
        },
    }
}

/// The key that cells have for one of the command line.
fn of_cells(key: &str) -> &str {
    if key == "load" { "load_model" } else { canonical(key) }
}

/// The levels that a key can have in such cells.
fn known_levels(key: &str, cells: &[Cell], experiment: &Experiment) -> Vec<Level> {
    let key = of_cells(key);
    let names = || cells.iter().map(|cell| Level::new(&cell.name));
    let mut known: Vec<Level> = cells.iter().filter_map(|cell| cell.level(key)).collect();
    match key {
        NAME => known = names().collect(),
        key if SUBJECTS.contains(&key) => known.extend(names().chain(experiment.levels(key))),
        key => known.extend(experiment.levels(key)),
    }
    known.sort();
    known.dedup();
    known
}

fn unknown_key<I: Instrument>(
    option: &str,
    cells: &[Cell],
    experiment: &Experiment,
    key: &str,
    value: &str,
) -> ConfigError {
    let of_cells = cells.iter().flat_map(|cell| cell.levels.iter()).map(|(key, _)| key.to_owned());
    let others: BTreeSet<String> = of_cells.chain(I::keys(experiment)).collect();
    let mut allowed = vec![I::SUBJECT.to_owned()];
    let varied = experiment.factors.iter().map(|factor| factor.key.clone());
    for key in varied.chain([NAME.to_owned()]).chain(others) {
        if !allowed.contains(&key) {
            allowed.push(key);
        }
    }
    let message = format!("unknown key `{key}`: expected one of {}", allowed.join(", "));
    ConfigError::new(format!("{option} {key}={value}"), message)
}

#[cfg(test)]
mod tests;
