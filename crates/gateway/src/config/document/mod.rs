//! The configuration as an operator writes it, in a TOML file or by flags.

mod accept;
mod curves;
mod dns;
mod eject;
mod error_statuses;
mod health;
mod limits;
mod listener;
mod log;
mod min_rate;
mod retry;
mod route;
mod service;
mod split;
mod tcp;
mod timeouts;
mod tracing;
mod value_schemas;
mod values;

pub use accept::{AnswerRule, RequestRule};
pub use curves::Curves;
pub use dns::{Dns, NameServer, Prefer};
pub(crate) use eject::Failure;
pub use eject::{Eject, EjectOn};
pub use error_statuses::ErrorStatuses;
pub use health::Health;
pub use limits::{Limits, OwnLimits};
pub(crate) use listener::RECORD_SIZE;
pub use listener::{
    Bind, Certificate, ClientCertificates, ExpiredLists, HalfClose, Listener, ListenerTls, Mode, Passthrough,
    ProxyField, SecureScheme, Secured, SuiteOrder, Underscores,
};
pub(crate) use log::Rights;
pub use log::{Admin, Log, WhenFull};
pub use min_rate::{MinRate, RouteMinRate};
pub use retry::{Retries, Retry};
pub(crate) use route::RouteDefaults;
pub use route::{AmbiguousPaths, Edits, Mirror, Rate, RateBy, Redirect, Respond, Route};
pub use service::{Balance, HashOn, Pool, ProxyProtocol, Server, Service, ServiceTls};
pub use split::{Share, Target};
pub use tcp::Tcp;
pub use timeouts::{RouteTimeouts, Timeouts};
pub use tracing::Tracing;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::str::FromStr;
pub(crate) use values::{duration_text, size_text};
use values::{size, text, texts};
use weir_reactor::cores::Cores;

/// The configuration file.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Number of worker threads; more threads than cores only add overhead. Default: one per allowed core.
    #[schemars(transform = value_schemas::at_least(1))]
    pub workers: Option<usize>,
    /// Pins the workers to these cores. Default: unpinned.
    #[serde(deserialize_with = "text")]
    #[schemars(schema_with = "value_schemas::cores")]
    pub cores: Option<Cores>,
    /// Listeners, by name: `[listener.NAME]`.
    #[serde(rename = "listener")]
    pub listeners: BTreeMap<String, Listener>,
    /// Certificates of the listeners with TLS. A client gets the one for its name, or else the first one.
    #[serde(rename = "certificate")]
    pub certificates: Vec<Certificate>,
    /// Services, by name: `[service.NAME]`.
    #[serde(rename = "service")]
    pub services: BTreeMap<String, Service>,
    /// Resolution of server names.
    pub dns: Dns,
    /// Routes; a request takes the most specific one that matches it.
    #[serde(rename = "route")]
    pub routes: Vec<Route>,
    /// The fields that describe the client to servers; `[]` for none. The gateway drops the client's own values.
    #[serde(deserialize_with = "texts")]
    #[schemars(schema_with = "value_schemas::one_or_many::<ClientField>")]
    pub client_fields: Vec<ClientField>,
    /// The gateway's entry in `Via`.
    pub via: Via,
    /// Bodies for the gateway's own error responses: files of at most 64 KiB by status or class, such as `{ 404 =
    /// "/etc/weir/404.html", 5xx = "/etc/weir/sorry.html" }`. A status has precedence over its class; `.html`, `.json`
    /// and `.xml` set the content type. The servers' own error responses pass unchanged. Default: a line of text.
    #[schemars(schema_with = "value_schemas::paths_by_name")]
    pub error_pages: BTreeMap<String, PathBuf>,
    /// Request IDs and trace contexts.
    pub tracing: Tracing,
    /// The access log.
    pub log: Log,
    /// The address that serves metrics, health and state, and accepts changes. Without the table, the gateway opens
    /// none.
    pub admin: Option<Admin>,
    /// The address that serves metrics, status and health alone, read-only. Without the table, the gateway opens none.
    pub metrics: Option<Admin>,
    /// Sizes of the workers' buffers.
    pub buffers: Buffers,
    /// Limits of messages, connections and memory.
    pub limits: Limits,
    /// Timeouts.
    pub timeouts: Timeouts,
    /// Minimum speed of clients that send and receive bodies.
    pub min_rate: MinRate,
    /// When the gateway [reloads](reload.md) the configuration and its files.
    pub reload: Reload,
}

/// The trigger of a reload.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Reload {
    /// At SIGHUP.
    #[default]
    Signal,
    /// At SIGHUP, and after a change of one of the files.
    Watch,
}

/// Fields that describe the client to servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ClientField {
    /// `X-Forwarded-For`, `-Proto` and `-Host`.
    XForwarded,
    /// `Forwarded` (RFC 7239).
    Forwarded,
}

/// The gateway's names in the `Via` of forwarded messages (RFC 9110 section 7.6.3).
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Via {
    /// The gateway's name in the `Via` of requests, such as `"weir"`: `Via: 1.1 weir` (RFC 9110 section 7.6.3 requires
    /// it). nginx servers without `gzip_proxied any` do not compress responses to requests with `Via`, and some clients
    /// try to bypass a proxy that announces itself. A route that sets or removes `Via` overrides this key. Default:
    /// none.
    pub requests: Option<String>,
    /// The gateway's name in the `Via` of responses. Default: none.
    pub responses: Option<String>,
}

/// Buffers of the workers.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Buffers {
    /// Size of the read buffer that all connections of a worker share: roughly the most that one read returns. The
    /// default takes a 64 KiB response with its head in one read, and fits a core's L2 cache together with the
    /// plaintext; [other sizes cost CPU](tls.md#costs). Idle connections use none of it.
    #[serde(deserialize_with = "size")]
    #[schemars(schema_with = "value_schemas::bytes", transform = value_schemas::within(Buffers::READ))]
    pub read: u64,
}

/// Keys outside [`Config`]: the loader applies them to the text's tables, and removes them before it converts the
/// tables.
#[derive(JsonSchema)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "describes the keys for the schema")]
pub(crate) struct TextKeys {
    /// [Further files](configuration-file.md#several-files), by path or pattern; before the first table. Default: none.
    #[schemars(schema_with = "value_schemas::paths")]
    include: Option<Vec<String>>,
    /// [Defaults for all routes](configuration-file.md#defaults-for-routes) of all files.
    defaults: Option<RouteDefaults>,
}

impl Buffers {
    pub(crate) const READ: RangeInclusive<u64> = 4096..=1 << 20;
}

impl Config {
    /// The admin and metrics addresses that are configured.
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
