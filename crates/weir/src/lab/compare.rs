//! `weir compare`: two results of one plan, or of `weir load`.

use super::outputs::{self, Exports, Gate};
use crate::outcome::{Failure, Outcome};
use clap::Args;
use std::path::PathBuf;
use weir_lab::across::{Loads, loads};
use weir_lab::compare;
use weir_lab::export::Compared;

/// Compare two results of one plan, cell by cell: a release, or a TLS library, with the one before.
///
/// Targets and engines whose version and files are the same in both, and cells without a gateway, show how much the sessions
/// differ. If they moved, nothing is said of the others.
///
/// Two files of weir load --json are put side by side as well. They are two single runs, which decide nothing: with
/// --fail-on they end with code 3.
#[derive(Args, Debug)]
#[command(after_help = [EXAMPLES, outputs::RESULT_CODES].concat())]
pub(crate) struct CompareArgs {
    /// The results before
    a: PathBuf,
    /// The results after
    b: PathBuf,
    /// A target or engine that is another program though nothing stored says so; can be given more than once
    #[arg(long, value_name = "NAME")]
    changed: Vec<String>,
    /// Write the comparison as JSON to a file; with - to standard output, and nothing else there
    #[arg(long, value_name = "FILE|-", help_heading = "Output")]
    json: Option<PathBuf>,
    #[command(flatten)]
    exports: Exports,
    #[command(flatten)]
    gate: Gate,
}

const EXAMPLES: &str = "\
Examples:
  weir compare out/release-1 out/release-2
  weir compare out/main out/branch --changed nginx         # a rival's build with the same version
  weir compare out/release-1 out/release-2 --json - --fail-on regression
  weir compare out/tls-before out/tls-after                # two results of weir stacks run
  weir compare out/release-1 out/release-2 --junit junit.xml --markdown summary.md
  weir compare before.json after.json                      # two results of weir load: no verdict";

pub(crate) fn run(args: CompareArgs) -> Outcome {
    if let Some(loads) = loads(&args.a, &args.b)? {
        return side_by_side(&args, &loads);
    }
    let CompareArgs { a, b, changed, json, exports, gate } = &args;
    let [csv, markdown, junit] = exports.outputs();
    let outputs = [("--json", json.as_deref()), csv, markdown, junit];
    outputs::check(&outputs)?;
    let across = compare(a, b, changed)?;
    let compared = Compared(&across);
    let junit = compared.junit(gate.fail_on.is_some());
    let contents = [outputs::json(&across)?, compared.csv(), compared.markdown(), junit];
    outputs::tell(across.text(), outputs, contents)?;
    gate.judge(&across.regressions())
}

/// Two results of `weir load`.
fn side_by_side(args: &CompareArgs, loads: &Loads) -> Outcome {
    let CompareArgs { changed, json, exports, gate, .. } = args;
    let of_experiments = [("--changed", !changed.is_empty()), ("--junit", exports.junit.is_some())];
    if let Some((flag, _)) = of_experiments.iter().find(|(_, is_given)| *is_given) {
        return Err(Failure::usage(format!(
            "{flag}: cannot be used with results of weir load, which decide nothing; allowed: --json, --csv, --markdown"
        )));
    }
    let [csv, markdown, _] = exports.outputs();
    let outputs = [("--json", json.as_deref()), csv, markdown];
    outputs::check(&outputs)?;
    outputs::tell(loads.text(), outputs, [outputs::json(loads)?, loads.csv(), loads.markdown()])?;
    match gate.fail_on {
        Some(_) => gate.need_evidence(
            "whether there is a regression is not decided",
            &[Loads::UNDECIDED.into()],
            "run the experiment that is named above",
        ),
        None => Ok(()),
    }
}
