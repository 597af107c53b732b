//! `weir plan`: what a run would do.

use crate::Outcome;
use crate::run::{ExperimentArgs, failure};
use crate::words::say;
use clap::Args;
use weir_lab::stacks;

/// Show what `run` would do, and how long it would take.
#[derive(Args, Debug)]
#[command(after_help = "Example:\n  weir plan quickstart --blocks 12")]
pub(crate) struct PlanArgs {
    #[command(flatten)]
    experiment: ExperimentArgs,
}

pub(crate) fn run(args: PlanArgs) -> Outcome {
    let options = args.experiment.options()?;
    let planned = match stacks::is_experiment(&options.file) {
        true => stacks::plan(&options),
        false => weir_lab::plan(&options),
    };
    say(planned.map_err(|error| failure(&error))?)
}
