//! Writing and reading results, and a sample for other tests.

use super::*;

/// A result like that of a small run.
pub(crate) fn sample() -> LoadResult {
    let latency = Latency {
        count: 50_000,
        mean_us: 63.25,
        sd_us: 12.5,
        p50_us: Some(61.5),
        p90_us: Some(80.0),
        p95_us: Some(95.0),
        p99_us: Some(1234.5),
        p999_us: None,
        max_us: 2_345_678.0,
        censored: 0,
        censored_from_us: None,
        hdr_v2: String::new(),
    };
    LoadResult {
        schema: SCHEMA,
        weir: "0.1.0".into(),
        url: "https://127.0.0.1:8443/bytes/1000".into(),
        asked: Asked {
            connections: 64,
            workers: 1,
            mix: 1,
            requests_per_connection: "keep-alive".into(),
            close: "graceful".into(),
            ..Asked::default()
        },
        window_s: 2.0,
        requests: 50_000,
        requests_per_second: 25_000.0,
        bytes_received: 57_500_000,
        bytes_sent: 3_000_000,
        answered_in_all: 75_000,
        service: latency.clone(),
        response: latency,
        connections_opened: 64,
        handshakes: Handshakes {
            full: 64,
            negotiated: vec![Negotiated {
                version: "1.3".into(),
                suite: "aes128-gcm-sha256".into(),
                group: Some("x25519".into()),
                signature: Some("ecdsa-p256-sha256".into()),
                kind: "full".into(),
                chain_certificates: Some(1),
                chain_bytes: Some(543),
                count: 64,
                ..Negotiated::default()
            }],
            ..Handshakes::default()
        },
        engine: EngineCost {
            cost: Cost {
                cpu_us: 600_000.0,
                cpu_us_per_request: Some(12.0),
                utilisation: 0.3,
                cores: 1,
                ..Cost::default()
            },
            workers: vec![WorkerCost { core: Some(1), cpu_us: 590_000.0, utilisation: 0.295 }],
            loop_lag_p99_us: 310.0,
            loop_lag_max_us: 950.0,
            rss_peak_kib: Some(9000),
            counters: Counters { rss_end_kib: Some(9000), ..Counters::default() },
        },
        servers: vec![ServerCost {
            role: Role::Gateway,
            source: "process 4711".into(),
            cost: Cost {
                cpu_us: 1_900_000.0,
                cpu_us_per_request: Some(38.0),
                utilisation: 0.95,
                cores: 1,
                ..Cost::default()
            },
            rss_peak_kib: Some(12_345),
            counters: Counters {
                rss_end_kib: Some(12_300),
                voluntary_switches: Some(25_000),
                involuntary_switches: Some(12),
                minor_faults: Some(40),
                major_faults: Some(0),
                open_files: Some(140),
            },
            busiest_thread: Some(BusyThread { name: "nginx".into(), utilisation: 0.95 }),
        }],
        limit: Limit::Gateway,
        validity: "valid".into(),
        ..LoadResult::default()
    }
}

#[test]
fn a_result_survives_its_json() {
    let text = serde_json::to_string(&sample()).unwrap();
    assert_eq!(serde_json::from_str::<LoadResult>(&text).unwrap(), sample());
    assert!(text.contains(r#""source":"process 4711","cpu_us":1900000.0"#), "{text}");
}

#[test]
fn groups_of_older_results_have_todays_names() {
    let mut value = serde_json::to_value(sample()).unwrap();
    value["asked"]["groups"] = serde_json::json!(["p-256", "p-384", "x25519", "x448"]);
    value["handshakes"]["negotiated"][0]["group"] = "p-256".into();
    let read: LoadResult = serde_json::from_value(value.clone()).unwrap();
    assert_eq!(read.asked.groups, ["p256", "p384", "x25519", "x448"]);
    assert_eq!(read.handshakes.negotiated[0].group.as_deref(), Some("p256"));
    value["handshakes"]["negotiated"][0]["group"] = serde_json::Value::Null;
    let resumed: LoadResult = serde_json::from_value(value).unwrap();
    assert_eq!(resumed.handshakes.negotiated[0].group, None);
}

/// Older results lack fields added since; the schema version is the same.
#[test]
fn a_result_without_what_was_added_is_read() {
    let mut value = serde_json::to_value(sample()).unwrap();
    let mut without = |pointer: &str, names: &[&str]| {
        let fields = value.pointer_mut(pointer).unwrap().as_object_mut().unwrap();
        assert!(names.iter().all(|name| fields.remove(*name).is_some()), "{pointer}");
    };
    let counters = serde_json::to_value(Counters::default()).unwrap();
    let counters: Vec<&str> = counters.as_object().unwrap().keys().map(String::as_str).collect();
    without("", &["window_boot_s", "http2"]);
    without("/response", &["p95_us"]);
    without("/asked", &["error_budget_percent", "http", "streams", "stream_window"]);
    without("/servers/0", &counters);
    without("/servers/0", &["busiest_thread"]);
    without("/engine", &counters);
    without("/engine", &["rss_peak_kib"]);
    let mut expected = sample();
    (expected.asked.http, expected.asked.streams) = ("1.1".into(), 1);
    expected.response.p95_us = None;
    expected.servers[0].counters = Counters::default();
    expected.servers[0].busiest_thread = None;
    (expected.engine.rss_peak_kib, expected.engine.counters) = (None, Counters::default());
    assert_eq!(serde_json::from_value::<LoadResult>(value).unwrap(), expected);
}
