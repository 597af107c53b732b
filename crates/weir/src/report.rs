//! `weir report`: the report anew, from stored runs.

use crate::outputs::{self, Exports, FailOn};
use crate::run::failure;
use crate::words::say;
use crate::{Failure, Outcome};
use clap::Args;
use std::path::PathBuf;
use weir_lab::export::Reported;
use weir_lab::stacks;

/// Rebuild summary.json and report.html from the runs that an experiment has stored.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ReportArgs {
    /// The directory of an experiment's results
    directory: PathBuf,
    #[command(flatten)]
    exports: Exports,
    /// End with code 4 when a target is different from the baseline, for the worse
    #[arg(long, value_name = "WHAT", help_heading = "Output")]
    fail_on: Option<FailOn>,
}

const EXAMPLES: &str = "\
Examples:
  weir report out/quickstart-20260101-120000
  weir report out/quickstart-20260101-120000 --csv values.csv --markdown summary.md
  weir report out/quickstart-20260101-120000 --junit junit.xml --fail-on regression";

pub(crate) fn run(args: ReportArgs) -> Outcome {
    let Exports { csv, markdown, junit } = &args.exports;
    let [csv, markdown, junit] = [csv, markdown, junit].map(Option::as_deref);
    outputs::check(&[("--csv", csv), ("--markdown", markdown), ("--junit", junit)])?;
    if stacks::is_of_stacks(&args.directory) {
        let is_export = csv.or(markdown).or(junit).is_some() || args.fail_on.is_some();
        if is_export {
            let message =
                "results of stacks have no exports yet: leave out --csv, --markdown, --junit, --fail-on";
            return Err(Failure::usage(format!("{}: {message}", args.directory.display())));
        }
        return say(stacks::report(&args.directory).map_err(|error| failure(&error))?.text);
    }
    let outcome = weir_lab::report(&args.directory).map_err(|error| failure(&error))?;
    let reported = Reported(&outcome.results);
    let texts = [
        ("--csv", csv, reported.csv()),
        ("--markdown", markdown, reported.markdown()),
        ("--junit", junit, reported.junit(args.fail_on.is_some())),
    ];
    outputs::tell(outcome.text, &texts)?;
    outputs::fail_on(&reported.regressions(), args.fail_on)
}
