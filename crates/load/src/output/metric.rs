//! Named metrics of a result.

use self::Reading::Exactly;
use crate::output::figures::is_lower_bound;
use crate::result::{GrpcFigures, Http2Figures, Latency, LoadResult, ServerCost, VersionFigures};
use std::fmt;

/// A metric for conditions. Metrics that are also in an experiment's `summary.json` have the same name.
#[derive(Clone, Copy, Debug)]
pub struct Metric {
    name: &'static str,
    read: fn(&LoadResult) -> Reading,
}

/// The value of a metric; displayed after the metric's name.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Reading {
    /// The value.
    Exactly(f64),
    /// A lower bound, and the number of censored samples.
    AtLeast { value: f64, censored: u64 },
    /// No value, with the reason.
    Nothing(String),
}

impl Metric {
    /// All metrics: shares are 0 to 1, and costs without `load_` are those of the first server given.
    pub const ALL: [Self; 47] = [
        Self::new("requests", |result| Exactly(result.requests as f64)),
        Self::new("requests_per_second", |result| Exactly(result.requests_per_second)),
        Self::new("handshakes_per_second", |result| Exactly(result.handshakes.per_second)),
        Self::new("mean_us", |result| mean(&result.response)),
        Self::new("sd_us", |result| sd(&result.response)),
        Self::new("p50_us", |result| percentile(&result.response, result.response.p50_us)),
        Self::new("p90_us", |result| percentile(&result.response, result.response.p90_us)),
        Self::new("p95_us", |result| percentile(&result.response, result.response.p95_us)),
        Self::new("p99_us", |result| percentile(&result.response, result.response.p99_us)),
        Self::new("p999_us", |result| percentile(&result.response, result.response.p999_us)),
        Self::new("max_us", |LoadResult { response, .. }| {
            percentile(response, (response.count > 0).then_some(response.max_us))
        }),
        Self::new("service_p50_us", |result| percentile(&result.service, result.service.p50_us)),
        Self::new("service_p99_us", |result| percentile(&result.service, result.service.p99_us)),
        Self::new("first_byte_p99_us", |result| percentile(&result.first_byte, result.first_byte.p99_us)),
        Self::new("errors", |result| Exactly(result.errors.values().sum::<u64>() as f64)),
        Self::new("error_ratio", |result| Exactly(result.error_ratio)),
        Self::new("unsent", |result| Exactly(result.unsent.count as f64)),
        Self::new("achieved_ratio", |result| {
            let achieved = result.pacer.as_ref().map(|pacer| pacer.achieved_ratio);
            or_nothing(achieved, "a closed loop has no schedule")
        }),
        Self::new("resumed_share", |result| {
            let (all, resumed) = (result.handshakes.in_window, result.handshakes.resumed_in_window);
            let share = (all > 0).then(|| resumed as f64 / all as f64);
            or_nothing(share, "no handshake finished within the window")
        }),
        Self::new("cpu_us_per_request", |result| server(result, |server| server.cost.cpu_us_per_request)),
        Self::new("cpu_us_per_handshake", |result| server(result, |server| server.cost.cpu_us_per_handshake)),
        Self::new("rss_kib", |result| server(result, |server| server.rss_peak_kib.map(|kib| kib as f64))),
        Self::new("utilisation", |result| {
            server(result, |server| (!server.cost.is_unknown()).then_some(server.cost.utilisation))
        }),
        Self::new("load_cpu_us_per_request", |result| {
            or_nothing(result.engine.cost.cpu_us_per_request, NOT_TOLD)
        }),
        Self::new("load_cpu_us_per_handshake", |result| {
            or_nothing(result.engine.cost.cpu_us_per_handshake, NOT_TOLD)
        }),
        Self::new("requests_per_write", |result| http2(result, |figures| figures.requests_per_write)),
        Self::new("responses_per_read", |result| http2(result, |figures| figures.responses_per_read)),
        Self::new("header_bytes_per_response", |result| {
            http2(result, |figures| figures.header_bytes_per_response)
        }),
        Self::new("retried", |result| http2(result, |figures| figures.retried as f64)),
        Self::new("stream_wait_p99_us", |result| wait(result, |figures| &figures.stream_wait)),
        Self::new("window_wait_p99_us", |result| wait(result, |figures| &figures.window_wait)),
        Self::new("wire_wait_p99_us", |result| wait(result, |figures| &figures.wire_wait)),
        Self::new("messages_sent_per_second", |result| {
            grpc(result, |figures| figures.messages_sent_per_second)
        }),
        Self::new("messages_received_per_second", |result| {
            grpc(result, |figures| figures.messages_received_per_second)
        }),
        Self::new("http1_requests", |result| of_http1(result, requests)),
        Self::new("http1_requests_per_second", |result| of_http1(result, requests_per_second)),
        Self::new("http1_errors", |result| of_http1(result, errors)),
        Self::new("http1_error_ratio", |result| of_http1(result, error_ratio)),
        Self::new("http1_p50_us", |result| of_http1(result, p50_us)),
        Self::new("http1_p99_us", |result| of_http1(result, p99_us)),
        Self::new("http2_requests", |result| of_http2(result, requests)),
        Self::new("http2_requests_per_second", |result| of_http2(result, requests_per_second)),
        Self::new("http2_errors", |result| of_http2(result, errors)),
        Self::new("http2_error_ratio", |result| of_http2(result, error_ratio)),
        Self::new("http2_p50_us", |result| of_http2(result, p50_us)),
        Self::new("http2_p99_us", |result| of_http2(result, p99_us)),
        Self::new("valid", |result| Exactly(f64::from(result.validity == "valid"))),
    ];

