//! What one run of the load engine found: the value that `weir load --json` prints and the lab reads.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// One measured window.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LoadResult {
    /// Version of this layout.
    pub schema: u32,
    /// The URL that was asked for.
    pub url: String,
    /// Connections held open.
    pub connections: u32,
    /// Offered rate per second; `None` in a closed loop.
    pub rate: Option<f64>,
    /// Length of the measured window in seconds, as it was.
    pub window_s: f64,
    /// Requests answered rightly within the window.
    pub requests: u64,
    /// `requests` over `window_s`.
    pub requests_per_second: f64,
    /// Bytes received and sent within the window, as the application sees them (head and body, without TLS).
    pub bytes_received: u64,
    /// See `bytes_received`.
    pub bytes_sent: u64,
    /// Errors by class (`connect_refused`, `reset`, `closed`, `tls`, `timeout`, `status`, `length`, `malformed`).
    pub errors: BTreeMap<String, u64>,
    /// Errors over all requests that ended in the window.
    pub error_ratio: f64,
    /// Planned arrivals of an open loop that could not be sent by the end.
    pub unsent: u64,
    /// Response time: end minus planned instant (open loop) or minus the first byte written (closed loop).
    pub latency: Latency,
    /// Service time: end minus first byte written.
    pub service: Latency,
    /// Connections opened during the whole run, warm-up included.
    pub connections_opened: u64,
    /// Handshakes of the whole run, as negotiated.
    pub handshakes: Handshakes,
    /// The engine's own cost within the window.
    pub engine: Cost,
    /// The cost of each process named with `--pid` (its children included) within the window, in the order given.
    pub servers: Vec<ServerCost>,
    /// How late the pacer was, `None` in a closed loop.
    pub pacer: Option<Pacer>,
    /// True when the engine itself was the limit: its busiest core was at least 95 % used.
    pub engine_was_limit: bool,
    /// `valid`, or `invalid: reason`.
    pub validity: String,
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
    /// 99th percentile.
    pub p99_us: Option<f64>,
    /// 99.9th percentile.
    pub p999_us: Option<f64>,
    /// Largest.
    pub max_us: f64,
    /// HDR histogram, V2 serialisation, base64: unit nanoseconds, 3 digits. The form in which runs are merged.
    pub hdr_v2: String,
}

/// Handshakes counted by what was negotiated.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Handshakes {
    /// Full handshakes.
    pub full: u64,
    /// Resumed handshakes by kind (`resume-1.2-id`, `resume-1.2-ticket`, `resume-1.3-psk`).
    pub resumed: BTreeMap<String, u64>,
    /// Handshakes that needed a HelloRetryRequest.
    pub hello_retry: u64,
    /// Each combination of version, suite, group and signature scheme that was negotiated.
    pub negotiated: BTreeMap<String, u64>,
}

/// CPU that a process used.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Cost {
    /// CPU time in microseconds.
    pub cpu_us: f64,
    /// CPU time per right answer.
    pub cpu_us_per_request: Option<f64>,
    /// Share of the cores that the process may use: 1.0 is all of them all the time.
    pub utilisation: f64,
    /// The number of cores that the process may use.
    pub cores: u32,
}

/// What a server process used.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ServerCost {
    /// The process that was named.
    pub pid: u32,
    /// CPU of it and of its descendants.
    #[serde(flatten)]
    pub cost: Cost,
    /// Peak resident memory, summed over the processes, in KiB.
    pub rss_peak_kib: u64,
}

/// How well an open loop kept its schedule.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Pacer {
    /// Requests sent over requests planned within the window.
    pub achieved_ratio: f64,
    /// 99th percentile of the time between the planned instant and the engine's turn to it.
    pub lag_p99_us: f64,
    /// The largest such time.
    pub lag_max_us: f64,
}
