//! Why there is no network, and whose fault that is.

use crate::description::Unfit;
use std::io;

/// Why a network could not be made, entered or taken away.
#[derive(Debug, thiserror::Error)]
pub enum NetError {
    /// The description asks for what cannot be: its author's to mend.
    #[error("network: {0}")]
    Unfit(#[from] Unfit),
    /// A right, a program or a device is not here: the machine's owner may grant or install it.
    #[error("network: {0}")]
    Missing(String),
    /// A command failed: its words, and what it answered.
    #[error("network: {0}")]
    Command(String),
    /// A namespace of ours has gone, or may not be entered.
    #[error("network: the namespace {name} cannot be entered: {source}")]
    Namespace {
        /// Its name.
        name: String,
        /// The system's answer.
        source: io::Error,
    },
    /// The delay relay did not start, did not answer or ended too early.
    #[error("network: {0}")]
    Relay(String),
    /// The machine refuses what every network needs.
    #[error("{action}: {source}")]
    System {
        /// What was tried.
        action: &'static str,
        /// The system's answer.
        source: io::Error,
    },
}
