//! The conditions of a run but for its target: the constants of the experiment with the levels of a cell.

use super::factors::{Group, TlsVersion};
use super::levels::{Place as _, listed, read};
use super::load_table;
use super::ports::MOST_SERVERS;
use super::{Load, Mode, Side, Tls};
use crate::base::error::{ConfigError, message_of};
use crate::experiment::{Experiment, Level, get, insert};
use crate::planning::cell::Cell;
use crate::planning::placement::{CoreSets, list};
use crate::planning::planned_run::Stage;
use serde::{Deserialize, Serialize};
use toml::Value;
use weir_netem::{Network, Unfit};

/// The conditions of a run. Each key may be among the constants or, with a list of levels, among the factors.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Conditions {
    /// Client side, then upstream side. A target runs the ones that it supports.
    pub(crate) mode: Mode,
    /// The arrival of requests.
    pub(crate) load_model: Load,
    /// Users: requests at the same time. With HTTP/1.1 each has a connection of its own, held open or, with new
    /// connections, one at a time; with HTTP/2, [`Self::streams`] of them share one.
    pub(crate) connections: u32,
    /// Streams per connection of the load engine, 1 with HTTP/1.1.
    #[serde(default = "one_stream")]
    pub(crate) streams: u32,
    /// Body bytes of a response, and of the echoed request.
    pub(crate) bytes: u64,
    #[serde(default)]
    pub(crate) request: RequestKind,
    /// The framing of the echoed body.
    #[serde(default)]
    pub(crate) framing: Framing,
    /// The test server.
    #[serde(default)]
    pub(crate) origin: OriginKind,
    /// The servers that the test server is: each is a port of its one process.
    #[serde(default = "one_server")]
    pub(crate) origin_servers: u8,
    /// Whether a target must reuse its connections to the origin.
    #[serde(default)]
    pub(crate) upstream_connections: UpstreamConnections,
    /// Milliseconds by which the origin delays a response.
    #[serde(default)]
    pub(crate) delay_ms: u64,
    /// Requests per second of the open loop, in place of a share of the calibrated maximum.
    pub(crate) rate: Option<f64>,
    /// Milliseconds of saturating load on the processes before the run's warm-up.
    #[serde(default)]
    pub(crate) served_ms: u64,
    /// Milliseconds of load before the measured window.
    pub(crate) warmup_ms: u64,
    /// Milliseconds of the measured window.
    pub(crate) window_ms: u64,
    /// Milliseconds of the window of a calibration run.
    #[serde(default = "default_calibration_ms")]
    pub(crate) calibration_ms: u64,
    /// The share of requests that may fail (a wrong response never may).
    #[serde(default)]
    pub(crate) error_budget: f64,
    #[serde(default)]
    pub(crate) tls: Tls,
    /// The cores of each process.
    #[serde(default)]
    pub(crate) cores: CoreSets,
    #[serde(default)]
    pub(crate) net: Network,
    /// Further flags of `weir load`; their paths are absolute.
    #[serde(default)]
    pub(crate) load: toml::Table,
    /// Settings of targets, by the names in their descriptions.
    #[serde(default)]
    pub(crate) settings: toml::Table,
}

/// The kind of request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum RequestKind {
    /// `GET /bytes/N`.
    #[default]
    Bytes,
    /// `POST /echo` with a JSON body of N bytes, which is echoed.
    Echo,
}

/// The framing of a request's body (RFC 9112, section 6).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Framing {
    /// `Content-Length`.
    #[default]
    Length,
    /// `Transfer-Encoding: chunked`.
    Chunked,
}

/// The test server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum OriginKind {
    /// `weir origin`, which accepts only the experiment's TLS parameters.
    #[default]
    Weir,
    /// One on OpenSSL, by the Node.js of this machine, which accepts any client with the experiment's group, or by RSA key
    /// transport.
    Openssl,
}

/// A target's connections to the origin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum UpstreamConnections {
    /// Hardly more than clients: a run with more is invalid.
    #[default]
    Reused,
    /// Any number, which is a result.
    Any,
}

