//! `weir stacks`: compare TLS libraries in memory.

use super::outputs::RUN_CODES;
use super::run::{ResultArgs, chosen, experiment_help, run_experiment};
use crate::outcome::{Failure, Outcome, say};
use clap::{Args, Subcommand};
use std::path::PathBuf;
use std::thread::available_parallelism;
use weir_lab::RunOptions;
use weir_lab::found::Folders;
use weir_lab::instrument::stacks;

/// Compare TLS libraries in memory: the cost of a handshake, a resumption and a megabyte in each.
///
/// Engines are built in $WEIR_ENGINES, else $XDG_CACHE_HOME/weir/engines or ~/.cache/weir/engines.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct StacksArgs {
    #[command(subcommand)]
    command: StacksCommand,
}

#[derive(Subcommand, Debug)]
enum StacksCommand {
    /// List the engines: version and build state
    List(Place),
    Build(BuildArgs),
    Run(StacksRunArgs),
    /// Show what `run` would do and how long it would take
    Plan(ExperimentArgs),
}

#[derive(Args, Debug)]
struct Place {
    /// Directory of engines [default: engines, then the built-in ones]
    #[arg(long, value_name = "DIR")]
    directory: Option<PathBuf>,
}

/// Build engines; a failed build does not stop the others.
#[derive(Args, Debug)]
#[command(after_help = BUILD_EXAMPLES)]
struct BuildArgs {
    /// Engines to build [default: all]
    #[arg(value_name = "NAME")]
    names: Vec<String>,
    /// Parallel jobs [default: one per allowed core]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    jobs: Option<u16>,
    #[command(flatten)]
    place: Place,
}

/// Run an experiment: build missing engines, then run each cell in fresh processes, in blocks.
#[derive(Args, Debug)]
#[command(after_help = [RUN_EXAMPLES, RUN_CODES].concat())]
struct StacksRunArgs {
    #[command(flatten)]
    experiment: ExperimentArgs,
    /// Also count instructions per handshake after the blocks, under valgrind (which hides AVX-512)
    #[arg(long)]
    instructions: bool,
    /// After the blocks, sample each scenario in a run of its own: the cost of a handshake by category, and flame
    /// graphs; needs perf
    #[arg(long)]
    profile: bool,
    #[command(flatten)]
    results: ResultArgs,
}

#[derive(Args, Debug)]
struct ExperimentArgs {
    #[arg(help = experiment_help() + " [default: stacks-handshakes; with --continue: the stored one]")]
    file: Option<PathBuf>,
    /// Only cells with these levels, such as engine=go,version=1.3; repeat a key for alternatives. With engine=go, the
    /// A/A pair also runs, to show the noise floor; name=go leaves it out
    #[arg(long, alias = "filter", value_name = "K=V,K=V")]
    only: Vec<String>,
    /// Smoke test: apply the file's [quick] table
    #[arg(long)]
    quick: bool,
    /// Number of blocks, overriding the experiment; a verdict needs ten
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    blocks: Option<u32>,
    /// Override a key of the scenarios, such as window_ms=500; may be repeated
    #[arg(long, value_name = "K=V")]
    set: Vec<String>,
}

const EXAMPLES: &str = "\
Examples:
  weir stacks list
  weir stacks build rustls-0.23-aws-lc openssl-system
  weir stacks run --quick
  weir stacks run tickets --only engine=rustls-0.23-aws-lc,engine=rustls-0.23-ring";

const BUILD_EXAMPLES: &str = "\
Examples:
  weir stacks build rustls-0.23-aws-lc rustls-0.23-ring openssl-system
  weir stacks build                                     # all: more than an hour on two cores";

const RUN_EXAMPLES: &str = "\
Examples:
  weir stacks run --quick                               # three engines: five minutes
  weir stacks run --only engine=go,engine=openssl-system,do=handshake --blocks 12
  weir stacks run avx512 --set window_ms=500
  weir stacks run --quick --only do=handshake --instructions
  weir stacks run --quick --only do=handshake --profile   # where the time goes";

pub(crate) fn run(args: StacksArgs) -> Outcome {
    match args.command {
        StacksCommand::List(place) => say(stacks::list(&place.folders())?),
        StacksCommand::Build(args) => run_build(&args),
        StacksCommand::Run(args) => {
            let options = args.results.with(args.experiment.options(args.results.continues())?);
            let options = RunOptions { instructions: args.instructions, profile: args.profile, ..options };
            run_experiment(&options, &args.results)
        }
        StacksCommand::Plan(args) => say(weir_lab::plan(&args.options(false)?)?),
    }
}

fn run_build(args: &BuildArgs) -> Outcome {
    let all = || available_parallelism().map_or(1, usize::from);
    let jobs = args.jobs.map_or_else(all, usize::from);
    let (text, failed) = stacks::build(&args.place.folders(), &args.names, jobs)?;
    say(text)?;
    match failed {
        0 => Ok(()),
        failed => Err(Failure::run(format!("{failed} engines failed to build"))),
    }
}

impl Place {
    fn folders(&self) -> Folders {
        Folders::engines(self.directory.as_deref())
    }
}

impl ExperimentArgs {
    /// The options for an experiment. A continued result keeps its experiment unless a file or an option names another.
    fn options(self, continues: bool) -> Result<RunOptions, Failure> {
        let is_bare = !self.quick && self.only.is_empty() && self.set.is_empty();
        let file = self.file.unwrap_or_else(|| match continues && is_bare {
            true => PathBuf::new(),
            false => "stacks-handshakes".into(),
        });
        let options = RunOptions { file, blocks: self.blocks, quick: self.quick, ..RunOptions::default() };
        chosen(options, &self.only, &self.set)
    }
}
