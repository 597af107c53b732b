//! The quantities that are compared and that claims are about, each with what a run says of it.

use crate::comparison::is_lower_bound;
use crate::experiment::{Case, Load};
use crate::histogram::Latencies;
use crate::limit::Limit;
use crate::run::{Parts, RunRecord};
use crate::summary::FOREIGN_MUCH;
use crate::validity::HANDSHAKE_ONLY;
use serde::de::IntoDeserializer as _;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;
use weir_load::result::{Latency, LoadResult};

pub use weir_stats::Better;

/// A quantity of which each run has one value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Metric {
    /// CPU of the gateway per request.
    CpuUsPerRequest,
    /// CPU of the gateway per handshake.
    CpuUsPerHandshake,
    /// 99th percentile of the response time.
    P99Us,
    /// Rate.
    RequestsPerSecond,
    /// Rate of handshakes.
    HandshakesPerSecond,
    /// Mean response time.
    MeanUs,
    /// Median response time.
    P50Us,
    /// 95th percentile of the response time.
    P95Us,
    /// Mean response time, times rate, over connections: 1 in a closed loop without think time (Little's law).
    LittleRatio,
    /// Peak resident memory of the gateway.
    RssKib,
    /// The share of its cores that the gateway used.
    Utilisation,
    /// Errors over all requests.
    ErrorRatio,
    /// The share of the window in which a JVM's collector did not stop it, in percent.
    GcThroughputPercent,
    /// What a JVM keeps in memory after a full collection.
    AfterFullGcKib,
    /// Of a TLS stack in memory: the server's own time for a handshake.
    ServerUsPerHandshake,
    /// The client's.
    ClientUsPerHandshake,
    /// Megabytes per second of the sender's own time.
    SendMbPerSecond,
    /// The same of the receiver.
    ReceiveMbPerSecond,
    /// Resident memory for each end of a session.
    KibPerSession,
    /// The time of a cryptographic operation.
    OperationUs,
    /// The time inside the server's shared state for a handshake.
    LockNsPerHandshake,
    /// How often a thread waited for another in a handshake.
    WaitsPerHandshake,
    /// The server's instructions for a handshake, as valgrind counts them, which hides AVX-512.
    #[serde(rename = "server_instructions_avx2")]
    ServerInstructions,
    /// The client's.
    #[serde(rename = "client_instructions_avx2")]
    ClientInstructions,
}

impl Metric {
    /// The two of which one is what an experiment is about.
    pub const CPU: [Self; 2] = [Self::CpuUsPerRequest, Self::CpuUsPerHandshake];

    /// What is compared under a load: at one equal rate a rate says nothing, at saturation latency is the queue's.
    pub fn of_load(load: Load, case: Case) -> [Self; 2] {
        let (cpu, rate) = match case.is_handshake() {
            false => (Self::CpuUsPerRequest, Self::RequestsPerSecond),
            true => (Self::CpuUsPerHandshake, Self::HandshakesPerSecond),
        };
        match load {
            Load::EqualRate => [cpu, Self::P99Us],
            Load::Saturated => [cpu, rate],
        }
    }

    /// What is measured of TLS stacks in memory.
    pub const OF_STACKS: [Self; 9] = [
        Self::ServerUsPerHandshake,
        Self::ClientUsPerHandshake,
        Self::HandshakesPerSecond,
        Self::SendMbPerSecond,
        Self::ReceiveMbPerSecond,
        Self::KibPerSession,
        Self::OperationUs,
        Self::LockNsPerHandshake,
        Self::WaitsPerHandshake,
    ];

    /// What is counted of TLS stacks once, and has neither blocks nor intervals.
    pub const COUNTED: [Self; 2] = [Self::ServerInstructions, Self::ClientInstructions];

    /// Whether it is measured of gateways.
    pub fn is_of_gateways(self) -> bool {
        let is_of_stacks = Self::OF_STACKS.contains(&self) || Self::COUNTED.contains(&self);
        self == Self::HandshakesPerSecond || !is_of_stacks
    }

    /// Whether it is CPU of the gateway.
    pub fn is_cpu(self) -> bool {
        Self::CPU.contains(&self)
    }

    /// Whether more is better.
    pub fn is_rate(self) -> bool {
        matches!(self, Self::RequestsPerSecond | Self::HandshakesPerSecond)
    }

