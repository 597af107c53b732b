//! The table `[service.NAME]`: servers, load balancing, health checks, and TLS towards the servers.

use super::accept::AnswerRule;
use super::curves::Curves;
use super::eject::Eject;
use super::health::Health;
use super::limits::OwnLimits;
use super::listener::RECORD_SIZE;
use super::value_schemas;
use super::values::{duration, size, text, texts};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};
use std::fmt;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;
use weir_http::is_token;
use weir_tls::{Group, Suite, Version};
use weir_transport::Place;

/// A named group of equivalent servers.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Service {
    /// URLs, or tables with `url`, `weight` and `backup`; all `http` or all `https`, or for [listeners with
    /// `tcp`](tunnels.md#tcp) all `tcp` or all `tls`. The gateway resolves names again when their
    /// TTL ends: [`[dns]`](configuration.md#dns).
    #[serde(deserialize_with = "servers")]
    #[schemars(schema_with = "value_schemas::servers")]
    pub servers: Vec<Server>,
    /// The load-balancing algorithm, which each worker applies to its own requests.
    #[serde(default)]
    pub balance: Balance,
    /// With `balance = "hash"`: requests with the same address, field or cookie go to the same server. A request
    /// without that field or cookie uses the address.
    #[serde(default, deserialize_with = "text")]
    #[schemars(extend("default" = HashOn::default().to_string()))]
    pub hash: Option<HashOn>,
    /// The name of a [cookie](services.md#sticky-sessions) that the gateway sets to send a client back to its server.
    /// Default: none.
    #[serde(default)]
    pub sticky: Option<String>,
    /// Stops requests to a failing server for a while. Each worker counts failures separately.
    #[serde(default)]
    pub eject: Eject,
    /// Probes servers periodically. A server that is down gets no requests; when all are down, the response is `503
    /// no_server`. Without the table there are no probes.
    #[serde(default)]
    pub health: Option<Health>,
    /// Maximum connections to each server, including idle ones, across all workers (`maxSockets` in HTTP client
    /// libraries). A worker passes an idle connection to another one whose requests wait. A request whose server is at
    /// the limit goes to another server, or waits. Default: no limit.
    #[serde(default)]
    #[schemars(transform = value_schemas::within(Service::CONNECTIONS))]
    pub max_connections: Option<usize>,
    /// With `max_connections`: maximum waiting requests in each worker; more get `503 queue_full`, and those that wait
    /// longer than `timeouts.queue` get `503 queue_timeout`.
    #[serde(default)]
    #[schemars(extend("default" = Service::MAX_WAITING))]
    pub max_waiting: Option<usize>,
    /// Retries per hundred requests in each worker; a burst of a hundred is allowed, as when a server closes all its
    /// idle connections.
    #[serde(default = "retry_percent")]
    #[schemars(transform = value_schemas::within(Service::RETRY_PERCENT))]
    pub retry_percent: u32,
    /// Begins each connection with a PROXY protocol header about the client, before TLS. Such a connection serves one
    /// client only, so there is no pool. Default: none.
    #[serde(default)]
    pub proxy_protocol: Option<ProxyProtocol>,
    /// Speaks [HTTP/2](http.md#http2-to-servers) to the servers, with many requests on one connection: with `https` by
    /// ALPN, else by prior knowledge. Not with `proxy_protocol`.
    #[serde(default)]
    pub http2: bool,
    /// [Repairs of responses](http.md#repairs-of-responses), not with `http2`. Default: none.
    #[serde(default, deserialize_with = "texts")]
    #[schemars(schema_with = "value_schemas::one_or_many::<AnswerRule>")]
    pub accept: Vec<AnswerRule>,
    /// Limits of the servers' responses.
    #[serde(default)]
    pub limits: OwnLimits,
    /// Limits of idle connections, besides `timeouts.pooled`; not with `proxy_protocol`.
    #[serde(default)]
    pub pool: Pool,
    /// TLS towards the servers, with `https` or `tls`.
    #[serde(default)]
    pub tls: ServiceTls,
}

