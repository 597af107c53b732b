//! The metrics: each run has one value of each.

use crate::base::leaves::name;
use crate::stats::Better;
use serde::de::IntoDeserializer as _;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// A metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Metric {
    /// CPU of the gateway per request.
    CpuUsPerRequest,
    /// CPU of the gateway per handshake.
    CpuUsPerHandshake,
    /// 99th percentile of the response time.
    P99Us,
    /// Requests per second.
    RequestsPerSecond,
    /// Handshakes per second.
    HandshakesPerSecond,
    /// Mean response time.
    MeanUs,
    /// Median response time.
    P50Us,
    /// 95th percentile of the response time.
    P95Us,
    /// Mean response time, times rate, over connections: 1 in a closed loop without think time (Little's law).
    LittleRatio,
    /// Standard deviation of the response times.
    SdUs,
    /// CPU of the test server per request.
    OriginCpuUsPerRequest,
    /// CPU of the test server per handshake of the clients.
    OriginCpuUsPerHandshake,
    /// CPU of the load engine per request.
    LoadCpuUsPerRequest,
    /// CPU of the load engine per handshake.
    LoadCpuUsPerHandshake,
    /// Peak resident memory of the gateway.
    RssKib,
    /// Resident memory of the gateway at the window's end.
    RssEndKib,
    /// Context switches of the gateway per request, or per connection without one.
    SwitchesPerRequest,
    /// The share of its cores that the gateway used.
    Utilisation,
    /// Errors over all requests.
    ErrorRatio,
    /// Connections that the gateway opened to the origin, per request of the clients.
    UpstreamConnectionsPerRequest,
    /// TLS handshakes between them, full or resumed, per request of the clients.
    UpstreamHandshakesPerRequest,
    /// The share of these handshakes that resumed a session, in percent.
    UpstreamResumedPercent,
    /// The share of the window in which a JVM's collector did not pause it, in percent.
    GcThroughputPercent,
    /// A JVM's memory after a full collection.
    AfterFullGcKib,
    /// For TLS stacks in memory: the server's own time per handshake.
    ServerUsPerHandshake,
    /// The client's own time per handshake.
    ClientUsPerHandshake,
    /// Megabytes per second of the sender's own time.
    SendMbPerSecond,
    /// Megabytes per second of the receiver's own time.
    ReceiveMbPerSecond,
    /// Resident memory per side of a session.
    KibPerSession,
    /// Time per cryptographic operation.
    OperationUs,
    /// CPU of both sides per megabyte transferred, by the threads' clocks.
    CpuUsPerMb,
    /// CPU per cryptographic operation, by the threads' clocks.
    CpuUsPerOperation,
    /// Time inside the server's shared state per handshake.
    LockNsPerHandshake,
    /// How often a thread waited for another per handshake.
    WaitsPerHandshake,
    /// The server's instructions per handshake, counted by valgrind, which hides AVX-512.
    #[serde(rename = "server_instructions_avx2")]
    ServerInstructions,
    /// The client's instructions per handshake.
    #[serde(rename = "client_instructions_avx2")]
    ClientInstructions,
}

impl Metric {
    /// Whether it is the gateway's CPU.
    pub fn is_cpu(self) -> bool {
        matches!(self, Self::CpuUsPerRequest | Self::CpuUsPerHandshake)
    }

    /// Whether a run beside another measures it as well as one alone: process CPU clocks do, memory and counts.
    pub(crate) fn is_of_duets(self) -> bool {
        matches!(
            self,
            Self::CpuUsPerRequest
                | Self::CpuUsPerHandshake
                | Self::OriginCpuUsPerRequest
                | Self::OriginCpuUsPerHandshake
                | Self::LoadCpuUsPerRequest
                | Self::LoadCpuUsPerHandshake
                | Self::CpuUsPerMb
                | Self::CpuUsPerOperation
                | Self::RssKib
                | Self::RssEndKib
                | Self::AfterFullGcKib
                | Self::KibPerSession
                | Self::ErrorRatio
                | Self::UpstreamConnectionsPerRequest
                | Self::UpstreamHandshakesPerRequest
                | Self::UpstreamResumedPercent
        )
    }

    /// Whether duets decide a claim on it: they measure it, or the CPU time that stands for it.
    pub(crate) fn is_decided_in_duets(self) -> bool {
        self.is_of_duets() || self.by_cpu().is_some()
    }

