//! The `weir` program: one file per subcommand.

#[cfg(feature = "lab")]
mod load;
#[cfg(feature = "lab")]
mod origin;
#[cfg(feature = "gateway")]
mod serve;

use clap::{Parser, Subcommand};
use std::fmt::Display;
use std::process::ExitCode;

/// An HTTP pass-through gateway over TLS, and the lab that measures it.
#[derive(Parser, Debug)]
#[command(version, max_term_width = 110)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand, Debug)]
enum Command {
    #[cfg(feature = "gateway")]
    Serve(serve::ServeArgs),
    #[cfg(feature = "gateway")]
    Relay(serve::RelayArgs),
    #[cfg(feature = "lab")]
    Origin(origin::OriginArgs),
    #[cfg(feature = "lab")]
    Load(load::LoadArgs),
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
}

fn main() -> ExitCode {
    let outcome = match Cli::parse().command {
        #[cfg(feature = "gateway")]
        Command::Serve(args) => serve::serve(args),
        #[cfg(feature = "gateway")]
        Command::Relay(args) => serve::relay(args),
        #[cfg(feature = "lab")]
        Command::Origin(args) => origin::run(args),
        #[cfg(feature = "lab")]
        Command::Load(args) => load::run(args),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("weir: {}", failure.message);
            ExitCode::from(failure.code)
        }
    }
}
