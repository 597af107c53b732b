//! The tables `[listener.NAME]` and `[[certificate]]`: addresses, admission, and TLS towards clients.

use super::accept::RequestRule;
use super::curves::Curves;
use super::limits::OwnLimits;
use super::route::Redirect;
use super::tcp::Tcp;
use super::value_schemas;
use super::values::{duration, size, some_texts, text, texts};
use crate::config::Network;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, de::Error};
use std::fmt;
use std::net::Ipv6Addr;
use std::num::NonZeroU16;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;
use weir_tls::{Group, ServerSettings, Suite, Version};
use weir_transport::{UNIX, unix_path};

/// Addresses for clients, with their settings.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Listener {
    /// Addresses to listen on, which a [reload](reload.md#listeners) may change; port 0 takes a free port. The gateway
    /// creates the file of a Unix socket, replaces a stale one, and removes the file when it stops listening there.
    #[serde(deserialize_with = "texts")]
    #[schemars(schema_with = "value_schemas::one_or_many::<Bind>")]
    pub bind: Vec<Bind>,
    /// Permissions of Unix sockets.
    #[serde(default, deserialize_with = "text")]
    #[schemars(extend("default" = Mode::default().to_string()))]
    pub mode: Option<Mode>,
    /// Networks of [proxies in front](proxies.md#trusted-proxies) that the gateway trusts to name the client; or
    /// `"unix"` for peers on a Unix socket. Default: none.
    #[serde(default, deserialize_with = "texts")]
    #[schemars(schema_with = "value_schemas::one_or_many::<Network>")]
    pub trusted_proxies: Vec<Network>,
    /// The field in which trusted proxies name the client.
    #[serde(default)]
    #[schemars(extend("default" = ProxyField::default()))]
    pub proxy_field: Option<ProxyField>,
    /// Networks of load balancers in front, or `"unix"`, that begin each connection with a [PROXY protocol
    /// header](proxies.md#proxy-protocol), version 1 or 2, before TLS. Default: none.
    #[serde(default, deserialize_with = "texts")]
    #[schemars(schema_with = "value_schemas::one_or_many::<Network>")]
    pub proxy_protocol: Vec<Network>,
    /// Networks of admitted clients, or `"unix"`. The gateway disconnects others before the handshake. With
    /// `proxy_protocol` the address in the header counts. Behind `trusted_proxies` the peer is the proxy: use a route
    /// with `client` instead. Default: all.
    #[serde(default, deserialize_with = "texts")]
    #[schemars(schema_with = "value_schemas::one_or_many::<Network>")]
    pub allow: Vec<Network>,
    /// Networks of rejected clients, with precedence over `allow`. Default: none.
    #[serde(default, deserialize_with = "texts")]
    #[schemars(schema_with = "value_schemas::one_or_many::<Network>")]
    pub deny: Vec<Network>,
    /// The reaction to a client that closes its sending side (a FIN, or `close_notify` over TLS) while it waits for a
    /// response. With either value, the gateway serves a request that further pipelined requests follow, and passes a
    /// half-close through tunnels. No effect on HTTP/2, where requests end with their streams: the end of the
    /// connection always aborts the requests in flight.
    #[serde(default)]
    pub half_close: HalfClose,
    /// The treatment of request fields with an underscore in the name, which many servers read as a hyphen.
    #[serde(default)]
    pub underscores_in_headers: Underscores,
    /// Whether clients may speak HTTP/2: with TLS by ALPN, without TLS by prior knowledge.
    #[serde(default = "yes")]
    #[schemars(extend("default" = true))]
    pub http2: bool,
    /// Sends the responses of an HTTP/2 connection in the order of their [priorities](http.md#priorities) (RFC 9218).
    /// Without it, they share the connection evenly. Do not enable it behind a proxy that mixes the requests of several
    /// clients.
    #[serde(default)]
    pub http2_priorities: bool,
    /// [Repairs of requests](http.md#repairs-of-requests). Default: none.
    #[serde(default, deserialize_with = "texts")]
    #[schemars(schema_with = "value_schemas::one_or_many::<RequestRule>")]
    pub accept: Vec<RequestRule>,
    /// Limits of requests on this listener. A reload does not change them for open connections.
    #[serde(default)]
    pub limits: OwnLimits,
    /// Redirects all requests to `https` with the same host and target, [before any route](tls.md#redirect-to-https).
    /// For cleartext listeners. Default: none.
    #[serde(default, deserialize_with = "secured")]
    #[schemars(schema_with = "value_schemas::secured")]
    pub redirect: Option<Secured>,
    /// TLS connections that the gateway forwards without decrypting them, by SNI. Without `tls`, the listener rejects
    /// other connections. Default: none.
    #[serde(default)]
    pub passthrough: Vec<Passthrough>,
    /// Forwards all connections to a service [as bytes](tunnels.md#tcp), for protocols other than HTTP; with `tls`,
    /// decrypted. Default: none.
    #[serde(default)]
    pub tcp: Option<Tcp>,
    /// The [certificates](#certificate) of this listener, by name; the first is its default. For listeners with `tls`.
    /// Default: all certificates.
    #[serde(default, deserialize_with = "some_texts")]
    #[schemars(schema_with = "value_schemas::one_or_many::<String>")]
    pub certificates: Option<Vec<String>>,
    /// Terminates TLS; the table may be empty. Without it, the listener is cleartext.
    #[serde(default)]
    pub tls: Option<ListenerTls>,
}

