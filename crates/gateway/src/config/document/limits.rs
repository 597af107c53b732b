//! Limits of messages.

use super::values::size;
use serde::Deserialize;

/// Limits of messages.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Limits {
    /// Bytes of a request or response head.
    #[serde(deserialize_with = "size")]
    pub head: u64,
    /// Fields of a head.
    pub fields: usize,
    /// Bytes of a line of a head; default: as `head`.
    #[serde(deserialize_with = "size")]
    pub line: Option<u64>,
    /// Bytes of the extensions of a chunk.
    #[serde(deserialize_with = "size")]
    pub chunk_extension: u64,
    /// Interim answers (1xx) of an exchange, 0 to 1000; default: 8.
    pub interim_answers: usize,
    /// Bytes of all their heads together; default: as `head`.
    #[serde(deserialize_with = "size")]
    pub interim_bytes: Option<u64>,
    /// Bytes of a request body; default: no limit.
    #[serde(deserialize_with = "size")]
    pub body: Option<u64>,
    /// Connections of all clients, at least 1. Default: half of what the open-file limit leaves connections.
    pub connections: Option<u32>,
    /// Bytes that connections have in memory, 1 MiB to 1 TiB; default: no limit.
    #[serde(deserialize_with = "size")]
    pub memory: Option<u64>,
    /// Unfinished handshakes with clients, at least 1. Default: 32768, or half of the connections that clients may have.
    pub handshakes: Option<u32>,
    /// Steps of handshakes in a turn of a worker, 1 to 64; default: 4.
    pub handshakes_per_turn: u32,
    /// Connections of one client, at least 1: an IPv4 address, or an IPv6 network of 64 bits. Default: no limit.
    pub connections_per_client: Option<u32>,
}

/// What of them a listener sets for its requests, or a service for its answers; what is left out is as in general.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct OwnLimits {
    /// Bytes of a head.
    #[serde(deserialize_with = "size")]
    pub head: Option<u64>,
    /// Fields of a head.
    pub fields: Option<usize>,
    /// Bytes of a line of a head; default: the general one if that is set, or as `head`.
    #[serde(deserialize_with = "size")]
    pub line: Option<u64>,
    /// Bytes of the extensions of a chunk.
    #[serde(deserialize_with = "size")]
    pub chunk_extension: Option<u64>,
}

impl Default for Limits {
    fn default() -> Self {
        let limits = weir_http1::Limits::default();
        Self {
            head: limits.head_bytes as u64,
            fields: limits.fields,
            line: None,
            chunk_extension: limits.extension_bytes as u64,
            // A 100 and a few with early hints or progress, of which RFC 9110 knows no bound.
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
