//! Listeners, and TLS towards clients.

use super::values::texts;
use crate::config::Network;
use serde::Deserialize;
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use weir_tls::{Group, Suite, Version};

/// Where clients connect.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Listener {
    /// The addresses to listen on, at least one.
    #[serde(deserialize_with = "texts")]
    pub bind: Vec<Bind>,
    /// Networks of proxies in front, whose `X-Forwarded-*` are believed; default: none.
    #[serde(default, deserialize_with = "texts")]
    pub trusted_proxies: Vec<Network>,
    /// Terminates TLS; default: cleartext.
    #[serde(default)]
    pub tls: Option<ListenerTls>,
}

/// An address to listen on: `HOST:PORT`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bind {
    /// A name, an IPv4 address, or an IPv6 address without its brackets.
    pub host: String,
    /// The port; 0 picks a free one.
    pub port: u16,
}

/// TLS towards clients.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ListenerTls {
    /// The versions accepted; default: both.
    #[serde(deserialize_with = "texts")]
    pub versions: Vec<Version>,
    /// The suites accepted; the client's preference decides. Default: all.
    #[serde(deserialize_with = "texts")]
    pub suites: Vec<Suite>,
    /// The groups accepted, most preferred first; default: those of the TLS library.
    #[serde(deserialize_with = "texts")]
    pub groups: Vec<Group>,
    /// Tickets after each TLS 1.3 handshake, 0 to 8; default: 1.
    pub tickets: Option<u32>,
    /// Asks for client certificates of the CAs in this PEM file; default: none is asked for.
    pub client_ca: Option<PathBuf>,
    /// Whether clients need one; default: required.
    pub client_certificates: Option<ClientCertificates>,
    /// PEM files with revocation lists.
    #[serde(deserialize_with = "texts")]
    pub client_crl: Vec<PathBuf>,
    /// Rejects clients that ask for no known name, in place of presenting the first certificate.
    pub strict_names: bool,
    /// A file for the sessions' secrets, for debugging: they allow decrypting the traffic.
    pub key_log: Option<PathBuf>,
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
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Certificate {
    /// The chain in PEM, leaf first.
    pub chain: PathBuf,
    /// Its private key in PEM.
    pub key: PathBuf,
}

impl FromStr for Bind {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = |why: &str| {
            format!("invalid address `{text}`: {why}: expected HOST:PORT, such as 0.0.0.0:443 or [::]:443")
        };
        let (host, port) = text.rsplit_once(':').ok_or_else(|| wrong("missing port"))?;
        let port = port.parse().map_err(|_| wrong(&format!("invalid port `{port}`")))?;
        let inner = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
        match (inner, host) {
            (Some(host), _) => Ok(Self { host: host.to_owned(), port }),
            (None, "") => Err(wrong("missing host")),
            (None, host) if host.contains([':', '/', '[', ']']) => Err(wrong("invalid host")),
            (None, host) => Ok(Self { host: host.to_owned(), port }),
        }
    }
}

impl fmt::Display for Bind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.host.contains(':') {
            true => write!(f, "[{}]:{}", self.host, self.port),
            false => write!(f, "{}:{}", self.host, self.port),
        }
    }
}
