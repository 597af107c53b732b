//! `weir doctor`: disturbances of measurements on this machine.

use super::outputs;
use crate::outcome::{Failure, Outcome};
use clap::Args;
use std::path::PathBuf;
use weir_doctor::{Level, examine, table};

/// Report disturbances of measurements on this machine, and how to fix them.
///
/// Samples the system for a second and changes nothing. `weir run` does the same before its first run and stores
/// it with the result.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct DoctorArgs {
    /// Write the findings as JSON to a file; - or no file prints only JSON on standard output
    #[arg(long, value_name = "FILE|-", num_args = 0..=1, default_missing_value = "-")]
    json: Option<PathBuf>,
    /// Exit with 4 if a finding is bad
    #[arg(long)]
    strict: bool,
}

const EXAMPLES: &str = "\
Examples:
  weir doctor
  weir doctor --strict && weir run quickstart      # only on a quiet machine
  weir doctor --json | jq '.[] | select(.level == \"bad\")'";

pub(crate) fn run(args: DoctorArgs) -> Outcome {
    let outputs = [("--json", args.json.as_deref())];
    outputs::check(&outputs)?;
    let findings = examine();
    outputs::write(table(&findings), outputs, [outputs::json(&findings)?])?;
    let bad = findings.iter().filter(|finding| finding.level == Level::Bad);
    let bad: Vec<&str> = bad.map(|finding| finding.id.as_str()).collect();
    if args.strict && !bad.is_empty() {
        return Err(Failure::condition(format!("--strict: bad: {}", bad.join(", "))));
    }
    Ok(())
}
