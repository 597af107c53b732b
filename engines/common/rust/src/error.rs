use std::{fmt, io};

use crate::names::Named;

/// Whose fault an [`Error`] is, in the report's words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// A key or value is unknown, or the stack cannot do it.
    Scenario,
    /// The library failed, or did something else than it was asked for.
    Stack,
    /// The engine itself failed.
    Runner,
}

impl Named for Fault {
    const NAMES: &'static [(Fault, &'static str)] =
        &[(Fault::Scenario, "scenario"), (Fault::Stack, "stack"), (Fault::Runner, "runner")];
}

/// Why a run ends without a result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error {
    /// Whose fault it is.
    pub fault: Fault,
    /// What happened and, where something was refused, what is allowed.
    pub message: String,
}

impl Error {
    /// The scenario asks for what is unknown or cannot be done.
    pub fn scenario(message: impl Into<String>) -> Error {
        Error { fault: Fault::Scenario, message: message.into() }
    }

    /// The library failed at `what`.
    pub fn stack(what: &str, error: impl fmt::Display) -> Error {
        Error { fault: Fault::Stack, message: format!("{what}: {error}") }
    }

    /// The library failed at an operation of its cryptography.
    pub fn operation(error: impl fmt::Display) -> Error {
        Error::stack("operation", error)
    }

    /// The engine failed at `what`.
    pub fn runner(what: &str, error: impl fmt::Display) -> Error {
        Error { fault: Fault::Runner, message: format!("{what}: {error}") }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.fault.name(), self.message)
    }
}

impl std::error::Error for Error {}

/// The report could not be written.
impl From<io::Error> for Error {
    fn from(error: io::Error) -> Error {
        Error::runner("report", error)
    }
}
