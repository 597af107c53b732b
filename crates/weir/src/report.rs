//! `weir report`: the report anew, from stored runs.

use crate::Outcome;
use crate::outputs::{self, Exports, Gate};
use crate::run::failure;
use clap::Args;
use std::path::PathBuf;
use weir_lab::export::Reported;

/// Rebuild summary.json and report.html from the runs that an experiment has stored.
#[derive(Args, Debug)]
#[command(after_help = [EXAMPLES, outputs::RESULT_CODES].concat())]
pub(crate) struct ReportArgs {
    /// The directory of an experiment's results
    directory: PathBuf,
    #[command(flatten)]
    exports: Exports,
    #[command(flatten)]
    gate: Gate,
}

const EXAMPLES: &str = "\
Examples:
  weir report out/quickstart-20260101-120000
  weir report out/quickstart-20260101-120000 --csv values.csv --markdown summary.md
  weir report out/quickstart-20260101-120000 --junit junit.xml --fail-on regression
  weir report out/stacks-handshakes-20260101-120000 --csv values.csv";

pub(crate) fn run(args: ReportArgs) -> Outcome {
    let Exports { csv, markdown, junit } = &args.exports;
    let [csv, markdown, junit] = [csv, markdown, junit].map(Option::as_deref);
    outputs::check(&[("--csv", csv), ("--markdown", markdown), ("--junit", junit)])?;
    let outcome = weir_lab::report(&args.directory).map_err(|error| failure(&error))?;
    tell(outcome.text, &outcome.reported, &args)
}

fn tell(text: String, reported: &Reported, args: &ReportArgs) -> Outcome {
    let Exports { csv, markdown, junit } = &args.exports;
    let texts = [
        ("--csv", csv.as_deref(), reported.csv()),
        ("--markdown", markdown.as_deref(), reported.markdown()),
        ("--junit", junit.as_deref(), reported.junit(args.gate.fail_on.is_some())),
    ];
    outputs::tell(text, &texts)?;
    args.gate.judge(&reported.regressions())
}
