//! Routes: their conditions, and the treatment of their requests.

use super::min_rate::RouteMinRate;
use super::retry::{Retries, Retry};
use super::split::Target;
use super::timeouts::RouteTimeouts;
use super::value_schemas;
use super::values::{duration, size, texts};
use crate::config::{LEAST_BUFFER, MAX_PENDING};
use crate::config::{Network, PathPattern};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::time::Duration;

/// A route: its conditions, and the treatment of its requests. A request takes the most specific route that matches: by
/// host, then by path, then the first in the file.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Route {
    /// A unique name for [metrics](monitoring.md#metrics-by-service-and-route): 1 to 64 letters, digits, `-` or `_`.
    /// Default: none.
    pub name: Option<String>,
    /// Names without port: `"example.org"`, or `"*.example.org"` for all names below it; or addresses, IPv6 in
    /// brackets: `"[2001:db8::1]"`. Case, a final dot and the notation of an address make no difference. Default: any.
    #[serde(deserialize_with = "texts")]
    #[schemars(schema_with = "value_schemas::one_or_many::<String>")]
    pub host: Vec<String>,
    /// `"/a"` matches this path alone; `"/a/*"` also everything below it, by segment: not `/ab`; `"/a*"` every path
    /// with this prefix: `/a`, `/a/b`, `/ab`; `"/a/{id}/b"` any one segment in the middle. No regular expressions.
    /// Default: any.
    #[serde(deserialize_with = "texts")]
    #[schemars(schema_with = "value_schemas::one_or_many::<PathPattern>")]
    pub path: Vec<PathPattern>,
    /// Methods, such as `["GET", "HEAD"]`. Default: any.
    #[serde(deserialize_with = "texts")]
    #[schemars(schema_with = "value_schemas::one_or_many::<String>")]
    pub method: Vec<String>,
    /// Required fields with their values, `"*"` for any value. In a route with `respond` or `redirect`, a field matches
    /// in [every spelling](proxies.md#fields-that-servers-trust) that a server may read as this name: a deny by
    /// `X-Debug` also denies `X.Debug`. In a route with `service`, only the exact name matches, so clients cannot enter
    /// it with a spelling that a proxy in front does not filter. Default: any.
    pub headers: BTreeMap<String, String>,
    /// Networks of clients; `"unix"` for a Unix socket. Default: any.
    #[serde(deserialize_with = "texts")]
    #[schemars(schema_with = "value_schemas::one_or_many::<Network>")]
    pub client: Vec<Network>,
    /// Names of listeners. Default: any.
    #[serde(deserialize_with = "texts")]
    #[schemars(schema_with = "value_schemas::one_or_many::<String>")]
    pub listener: Vec<String>,

    /// Forwards the request to this service, or divides the requests among [several](routes.md#several-services).
    /// Default: none.
    pub service: Option<Target>,
    /// Responds with a redirect.
    pub redirect: Option<Redirect>,
    /// Responds with a fixed response.
    pub respond: Option<Respond>,

    /// With several services: the name of a [cookie](routes.md#several-services) that keeps a client on its service.
    /// Default: none.
    pub sticky: Option<String>,
    /// Removes this prefix from the path. Default: none.
    pub strip_prefix: Option<String>,
    /// Then prepends this prefix to the path. Default: none.
    pub add_prefix: Option<String>,
    /// The treatment of paths that servers may read [as those of another route](routes.md#forms-of-a-path).
    pub ambiguous_paths: AmbiguousPaths,
    /// Changes to the fields of requests.
    pub request_headers: Edits,
    /// Names of request trailers to forward. Names that `request_headers` or `tracing` sets are an error, since servers
    /// may merge trailers into the head. Default: none.
    #[serde(deserialize_with = "texts")]
    #[schemars(schema_with = "value_schemas::one_or_many::<String>")]
    pub request_trailers: Vec<String>,
    /// Changes to response fields; values cannot contain variables. They apply to the gateway's own responses on this
    /// route, too, such as redirects, 429 and 502, so that `Strict-Transport-Security` is present in an outage.
    pub response_headers: Edits,

    /// Forwards `TRACE`. Otherwise a `TRACE` gets 405, since the response would show the client all fields that the
    /// gateway adds ([details](http.md#trace-max-forwards-and-date)).
    pub trace: bool,
    /// [Copies of requests](services.md#mirrored-requests) to another service, whose responses the gateway discards.
    pub mirror: Option<Mirror>,
    /// [Request rate](limits.md#request-rates) per client; requests beyond it get 429 with `Retry-After`, and reach no
    /// server. Without the table there is no limit.
    pub rate: Option<Rate>,
    /// The requests that the gateway retries when a pooled connection closes before the first byte of the response.
    /// Requests above 16 KiB are never retried. A table such as `{ on = [502, 503, 504] }` adds [retries on another
    /// server](services.md#retries).
    #[schemars(extend("default" = Retry::default()))]
    pub retry: Retries,
    /// Maximum request body. Default: `limits.body`.
    #[serde(deserialize_with = "size")]
    #[schemars(schema_with = "value_schemas::bytes")]
    pub max_body: Option<u64>,
    /// The gateway [receives the body](limits.md#buffers), or this much of it, before it chooses a server. Default:
    /// none.
    #[serde(deserialize_with = "size")]
    #[schemars(schema_with = "value_schemas::bytes", transform = value_schemas::within(Route::BUFFER))]
    pub request_buffer: Option<u64>,
    /// The maximum part of a response that the gateway buffers while the client is slow. A response that fits frees its
    /// server at once.
    #[serde(deserialize_with = "size")]
    #[schemars(
        schema_with = "value_schemas::bytes",
        transform = value_schemas::within(Route::BUFFER),
        extend("default" = MAX_PENDING)
    )]
    pub response_buffer: Option<u64>,
    /// Timeouts that differ from the [general ones](configuration.md#timeouts).
    pub timeouts: RouteTimeouts,
    /// Minimum speed of clients that [send and receive bodies](limits.md#slow-bodies), where it differs from the
    /// general one.
    pub min_rate: RouteMinRate,
}