    /// The metric by CPU clocks that stands for this one in duets, and whether it is its inverse: the rate of a full
    /// core is 1 s over the CPU time of a request.
    pub(crate) fn by_cpu(self) -> Option<(Self, bool)> {
        match self {
            Self::RequestsPerSecond => Some((Self::CpuUsPerRequest, true)),
            Self::HandshakesPerSecond => Some((Self::CpuUsPerHandshake, true)),
            Self::OperationUs => Some((Self::CpuUsPerOperation, false)),
            _ => None,
        }
    }

    /// Whether more is better.
    pub fn is_rate(self) -> bool {
        matches!(self, Self::RequestsPerSecond | Self::HandshakesPerSecond)
    }

    /// The better direction.
    pub fn better(self) -> Better {
        self.about().2
    }

    /// Its title.
    pub fn title(self) -> &'static str {
        self.about().0
    }

    /// The unit of its value; empty for a ratio.
    pub fn unit(self) -> &'static str {
        self.about().1
    }

    /// Its title, its unit, and the better direction.
    fn about(self) -> (&'static str, &'static str, Better) {
        use Better::{Less, More, Neither};
        match self {
            Self::CpuUsPerRequest => ("CPU per request", "us", Less),
            Self::CpuUsPerHandshake => ("CPU per handshake", "us", Less),
            Self::P99Us => ("p99 response time", "us", Less),
            Self::RequestsPerSecond => ("requests per second", "/s", More),
            Self::HandshakesPerSecond => ("handshakes per second", "/s", More),
            Self::MeanUs => ("mean response time", "us", Less),
            Self::P50Us => ("median response time", "us", Less),
            Self::P95Us => ("p95 response time", "us", Less),
            Self::LittleRatio => ("mean response time x rate / connections", "", Neither),
            Self::SdUs => ("standard deviation of the response time", "us", Less),
            Self::OriginCpuUsPerRequest => ("origin's CPU per request", "us", Less),
            Self::OriginCpuUsPerHandshake => ("origin's CPU per handshake", "us", Less),
            Self::LoadCpuUsPerRequest => ("load engine's CPU per request", "us", Less),
            Self::LoadCpuUsPerHandshake => ("load engine's CPU per handshake", "us", Less),
            Self::RssKib => ("peak memory", "KiB", Less),
            Self::RssEndKib => ("memory at the end", "KiB", Less),
            Self::SwitchesPerRequest => ("context switches per request", "", Less),
            Self::Utilisation => ("utilisation", "", Neither),
            Self::ErrorRatio => ("errors / requests", "", Less),
            Self::UpstreamConnectionsPerRequest => ("upstream connections per request", "", Neither),
            Self::UpstreamHandshakesPerRequest => ("upstream handshakes per request", "", Neither),
            Self::UpstreamResumedPercent => ("upstream handshakes resumed", "%", Neither),
            Self::GcThroughputPercent => ("GC throughput", "%", More),
            Self::AfterFullGcKib => ("memory after a full GC", "KiB", Less),
            Self::ServerUsPerHandshake => ("server's time per handshake", "us", Less),
            Self::ClientUsPerHandshake => ("client's time per handshake", "us", Less),
            Self::SendMbPerSecond => ("sending", "MB/s", More),
            Self::ReceiveMbPerSecond => ("receiving", "MB/s", More),
            Self::KibPerSession => ("memory per session", "KiB", Less),
            Self::OperationUs => ("time per operation", "us", Less),
            Self::CpuUsPerMb => ("CPU per megabyte", "us", Less),
            Self::CpuUsPerOperation => ("CPU per operation", "us", Less),
            Self::LockNsPerHandshake => ("time in locks per handshake", "ns", Less),
            Self::WaitsPerHandshake => ("waits per handshake", "", Less),
            Self::ServerInstructions => {
                ("server's instructions per handshake (AVX2 path)", "instructions", Less)
            }
            Self::ClientInstructions => {
                ("client's instructions per handshake (AVX2 path)", "instructions", Less)
            }
        }
    }

    /// Its name in files, such as `p99_us`.
    pub fn key(self) -> String {
        name(self)
    }

    /// Whether its value depends on the offered rate.
    pub(crate) fn depends_on_rate(self) -> bool {
        self.is_cpu()
            || matches!(self, Self::P99Us | Self::MeanUs | Self::P50Us | Self::P95Us | Self::Utilisation)
    }
}

impl FromStr for Metric {
    type Err = String;

    /// Parses its name in JSON, such as `p99_us`.
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
