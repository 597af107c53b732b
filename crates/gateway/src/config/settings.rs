//! Gateway settings.

use std::time::Duration;
use weir_http1::Limits;
use weir_reactor::cores::Cores;
use weir_tls::{ClientSettings, ServerSettings};
use weir_transport::Endpoint;

/// All settings of one gateway process.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Listeners; at least one.
    pub listen: Vec<Endpoint>,
    /// TLS towards clients; required by an `https` listener.
    pub server_tls: Option<ServerSettings>,
    /// The upstream.
    pub to: Endpoint,
    /// TLS towards the upstream, for an `https` upstream.
    pub upstream_tls: UpstreamTls,
    /// Worker threads; `None` is one per allowed core.
    pub workers: Option<usize>,
    /// The cores to pin workers to; `None` leaves them unpinned.
    pub cores: Option<Cores>,
    /// Limits of a message head.
    pub limits: Limits,
    /// Maximum request body in bytes; `None` for no limit.
    pub max_body: Option<u64>,
    /// Timeouts.
    pub timeouts: Timeouts,
}

/// TLS towards the upstream. It is verified, and sessions are resumed, unless the settings say otherwise.
#[derive(Clone, Debug)]
pub struct UpstreamTls {
    /// Roots, versions, suites, groups.
    pub client: ClientSettings,
    /// The name to verify and to send as SNI; `None` for the upstream's host.
    pub name: Option<String>,
}

/// Deadlines. Except where noted, a peer cannot extend them by sending a byte now and then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeouts {
    /// From accept to the end of the client's TLS handshake.
    pub handshake: Duration,
    /// From the first byte of a request head to its last.
    pub head: Duration,
    /// Idle time between requests on a client's connection.
    pub idle: Duration,
    /// Time without progress of a body, in either direction; progress extends it.
    pub stall: Duration,
    /// From dialling an upstream to the end of its TLS handshake.
    pub connect: Duration,
    /// From the last byte of a request to its response head.
    pub response: Duration,
    /// Idle time of a pooled upstream connection.
    pub pooled: Duration,
    /// Time without a byte either way in a tunnel.
    pub tunnel: Duration,
    /// From the end of our last response to closing the connection, while the client may still be sending.
    pub linger: Duration,
    /// How long idle connections are kept after SIGTERM.
    pub drain_idle: Duration,
    /// From SIGTERM to exit, whatever is still in progress.
    pub drain: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            handshake: Duration::from_secs(10),
            head: Duration::from_secs(10),
            idle: Duration::from_secs(75),
            // A client that reads 1 KB/s opens its window in steps of about 64 KB.
            stall: Duration::from_secs(120),
            connect: Duration::from_secs(5),
            response: Duration::from_secs(60),
            // Below the 60 to 75 seconds after which most servers close an idle connection.
            pooled: Duration::from_secs(50),
            // Clients of WebSockets send pings far more often.
            tunnel: Duration::from_secs(3600),
            linger: Duration::from_secs(2),
            drain_idle: Duration::from_millis(500),
            drain: Duration::from_secs(30),
        }
    }
}
