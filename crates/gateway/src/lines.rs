//! Lines for the operator. A closed or full stream must not stop the gateway, so write errors
//! are ignored.

use std::fmt::Display;
use std::io::{self, Write as _};

/// Writes a line to stdout.
pub(crate) fn out(line: impl Display) {
    let _ = writeln!(io::stdout(), "{line}");
}

/// Writes a line to stderr in one call, so that lines of different workers do not mix.
pub(crate) fn err(line: impl Display) {
    let _ = io::stderr().write_all(format!("{line}\n").as_bytes());
}
