//! Lines for the operator. A stream that is closed or full is no reason to stop serving, so whether a line could be
//! written is of no matter.

use std::fmt::Display;
use std::io::{self, Write as _};

/// Writes a line to stdout.
pub(crate) fn out(line: impl Display) {
    let _ = writeln!(io::stdout(), "{line}");
}

/// Writes a line to stderr, at once, so that the lines of two workers do not mix.
pub(crate) fn err(line: impl Display) {
    let _ = io::stderr().write_all(format!("{line}\n").as_bytes());
}
