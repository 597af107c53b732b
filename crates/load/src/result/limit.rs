//! What held the rate down.

use serde::{Deserialize, Serialize};
use std::fmt;

/// What held the rate down.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Limit {
    /// The server that the engine talks to.
    #[serde(rename = "gateway")]
    Gateway,
    /// What stands behind it.
    #[serde(rename = "origin")]
    Origin,
    /// The engine itself.
    #[serde(rename = "load")]
    Load,
    /// A core that several of them share was full, and none of them dominated it.
    #[serde(rename = "shared cores")]
    SharedCores,
    /// None of those that were accounted.
    #[default]
    #[serde(rename = "neither")]
    Neither,
}

impl fmt::Display for Limit {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(match self {
            Self::Gateway => "gateway",
            Self::Origin => "origin",
            Self::Load => "load",
            Self::SharedCores => "shared cores",
            Self::Neither => "neither",
        })
    }
}

/// The engine's own ceiling, as `weir calibrate` measured it on this machine.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Ceiling {
    /// The calibrated cell that is most like this run.
    pub cell: String,
    /// Requests (or handshakes) per second that one worker can do at most.
    pub per_worker: f64,
    /// This run's rate over the ceiling of all its workers.
    pub share: f64,
}