fn yes() -> bool {
    true
}

/// The field in which trusted proxies name the client.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ProxyField {
    /// `X-Forwarded-For`, with `-Proto` and `-Host`.
    #[default]
    XForwardedFor,
    /// `Forwarded` (RFC 7239).
    Forwarded,
}

/// A redirect to the same host and target by `https`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Secured {
    /// The scheme.
    pub to: SecureScheme,
    /// The port in the redirect. Set it if clients reach TLS on another port than the gateway's, as behind a
    /// container's port mapping. Default: the only port of the listeners with TLS, or else 443.
    #[serde(default)]
    pub port: Option<NonZeroU16>,
    /// The status. Clients repeat the request unchanged after 308 and 307, and turn POST into GET after 301 and 302.
    #[serde(default)]
    #[schemars(extend("enum" = Redirect::STATUSES, "default" = Redirect::STATUS))]
    pub status: Option<u16>,
}

/// The scheme of a redirect to TLS.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SecureScheme {
    /// HTTP over TLS.
    Https,
}

/// The treatment of a request whose client closes its sending side before the response.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum HalfClose {
    /// Aborts the request at the server, so that the server can stop, and logs `client_closed`, like nginx's 499.
    /// Nearly all clients that half-close have given up.
    #[default]
    Abort,
    /// Sends the response, like nginx's `proxy_ignore_client_abort`, for clients such as `nc -N` that half-close after
    /// their request.
    Serve,
}

/// The treatment of request fields whose names have an underscore, which many servers read as a hyphen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Underscores {
    /// Removes and counts them (`weir_underscore_fields_dropped_total`).
    #[default]
    Drop,
    /// Forwards them, but drops those that a server may mistake for a field that the gateway or the route sets, or for
    /// one of HTTP's own (`X_Forwarded_For`, `Content_Length`).
    Pass,
    /// Responds with `400 underscore_in_field_name`.
    Reject,
}

/// An address to listen on: `HOST:PORT`, or `unix:PATH`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Bind {
    /// A TCP address.
    Tcp {
        /// A name, an IPv4 address, or an IPv6 address without its brackets.
        host: String,
        /// The port; 0 picks a free one.
        port: u16,
    },
    /// A Unix domain socket.
    Unix(PathBuf),
}

/// Permissions of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mode(pub u32);

/// Connections that the gateway forwards to a service without decrypting them, selected by SNI.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Passthrough {
    /// Names in SNI, as in a route's `host`, or `"*"` for all.
    #[serde(deserialize_with = "texts")]
    #[schemars(schema_with = "value_schemas::one_or_many::<String>")]
    pub name: Vec<String>,
    /// The name of the service whose servers terminate TLS. Their URLs are `http` or `tcp`, since the gateway adds no
    /// TLS of its own.
    pub service: String,
}

