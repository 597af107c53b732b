//! Services, and TLS towards their servers.

use super::accept::AnswerRule;
use super::failures::EjectOn;
use super::limits::OwnLimits;
use super::values::{duration, size, text, texts};
use serde::{Deserialize, Deserializer, de::Error};
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;
use weir_http1::is_token;
use weir_tls::{Group, Suite, Version};
use weir_transport::Place;

/// A named group of servers that answer alike.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Service {
    /// Its servers, at least one, all with the same scheme; one alone needs no brackets.
    #[serde(deserialize_with = "servers")]
    pub servers: Vec<Server>,
    /// How a server is chosen.
    #[serde(default)]
    pub balance: Balance,
    /// What requests are told apart by, with `balance = "hash"`.
    #[serde(default, deserialize_with = "text")]
    pub hash: Option<HashOn>,
    /// The name of a cookie that brings a client back to its server; default: none.
    #[serde(default)]
    pub sticky: Option<String>,
    /// When a server that fails gets no requests for a while.
    #[serde(default)]
    pub eject: Eject,
    /// Asks servers from time to time whether they are well; default: no.
    #[serde(default)]
    pub health: Option<Health>,
    /// The most connections to each server, 1 to 1000000, shared evenly by the workers; default: no limit.
    #[serde(default)]
    pub max_connections: Option<usize>,
    /// The most requests that wait in each worker while all servers have their connections in use.
    #[serde(default)]
    pub max_waiting: Option<usize>,
    /// Retries for each hundred requests, 0 to 100; default: 10.
    #[serde(default = "retry_percent")]
    pub retry_percent: u32,
    /// Begins each connection with a PROXY protocol header about the client; default: none.
    #[serde(default)]
    pub proxy_protocol: Option<ProxyProtocol>,
    /// Rules of HTTP that its servers' answers need not keep; default: none.
    #[serde(default, deserialize_with = "texts")]
    pub accept: Vec<AnswerRule>,
    /// Limits of its servers' answers; default: the general ones.
    #[serde(default)]
    pub limits: OwnLimits,
    /// Its idle connections.
    #[serde(default)]
    pub pool: Pool,
    /// TLS towards them; only with `https`.
    #[serde(default)]
    pub tls: ServiceTls,
}

/// The form of a PROXY protocol header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ProxyProtocol {
    /// A line of text.
    V1,
    /// Binary.
    V2,
}

/// One server: a URL alone, or a table.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Server {
    /// `http://HOST:PORT`, `https://HOST:PORT`, or `unix:PATH` for a socket in cleartext.
    #[serde(deserialize_with = "place")]
    pub url: Place,
    /// Its share of the requests in proportion to the others', 1 to 1000; default: 1.
    #[serde(default = "one")]
    pub weight: u32,
    /// Gets requests only while no other is available; default: false.
    #[serde(default)]
    pub backup: bool,
}

/// How a server is chosen. Each worker counts for itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Balance {
    /// In turn, by weight.
    #[default]
    RoundRobin,
    /// The one with the fewest requests in flight for its weight.
    LeastInFlight,
    /// Of two that are drawn by weight, the one with fewer requests in flight.
    TwoChoices,
    /// Always the same one for the same value of `hash`; when one is gone, only its share moves.
    Hash,
}

/// What requests are told apart by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HashOn {
    /// The client's address.
    Client,
    /// The value of a field.
    Header(String),
    /// The value of a cookie.
    Cookie(String),
}

/// When a server that fails gets no requests for a while. Each worker watches for itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Eject {
    /// What counts as a failure; default: no connection, no response in time, and an invalid response.
    pub on: EjectOn,
    /// Failures in a row; 0: any number.
    pub failures: u32,
    /// The share of failures in percent, 1 to 100, among the requests of `window`; default: any.
    pub percent: Option<u32>,
    /// The time in which that share is counted, from a failure on; default: 10 s.
    #[serde(deserialize_with = "duration")]
    pub window: Option<Duration>,
    /// Requests in that time without which a share says little; default: 20.
    pub min_requests: Option<u32>,
    /// For how long, the first time; each further time in a row doubles it, up to 5 minutes.
    #[serde(deserialize_with = "duration", rename = "for")]
    pub period: Duration,
    /// How long its share grows back from a tenth afterwards.
    #[serde(deserialize_with = "duration")]
    pub slow_return: Duration,
}

