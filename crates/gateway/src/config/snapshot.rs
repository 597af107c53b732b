//! The configuration that the workers use: checked, immutable, replaced as a whole.

use super::document::{
    AmbiguousPaths, Balance, Dns, Eject, HalfClose, HashOn, Health, Pool, ProxyField, Underscores, WhenFull,
};
use super::endpoints::ServersFrom;
use super::log_format::LogFormat;
use super::policy::{Forms, MirrorTo, Policy, RateLimit};
use super::served_certificates::ServedCertificate;
use super::{Network, Overrides};
use crate::route::{Conditions, Edits, Hosts, Location, PathEdit, PathPattern, Split};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use weir_http1::{Limits, Rules};
use weir_preface::proxy;
use weir_tls::{Client, PeerName};
use weir_transport::{Address, Place};

/// One version of the configuration. Workers receive it as a message; an exchange keeps the version with which it
/// started. A clone shares the parts whose size depends on the number of services and routes.
#[derive(Clone, Debug)]
pub(crate) struct Snapshot {
    /// The limits of heads and chunks for listeners and services without their own.
    pub limits: Limits,
    /// The certificates, in the order of the configuration; empty if no listener presents any.
    pub certificates: Arc<[ServedCertificate]>,
    pub listeners: Vec<Listener>,
    /// The services, sorted by name.
    pub services: Vec<Arc<Service>>,
    /// The server settings that an operator changed at run time.
    pub overrides: Overrides,
    pub names: Names,
    /// Redirects of all requests on a listener, by the listener's name; they precede the routes.
    pub redirects: Vec<(Arc<str>, Redirect)>,
    pub routes: Arc<[Route]>,
    /// The names of routes, sorted.
    pub route_names: Arc<[String]>,
    /// The index of routes by host and path.
    pub hosts: Arc<Hosts>,
    /// The fields that describe the client to servers.
    pub forms: Forms,
    /// The gateway's names in `Via`.
    pub via: Via,
    /// The fields by which to trace requests; `None` without tracing.
    pub tracing: Option<Tracing>,
    /// The bodies of the gateway's own error responses.
    pub pages: Pages,
    /// The access log's file and format.
    pub access: Option<AccessLog>,
    /// The maximum number of clients' connections; `None`: as many as the descriptors allow.
    pub connections: Option<u32>,
    /// The maximum number of bytes in memory for all connections; `None`: no limit.
    pub memory: Option<usize>,
    /// The maximum number of unfinished handshakes with clients; `None`: the default.
    pub handshakes: Option<u32>,
    /// The maximum number of expensive handshake steps in one turn of a worker.
    pub handshakes_per_turn: u32,
    /// The maximum number of connections of one client; `None`: no limit.
    pub connections_per_client: Option<u32>,
    /// The size of the read buffer in bytes.
    pub read_size: usize,
    /// The policy for a connection until a request on it has a route.
    pub policy: Policy,
}

/// The settings for resolving server names, and the TTLs of the first lookups.
#[derive(Clone, Debug)]
pub(crate) struct Names {
    pub dns: Dns,
    /// The TTLs that the first lookups reported, by server name.
    pub ttls: Arc<BTreeMap<String, Duration>>,
}

/// The gateway's names in `Via` of forwarded messages; `None`: the gateway adds no `Via`.
#[derive(Clone, Debug, Default)]
pub(crate) struct Via {
    pub requests: Option<Box<str>>,
    pub responses: Option<Box<str>>,
}

/// The fields by which to trace requests.
#[derive(Clone, Debug)]
pub(crate) struct Tracing {
    /// The name of the field that carries the request ID.
    pub request_id: Option<Box<[u8]>>,
}

impl Snapshot {
    /// The index of a service.
    pub(crate) fn service_named(&self, name: &str) -> Option<usize> {
        self.services.binary_search_by(|service| service.name.as_str().cmp(name)).ok()
    }

    /// The number of servers with health checks, which is also the maximum number of concurrent connections for checks.
    pub(crate) fn health_checks(&self) -> usize {
        let checked = self.services.iter().filter(|service| service.health.is_some());
        checked.map(|service| service.servers.len()).sum()
    }
}

/// The bodies of error responses by status.
pub(crate) type Pages = BTreeMap<u16, Arc<Page>>;

/// The body of an error response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Page {
    pub content_type: &'static str,
    pub body: Vec<u8>,
}

/// The settings of the access log.
#[derive(Clone, Debug)]
pub(crate) struct AccessLog {
    pub path: PathBuf,
    pub format: LogFormat,
    pub when_full: WhenFull,
}

/// The number of a listening address in this process. An address keeps its number across reloads; a new address gets an
/// unused number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct ListenerId(pub u32);

