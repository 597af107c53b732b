//! The outcome of a subcommand: its message, exit code and the flag at fault.

use std::fmt::Display;
use std::io::{ErrorKind, Write as _, stdout};
#[cfg(any(feature = "gateway", feature = "lab"))]
use std::path::Path;

/// The outcome of a subcommand.
pub(crate) type Outcome = Result<(), Failure>;

/// The reason for a subcommand's failure.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) message: String,
    pub(crate) code: u8,
}

impl Failure {
    /// The subcommand could not run: exit code 1.
    pub(crate) fn run(error: impl Display) -> Self {
        Self { message: error.to_string(), code: 1 }
    }

    /// The usage or the configuration is invalid: exit code 2.
    pub(crate) fn usage(error: impl Display) -> Self {
        Self { message: error.to_string(), code: 2 }
    }

    /// Findings about a configuration, a line each: exit code 2.
    #[cfg(feature = "gateway")]
    pub(crate) fn findings(lines: impl Display) -> Self {
        Self::usage(lines.to_string().replace('\n', "\nweir: "))
    }

    /// Creates a run or usage error. A usage error begins with the flag whose file the error names.
    #[cfg(any(feature = "gateway", feature = "lab"))]
    pub(crate) fn blame(is_usage: bool, error: impl Display, flags: &[(&str, Option<&Path>)]) -> Self {
        if !is_usage {
            return Self::run(error);
        }
        let text = error.to_string();
        let named =
            flags.iter().filter_map(|(flag, file)| Some((flag, file.as_ref()?.display().to_string())));
        // The longest match: one file's name may be a prefix of another's.
        match named.filter(|(_, file)| text.contains(file)).rev().max_by_key(|(_, file)| file.len()) {
            Some((flag, _)) => Self::usage(format!("{flag}: {text}")),
            None => Self::usage(text),
        }
    }
}

#[cfg(feature = "lab")]
impl Failure {
    /// The subcommand ran but produced no evidence: exit code 3.
    pub(crate) fn no_evidence(error: impl Display) -> Self {
        Self { message: error.to_string(), code: 3 }
    }

    /// A condition (`--assert`, `--fail-on`) does not hold: exit code 4.
    pub(crate) fn condition(error: impl Display) -> Self {
        Self { message: error.to_string(), code: 4 }
    }
}

#[cfg(feature = "lab")]
impl From<weir_lab::LabError> for Failure {
    fn from(error: weir_lab::LabError) -> Self {
        Self { message: error.to_string(), code: error.exit_code() }
    }
}

/// Writes to standard output and flushes it. A closed pipe (`| head`) is not a failure.
pub(crate) fn say(text: impl Display) -> Outcome {
    let mut out = stdout().lock();
    match write!(out, "{text}").and_then(|()| out.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(Failure::run(format!("cannot write to standard output: {error}")))
        }
        _ => Ok(()),
    }
}
