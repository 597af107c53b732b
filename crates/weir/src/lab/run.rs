//! `weir run`, an experiment from plan to report, and `weir plan`, its dry run.

use super::outputs::{FailPolicy, RUN_CODES};
use crate::outcome::{Failure, Outcome, say};
use clap::Args;
use std::path::PathBuf;
use weir_lab::{Outcome as Measured, RunOptions, found};
use weir_load::plural;
use weir_reactor::limits;

/// Run an experiment: fresh processes for each run, statistics over blocks, one report.
#[derive(Args, Debug)]
#[command(after_help = [EXAMPLES, RUN_CODES].concat())]
pub(crate) struct RunArgs {
    #[arg(required_unless_present = "continue_dir", help = experiment_help() + " [with --continue: the stored one]")]
    file: Option<PathBuf>,
    #[command(flatten)]
    experiment: ExperimentArgs,
    #[command(flatten)]
    results: ResultArgs,
    /// Install every missing target that has a script, not only those the experiment asks for
    #[arg(long, conflicts_with = "no_install")]
    install: bool,
    /// Install nothing; skip missing targets
    #[arg(long)]
    no_install: bool,
    /// After the blocks, sample each target in a run of its own: the cost of a request by category, and flame
    /// graphs; needs perf
    #[arg(long)]
    profile: bool,
}

const EXAMPLES: &str = "\
Examples:
  weir run quickstart                      # five minutes, and a verdict
  weir run quickstart --no-install         # without the rival that would be built first
  weir run quickstart --profile            # and where the CPU goes
  weir run gateways --only target=weir,target=nginx,mode=h1-h1 --blocks 12
  weir run quickstart --set window_ms=2000 --set tls.group=p256
  weir run passthrough --quick --set 'users=[10,100]'
  weir run --continue out/quickstart-20260101-120000                # an interrupted one
  weir run --continue out/quickstart-20260101-120000 --blocks 24    # more evidence";

/// Show what `run` would do and how long it would take.
#[derive(Args, Debug)]
#[command(after_help = "Example:\n  weir plan quickstart --blocks 12")]
pub(crate) struct PlanArgs {
    #[arg(help = experiment_help())]
    file: PathBuf,
    #[command(flatten)]
    experiment: ExperimentArgs,
}

/// Result directory and strictness, for gateways and stacks.
#[derive(Args, Debug)]
pub(crate) struct ResultArgs {
    /// Result directory [default: out/NAME-YYYYMMDD-HHMMSS]
    #[arg(long, value_name = "DIR", conflicts_with = "continue_dir")]
    out: Option<PathBuf>,
    /// Resume an interrupted experiment, or with --blocks extend a finished one
    #[arg(long = "continue", value_name = "DIR")]
    continue_dir: Option<PathBuf>,
    /// Exit with 3 for any invalid run, not only for a cell or comparison without a valid one
    #[arg(long, conflicts_with = "allow_invalid", help_heading = "Exit code")]
    strict: bool,
    #[command(flatten)]
    policy: FailPolicy,
}

impl ResultArgs {
    pub(crate) fn with(&self, options: RunOptions) -> RunOptions {
        let (out, continue_dir) = (self.out.clone(), self.continue_dir.clone());
        RunOptions { out, continue_dir, allow_invalid: self.policy.allow_invalid, ..options }
    }

    /// Whether to continue a stored result.
    pub(crate) fn continues(&self) -> bool {
        self.continue_dir.is_some()
    }

    /// The exit code of an experiment that ran to completion.
    pub(crate) fn judge(&self, measured: &Measured) -> Outcome {
        let Measured { reported, invalid_runs, .. } = measured;
        self.policy.judge(&reported.regressions())?;
        if self.strict && *invalid_runs > 0 {
            return Err(Failure::no_evidence(format!("{} invalid", plural((*invalid_runs).into(), "run"))));
        }
        let what = "no valid run for";
        self.policy.need_evidence(what, &reported.unmeasured(), "see the reasons above and `weir doctor`")
    }
}

/// Options of both `run` and `plan`.
#[derive(Args, Debug)]
struct ExperimentArgs {
    /// Total number of blocks, overriding the experiment; a verdict needs ten
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    blocks: Option<u32>,
    /// Smoke test: apply the file's [quick] table, or else run two blocks with tiny windows
    #[arg(long, requires = "file")]
    quick: bool,
    /// Only cells with these levels, such as mode=h1-h1c,users=100; repeat a key for alternatives
    #[arg(long, alias = "filter", value_name = "K=V,K=V", requires = "file")]
    only: Vec<String>,
    /// Override a key of the experiment, such as window_ms=2000 or users=[10,20]; may be repeated
    #[arg(long, value_name = "K=V", requires = "file")]
    set: Vec<String>,
}

impl ExperimentArgs {
    /// The options for an experiment in this file.
    fn options(self, file: PathBuf) -> Result<RunOptions, Failure> {
        let options = RunOptions { file, blocks: self.blocks, quick: self.quick, ..RunOptions::default() };
        chosen(options, &self.only, &self.set)
    }
}

/// The help text for the FILE argument.
pub(crate) fn experiment_help() -> String {
    format!("Experiment file, or the name of a built-in one: {}", found::experiments().join(", "))
}

/// The options with `--only` and `--set` applied.
pub(crate) fn chosen(options: RunOptions, only: &[String], set: &[String]) -> Result<RunOptions, Failure> {
    let only = only.iter().map(|text| RunOptions::parse_pairs("--only", text));
    let set = set.iter().map(|text| RunOptions::parse_pair("--set", text));
    Ok(RunOptions {
        only: only.collect::<Result<Vec<_>, _>>().map_err(Failure::usage)?.concat(),
        set: set.collect::<Result<_, _>>().map_err(Failure::usage)?,
        ..options
    })
}

pub(crate) fn run(args: RunArgs) -> Outcome {
    let RunArgs { file, experiment, results, install, no_install, profile } = args;
    let options = results.with(experiment.options(file.unwrap_or_default())?);
    let install = (install || no_install).then_some(install);
    run_experiment(&RunOptions { install, profile, ..options }, &results)
}

pub(crate) fn plan(args: PlanArgs) -> Outcome {
    say(weir_lab::plan(&args.experiment.options(args.file)?)?)
}

/// Runs an experiment; also used by `weir stacks run`.
pub(crate) fn run_experiment(options: &RunOptions, results: &ResultArgs) -> Outcome {
    // For the started processes: Weir raises its own limit, and competitors must not run out of files where Weir does
    // not.
    limits::raise_open_files().map_err(Failure::run)?;
    let outcome = weir_lab::run(options)?;
    say(&outcome.text)?;
    results.judge(&outcome)
}
