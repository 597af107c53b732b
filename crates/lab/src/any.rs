//! The commands, for whichever instrument an experiment or a result is of.

use crate::across::{self, Across};
use crate::error::{ConfigError, LabError};
use crate::found;
use crate::history::{self, History, HistoryOptions};
use crate::instrument::Instrument as _;
use crate::instrument::commands::Commands;
use crate::instrument::gateway::Gateway;
use crate::instrument::stacks::Stacks;
use crate::lab::{self, Outcome};
use crate::options::RunOptions;
use crate::store::Store;
use std::fs;
use std::path::{Path, PathBuf};

/// The names of the instruments, as experiments give them.
const NAMES: [&str; 3] = [Gateway::NAME, Stacks::NAME, Commands::NAME];

/// Calls `$call::<I>(..)` for the instrument of such a name.
macro_rules! of_instrument {
    ($name:expr, $module:ident::$call:ident($($argument:expr),*)) => {
        match $name {
            Stacks::NAME => $module::$call::<Stacks>($($argument),*),
            Commands::NAME => $module::$call::<Commands>($($argument),*),
            _ => $module::$call::<Gateway>($($argument),*),
        }
    };
}

/// Runs an experiment to its end, or goes on with one that was interrupted or that is to have more blocks.
///
/// # Errors
/// A wrong experiment, subject or option; files that cannot be written; an interrupt. A subject that fails, an invalid run
/// and a slow gateway are results.
pub fn run(options: &RunOptions) -> Result<Outcome, LabError> {
    of_instrument!(of_options(options)?, lab::run(options))
}

/// Says what [`run`] would do and how long it would take; nothing is built or run.
///
/// # Errors
/// As [`run`].
pub fn plan(options: &RunOptions) -> Result<String, LabError> {
    of_instrument!(of_options(options)?, lab::plan(options))
}

/// Rebuilds `summary.json` and `report.html` from the stored runs.
///
/// # Errors
/// What is no result, and files that cannot be written.
pub fn report(directory: &Path) -> Result<Outcome, LabError> {
    of_instrument!(of_result(directory)?, lab::report(directory))
}

/// Compares the results in two directories of one instrument. `changed` names subjects that are other programs though
/// their version is the same in both.
///
/// # Errors
/// What is no result of this program; results that are not of one plan on one machine, with what differs; an unknown name
/// in `changed`.
pub fn compare(a: &Path, b: &Path, changed: &[String]) -> Result<Across, LabError> {
    across::check_different(&[a, b])?;
    of_instrument!(of_results(&[a, b])?, across::compare(a, b, changed))
}

/// Reads results of one plan and follows its cells through them.
///
/// # Errors
/// What is no result of this program; results that are not of one plan on one machine, with what differs; a directory that
/// is given twice; no cell that was asked for; a metric that cannot be followed.
pub fn history(options: &HistoryOptions) -> Result<History, LabError> {
    let directories: Vec<&Path> = options.directories.iter().map(PathBuf::as_path).collect();
    across::check_different(&directories)?;
    of_instrument!(of_results(&directories)?, history::history(options))
}

/// Of an experiment that is run, or gone on with.
fn of_options(options: &RunOptions) -> Result<&'static str, LabError> {
    match options.stored() {
        Some(directory) => of_result(directory),
        None => of_experiment(&options.file),
    }
}

/// What an experiment's file says; without a word it is of gateways.
fn of_experiment(file: &Path) -> Result<&'static str, LabError> {
    let path = found::experiment(file)?.path;
    let text = fs::read_to_string(&path).map_err(LabError::file(&path, "cannot be read"))?;
    // What is no TOML at all is said by whoever reads it in full.
    let table: toml::Table = toml::from_str(&text).unwrap_or_default();
    let Some(name) = table.get("instrument") else { return Ok(Gateway::NAME) };
    let wrong = || {
        let message = format!("{name}: expected one of {}", NAMES.join(", "));
        ConfigError::key(path.display(), &text, "instrument", message).into()
    };
    known(name.as_str().unwrap_or_default()).ok_or_else(wrong)
}

fn of_result(directory: &Path) -> Result<&'static str, LabError> {
    let name = Store::open(directory).instrument()?;
    known(&name).ok_or_else(|| {
        let message = format!("experiment.instrument: `{name}`: expected one of {}", NAMES.join(", "));
        LabError::Stored { path: directory.join("plan.json"), message }
    })
}

/// The one instrument of all of these results.
fn of_results(directories: &[&Path]) -> Result<&'static str, LabError> {
    let Some((first, others)) = directories.split_first() else { return Ok(Gateway::NAME) };
    let name = of_result(first)?;
    for other in others {
        let found = of_result(other)?;
        if found != name {
            let (first, other) = (first.display(), other.display());
            let message = format!(
                "results of {found} cannot be put beside {first}, results of {name}; expected one plan"
            );
            return Err(ConfigError::new(other, message).into());
        }
    }
    Ok(name)
}

fn known(name: &str) -> Option<&'static str> {
    NAMES.into_iter().find(|known| *known == name)
}
