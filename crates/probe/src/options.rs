//! What is asked for.

use std::path::PathBuf;
use std::time::Duration;
use weir_tls::Roots;
use weir_transport::Endpoint;

/// What to probe, and how.
#[derive(Clone, Debug)]
pub struct Options {
    /// Which server.
    pub server: Endpoint,
    /// The name to send.
    pub sni: Sni,
    /// Whom to believe.
    pub roots: Roots,
    /// What to present: chain and key, PEM.
    pub identity: Option<(PathBuf, PathBuf)>,
    /// Tries for each kind of resumption.
    pub tries: u32,
    /// How long one connection may take, from its making to its end.
    pub timeout: Duration,
}

/// The name that is sent to the server (RFC 6066 3), and that its certificate must have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sni {
    /// The host, where that is a DNS name.
    Host,
    /// Another name.
    Name(String),
    /// None is sent; the certificate must have the host's.
    None,
}

/// More than four versions of a server with every suite there is would need.
const MOST_FOR_OFFERS: u32 = 500;
/// A full handshake before each try, and four for what comes before the first.
const MOST_PER_TRY: u32 = 6;

impl Options {
    /// The most connections that are made, whatever the server does.
    pub fn most_connections(&self) -> u32 {
        MOST_FOR_OFFERS.saturating_add(self.tries.saturating_mul(MOST_PER_TRY))
    }
}
