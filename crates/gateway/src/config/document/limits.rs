//! The table `[limits]`, and the limits that a listener or a service can set itself.

use super::value_schemas;
use super::values::size;
use schemars::JsonSchema;
use serde::Deserialize;
use std::ops::RangeInclusive;

/// Limits of messages, connections and memory.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Limits {
    /// Maximum size of a request head, a response head or a trailer section. A connection stores a partial head, so
    /// this bounds the memory of each slow sender. Kerberos and other large tokens in `Authorization` may need
    /// `"96KiB"`. A larger request head gets 431; a larger response head becomes 502.
    #[serde(deserialize_with = "size")]
    #[schemars(schema_with = "value_schemas::bytes", transform = value_schemas::within(Limits::HEAD))]
    pub head: u64,
    /// Maximum number of fields in a head. The gateway stores 28 bytes per field, and compares each field with all
    /// names in `Connection`.
    #[schemars(transform = value_schemas::within(Limits::FIELDS))]
    pub fields: usize,
    /// Maximum size of a line in a head: the request line or a field. Set it below `limits.head` for servers with a
    /// lower limit. If set, it also applies to a listener or service with a `head` but no `line` of its own. Default:
    /// `limits.head`.
    #[serde(deserialize_with = "size")]
    #[schemars(schema_with = "value_schemas::bytes", transform = value_schemas::within(Limits::LINE))]
    pub line: Option<u64>,
    /// Maximum size of one chunk's extensions, with separators and white space. The gateway checks and drops them, so
    /// they take no memory; the limit bounds the CPU spent on them.
    #[serde(deserialize_with = "size")]
    #[schemars(schema_with = "value_schemas::bytes", transform = value_schemas::within(Limits::CHUNK_EXTENSION))]
    pub chunk_extension: u64,
    /// Maximum number of interim responses (1xx) before the final response; a 101 does not count. Servers usually send
    /// a 100 and a few early hints, but could send any number.
    #[schemars(transform = value_schemas::within(Limits::INTERIM_RESPONSES))]
    pub interim_responses: usize,
    /// Maximum total size of the interim responses' heads. Default: `limits.head`.
    #[serde(deserialize_with = "size")]
    #[schemars(schema_with = "value_schemas::bytes", transform = value_schemas::within(Limits::HEAD))]
    pub interim_bytes: Option<u64>,
    /// Maximum request body; a larger one gets `413 body_too_large`. Default: no limit.
    #[serde(deserialize_with = "size")]
    #[schemars(schema_with = "value_schemas::bytes")]
    pub body: Option<u64>,
    /// Maximum client connections on all listeners; more wait in the accept queue. The gateway lowers a value that
    /// exceeds the descriptors, with a warning. Default: three quarters of what [descriptors](limits.md#descriptors)
    /// allow.
    #[schemars(transform = value_schemas::at_least(1))]
    pub connections: Option<u32>,
    /// Maximum [memory](limits.md#memory) of connections, such as `"2GiB"`. Default: no limit.
    #[serde(deserialize_with = "size")]
    #[schemars(schema_with = "value_schemas::bytes", transform = value_schemas::within(Limits::MEMORY))]
    pub memory: Option<u64>,
    /// Maximum unfinished client [handshakes](limits.md#handshakes), including pending PROXY protocol headers and
    /// ClientHellos, divided evenly among the workers. Beyond it, the gateway usually closes the client that has been
    /// silent longest.
    #[schemars(
        transform = value_schemas::at_least(1),
        transform = value_schemas::otherwise(format!(
            "{}, or half of the clients' connections if that is less",
            Limits::HANDSHAKES
        ))
    )]
    pub handshakes: Option<u32>,
    /// Number of expensive handshake steps per turn of a worker's event loop. A step takes 0.1 to 1 ms, so a higher
    /// number delays requests on open connections. In a long turn the worker takes more steps, for up to a quarter of
    /// the time that the turn has already taken. Raise it for a load that consists almost only of handshakes.
    #[schemars(transform = value_schemas::within(Limits::HANDSHAKES_PER_TURN))]
    pub handshakes_per_turn: u32,
    /// Maximum connections from an IPv4 address, or an IPv6 network of 64 bits, on all listeners; the gateway closes
    /// further ones immediately. Behind a proxy without `proxy_protocol` all clients share the proxy's address.
    /// Default: no limit.
    #[schemars(transform = value_schemas::at_least(1))]
    pub connections_per_client: Option<u32>,
}

/// Limits that a listener sets for its requests, or a service for its responses.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct OwnLimits {
    /// Maximum size of a message head, such as `"96KiB"` for clients with Kerberos tokens. Default: `head` of
    /// `[limits]`.
    #[serde(deserialize_with = "size")]
    #[schemars(schema_with = "value_schemas::bytes", transform = value_schemas::within(Limits::HEAD))]
    pub head: Option<u64>,
    /// Maximum number of fields in a head. Default: `fields` of `[limits]`.
    #[schemars(transform = value_schemas::within(Limits::FIELDS))]
    pub fields: Option<usize>,
    /// Maximum size of a line in a head. Default: `line` of `[limits]` if that is set, or `head`.
    #[serde(deserialize_with = "size")]
    #[schemars(schema_with = "value_schemas::bytes", transform = value_schemas::within(Limits::LINE))]
    pub line: Option<u64>,
    /// Maximum size of one chunk's extensions. Default: `chunk_extension` of `[limits]`.
    #[serde(deserialize_with = "size")]
    #[schemars(schema_with = "value_schemas::bytes", transform = value_schemas::within(Limits::CHUNK_EXTENSION))]
    pub chunk_extension: Option<u64>,
}

impl Limits {
    pub(crate) const HEAD: RangeInclusive<u64> = 512..=1 << 20;
    pub(crate) const FIELDS: RangeInclusive<u64> = 1..=1000;
    pub(crate) const LINE: RangeInclusive<u64> = 256..=1 << 20;
    /// The gateway drops extensions as they arrive, so they take no memory: the limit bounds the CPU spent on them.
    pub(crate) const CHUNK_EXTENSION: RangeInclusive<u64> = 0..=1 << 16;
    pub(crate) const INTERIM_RESPONSES: RangeInclusive<u64> = 0..=1000;
    pub(crate) const MEMORY: RangeInclusive<u64> = 1 << 20..=1 << 40;
    /// Maximum handshakes in progress in one process: a core completes them in 3 s, and they take about 200 MiB.
    pub(crate) const HANDSHAKES: usize = 32_768;
    pub(crate) const HANDSHAKES_PER_TURN: RangeInclusive<u64> = 1..=64;
}

impl Default for Limits {
    fn default() -> Self {
        let limits = weir_http1::Limits::default();
        Self {
            head: limits.head_bytes as u64,
            fields: limits.fields,
            line: None,
            chunk_extension: limits.extension_bytes as u64,
            // A 100, and a few with early hints or progress; RFC 9110 sets no maximum.
            interim_responses: 8,
            interim_bytes: None,
            body: None,
            connections: None,
            memory: None,
            handshakes: None,
            // Four steps of up to 1 ms each: a small delay of requests on open connections.
            handshakes_per_turn: 4,
            connections_per_client: None,
        }
    }
}