/// The treatment of requests whose path a server may read as another one, for example if it decodes `%2F` to a slash.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum AmbiguousPaths {
    /// Rejects a path with a reading that belongs to another route.
    #[default]
    Refuse,
    /// Forwards all, for servers that read paths as the gateway does.
    Pass,
    /// Rejects every path with more than one reading.
    Strict,
}

/// Defaults for keys that a route does not set.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct RouteDefaults {
    /// Changes to the fields of requests.
    request_headers: Edits,
    /// Names of request trailers to forward. Names that `request_headers` or `tracing` sets are an error, since servers
    /// may merge trailers into the head. Default: none.
    #[serde(deserialize_with = "texts")]
    #[schemars(schema_with = "value_schemas::one_or_many::<String>")]
    request_trailers: Vec<String>,
    /// Changes to response fields; values cannot contain variables. They apply to the gateway's own responses on this
    /// route, too, such as redirects, 429 and 502, so that `Strict-Transport-Security` is present in an outage.
    response_headers: Edits,
    /// The treatment of paths that servers may read [as those of another route](routes.md#forms-of-a-path).
    ambiguous_paths: AmbiguousPaths,
    /// [Request rate](limits.md#request-rates) per client; requests beyond it get 429 with `Retry-After`, and reach no
    /// server. Without the table there is no limit.
    rate: Option<Rate>,
    /// The requests that the gateway retries when a pooled connection closes before the first byte of the response.
    retry: Retry,
    /// Maximum request body. Default: `limits.body`.
    #[serde(deserialize_with = "size")]
    #[schemars(schema_with = "value_schemas::bytes")]
    max_body: Option<u64>,
    /// The gateway [receives the body](limits.md#buffers), or this much of it, before it chooses a server. Default:
    /// none.
    #[serde(deserialize_with = "size")]
    #[schemars(schema_with = "value_schemas::bytes", transform = value_schemas::within(Route::BUFFER))]
    request_buffer: Option<u64>,
    /// The maximum part of a response that the gateway buffers while the client is slow. A response that fits frees its
    /// server at once.
    #[serde(deserialize_with = "size")]
    #[schemars(
        schema_with = "value_schemas::bytes",
        transform = value_schemas::within(Route::BUFFER),
        extend("default" = MAX_PENDING)
    )]
    response_buffer: Option<u64>,
    /// Timeouts that differ from the [general ones](configuration.md#timeouts).
    timeouts: RouteTimeouts,
    /// Minimum speed of clients that [send and receive bodies](limits.md#slow-bodies), where it differs from the
    /// general one.
    min_rate: RouteMinRate,
}

