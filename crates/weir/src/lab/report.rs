//! `weir report`: rebuild the report from stored runs.

use super::outputs::{self, Exports, FailPolicy};
use crate::outcome::Outcome;
use clap::Args;
use std::path::PathBuf;

/// Rebuild summary.json and report.html from an experiment's stored runs.
#[derive(Args, Debug)]
#[command(after_help = [EXAMPLES, outputs::RESULT_CODES].concat())]
pub(crate) struct ReportArgs {
    /// Result directory
    directory: PathBuf,
    /// Print all tables, comparisons and claims instead of 30 lines
    #[arg(long)]
    full: bool,
    #[command(flatten)]
    exports: Exports,
    #[command(flatten)]
    policy: FailPolicy,
}

const EXAMPLES: &str = "\
Examples:
  weir report out/quickstart-20260101-120000
  weir report out/quickstart-20260101-120000 --csv values.csv --markdown summary.md
  weir report out/quickstart-20260101-120000 --junit junit.xml --fail-on regression
  weir report out/stacks-handshakes-20260101-120000 --csv values.csv";

pub(crate) fn run(args: ReportArgs) -> Outcome {
    let ReportArgs { directory, full, exports, policy } = args;
    outputs::check(&exports.outputs())?;
    let outcome = weir_lab::report(&directory)?;
    let reported = outcome.reported;
    let contents = [reported.csv(), reported.markdown(), reported.junit(policy.fail_on.is_some())];
    let text = if full { outcome.full } else { outcome.text };
    outputs::write(text, exports.outputs(), contents)?;
    policy.judge(&reported.regressions())
}
