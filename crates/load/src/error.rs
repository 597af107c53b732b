//! Why a run has no result.

use crate::route::trial::Unreachable;
use crate::usage::Usage;
use std::io;
use weir_tls::SettingsError;

/// Why there is no result.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// An invalid flag.
    #[error(transparent)]
    Usage(#[from] Usage),
    /// An invalid TLS setting or file.
    #[error(transparent)]
    Tls(#[from] SettingsError),
    /// The server is unreachable, or not what the URL says.
    #[error(transparent)]
    Unreachable(#[from] Unreachable),
    /// It was stopped before the window.
    #[error("stopped before the window began: nothing measured")]
    NoWindow,
    /// No valid start time.
    #[error(
        "--rendezvous: `{0}` on standard input: expected the start in seconds since boot, such as 1234.5"
    )]
    Rendezvous(String),
    /// A system error.
    #[error("system error: {0}")]
    System(#[from] io::Error),
}

impl LoadError {
    /// Whether the usage is at fault, not the system.
    pub fn is_usage(&self) -> bool {
        matches!(self, Self::Usage(_) | Self::Tls(_) | Self::Rendezvous(_))
    }
}
