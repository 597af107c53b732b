//! Deadlines.

use super::values::duration;
use serde::Deserialize;
use std::time::Duration;

/// Deadlines. Except where noted, a peer cannot extend them by sending a byte now and then.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Timeouts {
    /// From accept to the end of the client's TLS handshake.
    #[serde(deserialize_with = "duration")]
    pub handshake: Duration,
    /// From the first byte of a request head to its last.
    #[serde(deserialize_with = "duration")]
    pub head: Duration,
    /// Idle time between requests on a client's connection.
    #[serde(deserialize_with = "duration")]
    pub idle: Duration,
    /// Time without progress of a body, in either direction; progress extends it.
    #[serde(deserialize_with = "duration")]
    pub stall: Duration,
    /// From a request's head to the last byte of its body, whoever is waited for; default: no limit, since an upload may take
    /// hours.
    #[serde(deserialize_with = "duration")]
    pub body: Option<Duration>,
    /// From the first byte of an answer until the client has taken its last, whoever is waited for; default: no limit.
    #[serde(deserialize_with = "duration")]
    pub answer: Option<Duration>,
    /// In the queue for a connection to a server: see [`Service::max_connections`](super::Service::max_connections).
    #[serde(deserialize_with = "duration")]
    pub queue: Duration,
    /// From dialling an upstream until the connection is established.
    #[serde(deserialize_with = "duration")]
    pub connect: Duration,
    /// From there to the end of the TLS handshake with it.
    #[serde(deserialize_with = "duration")]
    pub upstream_handshake: Duration,
    /// From the last byte of a request to its response head.
    #[serde(deserialize_with = "duration")]
    pub response: Duration,
    /// From a request's head to the last byte of its answer; default: no limit, since a download may take hours.
    #[serde(deserialize_with = "duration")]
    pub exchange: Option<Duration>,
    /// Idle time of a pooled upstream connection.
    #[serde(deserialize_with = "duration")]
    pub pooled: Duration,
    /// Time without a byte either way in a tunnel.
    #[serde(deserialize_with = "duration")]
    pub tunnel: Duration,
    /// From the end of our last response to closing the connection, while the client may still be sending.
    #[serde(deserialize_with = "duration")]
    pub linger: Duration,
    /// How long idle connections are kept after SIGTERM.
    #[serde(deserialize_with = "duration")]
    pub drain_idle: Duration,
    /// From SIGTERM to exit, whatever is still in progress.
    #[serde(deserialize_with = "duration")]
    pub drain: Duration,
    /// From a hand-over to another process to this one's exit, which aborts what is still in progress.
    #[serde(deserialize_with = "duration")]
    pub upgrade_drain: Duration,
    /// From the start of the new process of an upgrade until it serves; then the old one goes on instead.
    #[serde(deserialize_with = "duration")]
    pub upgrade: Duration,
}

/// Those that a route may set for itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RouteTimeouts {
    /// As [`Timeouts::stall`].
    #[serde(deserialize_with = "duration")]
    pub stall: Option<Duration>,
    /// As [`Timeouts::body`].
    #[serde(deserialize_with = "duration")]
    pub body: Option<Duration>,
    /// As [`Timeouts::answer`].
    #[serde(deserialize_with = "duration")]
    pub answer: Option<Duration>,
    /// As [`Timeouts::response`].
    #[serde(deserialize_with = "duration")]
    pub response: Option<Duration>,
    /// As [`Timeouts::exchange`].
    #[serde(deserialize_with = "duration")]
    pub exchange: Option<Duration>,
    /// As [`Timeouts::tunnel`].
    #[serde(deserialize_with = "duration")]
    pub tunnel: Option<Duration>,
}

impl RouteTimeouts {
    /// The general ones with these in their place.
    pub(crate) fn over(self, general: Timeouts) -> Timeouts {
        Timeouts {
            stall: self.stall.unwrap_or(general.stall),
            body: self.body.or(general.body),
            answer: self.answer.or(general.answer),
            response: self.response.unwrap_or(general.response),
            exchange: self.exchange.or(general.exchange),
            tunnel: self.tunnel.unwrap_or(general.tunnel),
            ..general
        }
    }
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            handshake: Duration::from_secs(10),
            head: Duration::from_secs(10),
            idle: Duration::from_secs(75),
            // A client that reads 1 KB/s opens its window in steps of about 64 KB.
            stall: Duration::from_secs(120),
            body: None,
            answer: None,
            queue: Duration::from_secs(10),
            connect: Duration::from_secs(5),
            upstream_handshake: Duration::from_secs(5),
            response: Duration::from_secs(60),
            exchange: None,
            // Below the 60 to 75 seconds after which most servers close an idle connection.
            pooled: Duration::from_secs(50),
            // Clients of WebSockets send pings far more often.
            tunnel: Duration::from_secs(3600),
            linger: Duration::from_secs(2),
            drain_idle: Duration::from_millis(500),
            drain: Duration::from_secs(30),
            // Most downloads and calls end within it; until then there is the memory of another process.
            upgrade_drain: Duration::from_secs(4 * 3600),
            // Names may take half of it to be resolved.
            upgrade: Duration::from_secs(60),
        }
    }
}