/// The form of a PROXY protocol header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ProxyProtocol {
    /// Text.
    V1,
    /// Binary.
    V2,
}

/// One server: a URL alone, or a table.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Server {
    /// The server's URL. `unix:` is a cleartext Unix socket.
    #[serde(deserialize_with = "place", serialize_with = "url")]
    #[schemars(schema_with = "value_schemas::place")]
    pub url: Place,
    /// Share of the requests relative to the other servers'; 0: none, until a weight is set at run time.
    #[serde(default = "one")]
    #[schemars(transform = value_schemas::within(Server::WEIGHT))]
    pub weight: u32,
    /// Gets requests only while no other server is available.
    #[serde(default)]
    pub backup: bool,
}

/// The load-balancing algorithm, which each worker applies to its own requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Balance {
    /// In turn, by weight.
    #[default]
    RoundRobin,
    /// The server with the fewest requests in flight for its weight.
    LeastInFlight,
    /// The less busy of two servers drawn by weight.
    TwoChoices,
    /// The same server for the same `hash`; when a server leaves, only its own share moves.
    Hash,
}

/// The part of a request that [`Balance::Hash`] hashes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum HashOn {
    /// The client's address.
    #[default]
    Client,
    /// The value of a field.
    Header(String),
    /// The value of a cookie.
    Cookie(String),
}

/// The idle connections to a server. Each worker keeps its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Pool {
    /// Maximum idle connections to a server in each worker; the worker closes further ones after their response.
    pub max_idle: u32,
    /// Maximum requests per connection; each connection gets up to a tenth less, so that they do not all close at once.
    /// Default: no limit.
    pub max_requests: Option<u32>,
    /// Maximum age of a connection that gets new requests, shortened by up to a tenth, too. Default: no limit.
    #[serde(deserialize_with = "duration")]
    #[schemars(schema_with = "value_schemas::time")]
    pub max_age: Option<Duration>,
    /// With `http2`: maximum requests in flight on one connection; the server may allow fewer. Near the limit, the
    /// worker opens another connection.
    #[schemars(transform = value_schemas::within(Pool::STREAMS), extend("default" = Pool::default().max_streams()))]
    pub max_streams: Option<u32>,
}

impl Pool {
    pub(crate) const STREAMS: RangeInclusive<u64> = 1..=1000;

    pub(crate) fn max_streams(&self) -> u32 {
        self.max_streams.unwrap_or(100)
    }
}

impl Server {
    /// A server with the default weight.
    pub fn new(url: Place) -> Self {
        Self { url, weight: one(), backup: false }
    }
}

impl Server {
    pub(crate) const WEIGHT: RangeInclusive<u64> = 0..=1000;
}

impl Service {
    pub(crate) const CONNECTIONS: RangeInclusive<u64> = 1..=1_000_000;
    pub(crate) const RETRY_PERCENT: RangeInclusive<u64> = 0..=100;
    /// About the requests that a busy worker handles per second: clients seldom still want a response after a longer
    /// wait.
    pub(crate) const MAX_WAITING: usize = 1000;

    /// A service of these servers, with the defaults.
    pub fn new(servers: Vec<Server>) -> Self {
        Self {
            servers,
            balance: Balance::default(),
            hash: None,
            sticky: None,
            eject: Eject::default(),
            health: None,
            max_connections: None,
            max_waiting: None,
            retry_percent: retry_percent(),
            proxy_protocol: None,
            http2: false,
            accept: Vec::new(),
            limits: OwnLimits::default(),
            pool: Pool::default(),
            tls: ServiceTls::default(),
        }
    }
}

impl Default for Pool {
    fn default() -> Self {
        // About as many as a busy worker's requests in flight. Each connection takes a descriptor and a few KiB in the
        // kernel.
        Self { max_idle: 1024, max_requests: None, max_age: None, max_streams: None }
    }
}

