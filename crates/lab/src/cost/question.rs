//! The settings of a cost measurement, and its errors.

use std::time::Duration;
use weir_load::{LoadError, Server, Target};
use weir_probe::ProbeError;
use weir_tls::Roots;

/// Rounds; each measures every case once.
pub const ROUNDS: u32 = 5;

/// The settings of a cost measurement.
#[derive(Clone, Debug)]
pub struct Question {
    /// The service over TLS.
    pub url: Target,
    /// The same service in cleartext, if known.
    pub plain: Option<Target>,
    /// Trusted CAs.
    pub roots: Roots,
    /// Processes of the service whose CPU is accounted.
    pub servers: Vec<Server>,
    /// Measured time of each case, over all rounds.
    pub window: Duration,
    /// Concurrent connections.
    pub connections: u32,
}

/// Why there is no cost report.
#[derive(Debug, thiserror::Error)]
pub enum CostError {
    /// The URL of the service is in cleartext.
    #[error(
        "URL: invalid value `{url}`: expected an https URL; for a cleartext URL to compare with, run \
         weir cost https://HOST:PORT/PATH --plain {url}"
    )]
    NotTls {
        /// The URL.
        url: String,
    },
    /// The URL to compare with is not cleartext.
    #[error("--plain: invalid value `{url}`: expected the http URL of the same service in cleartext")]
    NotPlain {
        /// The URL.
        url: String,
    },
    /// The probe failed.
    #[error("{error}{}", check(error))]
    Probe {
        /// Why.
        #[from]
        error: ProbeError,
    },
    /// A load could not run.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// Interrupted before all rounds completed.
    #[error("interrupted before all {ROUNDS} rounds completed; fewer rounds give no result")]
    Interrupted,
}

impl CostError {
    /// Whether the command line is at fault, not the system.
    pub fn is_usage(&self) -> bool {
        match self {
            Self::NotTls { .. } | Self::NotPlain { .. } => true,
            Self::Probe { error } => error.is_usage(),
            Self::Load(error) => error.is_usage(),
            Self::Interrupted => false,
        }
    }
}

/// The next step when the server is unreachable.
fn check(error: &ProbeError) -> &'static str {
    match error {
        ProbeError::Resolve { .. } => "; check the name",
        ProbeError::Connect { .. } => {
            "; check that the server runs, that host and port are correct, and that this machine can reach it"
        }
        ProbeError::NotTls { .. } => "; check the port: expected one that speaks TLS",
        _ => "",
    }
}
