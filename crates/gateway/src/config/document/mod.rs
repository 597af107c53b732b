//! The configuration as an operator writes it, in a TOML file or by flags.

mod accept;
mod dns;
mod failures;
mod limits;
mod listener;
mod log;
mod min_rate;
mod route;
mod service;
mod timeouts;
mod tracing;
mod values;

pub use accept::{AnswerRule, RequestRule};
pub use dns::{Dns, NameServer, Prefer};
pub(crate) use failures::Failure;
pub use failures::{EjectOn, ErrorStatuses, Retries};
pub use limits::{Limits, OwnLimits};
pub use listener::{
    Bind, Certificate, ClientCertificates, ExpiredLists, HalfClose, Listener, ListenerTls, Mode, Passthrough,
    ProxyField, SecureScheme, Secured, SuiteOrder, Underscores,
};
pub(crate) use log::Rights;
pub use log::{Admin, Log, WhenFull};
pub use min_rate::{MinRate, RouteMinRate};
pub(crate) use route::RouteDefaults;
pub use route::{AmbiguousPaths, Edits, Mirror, Rate, RateBy, Redirect, Respond, Retry, Route};
pub use service::{Balance, Eject, HashOn, Health, Pool, ProxyProtocol, Server, Service, ServiceTls};
pub use timeouts::{RouteTimeouts, Timeouts};
pub use tracing::Tracing;

use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::str::FromStr;
use values::{size, text, texts};
use weir_reactor::cores::Cores;

/// All of it.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Worker threads; default: one per allowed core.
    pub workers: Option<usize>,
    /// The cores to pin workers to, such as `0,2-3`; default: unpinned.
    #[serde(deserialize_with = "text")]
    pub cores: Option<Cores>,
    /// Listeners by name.
    #[serde(rename = "listener")]
    pub listeners: BTreeMap<String, Listener>,
    /// Certificates of all listeners with TLS: a client gets the one for its name, else the first one.
    #[serde(rename = "certificate")]
    pub certificates: Vec<Certificate>,
    /// Services by name.
    #[serde(rename = "service")]
    pub services: BTreeMap<String, Service>,
    /// How the names of servers are resolved.
    pub dns: Dns,
    /// Routes; the most specific one that fits is taken.
    #[serde(rename = "route")]
    pub routes: Vec<Route>,
    /// The fields that tell servers about the client: `x-forwarded` (`-For`, `-Proto`, `-Host`), `forwarded` (RFC 7239), or both;
    /// an empty list for none. Default: `x-forwarded`.
    #[serde(deserialize_with = "texts")]
    pub client_fields: Vec<ClientField>,
    /// The gateway's names in `Via`; default: it adds none.
    pub via: Via,
    /// Files with the bodies of the gateway's own error answers, by status (`502`) or class (`5xx`).
    pub error_pages: BTreeMap<String, PathBuf>,
    /// Fields by which a request is found again elsewhere.
    pub tracing: Tracing,
    /// Logs.
    pub log: Log,
    /// The admin address; default: none.
    pub admin: Option<Admin>,
    /// As the admin address, without the right to change anything; default: none.
    pub metrics: Option<Admin>,
    /// Buffers of the workers.
    pub buffers: Buffers,
    /// Limits.
    pub limits: Limits,
    /// Timeouts.
    pub timeouts: Timeouts,
    /// How fast clients must send and take bodies.
    pub min_rate: MinRate,
    /// When this file, and those that it names, are read again; default: at a signal.
    pub reload: Reload,
}

/// When files are read again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reload {
    /// At SIGHUP.
    #[default]
    Signal,
    /// When one of them has changed, too.
    Watch,
}

/// A way to tell servers about the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientField {
    /// `X-Forwarded-For`, `-Proto` and `-Host`.
    XForwarded,
    /// `Forwarded` (RFC 7239).
    Forwarded,
}

/// The gateway's names in the `Via` of what it forwards (RFC 9110 section 7.6.3).
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Via {
    /// Of requests; default: no field is added.
    pub requests: Option<String>,
    /// Of responses, in the same form.
    pub responses: Option<String>,
}

/// Buffers of the workers.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Buffers {
    /// Bytes of the buffer for reads, which all connections of a worker share: about the most that is read at once.
    #[serde(deserialize_with = "size")]
    pub read: u64,
}

impl Config {
    /// The addresses where state is served.
    pub(crate) fn watched(&self) -> impl Iterator<Item = (Rights, &Admin)> {
        let both = [(Rights::All, &self.admin), (Rights::Read, &self.metrics)];
        both.into_iter().filter_map(|(rights, admin)| Some((rights, admin.as_ref()?)))
    }
}

impl Default for Config {
    fn default() -> Self {
        Self {
            workers: None,
            cores: None,
            listeners: BTreeMap::new(),
            certificates: Vec::new(),
            services: BTreeMap::new(),
            dns: Dns::default(),
            routes: Vec::new(),
            client_fields: vec![ClientField::XForwarded],
            via: Via::default(),
            error_pages: BTreeMap::new(),
            tracing: Tracing::default(),
            log: Log::default(),
            admin: None,
            metrics: None,
            buffers: Buffers::default(),
            limits: Limits::default(),
            timeouts: Timeouts::default(),
            min_rate: MinRate::default(),
            reload: Reload::default(),
        }
    }
}

impl FromStr for ClientField {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "x-forwarded" => Ok(Self::XForwarded),
            "forwarded" => Ok(Self::Forwarded),
            _ => Err(format!("invalid value `{text}`: expected `x-forwarded` or `forwarded`")),
        }
    }
}

impl Default for Buffers {
    fn default() -> Self {
        Self { read: weir_transport::READ_SIZE as u64 }
    }
}
