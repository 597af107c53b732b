//! Options.

use std::path::PathBuf;
use std::time::Duration;
use weir_tls::Roots;
use weir_transport::Endpoint;

/// What to probe, and how.
#[derive(Clone, Debug)]
pub struct Options {
    /// The server.
    pub server: Endpoint,
    /// The name to send.
    pub sni: Sni,
    /// The trusted CAs.
    pub roots: Roots,
    /// The client certificate: chain and key, PEM.
    pub identity: Option<(PathBuf, PathBuf)>,
    /// Attempts per kind of resumption.
    pub tries: u32,
    /// Timeout for a connection, from start to end.
    pub timeout: Duration,
}

/// The name to send (RFC 6066 3) and to verify.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sni {
    /// The host, if it is a DNS name.
    Host,
    /// Another name.
    Name(String),
    /// Send none; verify the host's name.
    None,
}

/// More than probing every version with every suite would need.
const MOST_FOR_OFFERS: u32 = 500;
/// A full handshake per attempt, and four before the first.
const MOST_PER_TRY: u32 = 6;

impl Options {
    /// Maximum number of connections, whatever the server does.
    pub fn most_connections(&self) -> u32 {
        MOST_FOR_OFFERS.saturating_add(self.tries.saturating_mul(MOST_PER_TRY))
    }
}
