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
    /// Errors by class: [`crate::ErrorClass::name`]. Those of requests that began within the window and failed behind
    /// it count too.
    pub errors: BTreeMap<String, u64>,
    /// The first error of each class in words, the warm-up's included.
    #[serde(default)]
    pub error_examples: BTreeMap<String, String>,
    /// Errors over all requests that ended in the window.
    pub error_ratio: f64,
    /// Planned arrivals of an open loop that could not be sent by the end.
    pub unsent: u64,
    /// Right answers of the whole run, warm-up and drain included.
    #[serde(default)]
    pub answered_in_all: u64,
    /// Response time of the right answers to requests that were planned within the window, whenever they ended. It is
    /// the end minus the planned instant: in an open loop that of the schedule, in a closed loop when the connection
    /// was free (its first byte is written then; with a new connection for each request, its making begins then).
    pub latency: Latency,
    /// Service time: end minus first byte written.
    pub service: Latency,
    /// Connections opened during the whole run, warm-up included.
    pub connections_opened: u64,
    /// Handshakes of the whole run, as negotiated.
    pub handshakes: Handshakes,
    /// Handshakes that were finished within the window.
    #[serde(default)]
    pub handshakes_in_window: u64,
    /// The engine's own cost within the window.
    pub engine: Cost,
    /// The cost of each process named with `--pid` (its children included) within the window, in the order given.
    pub servers: Vec<ServerCost>,
    /// How late the pacer was, `None` in a closed loop.
    pub pacer: Option<Pacer>,
    /// True when the engine itself was the limit: its busiest worker was on a CPU for at least 95 % of the window.
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
    /// Share of the time of `cores`: 1.0 is all of them all the time.
    pub utilisation: f64,
    /// The cores that its working threads can use at once: those that they are allowed, at most one for each thread.
    /// So a process with one worker on a machine of many cores can reach a utilisation of 1.
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
pub(crate) mod tests {
    use super::*;

    /// A result like that of a small run.
    pub(crate) fn sample() -> LoadResult {
        let latency = Latency {
            count: 50_000,
            mean_us: 63.25,
            sd_us: 12.5,
            p50_us: Some(61.5),
            p90_us: Some(80.0),
            p99_us: Some(1234.5),
            p999_us: None,
            max_us: 2_345_678.0,
            hdr_v2: String::new(),
        };
        LoadResult {
            schema: 1,
            url: "https://127.0.0.1:8443/bytes/1000".into(),
            connections: 64,
            rate: None,
            window_s: 2.0,
            requests: 50_000,
            requests_per_second: 25_000.0,
            bytes_received: 57_500_000,
            bytes_sent: 3_000_000,
            errors: BTreeMap::new(),
            error_examples: BTreeMap::new(),
            error_ratio: 0.0,
            unsent: 0,
            answered_in_all: 75_000,
            service: latency.clone(),
            latency,
            connections_opened: 64,
            handshakes: Handshakes {
                full: 64,
                negotiated: [("1.3 aes128-gcm-sha256 x25519 ecdsa-p256-sha256 full".into(), 64)].into(),
                ..Handshakes::default()
            },
            handshakes_in_window: 0,
            engine: Cost { cpu_us: 600_000.0, cpu_us_per_request: Some(12.0), utilisation: 0.3, cores: 1 },
            servers: vec![ServerCost {
                pid: 4711,
                cost: Cost {
                    cpu_us: 1_900_000.0,
                    cpu_us_per_request: Some(38.0),
                    utilisation: 0.95,
                    cores: 1,
                },
                rss_peak_kib: 12_345,
            }],
            pacer: None,
            engine_was_limit: false,
            validity: "valid".into(),
        }
    }

    #[test]
    fn a_result_survives_its_json() {
        let text = serde_json::to_string(&sample()).unwrap();
        assert_eq!(serde_json::from_str::<LoadResult>(&text).unwrap(), sample());
        assert!(text.contains(r#""pid":4711,"cpu_us":1900000.0"#), "{text}");
    }
}