/// Copies of requests for another service. A client never waits for them.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Mirror {
    /// The service's name.
    pub service: String,
    /// Share of the requests in percent, such as `0.5`.
    #[serde(default = "all")]
    #[schemars(transform = value_schemas::within(Mirror::PERCENT))]
    pub percent: f64,
    /// The gateway does not copy requests with a larger body. It sends a copy when the body is complete.
    #[serde(default = "mirrored_body", deserialize_with = "size")]
    #[schemars(schema_with = "value_schemas::bytes", transform = value_schemas::within(Mirror::BODY))]
    pub max_body: u64,
    /// Maximum concurrent copies in each worker. The worker drops further copies, copies without a response within
    /// `timeouts.response`, and all remaining ones when a drain begins.
    #[serde(default = "mirrors")]
    #[schemars(transform = value_schemas::at_least(1))]
    pub max_in_flight: usize,
}

impl Route {
    /// The upper limit bounds the memory of thousands of clients that each fill a buffer.
    pub(crate) const BUFFER: RangeInclusive<u64> = LEAST_BUFFER as u64..=256 << 20;
}

impl Mirror {
    pub(crate) const PERCENT: RangeInclusive<f64> = 0.0..=100.0;
    pub(crate) const BODY: RangeInclusive<u64> = 0..=16 << 20;
}

impl Rate {
    pub(crate) const REQUESTS: RangeInclusive<u64> = 1..=1_000_000;
    pub(crate) const LONGEST: Duration = Duration::from_secs(3600);
}

impl Redirect {
    pub(crate) const STATUSES: [u16; 5] = [301, 302, 303, 307, 308];
    /// 308 preserves the method and the body (RFC 9110 section 15.4.9).
    pub(crate) const STATUS: u16 = 308;
}

impl Respond {
    pub(crate) const STATUSES: RangeInclusive<u64> = 200..=599;
    pub(crate) const CONTENT_TYPE: &str = "text/plain; charset=utf-8";
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

/// The maximum rate of requests; requests beyond it get 429.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Rate {
    /// Requests per period.
    #[schemars(transform = value_schemas::within(Rate::REQUESTS))]
    pub requests: u32,
    /// The period: `requests = 1` and `per = "10s"` is one request in ten seconds.
    #[serde(default = "second", deserialize_with = "duration")]
    #[schemars(schema_with = "value_schemas::time", transform = value_schemas::at_most(Rate::LONGEST))]
    pub per: Duration,
    /// Maximum burst after a pause. Default: `requests`.
    #[serde(default)]
    #[schemars(transform = value_schemas::within(Rate::REQUESTS))]
    pub burst: Option<u32>,
    /// The clients whose requests share the limit.
    #[serde(default)]
    pub by: RateBy,
}

/// The clients whose requests share a limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RateBy {
    /// Each IPv4 address, or IPv6 network of 64 bits, separately.
    #[default]
    Client,
    /// All clients together.
    Route,
}

fn second() -> Duration {
    Duration::from_secs(1)
}

/// A redirect.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Redirect {
    /// The `Location`, with [variables](configuration.md#variables): a URI with its host, such as
    /// `https://{host}{target}`, or a path, such as `{path}/`. A path stays on its host: the gateway reduces slashes
    /// and backslashes at its start to one slash, since browsers read `//` or `/\` as the start of another host. The
    /// host part may contain only `{host}` and `{authority}`; a request that names no host (HTTP/1.0) then gets 400
    /// `missing_host`. Characters that a URI cannot contain are percent-encoded.
    pub to: String,
    /// The status. Clients repeat the request unchanged after 308 and 307, and turn POST into GET after 301 and 302.
    #[schemars(extend("enum" = Redirect::STATUSES, "default" = Redirect::STATUS))]
    pub status: Option<u16>,
}

/// A fixed response.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Respond {
    /// The status.
    #[schemars(transform = value_schemas::within(Respond::STATUSES))]
    pub status: u16,
    /// The body. Default: the status in words.
    pub body: Option<String>,
    /// The `Content-Type` of the body.
    #[schemars(extend("default" = Respond::CONTENT_TYPE))]
    pub content_type: Option<String>,
}

/// Changes to fields.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Edits {
    /// Fields that replace those of the same name; values of `request_headers` may contain
    /// [variables](configuration.md#variables). Default: none.
    pub set: BTreeMap<String, String>,
    /// Fields to add to those of the same name; values as in `set`. Default: none.
    pub add: BTreeMap<String, String>,
    /// Names of fields to remove. Default: none.
    #[serde(deserialize_with = "texts")]
    #[schemars(schema_with = "value_schemas::one_or_many::<String>")]
    pub remove: Vec<String>,
}
