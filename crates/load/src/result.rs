//! The result of one run of the load engine, as printed by `weir load --json` and read by the lab.

mod cost;
mod grpc;
mod http2;
mod versions;

pub use cost::{BusyThread, Ceiling, Cost, Counters, EngineCost, Limit, Role, ServerCost, WorkerCost};
pub use grpc::GrpcFigures;
pub use http2::{Http2Figures, PeerSettings};
pub(crate) use versions::NO_ALPN;
pub use versions::{ByVersion, VersionFigures, VersionSecond};

use serde::{Deserialize, Deserializer, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use weir_tls::Group;

/// The result of one run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LoadResult {
    /// Schema version: [`SCHEMA`].
    pub schema: u32,
    /// Version of the program.
    pub weir: String,
    /// The URL requested; the first of several.
    pub url: String,
    /// The options of the run.
    pub asked: Asked,
    /// Whether the run was ended early; the figures cover what was measured until then.
    pub partial: bool,
    /// The phases of the run in order, with their actual lengths: `opening`, `warm-up`, `settle`, `window`, `drain`.
    pub phases: Vec<PhaseTime>,
    /// Actual length of the measured window in seconds.
    pub window_s: f64,
    /// Start of the window in seconds since boot (CLOCK_BOOTTIME, also used by `starttime` in /proc/PID/stat),
    /// to align it with the output of other programs. `None` in older results.
    #[serde(default)]
    pub window_boot_s: Option<f64>,
    /// Correct responses within the window; in a handshake-only run, successful handshakes.
    pub requests: u64,
    /// `requests` over `window_s`.
    pub requests_per_second: f64,
    /// Bytes received and sent within the window, at the application layer (head and body, without TLS).
    pub bytes_received: u64,
    /// See `bytes_received`.
    pub bytes_sent: u64,
    /// Errors by class: [`crate::ErrorClass::name`]. Includes requests that started within the window and failed
    /// after it.
    pub errors: BTreeMap<String, u64>,
    /// The message of the first error of each class, warm-up included.
    pub error_examples: BTreeMap<String, String>,
    /// Errors over all requests completed in the window.
    pub error_ratio: f64,
    /// Planned arrivals of an open loop that could not be sent by the end.
    pub unsent: Unsent,
    /// Correct responses of the whole run, warm-up and drain included.
    pub answered_in_all: u64,
    /// Response time of requests planned within the window, whenever they completed: the end minus the
    /// planned instant. In an open loop that is the schedule's, in a closed loop when the connection was free (when the
    /// first byte is written; with a new connection per request, when connecting starts). Timed-out requests
    /// and unsent arrivals are censored: they count with the time they had waited.
    pub response: Latency,
    /// Service time: end minus first byte written.
    pub service: Latency,
    /// First byte of the response minus first byte of the request.
    pub first_byte: Latency,
    /// TCP connect time, for connections opened within the window.
    pub connect: Latency,
    /// From the connected socket to the end of the handshake, by kind: `full`, `resume-1.2-id`,
    /// `resume-1.2-ticket`, `resume-1.3-psk`; for connections opened within the window.
    pub handshake: BTreeMap<String, Latency>,
    /// One row per step of a ramp; empty otherwise.
    pub steps: Vec<Step>,
    /// One row per second of the window.
    pub seconds: Vec<Second>,
    /// Connections opened during the whole run, warm-up included.
    pub connections_opened: u64,
    /// Those of them within the window.
    pub connections_opened_in_window: u64,
    /// Handshakes.
    pub handshakes: Handshakes,
    /// The engine's own cost within the window.
    pub engine: EngineCost,
    /// The cost of each accounted server within the window, in the order given.
    pub servers: Vec<ServerCost>,
    /// The figures of each version in a run with both; `None` with one.
    #[serde(default)]
    pub by_version: Option<ByVersion<VersionFigures>>,
    /// The figures of HTTP/2; `None` with HTTP/1.1.
    #[serde(default)]
    pub http2: Option<Http2Figures>,
    /// The figures of gRPC calls; `None` for other requests.
    #[serde(default)]
    pub grpc: Option<GrpcFigures>,
    /// How well the pacer kept the schedule; `None` in a closed loop.
    pub pacer: Option<Pacer>,
    /// The engine's ceiling for such a run on this machine; `None` if not calibrated.
    pub ceiling: Option<Ceiling>,
    /// What limited the rate.
    pub limit: Limit,
    /// Warnings about the figures.
    pub warnings: Vec<String>,
    /// `valid`, or `invalid: reason`.
    pub validity: String,
}

/// Schema version.
pub const SCHEMA: u32 = 2;

