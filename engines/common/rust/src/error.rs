use std::{fmt, io};

use crate::names::Named;

/// Whose fault an [`Error`] is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// An unknown or unsupported key or value.
    Scenario,
    /// The library failed, or did something else than requested.
    Stack,
    /// The engine itself failed.
    Runner,
}

impl Named for Fault {
    const NAMES: &'static [(Fault, &'static str)] =
        &[(Fault::Scenario, "scenario"), (Fault::Stack, "stack"), (Fault::Runner, "runner")];
}

/// Why a run failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error {
    /// Whose fault it is.
    pub fault: Fault,
    /// What happened and, for a rejected value, what was expected.
    pub message: String,
}

impl Error {
    /// The scenario is invalid or unsupported.
    pub fn scenario(message: impl Into<String>) -> Error {
        Error { fault: Fault::Scenario, message: message.into() }
    }

    /// The library failed at `what`.
    pub fn stack(what: &str, error: impl fmt::Display) -> Error {
        Error { fault: Fault::Stack, message: format!("{what}: {error}") }
    }

    /// A cryptographic operation of the library failed.
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
