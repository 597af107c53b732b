//! The `weir` program: one file per subcommand.

#[cfg(feature = "lab")]
mod calibrate;
#[cfg(feature = "lab")]
mod compare;
mod completions;
#[cfg(feature = "lab")]
mod cost;
#[cfg(feature = "lab")]
mod delay_relay;
#[cfg(feature = "lab")]
mod doctor;
#[cfg(feature = "lab")]
mod guard;
#[cfg(feature = "lab")]
mod history;
#[cfg(feature = "lab")]
mod load;
mod man;
#[cfg(feature = "lab")]
mod origin;
#[cfg(feature = "lab")]
mod outputs;
#[cfg(any(feature = "gateway", feature = "lab"))]
mod parameters;
#[cfg(feature = "lab")]
mod plan;
#[cfg(feature = "lab")]
mod probe;
#[cfg(feature = "gateway")]
mod relay;
#[cfg(feature = "lab")]
mod report;
#[cfg(feature = "lab")]
mod run;
#[cfg(feature = "gateway")]
mod serve;
#[cfg(feature = "lab")]
mod stacks;
#[cfg(feature = "lab")]
mod targets;
mod words;

use clap::{Parser, Subcommand};
use std::fmt::Display;
use std::io::{self, Write as _};
use std::process::ExitCode;

/// An HTTP pass-through gateway over TLS, and the lab that measures it.
#[derive(Parser, Debug)]
#[command(version, max_term_width = 110, after_help = EXIT_CODES)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

const EXIT_CODES: &str = "\
Exit codes:
  0  what was asked was done; of the lab: what was asked was measured, whatever it came to
  1  it could not be done
  2  usage or configuration
  3  there is no evidence for what was asked
  4  a condition (--assert, --fail-on) does not hold";

#[derive(Subcommand, Debug)]
enum Command {
    #[cfg(feature = "gateway")]
    Serve(serve::ServeArgs),
    #[cfg(feature = "gateway")]
    Relay(relay::RelayArgs),
    #[cfg(feature = "lab")]
    Origin(origin::OriginArgs),
    #[cfg(feature = "lab")]
    Load(Box<load::Arguments>),
    #[cfg(feature = "lab")]
    Calibrate(calibrate::CalibrateArgs),
    #[cfg(feature = "lab")]
    Run(run::RunArgs),
    #[cfg(feature = "lab")]
    Plan(plan::PlanArgs),
    #[cfg(feature = "lab")]
    Probe(probe::ProbeArgs),
    #[cfg(feature = "lab")]
    Cost(cost::CostArgs),
    #[cfg(feature = "lab")]
    Doctor(doctor::DoctorArgs),
    #[cfg(feature = "lab")]
    Report(report::ReportArgs),
    #[cfg(feature = "lab")]
    Compare(compare::CompareArgs),
    #[cfg(feature = "lab")]
    History(history::HistoryArgs),
    #[cfg(feature = "lab")]
    #[command(hide = true)]
    Guard(guard::GuardArgs),
    #[cfg(feature = "lab")]
    Targets(targets::TargetsArgs),
    #[cfg(feature = "lab")]
    Stacks(stacks::StacksArgs),
    /// Delay and lose packets for the lab, which starts it (crates/lab/src/net).
    #[cfg(feature = "lab")]
    #[command(hide = true)]
    DelayRelay,
    Completions(completions::CompletionsArgs),
    Man(man::ManArgs),
}

/// How a subcommand ended.
type Outcome = Result<(), Failure>;

/// Why a subcommand did not run to its end.
#[derive(Debug)]
struct Failure {
    message: String,
    code: u8,
}

impl Failure {
    /// It could not: exit code 1.
    fn run(error: impl Display) -> Self {
        Self { message: error.to_string(), code: 1 }
    }

    /// It was asked for something that cannot be: exit code 2.
    fn usage(error: impl Display) -> Self {
        Self { message: error.to_string(), code: 2 }
    }

    /// It ran, and there is no evidence for what was asked: exit code 3.
    #[cfg(feature = "lab")]
    fn no_evidence(error: impl Display) -> Self {
        Self { message: error.to_string(), code: 3 }
    }

    /// A condition that was set does not hold: exit code 4.
    #[cfg(feature = "lab")]
    fn condition(error: impl Display) -> Self {
        Self { message: error.to_string(), code: 4 }
    }
}

fn main() -> ExitCode {
    let outcome = match Cli::parse().command {
        #[cfg(feature = "gateway")]
        Command::Serve(args) => serve::run(args),
        #[cfg(feature = "gateway")]
        Command::Relay(args) => relay::run(args),
        #[cfg(feature = "lab")]
        Command::Origin(args) => origin::run(args),
        #[cfg(feature = "lab")]
        Command::Load(args) => load::run(*args),
        #[cfg(feature = "lab")]
        Command::Calibrate(args) => calibrate::run(args),
        #[cfg(feature = "lab")]
        Command::Run(args) => run::run(args),
        #[cfg(feature = "lab")]
        Command::Plan(args) => plan::run(args),
        #[cfg(feature = "lab")]
        Command::Probe(args) => probe::run(args),
        #[cfg(feature = "lab")]
        Command::Cost(args) => cost::run(args),
        #[cfg(feature = "lab")]
        Command::Doctor(args) => doctor::run(args),
        #[cfg(feature = "lab")]
        Command::Report(args) => report::run(args),
        #[cfg(feature = "lab")]
        Command::Compare(args) => compare::run(args),
        #[cfg(feature = "lab")]
        Command::History(args) => history::run(args),
        #[cfg(feature = "lab")]
        Command::Guard(args) => guard::run(args),
        #[cfg(feature = "lab")]
        Command::Targets(args) => targets::run(args),
        #[cfg(feature = "lab")]
        Command::Stacks(args) => stacks::run(args),
        #[cfg(feature = "lab")]
        Command::DelayRelay => delay_relay::run(),
        Command::Completions(args) => completions::run(args),
        Command::Man(args) => man::run(args),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            // The exit code says it, too, where nobody can read the words.
            let _ = writeln!(io::stderr(), "weir: {}", failure.message);
            ExitCode::from(failure.code)
        }
    }
}
