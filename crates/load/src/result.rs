//! What one run of the load engine found: the value that `weir load --json` prints and the lab reads.

mod cost;

pub use cost::{BusyThread, Ceiling, Cost, Counters, EngineCost, Limit, Role, ServerCost, WorkerCost};

use serde::{Deserialize, Deserializer, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use weir_tls::Group;

/// One measured window.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LoadResult {
    /// Version of this layout: [`SCHEMA`].
    pub schema: u32,
    /// Version of the program.
    pub weir: String,
    /// The URL that was asked for; the first, where there are several.
    pub url: String,
    /// What the run was told to do.
    pub asked: Asked,
    /// The run was ended early: what was measured until then is here.
    pub partial: bool,
    /// The phases of the run in their order, as long as they were: `opening`, `warm-up`, `settle`, `window`, `drain`.
    pub phases: Vec<PhaseTime>,
    /// Length of the measured window in seconds, as it was.
    pub window_s: f64,
    /// When it began: seconds since this machine was booted (CLOCK_BOOTTIME, which `starttime` in /proc/PID/stat is told
    /// by), so that what other programs wrote can be laid beside it. `None` in older results.
    #[serde(default)]
    pub window_boot_s: Option<f64>,
    /// Requests answered rightly within the window; in a handshake-only run, handshakes finished rightly.
    pub requests: u64,
    /// `requests` over `window_s`.
    pub requests_per_second: f64,
    /// Bytes received and sent within the window, as the application sees them (head and body, without TLS).
    pub bytes_received: u64,
    /// See `bytes_received`.
    pub bytes_sent: u64,
    /// Errors by class: [`crate::ErrorClass::name`]. Those of requests that began within the window and failed behind
    /// it count too.
    pub errors: BTreeMap<String, u64>,
    /// The first error of each class in words, the warm-up's included.
    pub error_examples: BTreeMap<String, String>,
    /// Errors over all requests that ended in the window.
    pub error_ratio: f64,
    /// Planned arrivals of an open loop that could not be sent by the end.
    pub unsent: Unsent,
    /// Right answers of the whole run, warm-up and drain included.
    pub answered_in_all: u64,
    /// Response time of the requests that were planned within the window, whenever they ended. It is the end minus the
    /// planned instant: in an open loop that of the schedule, in a closed loop when the connection was free (its first
    /// byte is written then; with a new connection for each request, its making begins then). Requests that timed out
    /// and arrivals that were never sent are censored: they are in it with the time that they had waited at least.
    pub response: Latency,
    /// Service time: end minus first byte written.
    pub service: Latency,
    /// First byte of the answer minus first byte of the request.
    pub first_byte: Latency,
    /// TCP connect, of connections that were begun within the window.
    pub connect: Latency,
    /// From the connected socket to the end of the handshake, by its kind: `full`, `resume-1.2-id`,
    /// `resume-1.2-ticket`, `resume-1.3-psk`; of connections that were begun within the window.
    pub handshake: BTreeMap<String, Latency>,
    /// One row for each step of a rate that ramps; empty otherwise.
    pub steps: Vec<Step>,
    /// One row for each second of the window.
    pub seconds: Vec<Second>,
    /// Connections opened during the whole run, warm-up included.
    pub connections_opened: u64,
    /// Those of them within the window.
    pub connections_opened_in_window: u64,
    /// Handshakes, as negotiated.
    pub handshakes: Handshakes,
    /// The engine's own cost within the window.
    pub engine: EngineCost,
    /// The cost of each server that was named, within the window, in the order given.
    pub servers: Vec<ServerCost>,
    /// How late the pacer was, `None` in a closed loop.
    pub pacer: Option<Pacer>,
    /// What the engine itself can do on this machine at most in such a run; `None` where it was not calibrated.
    pub ceiling: Option<Ceiling>,
    /// What held the rate down.
    pub limit: Limit,
    /// What is to be known before the figures are believed.
    pub warnings: Vec<String>,
    /// `valid`, or `invalid: reason`.
    pub validity: String,
}

