//! The key `tcp` of a listener, for protocols other than HTTP.

use super::value_schemas;
use super::values::duration;
use schemars::JsonSchema;
use serde::Deserialize;
use std::time::Duration;

/// The service that gets all connections of a listener, as bytes.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Tcp {
    /// The name of a service whose servers are `tcp`, `tls` or `unix`. The gateway connects to one of them as soon as a
    /// client has connected and, with `tls`, finished its handshake.
    pub service: String,
    /// Maximum time without a byte in either direction. Default: `tunnel` of `[timeouts]`.
    #[serde(default, deserialize_with = "duration")]
    #[schemars(schema_with = "value_schemas::time")]
    pub idle: Option<Duration>,
}