/// TLS towards clients.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ListenerTls {
    /// Accepted versions.
    #[serde(deserialize_with = "texts")]
    #[schemars(schema_with = "value_schemas::versions", extend("default" = Version::ALL.map(Version::name)))]
    pub versions: Vec<Version>,
    /// Accepted suites, most preferred first: by default AES-128, the cheapest, then AES-256, then ChaCha20. Default:
    /// all.
    #[serde(deserialize_with = "texts")]
    #[schemars(schema_with = "value_schemas::suites")]
    pub suites: Vec<Suite>,
    /// The side whose preference of suites decides.
    pub suite_order: SuiteOrder,
    /// Accepted groups, most preferred first. `x25519mlkem768` is [post-quantum](tls.md#post-quantum-key-exchange), for
    /// TLS 1.3 alone.
    #[serde(deserialize_with = "texts")]
    #[schemars(schema_with = "value_schemas::groups", extend("default" = Group::DEFAULT.map(Group::name)))]
    pub groups: Vec<Group>,
    /// The implementation of X25519, which is also half of `x25519mlkem768`, and of ECDSA P-256 signatures: see
    /// [Curves](tls.md#curves). The gateway refuses to start on a processor that lacks the instructions.
    pub curves: Curves,
    /// Tickets sent after each TLS 1.3 handshake. Each adds about 3 % to the cost of a full handshake; with 0, clients
    /// make a full handshake each time.
    #[schemars(transform = value_schemas::within(ListenerTls::TICKETS), extend("default" = ServerSettings::TICKETS))]
    pub tickets: Option<u32>,
    /// The time for which a key encrypts new tickets. The gateway accepts a ticket for at least this time and less than
    /// twice this time, under three generations of keys (previous, current, next).
    #[serde(deserialize_with = "duration")]
    #[schemars(
        schema_with = "value_schemas::time",
        transform = value_schemas::lasting(ServerSettings::TICKET_LIFETIMES),
        extend("default" = ServerSettings::TICKET_LIFETIME)
    )]
    pub ticket_lifetime: Option<Duration>,
    /// A file of secrets, one per line, as `openssl rand -hex 32` prints them, for [tickets on several
    /// machines](tls.md#tickets-on-several-machines). Without it, tickets survive an [upgrade](upgrade.md), but not a
    /// restart. Default: random secrets of this process.
    #[schemars(schema_with = "value_schemas::path")]
    pub ticket_secrets: Option<PathBuf>,
    /// With TLS 1.2: maximum stored sessions, for clients without tickets; about 300 bytes each.
    #[schemars(transform = value_schemas::within(ListenerTls::SESSIONS), extend("default" = ServerSettings::SESSIONS))]
    pub sessions: Option<usize>,
    /// Requests [client certificates](client-certificates.md) issued by the CAs in this PEM file. Default: none.
    #[schemars(schema_with = "value_schemas::path")]
    pub client_ca: Option<PathBuf>,
    /// The treatment of clients without a certificate.
    #[schemars(extend("default" = ClientCertificates::default()))]
    pub client_certificates: Option<ClientCertificates>,
    /// PEM files with revocation lists. The gateway rejects certificates that a list revokes, in full handshakes and in
    /// resumptions. Default: none.
    #[serde(deserialize_with = "texts")]
    #[schemars(schema_with = "value_schemas::paths")]
    pub client_crl: Vec<PathBuf>,
    /// The treatment of clients whose CA's list has expired (`nextUpdate` is in the past). Their earlier sessions
    /// resume for up to twice `tls.ticket_lifetime`, unless the gateway loads a new list.
    #[schemars(extend("default" = ExpiredLists::default()))]
    pub client_crl_expired: Option<ExpiredLists>,
    /// Rejects clients whose SNI is missing or matches no certificate.
    pub strict_names: bool,
    /// Maximum plaintext of a TLS record. A client cannot use a record until it has received all of it, so smaller
    /// records deliver the start of a large response sooner on a slow line. They [cost CPU](tls.md#costs) and 22 to 29
    /// bytes each.
    #[serde(deserialize_with = "size")]
    #[schemars(
        schema_with = "value_schemas::bytes",
        transform = value_schemas::within(RECORD_SIZE),
        extend("default" = RECORD_SIZE.end())
    )]
    pub record_size: Option<u64>,
    /// Appends the secrets of all sessions to this file, which allows decrypting the traffic; for debugging, with a
    /// warning. Default: none.
    #[schemars(schema_with = "value_schemas::path")]
    pub key_log: Option<PathBuf>,
}

/// The side whose preference of suites decides.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SuiteOrder {
    /// The gateway's.
    #[default]
    Server,
    /// The client's, which saves CPU on clients without AES instructions, such as small devices. Some scanners report
    /// it as a weakness, although all suites are strong.
    Client,
}

/// The treatment of clients whose CA has an expired revocation list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ExpiredLists {
    /// Rejects them, as nginx, HAProxy and Envoy do, since the old list may lack a revoked certificate.
    #[default]
    Reject,
    /// The old list decides.
    Use,
}

/// The treatment of clients without a certificate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ClientCertificates {
    /// Rejects them.
    #[default]
    Required,
    /// Admits them.
    Optional,
}

