//! `weir run`: an experiment, from plan to report.

use crate::{Failure, Outcome, stacks};
use clap::Args;
use std::path::PathBuf;
use weir_lab::{LabError, RunOptions};
use weir_reactor::limits;

/// Run an experiment: fresh processes for each run, statistics over blocks, one report.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  weir run experiments/quickstart.toml                      five minutes: an indication
  weir run experiments/quickstart.toml --blocks 12          a verdict
  weir run experiments/quickstart.toml --only target=weir,target=nginx,mode=h1-h1
  weir run experiments/quickstart.toml --set window_ms=2000 --set tls.group=p256
  weir run experiments/passthrough.toml --quick --set target='[\"weir\",\"caddy\"]'
  weir run --continue out/quickstart-20260101-120000 experiments/quickstart.toml")]
pub(crate) struct RunArgs {
    #[command(flatten)]
    experiment: ExperimentArgs,
    #[command(flatten)]
    results: ResultArgs,
}

/// Where an experiment's results go, of gateways and of stacks.
#[derive(Args, Debug)]
pub(crate) struct ResultArgs {
    /// Where the results go [default: out/NAME-YYYYMMDD-HHMMSS]
    #[arg(long, value_name = "DIR", conflicts_with = "continue_dir")]
    out: Option<PathBuf>,
    /// Go on with an interrupted experiment
    #[arg(long = "continue", value_name = "DIR")]
    continue_dir: Option<PathBuf>,
    /// End with code 3 when a run was invalid
    #[arg(long)]
    strict: bool,
}

impl ResultArgs {
    pub(crate) fn with(self, options: RunOptions) -> RunOptions {
        let Self { out, continue_dir, strict } = self;
        RunOptions { out, continue_dir, strict, ..options }
    }
}

/// What `run` and `plan` have in common.
#[derive(Args, Debug)]
pub(crate) struct ExperimentArgs {
    /// The experiment
    file: PathBuf,
    /// Number of blocks, whatever the experiment says; ten or more give a verdict
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    blocks: Option<u32>,
    /// What the file's [quick] table cuts it down to; without one, two blocks with tiny windows: does it work here?
    #[arg(long)]
    quick: bool,
    /// Only the cells with these levels, such as mode=h1-h1c,users=100; of one key several are alternatives
    #[arg(long, alias = "filter", value_name = "K=V,K=V")]
    only: Vec<String>,
    /// Another value for a key of the experiment, such as window_ms=2000 or users=[10,20]; may be repeated
    #[arg(long, value_name = "K=V")]
    set: Vec<String>,
}

impl ExperimentArgs {
    pub(crate) fn options(self) -> Result<RunOptions, Failure> {
        let options =
            RunOptions { file: self.file, blocks: self.blocks, quick: self.quick, ..RunOptions::default() };
        chosen(options, &self.only, &self.set)
    }
}

/// The options with the cells that `only` leaves of them, and with what is set.
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
    let options = args.results.with(args.experiment.options()?);
    if weir_lab::stacks::is_experiment(&options.file) {
        return stacks::run_experiment(&options);
    }
    // Of what it starts: a rival that runs out of files where Weir raises its own limit would be no fair one.
    limits::raise_open_files().map_err(Failure::run)?;
    let outcome = weir_lab::run(&options).map_err(|error| failure(&error))?;
    print!("{}", outcome.text);
    match outcome.exit_code() {
        0 => Ok(()),
        _ => Err(Failure::no_evidence(format!("{} runs were invalid", outcome.invalid_runs))),
    }
}

pub(crate) fn failure(error: &LabError) -> Failure {
    Failure { message: error.to_string(), code: error.exit_code() }
}
