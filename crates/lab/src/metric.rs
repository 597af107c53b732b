//! The quantities of which each run has one value.

use crate::stats::Better;
use serde::de::IntoDeserializer as _;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

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
    /// Of a process: from its start to its end.
    WallMs,
    /// Its CPU, with that of its children.
    ProcessCpuMs,
    /// The server's instructions for a handshake, as valgrind counts them, which hides AVX-512.
    #[serde(rename = "server_instructions_avx2")]
    ServerInstructions,
    /// The client's.
    #[serde(rename = "client_instructions_avx2")]
    ClientInstructions,
}

impl Metric {
    /// Whether it is CPU of the gateway.
    pub fn is_cpu(self) -> bool {
        matches!(self, Self::CpuUsPerRequest | Self::CpuUsPerHandshake)
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
            | Self::SdUs
            | Self::OriginCpuUsPerRequest
            | Self::OriginCpuUsPerHandshake
            | Self::LoadCpuUsPerRequest
            | Self::LoadCpuUsPerHandshake
            | Self::RssKib
            | Self::RssEndKib
            | Self::SwitchesPerRequest
            | Self::ErrorRatio
            | Self::AfterFullGcKib
            | Self::ServerUsPerHandshake
            | Self::ClientUsPerHandshake
            | Self::KibPerSession
            | Self::OperationUs
            | Self::LockNsPerHandshake
            | Self::WaitsPerHandshake
            | Self::WallMs
            | Self::ProcessCpuMs
            | Self::ServerInstructions
            | Self::ClientInstructions => Better::Less,
            Self::LittleRatio | Self::Utilisation => Better::Neither,
        }
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
            Self::SdUs => "standard deviation of the response time",
            Self::OriginCpuUsPerRequest => "origin's CPU per request",
            Self::OriginCpuUsPerHandshake => "origin's CPU per handshake",
            Self::LoadCpuUsPerRequest => "load engine's CPU per request",
            Self::LoadCpuUsPerHandshake => "load engine's CPU per handshake",
            Self::RssKib => "peak memory",
            Self::RssEndKib => "memory at the end",
            Self::SwitchesPerRequest => "context switches per request",
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
            Self::WallMs => "time",
            Self::ProcessCpuMs => "CPU time",
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
            | Self::SdUs
            | Self::OriginCpuUsPerRequest
            | Self::OriginCpuUsPerHandshake
            | Self::LoadCpuUsPerRequest
            | Self::LoadCpuUsPerHandshake
            | Self::ServerUsPerHandshake
            | Self::ClientUsPerHandshake
            | Self::OperationUs => "us",
            Self::RequestsPerSecond | Self::HandshakesPerSecond => "/s",
            Self::SendMbPerSecond | Self::ReceiveMbPerSecond => "MB/s",
            Self::RssKib | Self::RssEndKib | Self::AfterFullGcKib | Self::KibPerSession => "KiB",
            Self::GcThroughputPercent => "%",
            Self::LockNsPerHandshake => "ns",
            Self::WallMs | Self::ProcessCpuMs => "ms",
            Self::ServerInstructions | Self::ClientInstructions => "instructions",
            Self::LittleRatio
            | Self::Utilisation
            | Self::ErrorRatio
            | Self::SwitchesPerRequest
            | Self::WaitsPerHandshake => "",
        }
    }

    /// The name that it has in files, such as `p99_us`.
    pub fn key(self) -> String {
        serde_json::to_value(self).ok().and_then(|name| Some(name.as_str()?.to_owned())).unwrap_or_default()
    }

    /// Whether it is another one at another offered rate.
    pub(crate) fn depends_on_rate(self) -> bool {
        self.is_cpu()
            || matches!(self, Self::P99Us | Self::MeanUs | Self::P50Us | Self::P95Us | Self::Utilisation)
    }
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
