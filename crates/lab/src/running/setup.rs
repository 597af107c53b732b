//! The inputs of a plan: options, experiment and subjects, from a file or from a stored result.

use crate::base::error::{ConfigError, LabError};
use crate::experiment::options::RunOptions;
use crate::experiment::{Experiment, Stop, reader};
use crate::found::{self, ExperimentFile};
use crate::planning::plan::Plan;
use crate::planning::planner;
use crate::planning::subjects::Subjects;
use crate::store::Store;
use crate::store::run::Stored;
use std::path::Path;

/// The inputs of a plan.
pub(crate) struct Setup<I: Subjects> {
    pub(crate) options: RunOptions,
    pub(crate) experiment: Experiment,
    pub(crate) text: String,
    pub(crate) found: I::Found,
}

impl<I: Stored + Subjects> Setup<I> {
    /// Reads the experiment and finds its subjects.
    /// Errors: as [`crate::plan`].
    pub(crate) fn new(options: &RunOptions) -> Result<Self, LabError> {
        let (options, file, experiment, text) = chosen::<I>(options)?;
        let found = I::find(&experiment, &file, &options, &text)?;
        Ok(Self { options, experiment, text, found })
    }

    /// The plan, made anew.
    /// Errors: `--only` matches no cell, or nothing is left to run.
    pub(crate) fn plan(&self) -> Result<Plan, LabError> {
        planner::plan::<I>(self.experiment.clone(), &self.found, &self.options)
    }
}

/// The options with the named experiment file, or else with that of the stored result; its location; the experiment and
/// its text.
fn chosen<I: Stored>(
    options: &RunOptions,
) -> Result<(RunOptions, ExperimentFile, Experiment, String), LabError> {
    let Some(directory) = options.stored() else {
        if let Some(directory) = &options.continue_dir {
            // Fail before anything is built.
            Store::open(directory).plan()?;
        }
        let file = found::experiment(&options.file)?;
        let located = RunOptions { file: file.path.clone(), ..options.clone() };
        let (experiment, text) = reader::load::<I>(&located)?;
        return Ok((options.clone(), file, experiment, text));
    };
    let Plan { file, only, mut experiment, .. } = Store::open(directory).plan()?;
    if options.instructions && !experiment.instructions {
        let why = "the result was started without it; start a new result";
        return Err(ConfigError::new("--instructions", why).into());
    }
    if let Some(blocks) = options.blocks {
        experiment.stop = Stop::Blocks(blocks);
    }
    let place = found::stored(&file);
    Ok((RunOptions { file, only, ..options.clone() }, place, experiment, String::new()))
}

/// The subjects of a stored result, as found on this machine now.
pub(crate) fn found<I: Stored + Subjects>(directory: &Path) -> Result<I::Found, LabError> {
    let stored = RunOptions { continue_dir: Some(directory.to_owned()), ..RunOptions::default() };
    Ok(Setup::<I>::new(&stored)?.found)
}