/// The layout's version.
pub const SCHEMA: u32 = 2;

/// What a run was told to do, with the defaults filled in.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Asked {
    /// Connections held open; with new connections, at once at most.
    pub connections: u32,
    /// Threads.
    pub workers: u32,
    /// The cores they were put on, in the order of the workers; empty where the system chose.
    pub cores: Vec<usize>,
    /// Offered rate per second (the first step's, where it ramps); `None` in a closed loop.
    pub rate: Option<f64>,
    /// `constant` or `poisson`; `None` in a closed loop.
    pub arrivals: Option<String>,
    /// Microseconds between an answer and the next request in a closed loop.
    pub think_us: f64,
    /// What random choices were drawn from.
    pub seed: u64,
    /// Share of the requests that may go without an answer in a valid run, in percent; 0 in older results.
    #[serde(default)]
    pub error_budget_percent: f64,
    /// Different requests in the mix.
    pub mix: u32,
    /// `keep-alive`, `handshake-only`, or the requests on a connection, such as `1` or `5-10`.
    pub requests_per_connection: String,
    /// Share of the new TLS connections that resume, in percent.
    pub resume_percent: f64,
    /// How connections are ended: `graceful`, `fin`, `rst`.
    pub close: String,
    /// Local addresses; empty where the system chose.
    pub sources: Vec<String>,
    /// TLS versions offered; all of these lists are empty in cleartext.
    pub tls_versions: Vec<String>,
    /// Suites offered.
    pub suites: Vec<String>,
    /// Groups offered.
    #[serde(deserialize_with = "groups")]
    pub groups: Vec<String>,
    /// Signature schemes offered; empty is all that are known.
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
    /// How long it was.
    pub seconds: f64,
}

/// Arrivals that were planned and never sent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Unsent {
    /// How many.
    pub count: u64,
    /// How long the oldest had waited at the window's end.
    pub oldest_us: f64,
    /// How long they had waited on average.
    pub mean_us: f64,
}

/// One step of a rate that ramps.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Step {
    /// Arrivals per second.
    pub rate: f64,
    /// Where it begins, in seconds from the window's start.
    pub from_s: f64,
    /// Where it ends.
    pub to_s: f64,
    /// Arrivals planned in it.
    pub planned: u64,
    /// Response time of the requests that were planned in it.
    pub response: Latency,
}

/// One second of the window; the last may be shorter.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Second {
    /// Where it begins, in seconds from the window's start.
    pub at_s: f64,
    /// Requests answered rightly in it.
    pub requests: u64,
    /// Errors in it.
    pub errors: u64,
    /// Handshakes finished in it.
    pub handshakes: u64,
    /// Connections that stood at its end.
    pub connections: u64,
    /// Arrivals that waited to be sent at its end.
    pub waiting: u64,
    /// Median response time of the requests that ended in it, to 2 digits; `None` with fewer than 20.
    pub p50_us: Option<f64>,
    /// 99th percentile, to 2 digits; `None` with fewer than 1000.
    pub p99_us: Option<f64>,
    /// 95th percentile, to 2 digits; `None` with fewer than 200, and in older results.
    #[serde(default)]
    pub p95_us: Option<f64>,
}

/// A distribution of times; percentiles that too few samples stand behind are `None`.
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
    /// 95th percentile; `None` in older results too.
    #[serde(default)]
    pub p95_us: Option<f64>,
    /// 99th percentile.
    pub p99_us: Option<f64>,
    /// 99.9th percentile.
    pub p999_us: Option<f64>,
    /// Largest.
    pub max_us: f64,
    /// Samples that are only known to be at least as long as they stand here: time-outs, and arrivals never sent.
    #[serde(default)]
    pub censored: u64,
    /// The shortest of them: percentiles from here on are lower bounds (written "p99 >=2 s").
    #[serde(default)]
    pub censored_from_us: Option<f64>,
    /// HDR histogram, V2 serialisation, base64: unit nanoseconds, 3 digits. The form in which runs are merged.
    pub hdr_v2: String,
}

