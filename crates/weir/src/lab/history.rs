//! `weir history`: cells across many results.

use super::outputs::{self, FailPolicy};
use crate::outcome::{Failure, Outcome};
use clap::Args;
use std::path::PathBuf;
use weir_lab::across::export::Past;
use weir_lab::across::history::{HistoryOptions, Series, parse_cells};
use weir_lab::experiment::metric::Metric;
use weir_lab::findings::evidence::Regressions;

/// Track cells across many results of the same plan, and check whether the last change is a regression.
#[derive(Args, Debug)]
#[command(after_help = [EXAMPLES, outputs::RESULT_CODES].concat())]
pub(crate) struct HistoryArgs {
    /// Result directories, in any order
    #[arg(required = true, value_name = "DIR")]
    directories: Vec<PathBuf>,
    /// Only cells with these factors, such as target=weir,mode=h1-h1c or engine=go,certificate=rsa-2048
    #[arg(long, value_name = "K=V,K=V")]
    cell: Vec<String>,
    /// Metric to track, by its name in summary.json, such as p99_us; rates at saturation only [default: CPU per
    /// request or per handshake; for TLS stacks the server's time, sending, memory or the operation]
    #[arg(long, value_name = "METRIC")]
    metric: Option<Metric>,
    /// Report changes larger than this percentage [default: learned from the past changes if there are at least nine,
    /// else 30; never within the experiment's margin]
    #[arg(long, value_name = "PERCENT", value_parser = percent)]
    threshold: Option<f64>,
    /// Write one CSV row per cell and result to a file, or - for standard output
    #[arg(long, value_name = "FILE|-", help_heading = "Output")]
    csv: Option<PathBuf>,
    #[command(flatten)]
    policy: FailPolicy,
}

const EXAMPLES: &str = "\
Examples:
  weir history out/nightly-*
  weir history out/nightly-* --cell target=weir,mode=h1-h1c --metric p99_us
  weir history out/nightly-* --csv history.csv --fail-on regression";

pub(crate) fn run(args: HistoryArgs) -> Outcome {
    let cells = args.cell.iter().map(|text| parse_cells(text)).collect::<Result<Vec<_>, _>>();
    let options = HistoryOptions {
        directories: args.directories,
        cells: cells.map_err(Failure::usage)?.concat(),
        metric: args.metric,
        threshold: args.threshold,
    };
    let outputs = [("--csv", args.csv.as_deref())];
    outputs::check(&outputs)?;
    let history = weir_lab::history(&options)?;
    outputs::write(history.text(), outputs, [Past(&history).csv()])?;
    let line =
        |series: &Series| format!("{}: {}: {}", series.cell, series.metric, history.latest_text(series));
    let shown = history.regressions().map(line).collect();
    let undecided = history.undecided().map(line).collect();
    args.policy.judge(&Regressions { shown, undecided })
}

/// Parses a percentage, 0.1 to 1000, as a share.
fn percent(text: &str) -> Result<f64, String> {
    let percent = text.trim_end_matches('%').trim().parse::<f64>().ok();
    let allowed = percent.filter(|percent| (0.1..=1000.0).contains(percent));
    allowed.map(|percent| percent / 100.0).ok_or_else(|| "expected 0.1 to 1000".into())
}
