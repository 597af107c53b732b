//! The table `[timeouts]`, and the timeouts that a route can override.

use super::value_schemas;
use super::values::duration;
use schemars::JsonSchema;
use serde::Deserialize;
use std::time::Duration;

/// Timeouts. Except where noted, a peer cannot extend them by sending a byte now and then.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Timeouts {
    /// From accept to the end of the client's TLS handshake, including a PROXY protocol header before it. The gateway
    /// disconnects a client that takes longer: `handshake_timeout`.
    #[serde(deserialize_with = "duration")]
    #[schemars(schema_with = "value_schemas::time")]
    pub handshake: Duration,
    /// From the first byte of a request head to its last: `408 head_timeout`.
    #[serde(deserialize_with = "duration")]
    #[schemars(schema_with = "value_schemas::time")]
    pub head: Duration,
    /// Maximum time between requests of a client; then the gateway closes the connection silently.
    #[serde(deserialize_with = "duration")]
    #[schemars(schema_with = "value_schemas::time")]
    pub idle: Duration,
    /// Maximum time without progress of a body, in either direction; each byte restarts it. Then the client gets
    /// `408 body_timeout`, or the gateway aborts the connection.
    #[serde(deserialize_with = "duration")]
    #[schemars(schema_with = "value_schemas::time")]
    pub stall: Duration,
    /// From the end of a request head to the last byte of the body, whichever side is slow: `408 body_overdue`. For
    /// requests that wait for a connection it starts after the wait, and with `Expect: 100-continue` after the 100.
    /// Default: no limit, since an upload may take hours.
    #[serde(deserialize_with = "duration")]
    #[schemars(schema_with = "value_schemas::time")]
    pub body: Option<Duration>,
    /// From the response head until the client's socket has taken the last byte, whether the server or the client is
    /// slow: `response_overdue`, and the gateway aborts the connection. The kernel still delivers the bytes that the
    /// socket has taken. Default: no limit.
    #[serde(deserialize_with = "duration")]
    #[schemars(schema_with = "value_schemas::time")]
    pub response_body: Option<Duration>,
    /// Maximum wait for a connection to a server with `max_connections`: `503 queue_timeout`.
    #[serde(deserialize_with = "duration")]
    #[schemars(schema_with = "value_schemas::time")]
    pub queue: Duration,
    /// Connecting to a server: `504 upstream_connect_timeout`.
    #[serde(deserialize_with = "duration")]
    #[schemars(schema_with = "value_schemas::time")]
    pub connect: Duration,
    /// From the connection to a server to the end of the TLS handshake: `504 upstream_handshake_timeout`.
    #[serde(deserialize_with = "duration")]
    #[schemars(schema_with = "value_schemas::time")]
    pub upstream_handshake: Duration,
    /// From the last byte of a request to the response head: `504 upstream_timeout`.
    #[serde(deserialize_with = "duration")]
    #[schemars(schema_with = "value_schemas::time")]
    pub response: Duration,
    /// From the request head to the last byte of the response, which the other timeouts do not bound. Default: no
    /// limit, since a download may take hours.
    #[serde(deserialize_with = "duration")]
    #[schemars(schema_with = "value_schemas::time")]
    pub exchange: Option<Duration>,
    /// Maximum idle time of a connection to a server; keep it below the server's own keep-alive timeout. After a
    /// response with `Keep-Alive: timeout=N` the gateway closes the connection a second before N ends, if that is
    /// sooner.
    #[serde(deserialize_with = "duration")]
    #[schemars(schema_with = "value_schemas::time")]
    pub pooled: Duration,
    /// Maximum time without a byte in either direction of a tunnel.
    #[serde(deserialize_with = "duration")]
    #[schemars(schema_with = "value_schemas::time")]
    pub tunnel: Duration,
    /// From the end of the last response until the gateway closes the connection of a client that still sends.
    #[serde(deserialize_with = "duration")]
    #[schemars(schema_with = "value_schemas::time")]
    pub linger: Duration,
    /// The time for which a drain keeps idle connections.
    #[serde(deserialize_with = "duration")]
    #[schemars(schema_with = "value_schemas::time")]
    pub drain_idle: Duration,
    /// From SIGTERM to exit. Then requests without a response get `503 drain_timeout`, and the gateway aborts the
    /// others.
    #[serde(deserialize_with = "duration")]
    #[schemars(schema_with = "value_schemas::time")]
    pub drain: Duration,
    /// From an [upgrade](upgrade.md) to the old process's exit; SIGTERM shortens it to `timeouts.drain`. Also from a
    /// [reload](reload.md#late-requests) that removes, renames or restricts a listener to the end of its last
    /// connections.
    #[serde(deserialize_with = "duration")]
    #[schemars(schema_with = "value_schemas::time")]
    pub upgrade_drain: Duration,
    /// From the start of an upgrade's new process until it serves, for all steps together; if that takes longer, the
    /// old process continues. Name resolution may take half of this time.
    #[serde(deserialize_with = "duration")]
    #[schemars(schema_with = "value_schemas::time")]
    pub upgrade: Duration,
}

