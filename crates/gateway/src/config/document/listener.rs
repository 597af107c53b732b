//! Listeners, and TLS towards clients.

use super::accept::RequestRule;
use super::limits::OwnLimits;
use super::values::{duration, size, text, texts};
use crate::config::Network;
use serde::{Deserialize, Deserializer, de::Error};
use std::fmt;
use std::net::Ipv6Addr;
use std::num::NonZeroU16;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;
use weir_tls::{Group, Suite, Version};
use weir_transport::{UNIX, unix_path};

/// Where clients connect.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Listener {
    /// The addresses to listen on, at least one.
    #[serde(deserialize_with = "texts")]
    pub bind: Vec<Bind>,
    /// Permissions of Unix sockets, in octal; default: `660`, the owner and the group.
    #[serde(default, deserialize_with = "text")]
    pub mode: Option<Mode>,
    /// Networks of proxies in front, whose `X-Forwarded-*` are believed; default: none.
    #[serde(default, deserialize_with = "texts")]
    pub trusted_proxies: Vec<Network>,
    /// The field in which those proxies say who the client is, `x-forwarded-for` or `forwarded`; default: `x-forwarded-for`.
    #[serde(default)]
    pub proxy_field: Option<ProxyField>,
    /// Networks of load balancers in front, who begin each connection with a PROXY protocol header. Others are turned
    /// away. Default: no header is expected.
    #[serde(default, deserialize_with = "texts")]
    pub proxy_protocol: Vec<Network>,
    /// Networks of clients that are let in; default: all.
    #[serde(default, deserialize_with = "texts")]
    pub allow: Vec<Network>,
    /// Networks of clients that are turned away, of those let in; default: none.
    #[serde(default, deserialize_with = "texts")]
    pub deny: Vec<Network>,
    /// What becomes of requests whose client closes its sending side while it waits for the response; default: they end.
    #[serde(default)]
    pub half_close: HalfClose,
    /// What becomes of fields of requests whose names have an underscore; default: they are dropped.
    #[serde(default)]
    pub underscores_in_headers: Underscores,
    /// Rules of HTTP that requests need not keep; default: none.
    #[serde(default, deserialize_with = "texts")]
    pub accept: Vec<RequestRule>,
    /// Limits of its requests; default: the general ones.
    #[serde(default)]
    pub limits: OwnLimits,
    /// Redirects all requests to `https`, before any route; default: routes decide.
    #[serde(default, deserialize_with = "secured")]
    pub redirect: Option<Secured>,
    /// TLS connections that are passed on without being decrypted, by the name that the client asks for.
    #[serde(default)]
    pub passthrough: Vec<Passthrough>,
    /// Terminates TLS; default: cleartext.
    #[serde(default)]
    pub tls: Option<ListenerTls>,
}

/// The field in which proxies in front say who the client is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ProxyField {
    /// `X-Forwarded-For`, with `-Proto` and `-Host` beside it.
    #[default]
    XForwardedFor,
    /// `Forwarded` (RFC 7239).
    Forwarded,
}

/// A redirect to the same host and target by `https`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Secured {
    /// The scheme.
    pub to: SecureScheme,
    /// The port for clients; default: that of the listener with TLS.
    #[serde(default)]
    pub port: Option<NonZeroU16>,
    /// 301, 302, 303, 307 or 308; default: 308, which keeps method and body.
    #[serde(default)]
    pub status: Option<u16>,
}

/// The scheme of a redirect to TLS.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SecureScheme {
    /// HTTP over TLS.
    Https,
}

/// What becomes of a request whose client closes its sending side while it waits for the response: most that do have given up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum HalfClose {
    /// It ends, and so does the attempt at its server.
    #[default]
    Abort,
    /// It gets its response.
    Serve,
}

/// What becomes of fields of requests whose names have an underscore: many servers read it as a hyphen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Underscores {
    /// They are dropped, and counted.
    #[default]
    Drop,
    /// They are passed on, but for those that a server may take for the gateway's.
    Pass,
    /// The request is refused.
    Reject,
}