/// A certificate with its key.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Certificate {
    /// The certificate's name, for `certificates` of a [listener](#listenername). Default: none.
    #[serde(default)]
    pub name: Option<String>,
    /// The certificate chain (PEM, leaf first).
    #[schemars(schema_with = "value_schemas::path")]
    pub chain: PathBuf,
    /// The private key (PEM).
    #[schemars(schema_with = "value_schemas::path")]
    pub key: PathBuf,
    /// The CA's OCSP response for the leaf (DER, as `openssl ocsp -respout FILE` writes it), to be
    /// [stapled](tls.md#ocsp-stapling). Default: none.
    #[serde(default)]
    #[schemars(schema_with = "value_schemas::path")]
    pub ocsp: Option<PathBuf>,
}

/// Below 512 bytes, the up to 29 bytes of header, nonce and tag are a large share of a record. TLS limits a record's
/// plaintext to 16 KiB.
pub(crate) const RECORD_SIZE: RangeInclusive<u64> = 512..=16_384;

impl ListenerTls {
    pub(crate) const TICKETS: RangeInclusive<u64> = 0..=8;
    pub(crate) const SESSIONS: RangeInclusive<u64> = 1..=10_000_000;
}

impl Listener {
    /// A listener in cleartext with the defaults.
    pub fn new(bind: Vec<Bind>) -> Self {
        Self {
            bind,
            mode: None,
            trusted_proxies: Vec::new(),
            proxy_field: None,
            half_close: HalfClose::default(),
            underscores_in_headers: Underscores::default(),
            http2: true,
            http2_priorities: false,
            proxy_protocol: Vec::new(),
            allow: Vec::new(),
            deny: Vec::new(),
            accept: Vec::new(),
            limits: OwnLimits::default(),
            redirect: None,
            passthrough: Vec::new(),
            tcp: None,
            certificates: None,
            tls: None,
        }
    }
}

/// Parses `"https"`, or a table.
fn secured<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Secured>, D::Error> {
    let message = |error: &toml::de::Error| D::Error::custom(weir_toml::message_of(error));
    match toml::Value::deserialize(deserializer)? {
        value @ toml::Value::String(_) => {
            let to = value.try_into().map_err(|error| message(&error))?;
            Ok(Some(Secured { to, port: None, status: None }))
        }
        value @ toml::Value::Table(_) => value.try_into().map(Some).map_err(|error| message(&error)),
        other => Err(D::Error::custom(format!("expected `https` or a table with `to`, found {other}"))),
    }
}

impl FromStr for Bind {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = |why: &str| {
            format!("invalid address `{text}`: {why}: expected HOST:PORT, such as 0.0.0.0:443 or [::]:443")
        };
        if let Some(path) = text.strip_prefix(UNIX) {
            return unix_path(path).map(Self::Unix).map_err(|why| format!("invalid address `{text}`: {why}"));
        }
        if text.contains("://") {
            return Err(wrong("an address has no scheme; `tls = {}` beside it makes it https"));
        }
        if text.parse::<u16>().is_ok() {
            return Err(wrong("missing host"));
        }
        if text.parse::<Ipv6Addr>().is_ok() {
            return Err(wrong("an IPv6 address stands in brackets"));
        }
        let (host, port) = text.rsplit_once(':').ok_or_else(|| wrong("missing port"))?;
        let port = port.parse().map_err(|_| wrong(&format!("invalid port `{port}`")))?;
        let inner = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
        match (inner, host) {
            (Some(host), _) => Ok(Self::Tcp { host: host.to_owned(), port }),
            (None, "") => Err(wrong("missing host")),
            (None, host) if host.contains('*') => {
                Err(wrong("`*` is no host; 0.0.0.0 stands for all IPv4 addresses, and [::] for all of IPv6"))
            }
            (None, host) if host.contains([':', '/', '[', ']']) => Err(wrong("invalid host")),
            (None, host) => Ok(Self::Tcp { host: host.to_owned(), port }),
        }
    }
}

impl fmt::Display for Bind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp { host, port } if host.contains(':') => write!(f, "[{host}]:{port}"),
            Self::Tcp { host, port } => write!(f, "{host}:{port}"),
            Self::Unix(path) => write!(f, "{UNIX}{}", path.display()),
        }
    }
}

impl FromStr for Mode {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mode = u32::from_str_radix(text, 8).ok().filter(|mode| *mode <= 0o777 && text.len() <= 4);
        mode.map(Self).ok_or_else(|| format!("invalid mode `{text}`: expected octal digits, such as \"660\""))
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:o}", self.0)
    }
}

impl Default for Mode {
    fn default() -> Self {
        Self(0o660)
    }
}
