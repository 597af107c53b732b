//! `weir compare`: two results of the same plan, or two levels in one result.

use super::outputs::{self, Exports, FailPolicy};
use crate::outcome::{Failure, Outcome};
use clap::Args;
use std::path::{Path, PathBuf};
use weir_lab::across::Within;
use weir_lab::across::export::Compared;
use weir_lab::{compare, compare_levels};

/// Compare two results of the same plan cell by cell, such as two releases or two TLS library versions.
///
/// Unchanged targets and engines (same version and files) and cells without a gateway show the drift between the two
/// sessions. If these moved, the others get no verdict.
///
/// With LEVEL, A is one result, and its cells with the levels B and LEVEL are compared. Their runs share the blocks, so
/// there is no drift between them.
#[derive(Args, Debug)]
#[command(after_help = [EXAMPLES, outputs::RESULT_CODES].concat())]
pub(crate) struct CompareArgs {
    /// The old results; with LEVEL, the result that has both levels
    a: PathBuf,
    /// The new results; with LEVEL, the level to compare with, such as settings.pool=50
    b: PathBuf,
    /// Another level of the same factor, such as settings.pool=100
    level: Option<String>,
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
  weir compare out/quickstart-1 target=nginx target=weir   # two levels of a factor, in one result";

pub(crate) fn run(args: CompareArgs) -> Outcome {
    if let Some(level) = &args.level {
        return two_levels(&args, level);
    }
    if let Some((key, _)) = level_alone(&args.b) {
        let (a, b) = (args.a.display(), args.b.display());
        return Err(Failure::usage(format!(
            "{b}: no such result; to compare two levels of {a}, name both: `weir compare {a} {b} {key}=LEVEL`"
        )));
    }
    let CompareArgs { a, b, changed, json, exports, policy, .. } = &args;
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

/// Parses `FACTOR=LEVEL`, given in place of a second result; `None` if a file has this name.
fn level_alone(b: &Path) -> Option<(&str, &str)> {
    b.to_str().filter(|_| !b.exists())?.split_once('=')
}

/// Compares two levels of a factor in one result.
fn two_levels(args: &CompareArgs, level: &str) -> Outcome {
    let CompareArgs { a, b, changed, json, exports, policy, .. } = args;
    if !changed.is_empty() {
        return Err(Failure::usage(
            "--changed: not available for two levels of one result, which has no drift",
        ));
    }
    let [csv, markdown, junit] = exports.outputs();
    let outputs = [("--json", json.as_deref()), csv, markdown, junit];
    outputs::check(&outputs)?;
    let Within { text, json, reported } = compare_levels(a, [&b.to_string_lossy(), level])?;
    let junit = reported.junit(policy.fail_on.is_some());
    outputs::write(text, outputs, [outputs::json(&json)?, reported.csv(), reported.markdown(), junit])?;
    policy.judge(&reported.regressions())
}
