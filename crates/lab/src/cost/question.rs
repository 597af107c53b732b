//! What is asked for, and why there may be no answer at all.

use std::time::Duration;
use weir_load::{LoadError, Server, Target};
use weir_probe::ProbeError;
use weir_tls::Roots;

/// Rounds in which every case is measured once.
pub const ROUNDS: u32 = 5;

/// What is asked for.
#[derive(Clone, Debug)]
pub struct Question {
    /// The service over TLS.
    pub url: Target,
    /// The same service in cleartext, if it is known.
    pub plain: Option<Target>,
    /// Whom to believe.
    pub roots: Roots,
    /// Processes of the service whose CPU is accounted.
    pub servers: Vec<Server>,
    /// Measured time of each case, all rounds together.
    pub window: Duration,
    /// Connections at once.
    pub connections: u32,
}

/// Why there is no answer at all.
#[derive(Debug, thiserror::Error)]
pub enum CostError {
    /// The URL of the service is in cleartext.
    #[error(
        "{url} is cleartext: give the https URL of the service, and this one beside it: \
         weir cost https://HOST:PORT/PATH --plain {url}"
    )]
    NotTls {
        /// The URL.
        url: String,
    },
    /// What it should be compared with is over TLS as well.
    #[error(
        "--plain: {url} is over TLS; expected the http URL at which the same service answers in cleartext"
    )]
    NotPlain {
        /// The URL.
        url: String,
    },
    /// The probe came to nothing.
    #[error("{error}{}", check(error))]
    Probe {
        /// Why.
        #[from]
        error: ProbeError,
    },
    /// A load could not run at all.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// It was told to end before all rounds were made.
    #[error("interrupted before the {ROUNDS} rounds were made: nothing is said about a part of them")]
    Interrupted,
}

impl CostError {
    /// Whether what was asked for is at fault, not the system.
    pub fn is_usage(&self) -> bool {
        match self {
            Self::NotTls { .. } | Self::NotPlain { .. } => true,
            Self::Probe { error } => error.is_usage(),
            Self::Load(error) => error.is_usage(),
            Self::Interrupted => false,
        }
    }
}

/// What to check when the server is not there.
fn check(error: &ProbeError) -> &'static str {
    match error {
        ProbeError::Resolve { .. } => "; check the name",
        ProbeError::Connect { .. } => {
            "; check that the server runs, that host and port are right, and that it can be reached from here"
        }
        ProbeError::NotTls { .. } => "; check the port: give the one that speaks TLS",
        _ => "",
    }
}