/// The timeouts that a route may set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct RouteTimeouts {
    /// Maximum time without progress of a body, in either direction. Default: `stall` of `[timeouts]`.
    #[serde(deserialize_with = "duration")]
    #[schemars(schema_with = "value_schemas::time")]
    pub stall: Option<Duration>,
    /// From the end of a request head to the last byte of the body. Default: `body` of `[timeouts]`.
    #[serde(deserialize_with = "duration")]
    #[schemars(schema_with = "value_schemas::time")]
    pub body: Option<Duration>,
    /// From the response head until the client's socket has taken the last byte. Default: `response_body` of
    /// `[timeouts]`.
    #[serde(deserialize_with = "duration")]
    #[schemars(schema_with = "value_schemas::time")]
    pub response_body: Option<Duration>,
    /// From the last byte of a request to the response head. Default: `response` of `[timeouts]`.
    #[serde(deserialize_with = "duration")]
    #[schemars(schema_with = "value_schemas::time")]
    pub response: Option<Duration>,
    /// From the request head to the last byte of the response. Default: `exchange` of `[timeouts]`.
    #[serde(deserialize_with = "duration")]
    #[schemars(schema_with = "value_schemas::time")]
    pub exchange: Option<Duration>,
    /// Maximum time without a byte in either direction of a tunnel. Default: `tunnel` of `[timeouts]`.
    #[serde(deserialize_with = "duration")]
    #[schemars(schema_with = "value_schemas::time")]
    pub tunnel: Option<Duration>,
}

impl RouteTimeouts {
    /// The general timeouts, overridden by those of the route.
    pub(crate) fn over(self, general: Timeouts) -> Timeouts {
        Timeouts {
            stall: self.stall.unwrap_or(general.stall),
            body: self.body.or(general.body),
            response_body: self.response_body.or(general.response_body),
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
            // A client that reads 1 KB/s opens its window in steps of about 64 KB, so about once per minute.
            stall: Duration::from_secs(120),
            body: None,
            response_body: None,
            queue: Duration::from_secs(10),
            connect: Duration::from_secs(5),
            upstream_handshake: Duration::from_secs(5),
            response: Duration::from_secs(60),
            exchange: None,
            // Below the 60 to 75 seconds after which most servers close an idle connection.
            pooled: Duration::from_secs(50),
            // WebSocket clients send pings far more often.
            tunnel: Duration::from_secs(3600),
            linger: Duration::from_secs(2),
            drain_idle: Duration::from_millis(500),
            drain: Duration::from_secs(30),
            // Most downloads and calls end within these 4 hours; until then, the old process occupies memory.
            upgrade_drain: Duration::from_secs(4 * 3600),
            // Name resolution may take half of this time.
            upgrade: Duration::from_secs(60),
        }
    }
}
