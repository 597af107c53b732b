//! The selection of cells on the command line.

use crate::base::error::ConfigError;
use crate::experiment::{Experiment, Grammar, Level, SUBJECTS, canonical, is_setting};
use crate::planning::cell::Cell;
use std::collections::BTreeSet;

/// Levels by key, as given in an option; those of one key are alternatives.
pub(crate) type Wanted = [(String, String)];

/// Checks that each level of an option, such as `--only`, exists in the experiment with these cells.
/// Errors: a key or a level that no cell has, with the known ones.
pub(crate) fn check_only<I: Grammar>(
    option: &str,
    only: &Wanted,
    cells: &[Cell],
    experiment: &Experiment,
) -> Result<(), ConfigError> {
    for (key, value) in only {
        let known = known_levels(key, cells, experiment);
        if known.is_empty() {
            return Err(unknown_key::<I>(option, cells, experiment, key));
        }
        if !known.contains(&Level::new(value)) {
            let known = known.iter().map(Level::as_str).collect::<Vec<_>>().join(", ");
            let message = format!("invalid value `{value}`: expected one of {known}");
            return Err(ConfigError::new(format!("{option} {key}"), message));
        }
    }
    Ok(())
}

/// Whether a cell has the wanted levels. `option` names the option in errors.
/// Errors: a key that no cell has.
pub(crate) fn select<I: Grammar>(
    option: &str,
    wanted: &Wanted,
    cell: &Cell,
    experiment: &Experiment,
) -> Result<bool, ConfigError> {
    for (key, _) in wanted {
        let mut any = false;
        for (_, value) in wanted.iter().filter(|(other, _)| other == key) {
            if !is_known::<I>(key, cell, experiment) {
                return Err(unknown_key::<I>(option, std::slice::from_ref(cell), experiment, key));
            }
            any |= is_level(cell, experiment, key, value);
        }
        if !any {
            return Ok(false);
        }
    }
    Ok(true)
}

/// The key that selects one row of the results: a subject, or the second in the A/A pair.
pub(crate) const NAME: &str = "name";

fn is_known<I: Grammar>(key: &str, cell: &Cell, experiment: &Experiment) -> bool {
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
            // A subject without this setting is selected for each of its levels.
            None => is_setting(key) || experiment.levels(key).contains(&wanted),
        },
    }
}

/// The cells' key for a key on the command line.
pub(crate) fn of_cells(key: &str) -> &str {
    if key == "load" { "load_model" } else { canonical(key) }
}

/// The levels of a key in these cells.
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

fn unknown_key<I: Grammar>(option: &str, cells: &[Cell], experiment: &Experiment, key: &str) -> ConfigError {
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
    ConfigError::new(option, message)
}

#[cfg(test)]
mod tests;