/// The maximum of streams per connection; targets allow as many ([`super::template`]).
const MOST_STREAMS: u32 = 1000;

/// The last core of a set of the usual size (1024).
const MOST_CORE: usize = 1023;

fn one_server() -> u8 {
    1
}

fn one_stream() -> u32 {
    1
}

fn default_calibration_ms() -> u64 {
    250
}

/// The shortest window of a profile: 500 samples per second of CPU time give a share of one half to 2 %.
const PROFILED_MS: u64 = 5000;

impl Conditions {
    /// Checks every value, and the combinations.
    pub(crate) fn check(&self) -> Result<(), ConfigError> {
        let wrong = |key: &str, message: String| Err(ConfigError::new(key, message));
        let ranges = [
            ("connections", f64::from(self.connections), 1.0..=50_000.0),
            ("streams", f64::from(self.streams), 1.0..=f64::from(MOST_STREAMS)),
            ("bytes", self.bytes as f64, 0.0..=1e9),
            ("origin_servers", f64::from(self.origin_servers), 1.0..=MOST_SERVERS as f64),
            ("delay_ms", self.delay_ms as f64, 0.0..=600_000.0),
            ("served_ms", self.served_ms as f64, 0.0..=86_400_000.0),
            ("warmup_ms", self.warmup_ms as f64, 0.0..=3_600_000.0),
            ("window_ms", self.window_ms as f64, 20.0..=3_600_000.0),
            ("calibration_ms", self.calibration_ms as f64, 20.0..=3_600_000.0),
            ("tls.tickets", f64::from(self.tls.tickets), 0.0..=8.0),
            ("rate", self.rate.unwrap_or(1.0), 1.0..=1e7),
            ("error_budget", self.error_budget, 0.0..=0.5),
        ];
        if let Some((key, value, range)) = ranges.iter().find(|(_, value, range)| !range.contains(value)) {
            return wrong(key, format!("{value}: expected {} to {}", range.start(), range.end()));
        }
        if self.mode.client().is_http2() && !self.connections.is_multiple_of(self.streams) {
            let (users, streams) = (self.connections, self.streams);
            let message = format!(
                "{streams}: expected a divisor of the {users} users: connections are users / streams"
            );
            return wrong("streams", message);
        }
        let (suite, version) = (self.tls.suite, self.tls.version);
        if suite.version() != version {
            let has = suite.version();
            let message = format!("`{suite}` is a TLS {has} suite; expected one of TLS {version}");
            return wrong("tls.suite", message);
        }
        if self.tls.group == Group::X25519Mlkem768 && version != TlsVersion::V1_3 {
            return wrong("tls.group", format!("`{}` needs TLS 1.3, not {version}", self.tls.group));
        }
        let certificate = self.tls.certificate;
        if let Some(needed) = suite.certificate().filter(|needed| *needed != certificate) {
            let message = format!("`{suite}` needs the certificate `{needed}`, not `{certificate}`");
            return wrong("tls.suite", message);
        }
        if self.origin == OriginKind::Openssl && self.mode.upstream() != Some(Side::H1) {
            let message = format!(
                "`openssl`: expected a mode with HTTP/1.1 over TLS to the upstream, not `{}`",
                self.mode
            );
            return wrong("origin", message);
        }
        if self.origin == OriginKind::Openssl && self.origin_servers > 1 {
            return wrong("origin_servers", format!("{}: `openssl` is one", self.origin_servers));
        }
        if self.origin == OriginKind::Openssl && self.cores.origin.len() > 1 {
            let cores = list(&self.cores.origin);
            return wrong(
                "cores.origin",
                format!("`{cores}`: the origin `openssl` has one thread: expected one core"),
            );
        }
        let CoreSets { gateway, origin, load } = &self.cores;
        for (key, cores) in [("cores.gateway", gateway), ("cores.origin", origin), ("cores.load", load)] {
            if cores.is_empty() {
                return wrong(key, "empty: expected at least one core".into());
            }
            if cores.iter().enumerate().any(|(index, core)| cores[..index].contains(core)) {
                return wrong(key, "duplicate core".into());
            }
            if let Some(core) = cores.iter().find(|core| **core > MOST_CORE) {
                return wrong(key, format!("{core}: expected 0 to {MOST_CORE}"));
            }
        }
        self.net.check().or_else(|Unfit { key, message }| wrong(&format!("net.{key}"), message))?;
        if self.delay_ms > 0 && self.load.contains_key("requests") {
            let message = "conflicts with `load.requests`, which sets the paths";
            return wrong("delay_ms", message.into());
        }
        let is_echo = self.request == RequestKind::Echo;
        if self.framing == Framing::Chunked && self.mode.client().is_http2() {
            let message =
                format!("`chunked`: expected `length` in mode `{}`: HTTP/2 has no chunks", self.mode);
            return wrong("framing", message);
        }
        if !is_echo && self.framing == Framing::Chunked {
            return wrong("framing", "`chunked`: expected `length` for requests without a body".into());
        }
        if is_echo && self.bytes < echo::LEAST {
            let (bytes, least) = (self.bytes, echo::LEAST);
            return wrong("bytes", format!("{bytes}: expected {least} or more for an echoed JSON body"));
        }
        let mut of_echo = ["data", "requests", "method"].into_iter();
        if let Some(flag) = of_echo.find(|flag| is_echo && self.load.contains_key(*flag)) {
            return Err(load_table::wrong(flag, "reserved: it is set by `request = \"echo\"`"));
        }
        self.load_options().map(drop)
    }

