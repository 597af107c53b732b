//! `weir check`: validate a gateway configuration.

use crate::outcome::{Failure, Outcome, say};
use clap::Args;
use std::path::PathBuf;

/// Validate a gateway configuration and all files it names, without listening.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  weir check --config /etc/weir/weir.toml
  weir check --config weir.toml --explain
  weir check --schema > weir.schema.json   # for completion in an editor

All faults and warnings are reported at once, each with file, line, key and what to do. The exit
code is 2 if there is a fault.")]
pub(crate) struct CheckArgs {
    /// The configuration (TOML)
    #[arg(long, value_name = "FILE", required_unless_present = "schema")]
    config: Option<PathBuf>,
    /// Print the effective configuration, and the cost of its TLS choices
    #[arg(long)]
    explain: bool,
    /// Exit with 2 on any warning, for CI
    #[arg(long)]
    deny_warnings: bool,
    /// Print the JSON Schema of a configuration, for editors
    #[arg(long, conflicts_with_all = ["config", "explain", "deny_warnings"])]
    schema: bool,
}

pub(crate) fn run(args: &CheckArgs) -> Outcome {
    let Some(config) = &args.config else { return say(weir_gateway::schema()) };
    let checked = weir_gateway::read(config).map_err(Failure::findings)?;
    let file = config.display();
    if args.explain {
        say(checked.explain())?;
    }
    let warnings: Vec<_> = checked.warnings().map(ToString::to_string).collect();
    if args.deny_warnings && !warnings.is_empty() {
        let denied = format!("{file}: rejected by --deny-warnings: warnings {}", warnings.len());
        return Err(Failure::findings(format!("{}\n{denied}", warnings.join("\n"))));
    }
    for warning in &warnings {
        say(format_args!("{warning}\n"))?;
    }
    say(format_args!("{file}: valid{}\n", if warnings.is_empty() { "" } else { ", with warnings" }))
}
