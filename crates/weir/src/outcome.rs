//! How a subcommand ends: what it says, and how it names the flag that is at fault.

use std::fmt::Display;
use std::io::{ErrorKind, Write as _, stdout};
#[cfg(any(feature = "gateway", feature = "lab"))]
use std::path::Path;

/// How a subcommand ended.
pub(crate) type Outcome = Result<(), Failure>;

/// Why a subcommand did not run to its end.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) message: String,
    pub(crate) code: u8,
}

impl Failure {
    /// It could not: exit code 1.
    pub(crate) fn run(error: impl Display) -> Self {
        Self { message: error.to_string(), code: 1 }
    }

    /// It was asked for something that cannot be: exit code 2.
    pub(crate) fn usage(error: impl Display) -> Self {
        Self { message: error.to_string(), code: 2 }
    }

    /// Either of them; where usage is at fault, the words are put behind the flag whose file they name.
    #[cfg(any(feature = "gateway", feature = "lab"))]
    pub(crate) fn blame(is_usage: bool, error: impl Display, flags: &[(&str, Option<&Path>)]) -> Self {
        if !is_usage {
            return Self::run(error);
        }
        let text = error.to_string();
        let named =
            flags.iter().filter_map(|(flag, file)| Some((flag, file.as_ref()?.display().to_string())));
        // The longest: one file's name may begin as another's does.
        match named.filter(|(_, file)| text.contains(file)).rev().max_by_key(|(_, file)| file.len()) {
            Some((flag, _)) => Self::usage(format!("{flag}: {text}")),
            None => Self::usage(text),
        }
    }
}

#[cfg(feature = "lab")]
impl Failure {
    /// It ran, and there is no evidence for what was asked: exit code 3.
    pub(crate) fn no_evidence(error: impl Display) -> Self {
        Self { message: error.to_string(), code: 3 }
    }

    /// A condition that was set does not hold: exit code 4.
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

/// Writes to standard output at once, also when that is a pipe. A reader that has gone (`| head`) has read what it
/// wanted: what follows, the exit code among it, is as if it had read all. Any other failure is one.
pub(crate) fn say(text: impl Display) -> Outcome {
    let mut out = stdout().lock();
    match write!(out, "{text}").and_then(|()| out.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(Failure::run(format!("cannot write to standard output: {error}")))
        }
        _ => Ok(()),
    }
}