    const fn new(name: &'static str, read: fn(&LoadResult) -> Reading) -> Self {
        Self { name, read }
    }

    /// The metric of that name.
    pub(crate) fn of_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|metric| metric.name == name)
    }

    /// The name in conditions.
    pub fn name(self) -> &'static str {
        self.name
    }

    /// Whether its unit is microseconds: all such names contain `_us`.
    pub(crate) fn is_time(self) -> bool {
        self.name.split('_').any(|word| word == "us")
    }

    /// Its value in a result.
    pub(crate) fn read(self, result: &LoadResult) -> Reading {
        (self.read)(result)
    }
}

fn http2(result: &LoadResult, read: impl Fn(&Http2Figures) -> f64) -> Reading {
    or_nothing(result.http2.as_ref().map(read), NOT_HTTP2)
}

/// The p99 of a wait.
fn wait(result: &LoadResult, of: impl Fn(&Http2Figures) -> &Latency) -> Reading {
    match result.http2.as_ref().map(of) {
        Some(latency) => percentile(latency, latency.p99_us),
        None => Reading::Nothing(NOT_HTTP2.to_string()),
    }
}

fn of_http1(result: &LoadResult, read: impl Fn(&VersionFigures) -> Reading) -> Reading {
    let versions = result.by_version.as_ref();
    versions.map_or_else(one_version, |versions| read(&versions.http1))
}

fn of_http2(result: &LoadResult, read: impl Fn(&VersionFigures) -> Reading) -> Reading {
    let versions = result.by_version.as_ref();
    versions.map_or_else(one_version, |versions| read(&versions.http2))
}

fn requests(figures: &VersionFigures) -> Reading {
    Exactly(figures.requests as f64)
}

fn requests_per_second(figures: &VersionFigures) -> Reading {
    Exactly(figures.requests_per_second)
}

fn errors(figures: &VersionFigures) -> Reading {
    Exactly(figures.errors.values().sum::<u64>() as f64)
}

fn error_ratio(figures: &VersionFigures) -> Reading {
    Exactly(figures.error_ratio)
}

fn p50_us(figures: &VersionFigures) -> Reading {
    percentile(&figures.response, figures.response.p50_us)
}

fn p99_us(figures: &VersionFigures) -> Reading {
    percentile(&figures.response, figures.response.p99_us)
}

fn one_version() -> Reading {
    Reading::Nothing(ONE_VERSION.to_string())
}

const ONE_VERSION: &str = "all connections speak one version of HTTP";

fn grpc(result: &LoadResult, read: impl Fn(&GrpcFigures) -> f64) -> Reading {
    or_nothing(result.grpc.as_ref().map(read), "the requests are no gRPC calls (--grpc)")
}

const NOT_HTTP2: &str = "HTTP/1.1 has no streams";

const NOT_TOLD: &str = "not measured in this run";

/// With censored samples the mean is a lower bound.
fn mean(latency: &Latency) -> Reading {
    match latency {
        Latency { count: 0, .. } => too_few(latency),
        Latency { censored: 0, mean_us, .. } => Exactly(*mean_us),
        Latency { censored, mean_us, .. } => Reading::AtLeast { value: *mean_us, censored: *censored },
    }
}

/// With censored samples it could be larger or smaller.
fn sd(latency: &Latency) -> Reading {
    match latency {
        Latency { count: 0, .. } => too_few(latency),
        Latency { censored: 0, sd_us, .. } => Exactly(*sd_us),
        Latency { censored, .. } => Reading::Nothing(are_censored(*censored)),
    }
}