    /// The load engine's arguments, except for those of a run: address, duration, rate.
    pub(crate) fn load_options(&self) -> Result<weir_load::Options, ConfigError> {
        let mut own = vec![self.load_url("127.0.0.1:1")];
        own.extend(self.http_words());
        if self.load_model == Load::EqualRate {
            own.push("--rate=1000".into());
        }
        load_table::options(&self.load, &own, self.load_model)
    }

    /// The connections of the load engine.
    pub(crate) fn client_connections(&self) -> u32 {
        self.connections / self.streams.max(1)
    }

    /// The load engine's version of HTTP and streams per connection, if not the default.
    pub(crate) fn http_words(&self) -> Vec<String> {
        match self.mode.client().is_http2() {
            true => vec!["--http=2".into(), format!("--streams={}", self.streams)],
            false => Vec::new(),
        }
    }

    /// The load engine's URL at this authority. A file of requests sets its own paths.
    pub(crate) fn load_url(&self, authority: &str) -> String {
        let scheme = self.mode.client().scheme();
        let path = match self.request {
            _ if self.load.contains_key("requests") => return format!("{scheme}://{authority}"),
            RequestKind::Bytes => format!("/bytes/{}", self.bytes),
            RequestKind::Echo => "/echo".into(),
        };
        let delay = if self.delay_ms > 0 { format!("?delay_ms={}", self.delay_ms) } else { String::new() };
        format!("{scheme}://{authority}{path}{delay}")
    }

    pub(crate) fn window_ms(&self, stage: Stage) -> u64 {
        match stage {
            Stage::Calibration => self.calibration_ms,
            Stage::Block(_) => self.window_ms,
            Stage::Profile => self.window_ms.max(PROFILED_MS),
        }
    }

    /// The error budget in percent, as the load engine takes it. The point is moved in the text: 100 times 0.007 is not
    /// quite 0.7.
    pub(crate) fn error_budget_percent(&self) -> f64 {
        format!("{}e2", self.error_budget).parse().unwrap_or(100.0 * self.error_budget)
    }
}

impl Experiment {
    /// The modes, in the file's order.
    pub(crate) fn modes(&self) -> Vec<Mode> {
        self.typed("mode")
    }

    /// The loads, in the file's order.
    pub(crate) fn loads(&self) -> Vec<Load> {
        self.typed("load_model")
    }