impl fmt::Display for HashOn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Client => f.write_str("client"),
            Self::Header(name) => write!(f, "header:{name}"),
            Self::Cookie(name) => write!(f, "cookie:{name}"),
        }
    }
}

impl FromStr for HashOn {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once(':') {
            None if text == "client" => Ok(Self::Client),
            Some(("header", name)) if is_token(name.as_bytes()) => Ok(Self::Header(name.to_owned())),
            Some(("cookie", name)) if is_token(name.as_bytes()) => Ok(Self::Cookie(name.to_owned())),
            _ => Err(format!("invalid value `{text}`: expected `client`, `header:NAME` or `cookie:NAME`")),
        }
    }
}

fn retry_percent() -> u32 {
    10
}

fn one() -> u32 {
    1
}

fn url<S: Serializer>(place: &Place, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(place)
}

fn place<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Place, D::Error> {
    String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
}

fn servers<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Server>, D::Error> {
    let one = |value: toml::Value| match value {
        toml::Value::String(url) => url.parse().map(Server::new).map_err(D::Error::custom),
        toml::Value::Table(_) => {
            value.try_into().map_err(|error| D::Error::custom(weir_toml::message_of(&error)))
        }
        other => Err(D::Error::custom(format!("expected a URL or a table with `url`, found {other}"))),
    };
    match toml::Value::deserialize(deserializer)? {
        toml::Value::Array(values) => values.into_iter().map(one).collect(),
        value => Ok(vec![one(value)?]),
    }
}

/// TLS to the servers. By default, the gateway verifies certificates and resumes sessions.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ServiceTls {
    /// Trusted CAs (PEM). Default: the system's.
    #[schemars(schema_with = "value_schemas::path")]
    pub ca: Option<PathBuf>,
    /// Skips verification, with a warning; for tests.
    pub insecure: bool,
    /// The name to verify and to send as SNI. Default: the host of the URL.
    pub name: Option<String>,
    /// The gateway's client certificate (PEM), with `key`. Default: none.
    #[schemars(schema_with = "value_schemas::path")]
    pub certificate: Option<PathBuf>,
    /// The private key of `certificate` (PEM). Default: none.
    #[schemars(schema_with = "value_schemas::path")]
    pub key: Option<PathBuf>,
    /// Offered versions.
    #[serde(deserialize_with = "texts")]
    #[schemars(schema_with = "value_schemas::versions", extend("default" = Version::ALL.map(Version::name)))]
    pub versions: Vec<Version>,
    /// Offered suites, most preferred first. Default: all.
    #[serde(deserialize_with = "texts")]
    #[schemars(schema_with = "value_schemas::suites")]
    pub suites: Vec<Suite>,
    /// Offered groups, most preferred first.
    #[serde(deserialize_with = "texts")]
    #[schemars(schema_with = "value_schemas::groups", extend("default" = Group::DEFAULT.map(Group::name)))]
    pub groups: Vec<Group>,
    /// The implementation of X25519 and of signatures with the gateway's client certificate, as `tls.curves` of a
    /// listener.
    pub curves: Curves,
    /// Maximum plaintext of a TLS record sent to the servers, as `tls.record_size` of a listener.
    #[serde(deserialize_with = "size")]
    #[schemars(
        schema_with = "value_schemas::bytes",
        transform = value_schemas::within(RECORD_SIZE),
        extend("default" = RECORD_SIZE.end())
    )]
    pub record_size: Option<u64>,
}

impl ServiceTls {
    /// Whether any key is set.
    pub(crate) fn is_set(&self) -> bool {
        let Self { ca, insecure, name, certificate, key, versions, suites, groups, curves, record_size } =
            self;
        let files = [ca, certificate, key].into_iter().any(Option::is_some);
        let offers = !versions.is_empty() || !suites.is_empty() || !groups.is_empty();
        *insecure
            || files
            || offers
            || name.is_some()
            || *curves != Curves::default()
            || record_size.is_some()
    }
}
