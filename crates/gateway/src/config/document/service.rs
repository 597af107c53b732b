//! Services, and TLS towards their servers.

use super::values::texts;
use serde::Deserialize;
use std::path::PathBuf;
use weir_tls::{Group, Suite, Version};
use weir_transport::Endpoint;

/// A named group of servers that answer alike.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Service {
    /// Its servers, at least one, all with the same scheme.
    #[serde(deserialize_with = "texts")]
    pub servers: Vec<Endpoint>,
    /// TLS towards them; only with `https`.
    #[serde(default)]
    pub tls: ServiceTls,
}

/// TLS towards servers. It is verified, and sessions are resumed, unless the settings say otherwise.
#[derive(Clone, Debug, Default, Deserialize)]
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
}

impl ServiceTls {
    /// Whether anything is set.
    pub(crate) fn is_set(&self) -> bool {
        let Self { ca, insecure, name, certificate, key, versions, suites, groups } = self;
        let files = [ca, certificate, key].into_iter().any(Option::is_some);
        let offers = !versions.is_empty() || !suites.is_empty() || !groups.is_empty();
        *insecure || files || offers || name.is_some()
    }
}
