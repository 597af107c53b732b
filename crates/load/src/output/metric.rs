//! What can be asked of a result by name.

use crate::output::figures::is_lower_bound;
use crate::result::{Latency, LoadResult, ServerCost};
use std::fmt;

/// What a condition can be about. Where `summary.json` of an experiment has the metric, its name is the same there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Metric {
    /// Requests answered rightly within the window.
    Requests,
    /// The same per second.
    RequestsPerSecond,
    /// Handshakes finished within the window, per second.
    HandshakesPerSecond,
    /// Mean response time.
    Mean,
    /// Its standard deviation.
    Sd,
    /// Median response time.
    P50,
    /// 90th percentile of the response time.
    P90,
    /// 95th percentile of the response time.
    P95,
    /// 99th percentile of the response time.
    P99,
    /// 99.9th percentile of the response time.
    P999,
    /// Largest response time.
    Max,
    /// Median service time.
    ServiceP50,
    /// 99th percentile of the service time.
    ServiceP99,
    /// 99th percentile of the time to the first byte.
    FirstByteP99,
    /// Errors of all classes.
    Errors,
    /// Errors over all requests that ended, 0 to 1.
    ErrorRatio,
    /// Arrivals of an open loop that were never sent.
    Unsent,
    /// Arrivals of an open loop that were sent over those planned, 0 to 1.
    AchievedRatio,
    /// Resumptions over all handshakes within the window, 0 to 1.
    ResumedShare,
    /// CPU time of the first server that was named, per request.
    CpuPerRequest,
    /// The same per handshake.
    CpuPerHandshake,
    /// Its peak resident memory in KiB.
    Rss,
    /// Its share of its cores, 0 to 1.
    Utilisation,
    /// CPU time of the engine per request.
    LoadCpuPerRequest,
    /// CPU time of the engine per handshake.
    LoadCpuPerHandshake,
    /// 1 for a valid run, 0 for an invalid one.
    Valid,
}

/// What a result says of a metric; its words follow the metric's name.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Reading {
    /// The value.
    Exactly(f64),
    /// No more than a lower bound, and the samples that it is for.
    AtLeast { value: f64, censored: u64 },
    /// No value, and why.
    Nothing(String),
}

impl Metric {
    /// All metrics.
    pub const ALL: [Self; 26] = [
        Self::Requests,
        Self::RequestsPerSecond,
        Self::HandshakesPerSecond,
        Self::Mean,
        Self::Sd,
        Self::P50,
        Self::P90,
        Self::P95,
        Self::P99,
        Self::P999,
        Self::Max,
        Self::ServiceP50,
        Self::ServiceP99,
        Self::FirstByteP99,
        Self::Errors,
        Self::ErrorRatio,
        Self::Unsent,
        Self::AchievedRatio,
        Self::ResumedShare,
        Self::CpuPerRequest,
        Self::CpuPerHandshake,
        Self::Rss,
        Self::Utilisation,
        Self::LoadCpuPerRequest,
        Self::LoadCpuPerHandshake,
        Self::Valid,
    ];

