//! What subcommands say, and how they name the flag that is at fault.

use crate::{Failure, Outcome};
use std::fmt::Display;
use std::io::{ErrorKind, Write as _, stdout};
#[cfg(any(feature = "gateway", feature = "lab"))]
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
#[cfg(any(feature = "gateway", feature = "lab"))]
pub(crate) fn blame(error: impl Display, flags: &[(&str, Option<&Path>)]) -> String {
    let text = error.to_string();
    let named = flags.iter().filter_map(|(flag, file)| Some((flag, file.as_ref()?.display().to_string())));
    // The longest: one file's name may begin as another's does.
    match named.filter(|(_, file)| text.contains(file)).rev().max_by_key(|(_, file)| file.len()) {
        Some((flag, _)) => format!("{flag}: {text}"),
        None => text,
    }
}