    /// Which way is better.
    pub fn better(self) -> Better {
        match self {
            Self::RequestsPerSecond
            | Self::HandshakesPerSecond
            | Self::GcThroughputPercent
            | Self::SendMbPerSecond
            | Self::ReceiveMbPerSecond => Better::More,
            Self::CpuUsPerRequest
            | Self::CpuUsPerHandshake
            | Self::P99Us
            | Self::MeanUs
            | Self::P50Us
            | Self::P95Us
            | Self::RssKib
            | Self::ErrorRatio
            | Self::AfterFullGcKib
            | Self::ServerUsPerHandshake
            | Self::ClientUsPerHandshake
            | Self::KibPerSession
            | Self::OperationUs
            | Self::LockNsPerHandshake
            | Self::WaitsPerHandshake
            | Self::ServerInstructions
            | Self::ClientInstructions => Better::Less,
            Self::LittleRatio | Self::Utilisation => Better::Neither,
        }
    }

    /// Whether such a ratio of its values is a change for the worse.
    pub fn is_worse(self, ratio: f64) -> bool {
        self.better().is_worse(ratio)
    }

    /// In words.
    pub fn title(self) -> &'static str {
        match self {
            Self::CpuUsPerRequest => "CPU per request",
            Self::CpuUsPerHandshake => "CPU per handshake",
            Self::P99Us => "p99 response time",
            Self::RequestsPerSecond => "requests per second",
            Self::HandshakesPerSecond => "handshakes per second",
            Self::MeanUs => "mean response time",
            Self::P50Us => "median response time",
            Self::P95Us => "p95 response time",
            Self::LittleRatio => "mean response time x rate / connections",
            Self::RssKib => "peak memory",
            Self::Utilisation => "utilisation",
            Self::ErrorRatio => "errors / requests",
            Self::GcThroughputPercent => "GC throughput",
            Self::AfterFullGcKib => "memory after a full GC",
            Self::ServerUsPerHandshake => "server's time per handshake",
            Self::ClientUsPerHandshake => "client's time per handshake",
            Self::SendMbPerSecond => "sending",
            Self::ReceiveMbPerSecond => "receiving",
            Self::KibPerSession => "memory per session",
            Self::OperationUs => "time per operation",
            Self::LockNsPerHandshake => "time in locks per handshake",
            Self::WaitsPerHandshake => "waits per handshake",
            Self::ServerInstructions => "server's instructions per handshake (AVX2 path)",
            Self::ClientInstructions => "client's instructions per handshake (AVX2 path)",
        }
    }

    /// The unit of its value; empty for a ratio.
    pub fn unit(self) -> &'static str {
        match self {
            Self::CpuUsPerRequest
            | Self::CpuUsPerHandshake
            | Self::P99Us
            | Self::MeanUs
            | Self::P50Us
            | Self::P95Us
            | Self::ServerUsPerHandshake
            | Self::ClientUsPerHandshake
            | Self::OperationUs => "us",
            Self::RequestsPerSecond | Self::HandshakesPerSecond => "/s",
            Self::SendMbPerSecond | Self::ReceiveMbPerSecond => "MB/s",
            Self::RssKib | Self::AfterFullGcKib | Self::KibPerSession => "KiB",
            Self::GcThroughputPercent => "%",
            Self::LockNsPerHandshake => "ns",
            Self::ServerInstructions | Self::ClientInstructions => "instructions",
            Self::LittleRatio | Self::Utilisation | Self::ErrorRatio | Self::WaitsPerHandshake => "",
        }
    }

    /// A run's value.
    pub(crate) fn of_run(self, parts: &Parts<'_>) -> Option<f64> {
        let load = parts.load;
        match self {
            Self::CpuUsPerRequest => parts.gateway?.cost.cpu_us_per_request.filter(|_| has_requests(load)),
            Self::CpuUsPerHandshake => parts.gateway?.cost.cpu_us_per_handshake,
            Self::P99Us => load.response.p99_us,
            Self::RequestsPerSecond => has_requests(load).then_some(load.requests_per_second),
            Self::HandshakesPerSecond => Some(load.handshakes.per_second),
            Self::MeanUs => Some(load.response.mean_us),
            Self::P50Us => load.response.p50_us,
            Self::P95Us => p95_us(&load.response),
            Self::LittleRatio => {
                let connections = f64::from(load.asked.connections.max(1));
                Some(load.response.mean_us * load.requests_per_second / (connections * 1e6))
            }
            Self::RssKib => parts.gateway?.rss_peak_kib.map(|kib| kib as f64),
            Self::Utilisation => parts.gateway.map(|gateway| gateway.cost.utilisation),
            Self::GcThroughputPercent => parts.gc?.throughput_percent,
            Self::AfterFullGcKib => parts.gc?.after_full_gc_kib.map(|kib| kib as f64),
            Self::ErrorRatio => {
                let errors: u64 = load.errors.values().sum();
                let all = errors + load.requests;
                (all > 0).then(|| errors as f64 / all as f64)
            }
            // No gateway has it.
            Self::ServerUsPerHandshake
            | Self::ClientUsPerHandshake
            | Self::SendMbPerSecond
            | Self::ReceiveMbPerSecond
            | Self::KibPerSession
            | Self::OperationUs
            | Self::LockNsPerHandshake
            | Self::WaitsPerHandshake
            | Self::ServerInstructions
            | Self::ClientInstructions => None,
        }
    }

    /// The name that it has in files, such as `p99_us`.
    pub fn key(self) -> String {
        serde_json::to_value(self).ok().and_then(|name| Some(name.as_str()?.to_owned())).unwrap_or_default()
    }

    /// Why these valid runs of a target have no value that could be compared. To leave out just the runs without one
    /// would be to leave out the worst.
    pub(crate) fn has_no_value(self, target: &str, runs: &[&RunRecord]) -> Option<String> {
        let results: Vec<&LoadResult> = runs.iter().filter_map(|run| run.observation.load.as_ref()).collect();
        let count = |is_such: &dyn Fn(&Latency) -> bool| {
            Some(results.iter().filter(|load| is_such(&load.response)).count()).filter(|count| *count > 0)
        };
        let all = runs.len();
        let bound =
            |what, bounds| format!("the {what} of {target} is only a lower bound in {bounds} of {all} runs");
        let percentile = |name, of: &dyn Fn(&Latency) -> Option<f64>| {
            let few = |few| format!("{few} of {all} runs of {target} have too few samples for a {name}");
            let bounds = count(&|response| is_lower_bound(response, of(response)));
            bounds
                .map(|bounds| bound(name, bounds))
                .or_else(|| count(&|response| of(response).is_none()).map(few))
        };
        match self {
            Self::P99Us => percentile("p99", &|response| response.p99_us),
            Self::P50Us => percentile("p50", &|response| response.p50_us),
            Self::P95Us => percentile("p95", &p95_us),
            Self::MeanUs | Self::LittleRatio => count(&has_censored).map(|bounds| bound("mean", bounds)),
            Self::RequestsPerSecond | Self::CpuUsPerRequest => {
                let is_without = results.iter().any(|load| !has_requests(load));
                is_without.then(|| format!("the connections to {target} carry no request"))
            }
            _ => None,
        }
    }

    /// Whether it is another one at another offered rate.
    pub(crate) fn depends_on_rate(self) -> bool {
        self.is_cpu()
            || matches!(self, Self::P99Us | Self::MeanUs | Self::P50Us | Self::P95Us | Self::Utilisation)
    }

    /// Whether processes outside the run may have held it down, where it is as fast as it can be: a rate or a time of
    /// such a run is theirs.
    pub(crate) fn is_starved(self, load: Load, run: &RunRecord) -> bool {
        let is_of_speed =
            self.is_rate() || matches!(self, Self::P99Us | Self::MeanUs | Self::P50Us | Self::P95Us);
        let foreign = run.observation.foreign_cpu.is_some_and(|share| share > FOREIGN_MUCH);
        is_of_speed && load == Load::Saturated && foreign && run.limit == Some(Limit::Neither)
    }

    /// Whether runs with such a limit tell something about the target.
    pub(crate) fn is_supported(self, load: Load, limit: Option<Limit>) -> bool {
        match (self, load, limit) {
            // What a run was held down by changes neither an identity nor what it counted or kept in memory.
            (
                Self::LittleRatio
                | Self::RssKib
                | Self::ErrorRatio
                | Self::Utilisation
                | Self::GcThroughputPercent
                | Self::AfterFullGcKib,
                _,
                limit,
            ) => limit.is_some(),
            (Self::CpuUsPerRequest | Self::CpuUsPerHandshake, Load::EqualRate, _) => true,
            (_, _, Some(Limit::Gateway | Limit::Neither)) => true,
            (_, _, Some(Limit::Origin | Limit::Load | Limit::SharedCores) | None) => false,
        }
    }
}

/// Older results have it in their histogram alone.
pub(crate) fn p95_us(latency: &Latency) -> Option<f64> {
    latency.p95_us.or_else(|| Latencies::merge([latency.hdr_v2.as_str()])?.quantile_us(0.95))
}

/// Whether connections carry requests; else what stands as the rate and cost of these are those of handshakes.
pub(crate) fn has_requests(load: &LoadResult) -> bool {
    load.asked.requests_per_connection != HANDSHAKE_ONLY
}

/// Whether some samples are known only to be at least as long as they stand there: their mean is a lower bound.
pub(crate) fn has_censored(latency: &Latency) -> bool {
    latency.censored_from_us.is_some()
}

impl FromStr for Metric {
    type Err = String;

    /// Reads the name that it has in JSON, such as `p99_us`.
    fn from_str(text: &str) -> Result<Self, String> {
        let read: Result<Self, serde::de::value::Error> = Self::deserialize(text.into_deserializer());
        read.map_err(|error| error.to_string())
    }
}

impl fmt::Display for Metric {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(self.title())
    }
}