    /// The name in conditions.
    pub fn name(self) -> &'static str {
        match self {
            Self::Requests => "requests",
            Self::RequestsPerSecond => "requests_per_second",
            Self::HandshakesPerSecond => "handshakes_per_second",
            Self::Mean => "mean_us",
            Self::Sd => "sd_us",
            Self::P50 => "p50_us",
            Self::P90 => "p90_us",
            Self::P95 => "p95_us",
            Self::P99 => "p99_us",
            Self::P999 => "p999_us",
            Self::Max => "max_us",
            Self::ServiceP50 => "service_p50_us",
            Self::ServiceP99 => "service_p99_us",
            Self::FirstByteP99 => "first_byte_p99_us",
            Self::Errors => "errors",
            Self::ErrorRatio => "error_ratio",
            Self::Unsent => "unsent",
            Self::AchievedRatio => "achieved_ratio",
            Self::ResumedShare => "resumed_share",
            Self::CpuPerRequest => "cpu_us_per_request",
            Self::CpuPerHandshake => "cpu_us_per_handshake",
            Self::Rss => "rss_kib",
            Self::Utilisation => "utilisation",
            Self::LoadCpuPerRequest => "load_cpu_us_per_request",
            Self::LoadCpuPerHandshake => "load_cpu_us_per_handshake",
            Self::Valid => "valid",
        }
    }

    /// Whether its unit is the microsecond: all such names have `_us` in them.
    pub(crate) fn is_time(self) -> bool {
        self.name().split('_').any(|word| word == "us")
    }

    /// What the result says.
    pub(crate) fn read(self, result: &LoadResult) -> Reading {
        let response = &result.response;
        match self {
            Self::Requests => Reading::Exactly(result.requests as f64),
            Self::RequestsPerSecond => Reading::Exactly(result.requests_per_second),
            Self::HandshakesPerSecond => Reading::Exactly(result.handshakes.per_second),
            Self::Mean => mean(response),
            Self::Sd => sd(response),
            Self::P50 => percentile(response, response.p50_us),
            Self::P90 => percentile(response, response.p90_us),
            Self::P95 => percentile(response, response.p95_us),
            Self::P99 => percentile(response, response.p99_us),
            Self::P999 => percentile(response, response.p999_us),
            Self::Max => percentile(response, (response.count > 0).then_some(response.max_us)),
            Self::ServiceP50 => percentile(&result.service, result.service.p50_us),
            Self::ServiceP99 => percentile(&result.service, result.service.p99_us),
            Self::FirstByteP99 => percentile(&result.first_byte, result.first_byte.p99_us),
            Self::Errors => Reading::Exactly(result.errors.values().sum::<u64>() as f64),
            Self::ErrorRatio => Reading::Exactly(result.error_ratio),
            Self::Unsent => Reading::Exactly(result.unsent.count as f64),
            Self::AchievedRatio => {
                let achieved = result.pacer.as_ref().map(|pacer| pacer.achieved_ratio);
                or_nothing(achieved, "in a closed loop nothing is planned")
            }
            Self::ResumedShare => {
                let (all, resumed) = (result.handshakes.in_window, result.handshakes.resumed_in_window);
                let share = (all > 0).then(|| resumed as f64 / all as f64);
                or_nothing(share, "no handshake was finished within the window")
            }
            Self::CpuPerRequest => server(result, |server| server.cost.cpu_us_per_request),
            Self::CpuPerHandshake => server(result, |server| server.cost.cpu_us_per_handshake),
            Self::Rss => server(result, |server| server.rss_peak_kib.map(|kib| kib as f64)),
            Self::Utilisation => {
                server(result, |server| (!server.cost.is_unknown()).then_some(server.cost.utilisation))
            }
            Self::LoadCpuPerRequest => or_nothing(result.engine.cost.cpu_us_per_request, NOT_TOLD),
            Self::LoadCpuPerHandshake => or_nothing(result.engine.cost.cpu_us_per_handshake, NOT_TOLD),
            Self::Valid => Reading::Exactly(if result.validity == "valid" { 1.0 } else { 0.0 }),
        }
    }
}

const NOT_TOLD: &str = "this run does not tell it";

/// A mean that holds censored samples would be larger if they were known.
fn mean(latency: &Latency) -> Reading {
    match latency {
        Latency { count: 0, .. } => too_few(latency),
        Latency { censored: 0, mean_us, .. } => Reading::Exactly(*mean_us),
        Latency { censored, mean_us, .. } => Reading::AtLeast { value: *mean_us, censored: *censored },
    }
}

/// Nobody knows which way it would go with them.
fn sd(latency: &Latency) -> Reading {
    match latency {
        Latency { count: 0, .. } => too_few(latency),
        Latency { censored: 0, sd_us, .. } => Reading::Exactly(*sd_us),
        Latency { censored, .. } => Reading::Nothing(are_censored(*censored)),
    }
}

fn percentile(latency: &Latency, us: Option<f64>) -> Reading {
    match us {
        None => too_few(latency),
        Some(value) if is_lower_bound(latency, value) => {
            Reading::AtLeast { value, censored: latency.censored }
        }
        Some(value) => Reading::Exactly(value),
    }
}

fn too_few(latency: &Latency) -> Reading {
    Reading::Nothing(match latency.count {
        1 => "1 sample is too few".to_string(),
        count => format!("{count} samples are too few"),
    })
}

fn are_censored(samples: u64) -> String {
    format!("{} censored", if samples == 1 { "1 sample is".into() } else { format!("{samples} samples are") })
}