fn percentile(latency: &Latency, us: Option<f64>) -> Reading {
    match us {
        None => too_few(latency),
        Some(value) if is_lower_bound(latency, value) => {
            Reading::AtLeast { value, censored: latency.censored }
        }
        Some(value) => Exactly(value),
    }
}

fn too_few(latency: &Latency) -> Reading {
    Reading::Nothing(format!("{} too few", samples_are(latency.count)))
}

fn are_censored(samples: u64) -> String {
    format!("{} censored", samples_are(samples))
}

fn samples_are(samples: u64) -> String {
    if samples == 1 { "1 sample is".into() } else { format!("{samples} samples are") }
}

fn server(result: &LoadResult, read: impl Fn(&ServerCost) -> Option<f64>) -> Reading {
    match result.servers.first() {
        None => Reading::Nothing("no server to account (--pid)".to_string()),
        Some(first) => or_nothing(read(first), NOT_TOLD),
    }
}

fn or_nothing(value: Option<f64>, why: &str) -> Reading {
    value.map_or_else(|| Reading::Nothing(why.to_string()), Exactly)
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
    use crate::result::{ByVersion, Cost, Pacer};

    /// A distinct value for each metric.
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
        result.http2 = Some(Http2Figures {
            requests_per_write: 12.5,
            responses_per_read: 12.6,
            header_bytes_per_response: 12.7,
            retried: 128,
            stream_wait: Latency { p99_us: Some(129.0), ..Latency::default() },
            window_wait: Latency { p99_us: Some(129.5), ..Latency::default() },
            wire_wait: Latency { p99_us: Some(129.7), ..Latency::default() },
            ..Http2Figures::default()
        });
        result.grpc = Some(GrpcFigures {
            messages_sent_per_second: 130.0,
            messages_received_per_second: 131.0,
            ..GrpcFigures::default()
        });
        let version = |from: u32| VersionFigures {
            requests: from.into(),
            requests_per_second: f64::from(from + 1),
            errors: [("reset".to_string(), 1), ("status".to_string(), u64::from(from + 1))].into(),
            error_ratio: f64::from(from + 3) / 1000.0,
            response: Latency {
                p50_us: Some(f64::from(from + 4)),
                p99_us: Some(f64::from(from + 5)),
                ..Latency::default()
            },
            ..VersionFigures::default()
        };
        result.by_version = Some(ByVersion { http1: version(140), http2: version(150) });
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
requests_per_write is 12.5
responses_per_read is 12.6
header_bytes_per_response is 12.7
retried is 128
stream_wait_p99_us is 129
window_wait_p99_us is 129.5
wire_wait_p99_us is 129.7
messages_sent_per_second is 130
messages_received_per_second is 131
http1_requests is 140
http1_requests_per_second is 141
http1_errors is 142
http1_error_ratio is 0.143
http1_p50_us is 144
http1_p99_us is 145
http2_requests is 150
http2_requests_per_second is 151
http2_errors is 152
http2_error_ratio is 0.153
http2_p50_us is 154
http2_p99_us is 155
valid is 1";
        assert_eq!(read.join("\n"), expected);
    }

    fn read(name: &str, result: &LoadResult) -> Reading {
        Metric::of_name(name).unwrap().read(result)
    }

    #[test]
    fn what_a_run_does_not_tell_has_a_reason() {
        let empty = LoadResult::default();
        for (name, why) in [
            ("mean_us", "0 samples are too few"),
            ("sd_us", "0 samples are too few"),
            ("max_us", "0 samples are too few"),
            ("first_byte_p99_us", "0 samples are too few"),
            ("achieved_ratio", "a closed loop has no schedule"),
            ("resumed_share", "no handshake finished within the window"),
            ("rss_kib", "no server to account (--pid)"),
            ("load_cpu_us_per_handshake", NOT_TOLD),
            ("retried", NOT_HTTP2),
            ("stream_wait_p99_us", NOT_HTTP2),
            ("window_wait_p99_us", NOT_HTTP2),
            ("http1_requests", ONE_VERSION),
            ("http2_p99_us", ONE_VERSION),
            ("messages_sent_per_second", "the requests are no gRPC calls (--grpc)"),
            ("messages_received_per_second", "the requests are no gRPC calls (--grpc)"),
        ] {
            assert_eq!(read(name, &empty).to_string(), format!("has no value: {why}"), "{name}");
        }
        assert_eq!(read("valid", &empty), Reading::Exactly(0.0), "an empty result is not valid");
        let mut censored = sample();
        censored.response.censored = 1;
        assert!(read("sd_us", &censored).to_string().contains("1 sample is censored"));
    }
}
