//! Why there is no report.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

/// Why a probe came to nothing.
#[derive(Debug, thiserror::Error)]
pub enum ProbeError {
    /// The host has no address.
    #[error("{host} does not resolve: {detail}")]
    Resolve {
        /// The host.
        host: String,
        /// Why.
        detail: String,
    },
    /// Nobody answers at any of its addresses.
    #[error("cannot connect to {host} ({address}): {source}")]
    Connect {
        /// The host.
        host: String,
        /// The last address that was tried.
        address: SocketAddr,
        /// Why.
        source: io::Error,
    },
    /// It answers, and not by TLS.
    #[error("{host} ({address}) speaks no TLS: {detail}")]
    NotTls {
        /// The host.
        host: String,
        /// Its address.
        address: SocketAddr,
        /// What it does instead.
        detail: String,
    },
    /// It speaks TLS and takes nothing of what was offered.
    #[error("{host} ({address}) negotiates nothing: {detail}")]
    Nothing {
        /// The host.
        host: String,
        /// Its address.
        address: SocketAddr,
        /// What it answered to each version.
        detail: String,
    },
    /// A file with certificates or a key cannot be used.
    #[error("{path}: {detail}", path = path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What is wrong with it, and what is expected.
        detail: String,
    },
    /// The name cannot be that of a server.
    #[error("`{0}` is neither a DNS name nor an IP address")]
    Name(String),
    /// The TLS library failed.
    #[error("TLS failed on our side: {0}")]
    Internal(String),
}

impl ProbeError {
    /// Whether a flag or one of its files is at fault.
    pub fn is_usage(&self) -> bool {
        matches!(self, Self::File { .. } | Self::Name(_))
    }
}
