//! `weir plan`: what a run would do.

use crate::Outcome;
use crate::run::{ExperimentArgs, experiment_help, failure};
use crate::words::say;
use clap::Args;
use std::path::PathBuf;
use weir_lab::stacks;

/// Show what `run` would do, and how long it would take.
#[derive(Args, Debug)]
#[command(after_help = "Example:\n  weir plan quickstart --blocks 12")]
pub(crate) struct PlanArgs {
    #[arg(help = experiment_help())]
    file: PathBuf,
    #[command(flatten)]
    experiment: ExperimentArgs,
}

pub(crate) fn run(args: PlanArgs) -> Outcome {
    let options = args.experiment.options(args.file)?;
    let planned = match stacks::is_experiment(&options.file) {
        true => stacks::plan(&options),
        false => weir_lab::plan(&options),
    };
    say(planned.map_err(|error| failure(&error))?)
}
