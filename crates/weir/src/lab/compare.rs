//! `weir compare`: two results of the same plan, or of `weir load`.

use super::outputs::{self, Exports, FailPolicy};
use crate::outcome::{Failure, Outcome};
use clap::Args;
use std::path::PathBuf;
use weir_lab::across::{Loads, loads};
use weir_lab::compare;
use weir_lab::export::Compared;

/// Compare two results of the same plan cell by cell, such as two releases or two TLS library versions.
///
/// Unchanged targets and engines (same version and files) and cells without a gateway show how much the two sessions
/// differ. If those moved, the others get no verdict.
///
/// Two weir load --json files are shown side by side. Two single runs decide nothing, so with --fail-on the exit code
/// is 3.
#[derive(Args, Debug)]
#[command(after_help = [EXAMPLES, outputs::RESULT_CODES].concat())]
pub(crate) struct CompareArgs {
    /// The old results
    a: PathBuf,
    /// The new results
    b: PathBuf,
    /// Treat this target or engine as changed although version and files match; may be repeated
    #[arg(long, value_name = "NAME")]
    changed: Vec<String>,
    /// Write the comparison as JSON to a file; - prints only JSON on standard output
    #[arg(long, value_name = "FILE|-", help_heading = "Output")]
    json: Option<PathBuf>,
    #[command(flatten)]
    exports: Exports,
    #[command(flatten)]
    policy: FailPolicy,
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
    let CompareArgs { a, b, changed, json, exports, policy } = &args;
    let [csv, markdown, junit] = exports.outputs();
    let outputs = [("--json", json.as_deref()), csv, markdown, junit];
    outputs::check(&outputs)?;
    let across = compare(a, b, changed)?;
    let compared = Compared(&across);
    let junit = compared.junit(policy.fail_on.is_some());
    let contents = [outputs::json(&across)?, compared.csv(), compared.markdown(), junit];
    outputs::write(across.text(), outputs, contents)?;
    policy.judge(&across.regressions())
}

/// Two results of `weir load`.
fn side_by_side(args: &CompareArgs, loads: &Loads) -> Outcome {
    let CompareArgs { changed, json, exports, policy, .. } = args;
    let of_experiments = [("--changed", !changed.is_empty()), ("--junit", exports.junit.is_some())];
    if let Some((flag, _)) = of_experiments.iter().find(|(_, is_given)| *is_given) {
        return Err(Failure::usage(format!(
            "{flag}: not available for weir load results, which decide nothing; expected --json, --csv or --markdown"
        )));
    }
    let [csv, markdown, _] = exports.outputs();
    let outputs = [("--json", json.as_deref()), csv, markdown];
    outputs::check(&outputs)?;
    outputs::write(loads.text(), outputs, [outputs::json(loads)?, loads.csv(), loads.markdown()])?;
    match policy.fail_on {
        Some(_) => policy.need_evidence(
            "it is undecided whether there is a regression",
            &[Loads::UNDECIDED.into()],
            "run the experiment named above",
        ),
        None => Ok(()),
    }
}