/// Handshakes counted by what was negotiated.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Handshakes {
    /// Full handshakes of the whole run, those primed among them.
    pub full: u64,
    /// Resumed handshakes of the whole run by kind (`resume-1.2-id`, `resume-1.2-ticket`, `resume-1.3-psk`).
    pub resumed: BTreeMap<String, u64>,
    /// Handshakes that needed a HelloRetryRequest.
    pub hello_retry: u64,
    /// Full handshakes that were made before the warm-up so that there were sessions to resume.
    pub primed: u64,
    /// Handshakes of connections that were to resume and offered a session.
    pub offered: u64,
    /// Those of them that the server made a full handshake of.
    pub declined: u64,
    /// Connections that were to resume and had no session: each was made by a full handshake, and the run is invalid.
    pub had_nothing: u64,
    /// Handshakes that were finished within the window.
    pub in_window: u64,
    /// Resumptions among them.
    pub resumed_in_window: u64,
    /// `in_window` over the window's seconds.
    pub per_second: f64,
    /// Tickets of TLS 1.3 that had come by a connection's first answer, over the whole run, by the kind of its handshake.
    #[serde(default)]
    pub tickets: BTreeMap<String, Tickets>,
    /// Each combination that was negotiated, over the whole run.
    pub negotiated: Vec<Negotiated>,
}

/// How many tickets a connection was given.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tickets {
    /// The fewest.
    pub least: u32,
    /// The most.
    pub most: u32,
}

/// What handshakes agreed on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Negotiated {
    /// `1.2` or `1.3`.
    pub version: String,
    /// The cipher suite.
    pub suite: String,
    /// The key exchange's group; `None` where there was no key exchange.
    #[serde(default, deserialize_with = "group")]
    pub group: Option<String>,
    /// The server's signature scheme; `None` in a resumption.
    pub signature: Option<String>,
    /// `full`, `resume-1.2-id`, `resume-1.2-ticket` or `resume-1.3-psk`.
    pub kind: String,
    /// Whether a HelloRetryRequest came first.
    pub hello_retry: bool,
    /// The application protocol.
    pub alpn: Option<String>,
    /// Certificates that the server sent; `None` in a resumption.
    pub chain_certificates: Option<u32>,
    /// Their bytes in all.
    pub chain_bytes: Option<u32>,
    /// How many handshakes.
    pub count: u64,
}

/// Groups by the names that they have today: older results say `p-256` where newer ones say `p256`.
fn groups<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    let groups = Vec::<String>::deserialize(deserializer)?;
    Ok(groups.iter().map(|name| Group::spelling(name).to_owned()).collect())
}

/// The same of one that may not be there.
fn group<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    let group = Option::<String>::deserialize(deserializer)?;
    Ok(group.map(|name| Group::spelling(&name).to_owned()))
}

impl LoadResult {
    /// Why it must not stand beside valid ones; `None` for a valid one.
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
    /// Those of them that were sent; the others are `unsent`.
    #[serde(default)]
    pub sent: u64,
    /// Requests sent over requests planned within the window.
    pub achieved_ratio: f64,
    /// 99th percentile of the time between the planned instant and the engine's turn to it.
    pub lag_p99_us: f64,
    /// The largest such time.
    pub lag_max_us: f64,
}

impl Pacer {
    /// The smallest share of its planned arrivals that an open loop must have sent.
    pub const LEAST_ACHIEVED: f64 = 0.99;

    /// What the lag's 99th percentile may be: 1 ms, or 5 % of the median response time if that is more.
    pub fn lag_bound_us(median_us: Option<f64>) -> f64 {
        f64::max(1000.0, median_us.unwrap_or(0.0) * 0.05)
    }
}

#[cfg(test)]
pub(crate) mod tests;
