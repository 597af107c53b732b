//! Places in files, and faults with their places.

use std::fmt;
use std::sync::Arc;

/// A place in a file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct At {
    /// The file, as given.
    pub file: Arc<str>,
    /// The line, counted from 1.
    pub line: usize,
}

/// A violation of a language's syntax.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{at}: {message}")]
pub struct SyntaxError {
    /// The place of the fault.
    pub at: At,
    /// The fault, and the expected syntax.
    pub message: String,
}

impl SyntaxError {
    pub(crate) fn new(at: &At, message: impl Into<String>) -> Self {
        Self { at: at.clone(), message: message.into() }
    }
}

impl fmt::Display for At {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.line)
    }
}
