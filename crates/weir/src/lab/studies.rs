//! `weir studies`: the statements of the studies, with verdicts.

use super::outputs;
use crate::outcome::{Failure, Outcome, say};
use clap::{Args, Subcommand};
use std::path::PathBuf;
use weir_http::visible;
use weir_lab::store::Store;
use weir_lab::studies::{STUDIES, Study, chosen, keep, markdown, statements, terminal};
use weir_lab::{LabError, RunOptions};
use weir_reactor::limits;

/// List every statement of the four studies with its claim, the measurements and the verdict.
///
/// The verdicts come from docs/studies in the current directory, or else from the program. Result directories given as
/// arguments replace them, claim by claim.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES, args_conflicts_with_subcommands = true)]
pub(crate) struct StudiesArgs {
    #[command(subcommand)]
    command: Option<StudiesCommand>,
    #[command(flatten)]
    list: ListArgs,
}

#[derive(Subcommand, Debug)]
enum StudiesCommand {
    Run(RunArgs),
}

#[derive(Args, Debug)]
struct ListArgs {
    /// Results of weir run or weir stacks run, newest last
    #[arg(value_name = "RESULT")]
    results: Vec<PathBuf>,
    /// Store the verdicts of these results in a folder [default: docs/studies]
    #[arg(
        long,
        value_name = "DIR",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "docs/studies",
        requires = "results"
    )]
    keep: Option<PathBuf>,
    /// Write the page docs/STUDIES.md to a file, or - for standard output
    #[arg(long, value_name = "FILE|-", help_heading = "Output")]
    markdown: Option<PathBuf>,
}

/// Run the experiments of a study one after the other, and list its statements with their verdicts.
#[derive(Args, Debug)]
#[command(after_help = RUN_EXAMPLES)]
struct RunArgs {
    /// S1, S2, S3 or S4
    #[arg(value_name = "STUDY", value_parser = study)]
    study: Study,
    /// Apply each experiment's [quick] table: indications
    #[arg(long)]
    quick: bool,
    /// Store each experiment's result in DIR/EXPERIMENT [default: out/EXPERIMENT-YYYYMMDD-HHMMSS]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Install nothing; skip missing targets
    #[arg(long)]
    no_install: bool,
}

const EXAMPLES: &str = "\
Examples:
  weir studies                                                # what is known about each statement
  weir studies run S4 --quick                                 # measure those of a study again
  weir studies out/outbound-20260101-120000                   # with the verdicts of a result
  weir studies out/outbound-20260101-120000 --keep --markdown studies.md";

const RUN_EXAMPLES: &str = "\
Examples:
  weir studies run S4 --quick       # outbound TLS in Node.js: some 15 minutes
  weir studies run S3 --quick       # HTTP pass-through: some 15 minutes, with a JDK 17 and Maven
  weir studies run S2               # full handshakes and AVX-512: hours
  weir studies run S4 --quick --out out/S4    # out/S4/outbound, out/S4/outbound-settings

Exit codes:
  0  measured, whatever the outcome
  1  an experiment could not run
  2  usage or configuration
  3  no evidence on any statement";

fn study(text: &str) -> Result<Study, String> {
    let known = || STUDIES.map(|study| format!("{} ({})", study.source, study.title)).join(", ");
    Study::of(text).ok_or_else(|| format!("expected one of {}", known()))
}

pub(crate) fn run(args: StudiesArgs) -> Outcome {
    match args.command {
        Some(StudiesCommand::Run(args)) => measure(&args),
        None => list(&args.list),
    }
}

fn list(args: &ListArgs) -> Outcome {
    let outputs = [("--markdown", args.markdown.as_deref())];
    outputs::check(&outputs)?;
    let all = statements(&args.results)?;
    if let Some(folder) = &args.keep {
        keep(&args.results, folder)?;
    }
    outputs::write(terminal(&all), outputs, [markdown(&all)])
}

/// Runs the experiments of a study. One that cannot run does not stop the others.
fn measure(args: &RunArgs) -> Outcome {
    let RunArgs { study, quick, out, no_install } = args;
    // As in `weir run`, for the processes that the experiments start.
    limits::raise_open_files().map_err(Failure::run)?;
    let (mut results, mut failed) = (Vec::new(), Vec::new());
    let names = study.experiments()?;
    let place = |name: &str| out.as_ref().map(|out| out.join(name));
    // Fail before hours of measuring.
    names.iter().filter_map(|name| place(name)).try_for_each(|place| Store::check_vacant(&place))?;
    for name in names {
        let (out, install) = (place(name), Some(!no_install));
        let options = RunOptions { file: name.into(), out, quick: *quick, install, ..RunOptions::default() };
        match chosen(study, &options).and_then(|options| weir_lab::run(&options)) {
            Ok(outcome) => {
                say(format!("== {name}\n{}\n", outcome.text))?;
                results.push(outcome.directory);
            }
            Err(error @ LabError::Interrupted { .. }) => return Err(error.into()),
            Err(error) => {
                say(format!("== {name}\nnot measured: {}\n\n", visible(&error.to_string())))?;
                failed.push(format!("{name}: {error}"));
            }
        }
    }
    // A result whose cells all failed adds no verdict.
    results.retain(|result| statements(&[result]).is_ok());
    let mut own = statements(&results)?;
    own.retain(|statement| statement.claim.source == study.source);
    say(terminal(&own))?;
    if !failed.is_empty() {
        return Err(Failure::run(failed.join("\nweir: ")));
    }
    if results.is_empty() {
        return Err(Failure::no_evidence(
            "no run measured a statement; see the reasons above and `weir doctor`",
        ));
    }
    Ok(())
}