fn server(result: &LoadResult, read: impl Fn(&ServerCost) -> Option<f64>) -> Reading {
    match result.servers.first() {
        None => Reading::Nothing("no server was named (--pid)".to_string()),
        Some(first) => or_nothing(read(first), NOT_TOLD),
    }
}

fn or_nothing(value: Option<f64>, why: &str) -> Reading {
    value.map_or_else(|| Reading::Nothing(why.to_string()), Reading::Exactly)
}

impl fmt::Display for Reading {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exactly(value) => write!(formatter, "is {value}"),
            Self::AtLeast { value, censored } => {
                write!(formatter, "is at least {value}: {}", are_censored(*censored))
            }
            Self::Nothing(why) => write!(formatter, "has no value: {why}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::result::tests::sample;
    use crate::result::{Cost, Pacer};

    /// A value of its own for everything that a metric reads.
    fn filled() -> LoadResult {
        let mut result = sample();
        (result.requests, result.requests_per_second, result.handshakes.per_second) = (101, 102.0, 103.0);
        result.response = Latency {
            count: 20_000,
            mean_us: 104.0,
            sd_us: 105.0,
            p50_us: Some(106.0),
            p90_us: Some(107.0),
            p95_us: Some(107.5),
            p99_us: Some(108.0),
            p999_us: Some(109.0),
            max_us: 110.0,
            ..Latency::default()
        };
        result.service = Latency { p50_us: Some(111.0), p99_us: Some(112.0), ..Latency::default() };
        result.first_byte.p99_us = Some(113.0);
        result.errors = [("reset".to_string(), 14), ("status".to_string(), 100)].into();
        result.error_ratio = 0.115;
        result.unsent.count = 116;
        let pacer = Pacer { planned: 0, sent: 0, achieved_ratio: 0.117, lag_p99_us: 0.0, lag_max_us: 0.0 };
        result.pacer = Some(pacer);
        (result.handshakes.in_window, result.handshakes.resumed_in_window) = (1000, 118);
        let cost = |request, handshake| Cost {
            cpu_us_per_request: Some(request),
            cpu_us_per_handshake: Some(handshake),
            utilisation: 0.122,
            cores: 1,
            ..Cost::default()
        };
        result.servers[0].cost = cost(119.0, 120.0);
        result.servers[0].rss_peak_kib = Some(121);
        result.servers.push(ServerCost::default());
        result.engine.cost = cost(123.0, 124.0);
        result
    }

    #[test]
    fn each_metric_reads_its_own_field() {
        let result = filled();
        let read: Vec<String> =
            Metric::ALL.iter().map(|metric| format!("{} {}", metric.name(), metric.read(&result))).collect();
        let expected = "\
requests is 101
requests_per_second is 102
handshakes_per_second is 103
mean_us is 104
sd_us is 105
p50_us is 106
p90_us is 107
p95_us is 107.5
p99_us is 108
p999_us is 109
max_us is 110
service_p50_us is 111
service_p99_us is 112
first_byte_p99_us is 113
errors is 114
error_ratio is 0.115
unsent is 116
achieved_ratio is 0.117
resumed_share is 0.118
cpu_us_per_request is 119
cpu_us_per_handshake is 120
rss_kib is 121
utilisation is 0.122
load_cpu_us_per_request is 123
load_cpu_us_per_handshake is 124
valid is 1";
        assert_eq!(read.join("\n"), expected);
    }

    #[test]
    fn what_a_run_does_not_tell_has_a_reason() {
        let empty = LoadResult::default();
        for (metric, why) in [
            (Metric::Mean, "0 samples are too few"),
            (Metric::Sd, "0 samples are too few"),
            (Metric::Max, "0 samples are too few"),
            (Metric::FirstByteP99, "0 samples are too few"),
            (Metric::AchievedRatio, "in a closed loop nothing is planned"),
            (Metric::ResumedShare, "no handshake was finished within the window"),
            (Metric::Rss, "no server was named (--pid)"),
            (Metric::LoadCpuPerHandshake, NOT_TOLD),
        ] {
            assert_eq!(metric.read(&empty).to_string(), format!("has no value: {why}"), "{metric:?}");
        }
        assert_eq!(Metric::Valid.read(&empty), Reading::Exactly(0.0), "an empty result is not valid");
        let mut censored = sample();
        censored.response.censored = 1;
        assert!(Metric::Sd.read(&censored).to_string().contains("1 sample is censored"));
    }
}