/// The options of a run, with defaults filled in.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Asked {
    /// Concurrent connections.
    pub connections: u32,
    /// The version of HTTP, `1.1` or `2`, or the weights of both, such as `1.1=3,2=1`.
    #[serde(default = "http1")]
    pub http: String,
    /// Streams per connection with HTTP/2; 1 with HTTP/1.1.
    #[serde(default = "one")]
    pub streams: u32,
    /// The receive window of a stream in bytes; `None` with HTTP/1.1.
    #[serde(default)]
    pub stream_window: Option<u32>,
    /// Messages sent in each gRPC call; `None` for other requests.
    #[serde(default)]
    pub messages: Option<u32>,
    /// Expected messages in each gRPC response; `None` for other requests.
    #[serde(default)]
    pub expect_messages: Option<u64>,
    /// Worker threads.
    pub workers: u32,
    /// The cores they were pinned to, in the order of the workers; empty if unpinned.
    pub cores: Vec<usize>,
    /// Offered rate per second (of the first step in a ramp); `None` in a closed loop.
    pub rate: Option<f64>,
    /// `constant` or `poisson`; `None` in a closed loop.
    pub arrivals: Option<String>,
    /// Think time in a closed loop, in microseconds.
    pub think_us: f64,
    /// Random seed.
    pub seed: u64,
    /// Percentage of requests that may fail without a response in a valid run; 0 in older results.
    #[serde(default)]
    pub error_budget_percent: f64,
    /// Distinct requests in the mix.
    pub mix: u32,
    /// `keep-alive`, `handshake-only`, or the requests per connection, such as `1` or `5-10`.
    pub requests_per_connection: String,
    /// Percentage of new TLS connections that resume.
    pub resume_percent: f64,
    /// How connections are closed: `graceful`, `fin`, `rst`.
    pub close: String,
    /// Local addresses; empty if the system chose.
    pub sources: Vec<String>,
    /// TLS versions offered; these lists are all empty in cleartext.
    pub tls_versions: Vec<String>,
    /// Suites offered.
    pub suites: Vec<String>,
    /// Groups offered.
    #[serde(deserialize_with = "groups")]
    pub groups: Vec<String>,
    /// Signature schemes offered; empty means all supported.
    pub signatures: Vec<String>,
    /// Application protocols offered.
    pub alpn: Vec<String>,
    /// Whether the server's certificate was verified.
    pub verified: bool,
}

/// A phase of the run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PhaseTime {
    /// `opening`, `warm-up`, `settle`, `window` or `drain`.
    pub name: String,
    /// Its length.
    pub seconds: f64,
}

/// Arrivals planned but never sent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Unsent {
    /// Number of arrivals.
    pub count: u64,
    /// Age of the oldest at the window's end.
    pub oldest_us: f64,
    /// Mean age.
    pub mean_us: f64,
}

/// One step of a ramp.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Step {
    /// Arrivals per second.
    pub rate: f64,
    /// Its start, in seconds from the window's start.
    pub from_s: f64,
    /// Its end.
    pub to_s: f64,
    /// Arrivals planned in it.
    pub planned: u64,
    /// Response time of requests planned in it.
    pub response: Latency,
}

/// One second of the window; the last may be shorter.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Second {
    /// Its start, in seconds from the window's start.
    pub at_s: f64,
    /// Correct responses in it.
    pub requests: u64,
    /// Errors in it.
    pub errors: u64,
    /// Handshakes finished in it.
    pub handshakes: u64,
    /// Open connections at its end.
    pub connections: u64,
    /// Arrivals waiting to be sent at its end.
    pub waiting: u64,
    /// Median response time of requests completed in it, to 2 digits; `None` with fewer than 20.
    pub p50_us: Option<f64>,
    /// 99th percentile, to 2 digits; `None` with fewer than 1000.
    pub p99_us: Option<f64>,
    /// 95th percentile, to 2 digits; `None` with fewer than 200, and in older results.
    #[serde(default)]
    pub p95_us: Option<f64>,
    /// HTTP/2: GOAWAY frames received in it; 0 in older results, as the next two.
    #[serde(default)]
    pub goaways: u64,
    /// HTTP/2: RST_STREAM frames received in it.
    #[serde(default)]
    pub resets: u64,
    /// HTTP/2: requests in it that the server refused unprocessed.
    #[serde(default)]
    pub refused: u64,
    /// gRPC: messages given to connections in it; 0 for other requests and in older results, as the next one.
    #[serde(default)]
    pub messages_sent: u64,
    /// gRPC: complete messages received in it.
    #[serde(default)]
    pub messages_received: u64,
    /// The figures of each version in a run with both; `None` with one.
    #[serde(default)]
    pub by_version: Option<ByVersion<VersionSecond>>,
}

/// A distribution of times; percentiles with too few samples are `None`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Latency {
    /// Samples.
    pub count: u64,
    /// Arithmetic mean.
    pub mean_us: f64,
    /// Standard deviation.
    pub sd_us: f64,
    /// Median.
    pub p50_us: Option<f64>,
    /// 90th percentile.
    pub p90_us: Option<f64>,
    /// 95th percentile; also `None` in older results.
    #[serde(default)]
    pub p95_us: Option<f64>,
    /// 99th percentile.
    pub p99_us: Option<f64>,
    /// 99.9th percentile.
    pub p999_us: Option<f64>,
    /// Largest.
    pub max_us: f64,
    /// Censored samples (lower bounds): timeouts and unsent arrivals.
    #[serde(default)]
    pub censored: u64,
    /// The shortest censored sample: percentiles above it are lower bounds (written "p99 >=2 s").
    #[serde(default)]
    pub censored_from_us: Option<f64>,
    /// HDR histogram, V2 serialisation, base64: unit nanoseconds, 3 digits. Used to merge runs.
    pub hdr_v2: String,
}

