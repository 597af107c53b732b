//! Why a run gives no result.

use crate::route::trial::Unreachable;
use crate::usage::Usage;
use std::io;
use weir_tls::SettingsError;

/// Why there is no result.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// A flag that cannot be followed.
    #[error(transparent)]
    Usage(#[from] Usage),
    /// A TLS setting or file.
    #[error(transparent)]
    Tls(#[from] SettingsError),
    /// The server is not there, or is not what the URL says.
    #[error(transparent)]
    Unreachable(#[from] Unreachable),
    /// It was ended before there was anything to tell.
    #[error("the run ended before its window began: nothing was measured")]
    NoWindow,
    /// No time to begin at.
    #[error(
        "--rendezvous: `{0}` on standard input: expected the start in seconds since boot, such as 1234.5"
    )]
    Rendezvous(String),
    /// The system.
    #[error("the system refused: {0}")]
    System(#[from] io::Error),
}

impl LoadError {
    /// Whether what was asked for is at fault, not the system.
    pub fn is_usage(&self) -> bool {
        matches!(self, Self::Usage(_) | Self::Tls(_) | Self::Rendezvous(_))
    }
}