/// An address for clients, with its settings.
#[derive(Clone, Debug)]
pub(crate) struct Listener {
    /// At first the listener's index in the configuration. A reload sets the ID of the same address in use, or an
    /// unused one.
    pub id: ListenerId,
    pub name: Arc<str>,
    /// The listener's key in the configuration, such as `listener.web`.
    pub key: String,
    /// The configured address, with its scheme.
    pub place: Place,
    /// Permissions of the file, for a Unix socket.
    pub mode: u32,
    pub role: Role,
    /// Networks of trusted proxies in front of the listener.
    pub trusted: Arc<[Network]>,
    pub proxy_field: ProxyField,
    /// Networks of load balancers that begin each connection with a PROXY protocol header; empty: none.
    pub announced_by: Arc<[Network]>,
    /// Networks of permitted clients; empty: all.
    pub allow: Arc<[Network]>,
    /// Networks of rejected clients, even if `allow` permits them.
    pub deny: Arc<[Network]>,
    pub half_close: HalfClose,
    pub underscores: Underscores,
    /// Whether clients may speak HTTP/2.
    pub http2: bool,
    /// Whether the priorities of HTTP/2 requests order the responses of a connection.
    pub http2_priorities: bool,
    /// The rules whose violations the gateway repairs in requests.
    pub accept: Rules,
    /// The limits of request heads and chunks.
    pub limits: Limits,
    pub passthrough: Arc<Passthrough>,
    /// The service of all connections; `None` if they carry HTTP.
    pub tcp: Option<Tcp>,
    /// The indexes in [`Snapshot::certificates`] of the certificates that `tls` presents, in that order.
    pub certificates: Arc<[usize]>,
    pub tls: Option<weir_tls::Server>,
}

impl Listener {
    /// The address without a scheme.
    pub(crate) fn address(&self) -> String {
        let place = self.place.to_string();
        place.split_once("://").map_or(place.clone(), |(_, address)| address.to_owned())
    }
}

/// The services that get connections undecrypted, by SNI name.
#[derive(Clone, Debug, Default)]
pub(crate) struct Passthrough {
    names: Hosts,
    /// Indexes into [`Snapshot::services`], by the numbers in `names`.
    services: Vec<usize>,
}

impl Passthrough {
    /// Adds a name, in the form of a route's host; `None`: all names.
    pub(crate) fn insert(&mut self, name: Option<&str>, service: usize) {
        self.names.insert(name, &PathPattern::all(), self.services.len());
        self.services.push(service);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.services.is_empty()
    }

    /// The service for an SNI name in lower case, which is empty if the client sent none.
    pub(crate) fn find(&self, name: &[u8]) -> Option<usize> {
        self.services.get(self.names.find(name, b"/", &|_| true)?).copied()
    }
}

/// The service that gets all connections of a listener as bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Tcp {
    /// The service's index in [`Snapshot::services`].
    pub service: usize,
    /// The idle timeout of a connection.
    pub idle: Duration,
}

/// The gateway's use of accepted connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Forwards HTTP requests.
    Gateway,
    /// Relays bytes to the first service without parsing them, to measure the lower bound of a gateway's cost.
    Tunnel,
}

/// A route: its conditions besides host and path, and the treatment of its requests.
#[derive(Clone, Debug)]
pub(crate) struct Route {
    /// The index of the route's name in [`Snapshot::route_names`], if it has one.
    pub name: Option<usize>,
    pub conditions: Conditions,
    /// Whether all paths of the route are ACME challenges, in which case the route precedes a listener's redirect.
    pub is_for_challenges: bool,
    pub action: Action,
    pub policy: Policy,
    pub path: Option<PathEdit>,
    /// The treatment of paths that servers may interpret differently.
    pub ambiguous_paths: AmbiguousPaths,
    /// The limit on the rate of requests, which all workers share.
    pub rate: Option<RateLimit>,
    /// Whether to forward TRACE requests.
    pub trace: bool,
    /// The service that gets copies of requests, and the share to copy.
    pub mirror: Option<MirrorTo>,
    pub request: Edits,
    pub response: Edits,
    /// The request trailers to forward, if any.
    pub request_trailers: Option<FieldNames>,
}

/// Names of fields, which match regardless of case.
pub(crate) type FieldNames = Arc<[Box<[u8]>]>;

/// The action of a route on its requests.
#[derive(Clone, Debug)]
pub(crate) enum Action {
    /// Forwards the request to the service with this index in [`Snapshot::services`].
    Pass { service: usize },
    /// Divides the requests among shares, whose routes follow those of the configuration in [`Snapshot::routes`].
    Split(Split),
    /// Redirects the client.
    Redirect(Redirect),
    /// Responds with this status; the body defaults to the status in words.
    Respond { status: u16, content_type: Box<str>, body: Option<Box<[u8]>> },
}