/// Handshakes by negotiated parameters.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Handshakes {
    /// Full handshakes of the whole run, priming included.
    pub full: u64,
    /// Resumed handshakes of the whole run by kind (`resume-1.2-id`, `resume-1.2-ticket`, `resume-1.3-psk`).
    pub resumed: BTreeMap<String, u64>,
    /// Handshakes that needed a HelloRetryRequest.
    pub hello_retry: u64,
    /// Full handshakes before the warm-up, to prime sessions.
    pub primed: u64,
    /// Handshakes that offered a session to resume.
    pub offered: u64,
    /// Those for which the server did a full handshake.
    pub declined: u64,
    /// Connections meant to resume, without a session: each did a full handshake, and the run is invalid.
    pub had_nothing: u64,
    /// Handshakes finished within the window.
    pub in_window: u64,
    /// Resumptions among them.
    pub resumed_in_window: u64,
    /// `in_window` over the window's seconds.
    pub per_second: f64,
    /// TLS 1.3 tickets received by a connection's first response, over the whole run, by kind of handshake.
    #[serde(default)]
    pub tickets: BTreeMap<String, Tickets>,
    /// Each negotiated combination, over the whole run.
    pub negotiated: Vec<Negotiated>,
}

/// Tickets per connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tickets {
    /// Minimum.
    pub least: u32,
    /// Maximum.
    pub most: u32,
}

/// Negotiated parameters.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Negotiated {
    /// `1.2` or `1.3`.
    pub version: String,
    /// The cipher suite.
    pub suite: String,
    /// The key exchange group; `None` without a key exchange.
    #[serde(default, deserialize_with = "group")]
    pub group: Option<String>,
    /// The server's signature scheme; `None` in a resumption.
    pub signature: Option<String>,
    /// `full`, `resume-1.2-id`, `resume-1.2-ticket` or `resume-1.3-psk`.
    pub kind: String,
    /// Whether there was a HelloRetryRequest.
    pub hello_retry: bool,
    /// The application protocol.
    pub alpn: Option<String>,
    /// Certificates sent by the server; `None` in a resumption.
    pub chain_certificates: Option<u32>,
    /// Their total size in bytes.
    pub chain_bytes: Option<u32>,
    /// Number of handshakes.
    pub count: u64,
}

/// The only version in older results.
fn http1() -> String {
    "1.1".to_string()
}

/// Streams per connection in older results.
fn one() -> u32 {
    1
}

/// Normalises group names: older results say `p-256` for `p256`.
fn groups<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    let groups = Vec::<String>::deserialize(deserializer)?;
    Ok(groups.iter().map(|name| Group::spelling(name).to_owned()).collect())
}

/// The same for an optional name.
fn group<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    let group = Option::<String>::deserialize(deserializer)?;
    Ok(group.map(|name| Group::spelling(&name).to_owned()))
}

impl LoadResult {
    /// Why it is invalid; `None` for a valid one.
    pub fn invalid(&self) -> Option<&str> {
        let said = self.validity.as_str();
        (said != "valid").then(|| said.strip_prefix("invalid: ").unwrap_or(said))
    }
}

impl fmt::Display for Negotiated {
    /// The order of [`weir_tls::Facts`].
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} {}", self.version, self.suite)?;
        for word in [&self.group, &self.signature].into_iter().flatten() {
            write!(formatter, " {word}")?;
        }
        write!(formatter, " {}", self.kind)?;
        if self.hello_retry {
            formatter.write_str(" hello-retry")?;
        }
        if let Some(alpn) = &self.alpn {
            write!(formatter, " alpn={alpn}")?;
        }
        if let (Some(certificates), Some(bytes)) = (self.chain_certificates, self.chain_bytes) {
            write!(formatter, " chain={certificates}/{bytes}")?;
        }
        Ok(())
    }
}

/// How well an open loop kept its schedule.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Pacer {
    /// Arrivals planned within the window.
    #[serde(default)]
    pub planned: u64,
    /// Those that were sent; the others are `unsent`.
    #[serde(default)]
    pub sent: u64,
    /// Requests sent over requests planned within the window.
    pub achieved_ratio: f64,
    /// 99th percentile of the lag between the planned instant and when the engine handled it.
    pub lag_p99_us: f64,
    /// Maximum lag.
    pub lag_max_us: f64,
}

impl Pacer {
    /// Minimum share of planned arrivals that a valid open loop must have sent.
    pub const LEAST_ACHIEVED: f64 = 0.99;

    /// Maximum p99 lag: 1 ms, or 5 % of the median response time if that is more.
    pub fn lag_bound_us(median_us: Option<f64>) -> f64 {
        f64::max(1000.0, median_us.unwrap_or(0.0) * 0.05)
    }
}

#[cfg(test)]
pub(crate) mod tests;