/// How servers are asked whether they are well. One that is not gets no requests.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Health {
    /// The path of a GET request; default: a connection is enough, with TLS a handshake.
    pub path: Option<String>,
    /// The request's `Host`; default: the server's.
    pub host: Option<String>,
    /// Statuses of a server that is well: `200` or `200-399`.
    #[serde(deserialize_with = "texts")]
    pub status: Vec<Statuses>,
    /// From the end of a check to the next.
    #[serde(deserialize_with = "duration")]
    pub every: Duration,
    /// For the whole check.
    #[serde(deserialize_with = "duration")]
    pub timeout: Duration,
    /// Checks in a row that must pass before a server is up again.
    pub rise: u32,
    /// Checks in a row that must fail before a server is down.
    pub fall: u32,
}

/// Statuses from one to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Statuses {
    first: u16,
    last: u16,
}

impl Health {
    /// Whether a server with this answer is well.
    pub(crate) fn accepts(&self, status: u16) -> bool {
        self.status.iter().any(|statuses| (statuses.first..=statuses.last).contains(&status))
    }
}

impl Default for Health {
    fn default() -> Self {
        Self {
            path: None,
            host: None,
            status: vec![Statuses { first: 200, last: 399 }],
            every: Duration::from_secs(5),
            timeout: Duration::from_secs(2),
            rise: 2,
            fall: 3,
        }
    }
}

impl FromStr for Statuses {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (first, last) = text.split_once('-').unwrap_or((text, text));
        let statuses = first.parse().ok().zip(last.parse().ok());
        let statuses =
            statuses.filter(|(first, last)| (100..=599).contains(first) && (first..=&599).contains(&last));
        let wrong =
            || format!("invalid status `{text}`: expected one such as 200, or a range such as 200-399");
        statuses.map(|(first, last)| Self { first, last }).ok_or_else(wrong)
    }
}

/// The idle connections to a server. Each worker keeps its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Pool {
    /// Idle connections to a server in each worker; more are closed.
    pub max_idle: u32,
    /// Requests on one connection; default: no limit.
    pub max_requests: Option<u32>,
    /// Time after which a connection is used no more; default: no limit.
    #[serde(deserialize_with = "duration")]
    pub max_age: Option<Duration>,
}

impl Server {
    /// A server with the usual share.
    pub fn new(url: Place) -> Self {
        Self { url, weight: one(), backup: false }
    }
}

impl Service {
    /// A second's requests of a busy worker: what waits longer is seldom wanted any more.
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
            accept: Vec::new(),
            limits: OwnLimits::default(),
            pool: Pool::default(),
            tls: ServiceTls::default(),
        }
    }
}

impl Eject {
    pub(crate) fn window(&self) -> Duration {
        self.window.unwrap_or(Duration::from_secs(10))
    }

    pub(crate) fn min_requests(&self) -> u32 {
        self.min_requests.unwrap_or(20)
    }
}

impl Default for Eject {
    fn default() -> Self {
        // A restart of a server takes seconds.
        Self {
            on: EjectOn::default(),
            failures: 5,
            percent: None,
            window: None,
            min_requests: None,
            period: Duration::from_secs(10),
            slow_return: Duration::from_secs(10),
        }
    }
}

impl Default for Pool {
    fn default() -> Self {
        // As many as requests may be in flight in a usual worker; a descriptor and some KiB in the kernel each.
        Self { max_idle: 1024, max_requests: None, max_age: None }
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

/// TLS towards servers. It is verified, and sessions are resumed, unless the settings say otherwise.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ServiceTls {
    /// The trusted CAs (PEM); default: the system's.
    pub ca: Option<PathBuf>,
    /// Skips verification; for tests.
    pub insecure: bool,
    /// The name to verify and to send as SNI; default: the server's host.
    pub name: Option<String>,
    /// The client certificate (PEM), with `key`; default: none.
    pub certificate: Option<PathBuf>,
    /// Its private key (PEM).
    pub key: Option<PathBuf>,
    /// The versions offered; default: both.
    #[serde(deserialize_with = "texts")]
    pub versions: Vec<Version>,
    /// The suites offered, most preferred first; default: all.
    #[serde(deserialize_with = "texts")]
    pub suites: Vec<Suite>,
    /// The groups offered, most preferred first; default: those of the TLS library.
    #[serde(deserialize_with = "texts")]
    pub groups: Vec<Group>,
    /// The most bytes of the application in a record, 512 to 16384; default: 16384.
    #[serde(deserialize_with = "size")]
    pub record_size: Option<u64>,
}

impl ServiceTls {
    /// Whether anything is set.
    pub(crate) fn is_set(&self) -> bool {
        let Self { ca, insecure, name, certificate, key, versions, suites, groups, record_size } = self;
        let files = [ca, certificate, key].into_iter().any(Option::is_some);
        let offers = !versions.is_empty() || !suites.is_empty() || !groups.is_empty();
        *insecure || files || offers || name.is_some() || record_size.is_some()
    }
}
