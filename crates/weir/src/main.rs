//! The `weir` program: one file per subcommand.

#[cfg(feature = "gateway")]
mod check;
mod completions;
#[cfg(feature = "gateway")]
mod import;
#[cfg(feature = "lab")]
mod lab;
mod man;
mod outcome;
#[cfg(any(feature = "gateway", feature = "lab"))]
mod parameters;
#[cfg(feature = "gateway")]
mod serve;
#[cfg(feature = "gateway")]
mod tickets;
#[cfg(feature = "gateway")]
mod top;

use clap::{CommandFactory as _, Parser, Subcommand};
use std::io::{self, Write as _};
use std::process::ExitCode;
use weir_http::visible;

/// An HTTP pass-through gateway over TLS, and the lab that measures it.
#[derive(Parser, Debug)]
#[command(version, max_term_width = 110, after_help = EXIT_CODES)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

const EXIT_CODES: &str = "\
Exit codes:
  0  done; for the lab: measured, whatever the outcome
  1  it could not run
  2  usage or configuration
  3  no evidence
  4  a condition (--assert, --fail-on) failed";

#[derive(Subcommand, Debug)]
enum Command {
    #[cfg(feature = "gateway")]
    Serve(serve::ServeArgs),
    #[cfg(feature = "gateway")]
    Check(check::CheckArgs),
    #[cfg(feature = "gateway")]
    Import(import::ImportArgs),
    #[cfg(feature = "gateway")]
    Tickets(tickets::TicketsArgs),
    #[cfg(feature = "gateway")]
    Top(top::TopArgs),
    #[cfg(feature = "gateway")]
    Relay(serve::RelayArgs),
    #[cfg(feature = "lab")]
    #[command(flatten)]
    Lab(lab::Command),
    Completions(completions::CompletionsArgs),
    Man(man::ManArgs),
}

fn main() -> ExitCode {
    let outcome = match Cli::parse().command {
        #[cfg(feature = "gateway")]
        Command::Serve(args) => serve::run(args),
        #[cfg(feature = "gateway")]
        Command::Check(args) => check::run(&args),
        #[cfg(feature = "gateway")]
        Command::Import(args) => import::run(&args),
        #[cfg(feature = "gateway")]
        Command::Tickets(args) => tickets::run(&args),
        #[cfg(feature = "gateway")]
        Command::Top(args) => top::run(&args),
        #[cfg(feature = "gateway")]
        Command::Relay(args) => serve::relay(args),
        #[cfg(feature = "lab")]
        Command::Lab(command) => command.run(),
        Command::Completions(args) => completions::run(args, Cli::command()),
        Command::Man(args) => man::run(args, Cli::command()),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            // If stderr is closed, the exit code still reports the failure.
            let _ = writeln!(io::stderr(), "weir: {}", visible(&failure.message));
            ExitCode::from(failure.code)
        }
    }
}
