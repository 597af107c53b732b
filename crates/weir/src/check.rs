//! `weir check`: validate a gateway configuration.

use crate::outcome::{Failure, Outcome, say};
use clap::Args;
use std::path::PathBuf;

/// Validate a gateway configuration, and everything that it names, without listening.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  weir check --config /etc/weir/weir.toml
  weir check --config weir.toml --explain

A fault is reported with file, line, key, value and what was expected; the exit code is 2.")]
pub(crate) struct CheckArgs {
    /// The configuration (TOML)
    #[arg(long, value_name = "FILE")]
    config: PathBuf,
    /// Print the effective configuration, and what its choices about TLS cost
    #[arg(long)]
    explain: bool,
}

pub(crate) fn run(args: &CheckArgs) -> Outcome {
    let checked = weir_gateway::read(&args.config).map_err(Failure::usage)?;
    let file = args.config.display();
    let warnings = checked.config.warnings();
    if args.explain {
        say(checked.explain())?;
    }
    for fault in &warnings {
        say(format_args!("{file}: warning: {fault}\n"))?;
    }
    say(format_args!("{file}: valid{}\n", if warnings.is_empty() { "" } else { ", with warnings" }))
}
