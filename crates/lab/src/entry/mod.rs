//! Where programs enter the lab: its commands, dispatched to the instrument of an experiment or result.

pub(crate) mod dispatch;
pub(crate) mod pipeline;

pub use pipeline::Outcome;

use crate::across::history::{self, History, HistoryOptions};
use crate::across::{self, Across, Within};
use crate::base::error::LabError;
use crate::experiment::options::RunOptions;
use dispatch::{of_instrument, of_options, of_result, of_results};
use std::path::{Path, PathBuf};

/// Runs an experiment to its end, or resumes one that was interrupted or gets more blocks.
///
/// # Errors
/// An invalid experiment, subject or option; files that cannot be written; an interrupt. A failing subject, an invalid
/// run and a slow gateway are results.
pub fn run(options: &RunOptions) -> Result<Outcome, LabError> {
    of_instrument!(of_options(options)?, pipeline::run(options))
}

/// Describes what [`run`] would do and for how long; builds and runs nothing.
///
/// # Errors
/// As [`run`].
pub fn plan(options: &RunOptions) -> Result<String, LabError> {
    of_instrument!(of_options(options)?, pipeline::plan(options))
}

/// Rebuilds `summary.json` and `report.html` from the stored runs.
///
/// # Errors
/// A path that is no result, and files that cannot be written.
pub fn report(directory: &Path) -> Result<Outcome, LabError> {
    of_instrument!(of_result(directory)?, pipeline::report(directory))
}

/// Compares the results in two directories of one instrument. `changed` names subjects that changed although their
/// version is the same in both.
///
/// # Errors
/// A path that is no result of this program, such as a file of `weir load`; results of different plans or machines, with
/// the difference; an unknown name in `changed`.
pub fn compare(a: &Path, b: &Path, changed: &[String]) -> Result<Across, LabError> {
    across::check_directories(&[a, b])?;
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
