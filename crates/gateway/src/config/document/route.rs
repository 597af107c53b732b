//! Routes: which requests, and what becomes of them.

use super::failures::Retries;
use super::min_rate::RouteMinRate;
use super::timeouts::RouteTimeouts;
use super::values::{duration, size, texts};
use crate::config::{Network, PathPattern};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::time::Duration;

/// Which requests, and what becomes of them. A request takes the most specific route that fits: by host, then by path,
/// then the first in the file.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Route {
    /// Hosts: `example.org`, or `*.example.org` for all names below it; default: any.
    #[serde(deserialize_with = "texts")]
    pub host: Vec<String>,
    /// Paths: `/a` alone, `/a/*` for it and everything below, `/a*` for all that begins so, `/a/{id}/b` with any segment;
    /// default: any.
    #[serde(deserialize_with = "texts")]
    pub path: Vec<PathPattern>,
    /// Methods; default: any.
    #[serde(deserialize_with = "texts")]
    pub method: Vec<String>,
    /// Fields that the request must have, with this value, or with any for `*`; default: none.
    pub headers: BTreeMap<String, String>,
    /// Networks that the client must be in; default: any.
    #[serde(deserialize_with = "texts")]
    pub client: Vec<Network>,
    /// Listeners by name that the request must come from; default: any.
    #[serde(deserialize_with = "texts")]
    pub listener: Vec<String>,

    /// Passes the request on to this service.
    pub service: Option<String>,
    /// Answers with a redirect.
    pub redirect: Option<Redirect>,
    /// Answers with this.
    pub respond: Option<Respond>,

    /// Removes this from the beginning of the path.
    pub strip_prefix: Option<String>,
    /// Adds this at the beginning of the path, after `strip_prefix`.
    pub add_prefix: Option<String>,
    /// Requests whose path servers may read as that of another route; default: they are refused.
    pub ambiguous_paths: AmbiguousPaths,
    /// Changes to the request's fields.
    pub request_headers: Edits,
    /// Trailers of requests that are passed on, by name; default: none. Those of answers are, to clients that take them.
    #[serde(deserialize_with = "texts")]
    pub request_trailers: Vec<String>,
    /// Changes to the answer's fields.
    pub response_headers: Edits,

    /// Passes TRACE requests on, which are else answered with 405.
    pub trace: bool,
    /// Sends copies of its requests to another service; nobody gets the answers.
    pub mirror: Option<Mirror>,
    /// How many requests a client may make; default: any number.
    pub rate: Option<Rate>,
    /// Which requests are sent again when a pooled connection closes under them, or when the response has one of the listed statuses.
    pub retry: Retries,
    /// Maximum request body in bytes; default: that of `limits`.
    #[serde(deserialize_with = "size")]
    pub max_body: Option<u64>,
    /// Waits for a request's body, or for so many bytes of it, before a server is chosen; default: passes it on as it comes.
    #[serde(deserialize_with = "size")]
    pub request_buffer: Option<u64>,
    /// Bytes of an answer to hold for a slow client, so that its server is done with it; default: 64 KiB.
    #[serde(deserialize_with = "size")]
    pub response_buffer: Option<u64>,
    /// Timeouts that differ from the general ones.
    pub timeouts: RouteTimeouts,
    /// How fast clients must be here, where that differs from `min_rate`.
    pub min_rate: RouteMinRate,
}

/// What becomes of requests whose path servers may read as another one, as where `%2F` is a slash.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AmbiguousPaths {
    /// Those of which a reading belongs to another route are refused.
    #[default]
    Refuse,
    /// None is refused: for servers that read paths as the gateway does.
    Pass,
    /// All are refused, whatever their readings belong to.
    Strict,
}

/// Keys that all routes have, unless they set them.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct RouteDefaults {
    request_headers: Edits,
    #[serde(deserialize_with = "texts")]
    request_trailers: Vec<String>,
    response_headers: Edits,
    ambiguous_paths: AmbiguousPaths,
    rate: Option<Rate>,
    retry: Retry,
    #[serde(deserialize_with = "size")]
    max_body: Option<u64>,
    #[serde(deserialize_with = "size")]
    request_buffer: Option<u64>,
    #[serde(deserialize_with = "size")]
    response_buffer: Option<u64>,
    timeouts: RouteTimeouts,
    min_rate: RouteMinRate,
}

/// Which requests are sent once more, on a new connection, when a pooled connection closes before a byte of the answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Retry {
    /// Those that may be done twice (RFC 9110 section 9.2.2).
    #[default]
    Idempotent,
    /// All: for services that notice a repetition themselves.
    Always,
    /// None.
    Never,
}

/// Copies of requests for another service. A client never waits for them.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mirror {
    /// The name of the service.
    pub service: String,
    /// The share of the requests in percent, 0 to 100; default: all.
    #[serde(default = "all")]
    pub percent: f64,
    /// Requests with a larger body, at most 16 MiB, are not copied; default: 64 KiB.
    #[serde(default = "mirrored_body", deserialize_with = "size")]
    pub max_body: u64,
    /// Copies in flight in each worker, at least 1; others are dropped. Default: 100.
    #[serde(default = "mirrors")]
    pub max_in_flight: usize,
}

fn all() -> f64 {
    100.0
}

fn mirrored_body() -> u64 {
    64 * 1024
}

fn mirrors() -> usize {
    100
}

/// How many requests a client may make in a time. Those beyond are answered with 429.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rate {
    /// Requests in the time `per`, 1 to 1000000.
    pub requests: u32,
    /// A time up to an hour; default: 1 s.
    #[serde(default = "second", deserialize_with = "duration")]
    pub per: Duration,
    /// Requests that may come at once after a pause, 1 to 1000000; default: `requests`.
    #[serde(default)]
    pub burst: Option<u32>,
    /// Whose requests are counted together; default: those of one client.
    #[serde(default)]
    pub by: RateBy,
}

/// Whose requests are counted together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RateBy {
    /// Those of one client: an IPv4 address, or an IPv6 network of 64 bits.
    #[default]
    Client,
    /// All of the route.
    Route,
}

fn second() -> Duration {
    Duration::from_secs(1)
}

/// A redirect.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Redirect {
    /// The `Location`, with variables.
    pub to: String,
    /// 301, 302, 303, 307 or 308; default: 308, which keeps method and body.
    pub status: Option<u16>,
}

/// A fixed answer.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Respond {
    /// 200 to 599.
    pub status: u16,
    /// The body; default: the status in words.
    pub body: Option<String>,
    /// Its `Content-Type`; default: `text/plain; charset=utf-8`.
    pub content_type: Option<String>,
}

/// Changes to fields.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Edits {
    /// Fields in place of those of the same name.
    pub set: BTreeMap<String, String>,
    /// Fields beside those of the same name.
    pub add: BTreeMap<String, String>,
    /// Names of fields to drop.
    #[serde(deserialize_with = "texts")]
    pub remove: Vec<String>,
}
