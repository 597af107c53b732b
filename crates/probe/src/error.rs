//! Probe errors.

use std::io;
use std::net::SocketAddr;
use weir_tls::FileError;

/// Why a probe failed.
#[derive(Debug, thiserror::Error)]
pub enum ProbeError {
    /// The host has no address.
    #[error("cannot resolve {host}: {detail}")]
    Resolve {
        /// The host.
        host: String,
        /// The reason.
        detail: String,
    },
    /// None of its addresses accepts a connection.
    #[error("cannot connect to {host} ({address}): {source}")]
    Connect {
        /// The host.
        host: String,
        /// The last address that was tried.
        address: SocketAddr,
        /// The reason.
        source: io::Error,
    },
    /// It does not speak TLS.
    #[error("{host} ({address}) does not speak TLS: {detail}")]
    NotTls {
        /// The host.
        host: String,
        /// Its address.
        address: SocketAddr,
        /// What it does instead.
        detail: String,
    },
    /// It speaks TLS but accepts none of the offers.
    #[error("{host} ({address}) accepts no TLS version: {detail}")]
    Nothing {
        /// The host.
        host: String,
        /// Its address.
        address: SocketAddr,
        /// Its response to each version.
        detail: String,
    },
    /// A certificate or key file is invalid.
    #[error(transparent)]
    File(#[from] FileError),
    /// An invalid server name.
    #[error("invalid name `{0}`: expected a DNS name or an IP address")]
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