    /// The conditions of a cell's runs.
    /// Errors: the cell is not part of this experiment, whose levels were all checked when it was loaded.
    pub(crate) fn conditions(&self, cell: &Cell) -> Result<Conditions, ConfigError> {
        let own = [
            ("mode", Value::from(cell.levels.word("mode"))),
            ("load_model", Value::from(cell.levels.word("load_model"))),
            ("connections", Value::from(i64::from(cell.connections()))),
            ("bytes", Value::from(cell.bytes() as i64)),
        ];
        let mut further = Vec::new();
        for (key, level) in cell.further() {
            let found = self.factors.iter().find(|factor| factor.key == key);
            let mut levels = found.into_iter().flat_map(|factor| &factor.levels);
            let value = levels
                .find(|value| Level::of(value) == *level)
                .or_else(|| get(&self.constants, key).filter(|value| Level::of(value) == *level));
            let Some(value) = value else {
                let allowed = listed(self.levels(key));
                let message =
                    format!("`{key}={level}` is not part of the experiment: expected one of {allowed}");
                return Err(ConfigError::new(cell, message));
            };
            further.push((key, value));
        }
        let own = own.iter().map(|(key, value)| (*key, value));
        self.with(own.chain(further)).map_err(|error| ConfigError::new(cell, message_of(&error)))
    }

    /// The conditions with the first level of each factor, for values that all levels share.
    pub(crate) fn any_conditions(&self) -> Result<Conditions, ConfigError> {
        self.under(self.combinations().first().map_or(&[], Vec::as_slice))
    }

    /// The network between the processes, in words.
    pub(crate) fn network(&self) -> String {
        let kinds = self.levels("net.kind");
        let veth = "veth pairs between network namespaces";
        match (kinds.contains(&Level::new("veth")), kinds.contains(&Level::new("loopback"))) {
            (true, true) => format!("loopback, and over {veth}"),
            (true, false) => veth.into(),
            (false, _) => "loopback".into(),
        }
    }

    /// The conditions at this combination of levels.
    pub(crate) fn under(&self, combination: &[(&str, &Value)]) -> Result<Conditions, ConfigError> {
        self.with(combination.iter().copied())
            .map_err(|error| ConfigError::new(&self.name, message_of(&error)))
    }

    /// The constants with these levels.
    pub(super) fn with<'a>(
        &self,
        levels: impl IntoIterator<Item = (&'a str, &'a Value)>,
    ) -> Result<Conditions, toml::de::Error> {
        let mut table = self.constants.clone();
        table.remove("target");
        for (key, value) in levels {
            insert(&mut table, key, value.clone());
        }
        table.try_into()
    }

    fn typed<T: serde::de::DeserializeOwned>(&self, key: &str) -> Vec<T> {
        // Each was checked when the file was loaded.
        self.levels(key).iter().filter_map(|level| read(level.as_str())).collect()
    }
}

/// The echoed JSON body.
pub(crate) mod echo {
    /// The shortest one: the payload's wrapping.
    pub(crate) const LEAST: u64 = (HEAD.len() + TAIL.len()) as u64;

    const HEAD: &str = "{\"payload\":\"";
    const TAIL: &str = "\"}";
    const LETTERS: &str = "abcdefghijklmnopqrstuvwxyz0123456789";

    /// A JSON object of exactly this many bytes, which are [`LEAST`] or more.
    pub(crate) fn body(bytes: u64) -> String {
        let payload = bytes.saturating_sub(LEAST) as usize;
        let letters: String = LETTERS.chars().cycle().take(payload).collect();
        format!("{HEAD}{letters}{TAIL}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_echoed_body_is_json_of_the_length_asked_for() {
        for bytes in [echo::LEAST, 100, 500, 10_000] {
            let body = echo::body(bytes);
            assert_eq!(body.len() as u64, bytes);
            serde_json::from_str::<serde_json::Value>(&body).expect("is JSON");
        }
    }
}
