//! `weir plan`: what a run would do.

use crate::Outcome;
use crate::run::{ExperimentArgs, failure};
use clap::Args;

/// Show what `run` would do, and how long it would take.
#[derive(Args, Debug)]
#[command(after_help = "Example:\n  weir plan experiments/quickstart.toml --blocks 12")]
pub(crate) struct PlanArgs {
    #[command(flatten)]
    experiment: ExperimentArgs,
}

pub(crate) fn run(args: PlanArgs) -> Outcome {
    print!("{}", weir_lab::plan(&args.experiment.options()?).map_err(|error| failure(&error))?);
    Ok(())
}
