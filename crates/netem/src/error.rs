//! Network setup errors.

use crate::description::Unfit;
use std::io;

/// Why a network could not be created, entered or removed.
#[derive(Debug, thiserror::Error)]
pub enum NetError {
    /// The description is invalid.
    #[error("network: {0}")]
    Unfit(#[from] Unfit),
    /// A privilege, program or device is missing on this machine.
    #[error("network: {0}")]
    Missing(String),
    /// A command failed: the command and its output.
    #[error("network: {0}")]
    Command(String),
    /// A namespace is gone or cannot be entered.
    #[error("network: cannot enter namespace {name}: {source}")]
    Namespace {
        /// Its name.
        name: String,
        /// The system error.
        source: io::Error,
    },
    /// The delay relay did not start, did not answer or exited early.
    #[error("network: {0}")]
    Relay(String),
    /// A system call that every network needs failed.
    #[error("{action}: {source}")]
    System {
        /// The attempted action.
        action: &'static str,
        /// The system error.
        source: io::Error,
    },
}
