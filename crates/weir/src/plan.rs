//! `weir plan`: what a run would do.

use crate::Outcome;
use crate::run::{ExperimentArgs, experiment_help, failure};
use crate::words::say;
use clap::Args;
use std::path::PathBuf;

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
    say(weir_lab::plan(&options).map_err(|error| failure(&error))?)
}
