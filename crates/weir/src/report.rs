//! `weir report`: the report anew, from stored runs.

use crate::Outcome;
use crate::run::failure;
use clap::Args;
use std::path::PathBuf;

/// Rebuild summary.json and report.html from the runs that an experiment has stored.
#[derive(Args, Debug)]
#[command(after_help = "Example:\n  weir report out/quickstart-20260101-120000")]
pub(crate) struct ReportArgs {
    /// The directory of an experiment's results
    directory: PathBuf,
}

pub(crate) fn run(args: ReportArgs) -> Outcome {
    print!("{}", weir_lab::report(&args.directory).map_err(|error| failure(&error))?.text);
    Ok(())
}
