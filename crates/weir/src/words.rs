//! What subcommands say, and how they name the flag that is at fault.

use crate::{Failure, Outcome};
use std::fmt::Display;
use std::io::{ErrorKind, Write as _, stdout};
#[cfg(feature = "lab")]
use std::path::Path;

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

/// The error's words, behind the flag whose file they name.
#[cfg(feature = "lab")]
pub(crate) fn blame(error: impl Display, flags: &[(&str, Option<&Path>)]) -> String {
    let text = error.to_string();
    let named = |(_, file): &&(&str, Option<&Path>)| {
        file.is_some_and(|file| text.contains(&file.display().to_string()))
    };
    match flags.iter().find(named) {
        Some((flag, _)) => format!("{flag}: {text}"),
        None => text,
    }
}
