//! Limits of messages.

use super::schema;
use super::values::size;
use schemars::JsonSchema;
use serde::Deserialize;
use std::ops::RangeInclusive;

/// Limits of messages.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Limits {
    /// Head of a request or response, and trailer section. A connection stores a partial head, so this bounds the memory of
    /// each slow sender. Kerberos and other large tokens in `Authorization` may need `"96KiB"`. A larger request head gets
    /// 431, a larger response head becomes 502.
    #[serde(deserialize_with = "size")]
    #[schemars(schema_with = "schema::bytes", transform = schema::within(Limits::HEAD))]
    pub head: u64,
    /// Fields of a head. The gateway stores 28 bytes about each, and compares each with all names in `Connection`.
    #[schemars(transform = schema::within(Limits::FIELDS))]
    pub fields: usize,
    /// A line of a head: the request line or a field. Set it below `limits.head` for servers with a lower limit. If set, it
    /// also applies to a listener or service with a `head` but no `line` of its own. Default: `limits.head`.
    #[serde(deserialize_with = "size")]
    #[schemars(schema_with = "schema::bytes", transform = schema::within(Limits::LINE))]
    pub line: Option<u64>,
    /// One chunk's extensions, with separators and white space. The gateway checks and drops them, so they take no memory;
    /// the limit bounds the CPU spent on them.
    #[serde(deserialize_with = "size")]
    #[schemars(schema_with = "schema::bytes", transform = schema::within(Limits::CHUNK_EXTENSION))]
    pub chunk_extension: u64,
    /// Interim responses (1xx) before the final one of an exchange; a 101 does not count. Servers usually send a 100 and a few
    /// early hints, but could send them without end.
    #[schemars(transform = schema::within(Limits::INTERIM_ANSWERS))]
    pub interim_answers: usize,
    /// Total size of their heads. Default: `limits.head`.
    #[serde(deserialize_with = "size")]
    #[schemars(schema_with = "schema::bytes", transform = schema::within(Limits::HEAD))]
    pub interim_bytes: Option<u64>,
    /// Request body; a larger one gets `413 body_too_large`. Default: no limit.
    #[serde(deserialize_with = "size")]
    #[schemars(schema_with = "schema::bytes")]
    pub body: Option<u64>,
    /// Client connections on all listeners; more wait in the accept queue. A value beyond the descriptors is reduced, with a
    /// warning. Default: three quarters of what [descriptors](limits.md#descriptors) allow.
    #[schemars(transform = schema::at_least(1))]
    pub connections: Option<u32>,
    /// [Memory](limits.md#memory) of connections, such as `"2GiB"`. Default: no limit.
    #[serde(deserialize_with = "size")]
    #[schemars(schema_with = "schema::bytes", transform = schema::within(Limits::MEMORY))]
    pub memory: Option<u64>,
    /// Unfinished client [handshakes](limits.md#handshakes), including pending PROXY protocol headers and ClientHellos, divided
    /// evenly among the workers. One more closes one.
    #[schemars(
        transform = schema::at_least(1),
        transform = schema::otherwise(format!(
            "{}, or half of the clients' connections if that is less",
            Limits::HANDSHAKES
        ))
    )]
    pub handshakes: Option<u32>,
    /// Expensive handshake steps in a worker's turn. A step takes 0.1 to 1 ms, so warm requests wait for this many at most; a
    /// turn that is long for other reasons does more. Raise it for a load of almost only handshakes.
    #[schemars(transform = schema::within(Limits::HANDSHAKES_PER_TURN))]
    pub handshakes_per_turn: u32,
    /// Connections from an IPv4 address, or an IPv6 network of 64 bits, on all listeners; the gateway closes more at once.
    /// Behind a proxy without `proxy_protocol` all clients share the proxy's address. Default: no limit.
    #[schemars(transform = schema::at_least(1))]
    pub connections_per_client: Option<u32>,
}

/// Limits that a listener sets for its requests, or a service for its responses.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct OwnLimits {
    /// Head of a message, such as `"96KiB"` for clients with Kerberos tokens. Default: `head` of `[limits]`.
    #[serde(deserialize_with = "size")]
    #[schemars(schema_with = "schema::bytes", transform = schema::within(Limits::HEAD))]
    pub head: Option<u64>,
    /// Fields of a head. Default: `fields` of `[limits]`.
    #[schemars(transform = schema::within(Limits::FIELDS))]
    pub fields: Option<usize>,
    /// A line of a head. Default: `line` of `[limits]` if that is set, or `head`.
    #[serde(deserialize_with = "size")]
    #[schemars(schema_with = "schema::bytes", transform = schema::within(Limits::LINE))]
    pub line: Option<u64>,
    /// One chunk's extensions. Default: `chunk_extension` of `[limits]`.
    #[serde(deserialize_with = "size")]
    #[schemars(schema_with = "schema::bytes", transform = schema::within(Limits::CHUNK_EXTENSION))]
    pub chunk_extension: Option<u64>,
}

impl Limits {
    pub(crate) const HEAD: RangeInclusive<u64> = 512..=1 << 20;
    pub(crate) const FIELDS: RangeInclusive<u64> = 1..=1000;
    pub(crate) const LINE: RangeInclusive<u64> = 256..=1 << 20;
    /// Extensions are dropped as they arrive and take no memory: the bound is for the work on them.
    pub(crate) const CHUNK_EXTENSION: RangeInclusive<u64> = 0..=1 << 16;
    pub(crate) const INTERIM_ANSWERS: RangeInclusive<u64> = 0..=1000;
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
            interim_answers: 8,
            interim_bytes: None,
            body: None,
            connections: None,
            memory: None,
            handshakes: None,
            // One to four milliseconds, which is the longest that they keep a warm request waiting.
            handshakes_per_turn: 4,
            connections_per_client: None,
        }
    }
}
