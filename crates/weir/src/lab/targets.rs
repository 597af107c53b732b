//! `weir targets`: list, install and check the gateways under test.

use crate::outcome::{Failure, Outcome, say};
use clap::{Args, Subcommand};
use std::path::PathBuf;
use std::thread::available_parallelism;
use weir_lab::found::Folders;
use weir_lab::instrument::gateway::target::{check, install, list};

/// List, install and check the gateways under test.
///
/// Targets are installed in $WEIR_TARGETS, else $XDG_CACHE_HOME/weir/targets or ~/.cache/weir/targets, and shared by
/// all checkouts.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES, args_conflicts_with_subcommands = true)]
pub(crate) struct TargetsArgs {
    #[command(subcommand)]
    command: Option<TargetsCommand>,
    #[command(flatten)]
    place: Place,
}

#[derive(Subcommand, Debug)]
enum TargetsCommand {
    /// List targets, with versions and how to install missing ones [default]
    List(Place),
    Install(InstallArgs),
    Check(CheckArgs),
}

#[derive(Args, Debug)]
struct Place {
    /// Directory of targets [default: targets, then the built-in ones]
    #[arg(long, value_name = "DIR")]
    directory: Option<PathBuf>,
}

/// Build or fetch targets from package registries, with their own scripts.
#[derive(Args, Debug)]
#[command(after_help = INSTALL_EXAMPLES)]
struct InstallArgs {
    /// Targets to install
    #[arg(required = true, value_name = "NAME")]
    names: Vec<String>,
    /// Parallel jobs [default: one per allowed core]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    jobs: Option<u16>,
    #[command(flatten)]
    place: Place,
}

/// Have each target validate its own configuration, in each mode.
#[derive(Args, Debug)]
#[command(after_help = CHECK_EXAMPLES)]
struct CheckArgs {
    /// Targets to check [default: all installed]
    #[arg(value_name = "NAME")]
    names: Vec<String>,
    #[command(flatten)]
    place: Place,
}

const EXAMPLES: &str = "\
Examples:
  weir targets
  weir targets --directory my/targets
  weir targets install nginx-current haproxy-current
  weir targets check";

const INSTALL_EXAMPLES: &str = "\
Examples:
  weir targets install nginx-current
  weir targets install nginx-current haproxy-current --jobs 2
  WEIR_TARGETS=/opt/weir weir targets install envoy";

const CHECK_EXAMPLES: &str = "\
Examples:
  weir targets check
  weir targets check nginx haproxy";

pub(crate) fn run(args: TargetsArgs) -> Outcome {
    match args.command {
        None => run_list(&args.place),
        Some(TargetsCommand::List(place)) => run_list(&place),
        Some(TargetsCommand::Install(args)) => run_install(args),
        Some(TargetsCommand::Check(args)) => run_check(&args),
    }
}

impl Place {
    fn folders(&self) -> Folders {
        Folders::targets(self.directory.as_deref())
    }
}

fn run_list(place: &Place) -> Outcome {
    let list = list(&place.folders())?;
    say(&list.text)?;
    match list.wrong.as_slice() {
        [] => Ok(()),
        wrong => Err(Failure::usage(format!("invalid description: {}", wrong.join(", ")))),
    }
}

fn run_install(args: InstallArgs) -> Outcome {
    let all = || available_parallelism().map_or(1, usize::from);
    let jobs = args.jobs.map_or_else(all, usize::from);
    for name in &args.names {
        say(install(&args.place.folders(), name, jobs)? + "\n")?;
    }
    Ok(())
}

fn run_check(args: &CheckArgs) -> Outcome {
    let checks = check(&args.place.folders(), &args.names)?;
    say(&checks.text)?;
    match checks.failed {
        0 => Ok(()),
        1 => Err(Failure::run("1 check failed")),
        failed => Err(Failure::run(format!("{failed} checks failed"))),
    }
}