/// Where to listen: `HOST:PORT`, or `unix:PATH`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Bind {
    /// A port.
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

/// Connections for some names, which a service gets without their being decrypted.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Passthrough {
    /// Names as in a route: `db.example.org`, `*.example.org`, or `*` for all, and for those that ask for none.
    #[serde(deserialize_with = "texts")]
    pub name: Vec<String>,
    /// The name of the service, whose servers terminate TLS: their URLs are `http`, as the gateway adds none.
    pub service: String,
}

/// TLS towards clients.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ListenerTls {
    /// The versions accepted; default: both.
    #[serde(deserialize_with = "texts")]
    pub versions: Vec<Version>,
    /// The suites accepted, most preferred first; default: all.
    #[serde(deserialize_with = "texts")]
    pub suites: Vec<Suite>,
    /// Whose preference among them decides; default: the gateway's.
    pub suite_order: SuiteOrder,
    /// The groups accepted, most preferred first; default: those of the TLS library.
    #[serde(deserialize_with = "texts")]
    pub groups: Vec<Group>,
    /// Tickets after each TLS 1.3 handshake, 0 to 8; default: 1.
    pub tickets: Option<u32>,
    /// How long a key issues tickets, a minute to 84 hours; default: 12 hours.
    #[serde(deserialize_with = "duration")]
    pub ticket_lifetime: Option<Duration>,
    /// A file with secrets that all machines of a fleet have, from which the keys of tickets are derived; default: a random one
    /// of this process.
    pub ticket_secrets: Option<PathBuf>,
    /// The most sessions that are stored, for TLS 1.2 clients without tickets; default: 32768.
    pub sessions: Option<usize>,
    /// Asks for client certificates of the CAs in this PEM file; default: none is asked for.
    pub client_ca: Option<PathBuf>,
    /// Whether clients need one; default: required.
    pub client_certificates: Option<ClientCertificates>,
    /// PEM files with revocation lists.
    #[serde(deserialize_with = "texts")]
    pub client_crl: Vec<PathBuf>,
    /// What becomes of clients whose CA's list is expired; default: they are rejected.
    pub client_crl_expired: Option<ExpiredLists>,
    /// Rejects clients that ask for no known name, in place of presenting the first certificate.
    pub strict_names: bool,
    /// The most bytes of the application in a record, 512 to 16384; default: 16384.
    #[serde(deserialize_with = "size")]
    pub record_size: Option<u64>,
    /// A file for the sessions' secrets, for debugging: they allow decrypting the traffic.
    pub key_log: Option<PathBuf>,
}

/// Whose preference among the suites decides.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SuiteOrder {
    /// The gateway's.
    #[default]
    Server,
    /// The client's.
    Client,
}

/// What becomes of clients whose CA has an expired revocation list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ExpiredLists {
    /// They are rejected.
    Reject,
    /// The list is used as it is.
    Use,
}

/// Whether clients need a certificate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ClientCertificates {
    /// Those without one are rejected.
    #[default]
    Required,
    /// Those without one are let in.
    Optional,
}

/// A certificate with its key.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Certificate {
    /// The chain in PEM, leaf first.
    pub chain: PathBuf,
    /// Its private key in PEM.
    pub key: PathBuf,
    /// The CA's OCSP response about it in DER, which clients get along with it; default: none.
    #[serde(default)]
    pub ocsp: Option<PathBuf>,
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
            proxy_protocol: Vec::new(),
            allow: Vec::new(),
            deny: Vec::new(),
            accept: Vec::new(),
            limits: OwnLimits::default(),
            redirect: None,
            passthrough: Vec::new(),
            tls: None,
        }
    }
}

/// `"https"`, or a table.
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

impl Default for Mode {
    fn default() -> Self {
        Self(0o660)
    }
}
