//! The commands, dispatched to the instrument of an experiment or result.

use crate::across::history::{self, History, HistoryOptions};
use crate::across::{self, Across, Within};
use crate::base::error::{ConfigError, LabError};
use crate::experiment::Grammar as _;
use crate::experiment::options::RunOptions;
use crate::found;
use crate::instrument::commands::Commands;
use crate::instrument::gateway::Gateway;
use crate::instrument::stacks::Stacks;
use crate::lab::{self, Outcome};
use crate::store::Store;
use crate::studies::record::{self, Record};
use crate::studies::{self, Study};
use std::fs;
use std::path::{Path, PathBuf};

/// The names of the instruments, as in experiments.
const NAMES: [&str; 3] = [Gateway::NAME, Stacks::NAME, Commands::NAME];

/// Calls `$call::<I>(..)` for the instrument of this name.
macro_rules! of_instrument {
    ($name:expr, $module:ident::$call:ident($($argument:expr),*)) => {
        match $name {
            Stacks::NAME => $module::$call::<Stacks>($($argument),*),
            Commands::NAME => $module::$call::<Commands>($($argument),*),
            _ => $module::$call::<Gateway>($($argument),*),
        }
    };
}

/// Runs an experiment to its end, or resumes one that was interrupted or gets more blocks.
///
/// # Errors
/// An invalid experiment, subject or option; files that cannot be written; an interrupt. A failing subject, an invalid
/// run and a slow gateway are results.
pub fn run(options: &RunOptions) -> Result<Outcome, LabError> {
    of_instrument!(of_options(options)?, lab::run(options))
}

/// Describes what [`run`] would do and for how long; builds and runs nothing.
///
/// # Errors
/// As [`run`].
pub fn plan(options: &RunOptions) -> Result<String, LabError> {
    of_instrument!(of_options(options)?, lab::plan(options))
}

/// Rebuilds `summary.json` and `report.html` from the stored runs.
///
/// # Errors
/// A path that is no result, and files that cannot be written.
pub fn report(directory: &Path) -> Result<Outcome, LabError> {
    of_instrument!(of_result(directory)?, lab::report(directory))
}

/// Compares the results in two directories of one instrument. `changed` names subjects that changed although their
/// version is the same in both.
///
/// # Errors
/// A path that is no result of this program; results of different plans or machines, with the difference; an unknown
/// name in `changed`.
pub fn compare(a: &Path, b: &Path, changed: &[String]) -> Result<Across, LabError> {
    across::check_different(&[a, b])?;
    of_instrument!(of_results(&[a, b])?, across::compare(a, b, changed))
}

/// Compares two levels of a factor, each `KEY=VALUE`, in the result in a directory: the second over the first.
///
/// # Errors
/// A path that is no result of this program; a factor or a level that it lacks, with the known ones; two levels of two
/// factors.
pub fn compare_levels(directory: &Path, levels: [&str; 2]) -> Result<Within, LabError> {
    of_instrument!(of_result(directory)?, across::compare_levels(directory, levels))
}

/// Loads results of one plan and follows its cells through them.
///
/// # Errors
/// A path that is no result of this program; results of different plans or machines, with the difference; a directory
/// given twice; no cell that matches; a metric that cannot be followed.
pub fn history(options: &HistoryOptions) -> Result<History, LabError> {
    let directories: Vec<&Path> = options.directories.iter().map(PathBuf::as_path).collect();
    across::check_different(&directories)?;
    of_instrument!(of_results(&directories)?, history::history(options))
}

/// The verdicts of a result on the statements of the studies.
/// Errors: a path that is no result, or a result without such a verdict.
pub(crate) fn measured(directory: &Path) -> Result<Record, LabError> {
    of_instrument!(of_result(directory)?, record::measured(directory))
}

/// The subjects that a study's claims name, as pairs of `--only`.
/// Errors: an invalid experiment.
pub(crate) fn named(study: &Study, options: &RunOptions) -> Result<Vec<(String, String)>, LabError> {
    of_instrument!(of_experiment(&options.file)?, studies::named(study, options))
}

/// The instrument of an experiment that is run or resumed.
fn of_options(options: &RunOptions) -> Result<&'static str, LabError> {
    match options.stored() {
        Some(directory) => of_result(directory),
        None => of_experiment(&options.file),
    }
}

/// The instrument that an experiment's file names; by default gateways.
fn of_experiment(file: &Path) -> Result<&'static str, LabError> {
    let path = found::experiment(file)?.path;
    let text = fs::read_to_string(&path).map_err(LabError::file(&path, "cannot be read"))?;
    // The full parser reports invalid TOML.
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

/// The common instrument of all these results.
fn of_results(directories: &[&Path]) -> Result<&'static str, LabError> {
    let Some((first, others)) = directories.split_first() else { return Ok(Gateway::NAME) };
    let name = of_result(first)?;
    for other in others {
        let found = of_result(other)?;
        if found != name {
            let (first, other) = (first.display(), other.display());
            let message = format!(
                "results of {found} do not compare with {first}, results of {name}; expected one plan"
            );
            return Err(ConfigError::new(other, message).into());
        }
    }
    Ok(name)
}

fn known(name: &str) -> Option<&'static str> {
    NAMES.into_iter().find(|known| *known == name)
}
