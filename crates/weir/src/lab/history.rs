//! `weir history`: cells over many results.

use super::outputs::{self, Gate};
use crate::outcome::{Failure, Outcome};
use clap::Args;
use std::path::PathBuf;
use weir_lab::evidence::Regressions;
use weir_lab::export::Past;
use weir_lab::history::{HistoryOptions, Series, parse_cells};
use weir_lab::metric::Metric;

/// Follow cells through many results of one plan, oldest first, and tell whether the last change is a regression.
#[derive(Args, Debug)]
#[command(after_help = [EXAMPLES, outputs::RESULT_CODES].concat())]
pub(crate) struct HistoryArgs {
    /// The results, in any order
    #[arg(required = true, value_name = "DIR")]
    directories: Vec<PathBuf>,
    /// Only the cells with these factors, such as target=weir,mode=h1-h1c or engine=go,certificate=rsa-2048
    #[arg(long, value_name = "K=V,K=V")]
    cell: Vec<String>,
    /// What is followed, by its name in summary.json, such as p99_us; a rate at saturation alone [default: CPU per request or
    /// per handshake; of TLS stacks the server's time, sending, memory or the operation]
    #[arg(long, value_name = "METRIC")]
    metric: Option<Metric>,
    /// Report changes beyond so many per cent, whatever the past says [default: learnt from nine past changes or more, else
    /// 30; never within the experiment's margin]
    #[arg(long, value_name = "PERCENT", value_parser = percent)]
    threshold: Option<f64>,
    /// Write one row for each cell and result as CSV to a file, or with - to standard output
    #[arg(long, value_name = "FILE|-", help_heading = "Output")]
    csv: Option<PathBuf>,
    #[command(flatten)]
    gate: Gate,
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
    outputs::tell(history.text(), outputs, [Past(&history).csv()])?;
    let line =
        |series: &Series| format!("{}: {}: {}", series.cell, series.metric, history.latest_text(series));
    let shown = history.regressions().map(line).collect();
    let undecided = history.undecided().map(line).collect();
    args.gate.judge(&Regressions { shown, undecided })
}

/// A share, given in per cent.
fn percent(text: &str) -> Result<f64, String> {
    let percent = text.trim_end_matches('%').trim().parse::<f64>().ok();
    let allowed = percent.filter(|percent| (0.1..=1000.0).contains(percent));
    allowed.map(|percent| percent / 100.0).ok_or_else(|| "allowed is a number from 0.1 to 1000".into())
}
