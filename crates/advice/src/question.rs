//! The subject of the advice, and the reasons why there is none.

use crate::config::ConfigError;
use crate::product::Product;
use std::path::PathBuf;
use std::time::Duration;
use weir_load::{LoadError, Target};
use weir_probe::ProbeError;
use weir_tls::Roots;

/// A service, identified by a URL, its process, its configuration, or several of these.
#[derive(Clone, Debug)]
pub struct Question {
    /// The URL; cleartext for a service that uses TLS only towards its upstreams.
    pub url: Option<Target>,
    /// The process; includes its descendants.
    pub pid: Option<u32>,
    /// Its configuration.
    pub config: Option<PathBuf>,
    /// The product in whose terms changes are named; detected if `None`.
    pub product: Option<Product>,
    /// Trusted CAs.
    pub roots: Roots,
    /// Measured time of each load, and of the profile.
    pub window: Duration,
}

/// The reason why there is no advice.
#[derive(Debug, thiserror::Error)]
pub enum AdviceError {
    /// The question names neither URL nor process nor configuration.
    #[error("missing URL, --pid or --config: expected at least one of them")]
    Nothing,
    /// The process does not exist.
    #[error("--pid: there is no process {pid}")]
    NoProcess {
        /// Its ID.
        pid: u32,
    },
    /// The configuration cannot be read.
    #[error("--config: {0}")]
    Config(#[from] ConfigError),
    /// The probe failed.
    #[error(transparent)]
    Probe(#[from] ProbeError),
    /// A load could not run.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// Interrupted.
    #[error("interrupted before all was measured; part of it gives no advice")]
    Interrupted,
}

impl AdviceError {
    /// Whether the command line is at fault rather than the system.
    pub fn is_usage(&self) -> bool {
        match self {
            Self::Nothing | Self::NoProcess { .. } | Self::Config(_) => true,
            Self::Probe(error) => error.is_usage(),
            Self::Load(error) => error.is_usage(),
            Self::Interrupted => false,
        }
    }
}