/// A redirect's status and target.
#[derive(Clone, Debug)]
pub(crate) struct Redirect {
    pub status: u16,
    pub to: Location,
    /// The target as the operator wrote it.
    pub written: Box<str>,
}

impl Action {
    /// Whether requests go to a service.
    pub(crate) fn is_forwarded(&self) -> bool {
        matches!(self, Self::Pass { .. } | Self::Split(_))
    }
}

/// A named group of equivalent servers.
#[derive(Clone, Debug)]
pub(crate) struct Service {
    pub name: String,
    pub servers: Vec<Server>,
    pub balance: Balance,
    pub hash: HashOn,
    /// The cookie that sends clients back to their servers.
    pub sticky: Option<Sticky>,
    pub eject: Eject,
    pub health: Option<Health>,
    /// Retries per hundred requests in each worker.
    pub retry_percent: u32,
    /// The maximum number of waiting requests in each worker.
    pub max_waiting: usize,
    /// The rules whose violations the gateway repairs in the servers' responses.
    pub accept: Rules,
    /// The limits of response heads and chunks.
    pub limits: Limits,
    pub tls: Option<Arc<UpstreamTls>>,
    pub servers_from: ServersFrom,
}

impl Service {
    /// Whether both services have the same settings and servers, and share their TLS sessions.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        let Self {
            name,
            servers,
            balance,
            hash,
            sticky,
            eject,
            health,
            retry_percent,
            max_waiting,
            accept,
            limits,
            tls,
            servers_from,
        } = self;
        other.has_tls_of(tls.as_ref())
            && (name, balance, hash, sticky, eject, health)
                == (&other.name, &other.balance, &other.hash, &other.sticky, &other.eject, &other.health)
            && (retry_percent, max_waiting, accept, limits)
                == (&other.retry_percent, &other.max_waiting, &other.accept, &other.limits)
            && (servers, servers_from) == (&other.servers, &other.servers_from)
    }

    /// Whether the service uses these TLS settings; `None`: no TLS.
    pub(crate) fn has_tls_of(&self, tls: Option<&Arc<UpstreamTls>>) -> bool {
        match (&self.tls, tls) {
            (Some(own), Some(tls)) => Arc::ptr_eq(own, tls),
            (None, None) => true,
            (Some(_), None) | (None, Some(_)) => false,
        }
    }
}

/// The cookie that binds a client to one server of a service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Sticky {
    pub name: Box<[u8]>,
    /// The values of each server, in the order of [`Service::servers`]: the gateway sets the first value, and accepts
    /// all.
    pub values: Vec<Vec<u64>>,
}

impl Sticky {
    /// The index of the server that a value names.
    pub(crate) fn server(&self, value: u64) -> Option<usize> {
        self.values.iter().position(|values| values.contains(&value))
    }

    /// The value that names the server with this index.
    pub(crate) fn value(&self, server: usize) -> Option<u64> {
        self.values.get(server)?.first().copied()
    }
}

/// TLS towards the servers of a service.
#[derive(Debug)]
pub(crate) struct UpstreamTls {
    pub client: Client,
}

/// One server of a service, with the settings that the workers need.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Server {
    /// The configured URL or socket.
    pub place: Place,
    /// The current address of `place`.
    pub address: Address,
    /// Host and port as in a `Host` field.
    pub authority: String,
    /// The name to verify and to send as SNI, with TLS.
    pub name: Option<PeerName>,
    pub weight: u32,
    pub backup: bool,
    pub pool: Pool,
    /// The maximum number of connections to the server across all workers; `None`: no limit.
    pub max_connections: Option<usize>,
    /// The version of the PROXY protocol header that starts each connection; `None`: no header.
    pub announces: Option<proxy::Version>,
    /// Whether the server speaks HTTP/2.
    pub http2: bool,
    /// An ID, the same in every worker and process, for hashing, overrides and health.
    pub id: u64,
}

impl Server {
    /// Whether this is the server `before` of an earlier configuration, so that its connections, health and ejection
    /// still apply: only its share of the requests and the limits of its pool may differ.
    pub(crate) fn continues(&self, before: &Self) -> bool {
        let Self {
            place,
            address,
            authority,
            name,
            weight: _,
            backup: _,
            pool: _,
            max_connections,
            announces,
            http2,
            id,
        } = self;
        *id == before.id
            && *place == before.place
            && *address == before.address
            && *authority == before.authority
            && *name == before.name
            && *max_connections == before.max_connections
            && *announces == before.announces
            && *http2 == before.http2
    }

    /// The server's name in logs and metrics.
    pub(crate) fn label(&self) -> Cow<'_, str> {
        match &self.place {
            Place::Url(_) | Place::Stream(_) => self.authority.as_str().into(),
            Place::Unix(_) => self.place.to_string().into(),
        }
    }
}
