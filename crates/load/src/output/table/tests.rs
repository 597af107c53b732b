//! The table for different runs.

use super::*;
use crate::result::tests::sample;
use crate::result::{
    ByVersion, Ceiling, GrpcFigures, Http2Figures, Limit, Negotiated, Pacer, PeerSettings, Step, Unsent,
    VersionFigures, WorkerCost,
};

#[track_caller]
fn shows(result: &LoadResult, expected: &str) {
    let text = table(result);
    assert_eq!(text, expected, "\n{text}");
    for line in text.lines().skip(1) {
        assert!(line.chars().count() <= WIDTH, "{line}");
        assert_eq!(line, line.trim_end());
    }
}

fn latency(count: u64, us: f64) -> Latency {
    Latency {
        count,
        mean_us: us * 1.1,
        sd_us: us * 0.2,
        p50_us: (count >= 20).then_some(us),
        p90_us: (count >= 100).then_some(us * 1.5),
        p95_us: (count >= 200).then_some(us * 2.0),
        p99_us: (count >= 1000).then_some(us * 3.0),
        p999_us: (count >= 10_000).then_some(us * 7.0),
        max_us: us * 20.0,
        ..Latency::default()
    }
}

/// The most common run: a closed loop over TLS on keep-alive connections.
fn usual() -> LoadResult {
    let mut result = sample();
    result.asked.cores = vec![1];
    result.asked.tls_versions = vec!["1.3".into()];
    result.asked.verified = true;
    result.response = latency(50_000, 61.5);
    result.service = latency(50_000, 60.5);
    result.first_byte = latency(50_000, 58.0);
    result
}

/// HTTP/2 with a server that drains and refuses.
fn http2() -> LoadResult {
    let mut result = usual();
    (result.asked.http, result.asked.streams, result.asked.connections) = ("2".into(), 16, 8);
    result.warnings = vec!["the server allows 10 streams per connection".into()];
    let settings = |max_concurrent_streams, count| PeerSettings {
        max_concurrent_streams,
        initial_window_size: 65_535,
        max_frame_size: 16_384,
        header_table_size: 4096,
        count,
        ..PeerSettings::default()
    };
    result.http2 = Some(Http2Figures {
        requests_per_write: 9.5,
        responses_per_read: 7.25,
        header_bytes_per_response: 82.0,
        refused: 1200,
        retried: 1199,
        resets: [("refused_stream".into(), 1000)].into(),
        goaways: [("no_error".into(), 40), ("enhance_your_calm".into(), 1)].into(),
        stream_wait: latency(20_000, 900.0),
        window_wait: latency(10_000, 400.0),
        wire_wait: latency(10_000, 20.0),
        settings: vec![
            settings(Some(10), 46),
            PeerSettings { max_header_list_size: Some(65_536), ..settings(None, 2) },
        ],
    });
    result
}

/// Calls of gRPC in both directions.
fn grpc() -> LoadResult {
    let mut result = usual();
    (result.asked.http, result.asked.streams) = ("2".into(), 4);
    (result.asked.messages, result.asked.expect_messages) = (Some(10), Some(1));
    result.errors = [("grpc_status".to_string(), 3)].into();
    result.error_ratio = 3.0 / 50_003.0;
    result.validity = "invalid: errors (3 grpc_status)".into();
    result.error_examples =
        [("grpc_status".to_string(), "grpc-status 14 UNAVAILABLE: draining".to_string())].into();
    result.grpc = Some(GrpcFigures {
        messages_sent: 500_030,
        messages_sent_per_second: 250_015.0,
        messages_received: 50_000,
        messages_received_per_second: 25_000.0,
        statuses: [("OK".into(), 50_000), ("UNAVAILABLE".into(), 3)].into(),
    });
    result
}

/// Both versions in an open loop, of which one falls behind.
fn both() -> LoadResult {
    let mut result = usual();
    (result.asked.http, result.asked.streams, result.asked.workers) = ("1.1=3,2=1".into(), 16, 2);
    result.errors = [("timeout".to_string(), 5)].into();
    result.error_ratio = 5.0 / 50_005.0;
    result.validity = "invalid: errors (5 timeout)".into();
    result.by_version = Some(ByVersion {
        http1: VersionFigures {
            connections: 48,
            requests: 40_000,
            requests_per_second: 20_000.0,
            response: latency(40_000, 58.0),
            ..VersionFigures::default()
        },
        http2: VersionFigures {
            connections: 16,
            requests: 10_000,
            requests_per_second: 5000.0,
            errors: [("timeout".to_string(), 5)].into(),
            error_ratio: 5.0 / 10_005.0,
            unsent: 1200,
            response: Latency { censored: 1205, censored_from_us: Some(5e4), ..latency(11_205, 1900.0) },
            ..VersionFigures::default()
        },
    });
    result
}

#[test]
fn each_version_of_both_has_its_rows() {
    let text = table(&both());
    for row in [
        "64 connections, 48 HTTP/1.1 and 16 HTTP/2 with 16 streams each, keep-alive, closed loop, 2 workers\n",
        "  HTTP/1.1       40 000 correct responses, 20 000/s, no errors\n",
        "  HTTP/2         10 000 correct responses, 5000/s, 5 errors (0.050 %), 1200 unsent\n",
        "\n    HTTP/1.1            40 000   63.8 us   58.0 us ",
        "\n    HTTP/2              11 205 >=2.09 ms   1.90 ms ",
    ] {
        assert!(text.contains(row), "{row}\n{text}");
    }
    assert!(text.lines().all(|line| line.chars().count() <= WIDTH), "{text}");
}

/// An open loop that ramps beyond the server's capacity.
fn ramp() -> LoadResult {
    let mut result = usual();
    result.asked.rate = Some(10_000.0);
    result.asked.arrivals = Some("poisson".into());
    result.response = Latency { censored: 1003, censored_from_us: Some(1.5e6), ..latency(60_000, 650.0) };
    result.response.p99_us = Some(2e6);
    result.response.p999_us = Some(2.04e6);
    result.response.max_us = 2.1e6;
    let step = |rate: f64, from_s: f64, response: &Latency| Step {
        rate,
        from_s,
        to_s: from_s + 1.0,
        planned: response.count,
        response: response.clone(),
    };
    result.steps = vec![
        step(10_000.0, 0.0, &latency(10_000, 110.0)),
        step(20_000.0, 1.0, &latency(20_000, 230.0)),
        step(
            30_000.0,
            2.0,
            &Latency {
                count: 30_000,
                p50_us: Some(4e5),
                p90_us: Some(1.6e6),
                p95_us: Some(1.8e6),
                ..result.response.clone()
            },
        ),
    ];
    result.window_s = 3.0;
    (result.requests, result.requests_per_second) = (58_995, 19_665.0);
    result.pacer = Some(Pacer {
        planned: 60_000,
        sent: 58_998,
        achieved_ratio: 0.9833,
        lag_p99_us: 80.0,
        lag_max_us: 1500.0,
    });
    result.unsent = Unsent { count: 1002, oldest_us: 1.5e6, mean_us: 730_000.0 };
    result.errors = [("status".to_string(), 2), ("timeout".to_string(), 1)].into();
    result.error_examples = [
        ("status", "status 404"),
        ("connect_refused", "connection refused"),
        ("timeout", "no complete answer within 2s"),
    ]
    .map(|(class, text)| (class.to_string(), text.to_string()))
    .into();
    result.error_ratio = 3.0 / 58_998.0;
    result.ceiling =
        Some(Ceiling { cell: "keep-alive, TLS 1.3, 1000 bytes".into(), per_worker: 92_345.0, share: 0.312 });
    result.warnings = vec![
        "the rate fell by 12 % from the window's first half to its second: a longer warm-up (--warmup) may be needed"
            .into(),
    ];
    result.validity =
        "invalid: errors (2 status, 1 timeout); pacer (sent 98.3 % of the planned arrivals; 1002 unsent)"
            .into();
    result
}

/// Handshakes only, some resumed.
fn handshakes() -> LoadResult {
    let mut result = usual();
    result.asked.requests_per_connection = "handshake-only".into();
    result.asked.workers = 2;
    result.asked.cores = vec![1, 3];
    result.asked.resume_percent = 30.0;
    result.asked.sources = vec!["127.0.0.2".into(), "127.0.0.3".into()];
    result.asked.verified = false;
    result.requests = 1000;
    result.requests_per_second = 500.0;
    (result.bytes_received, result.bytes_sent) = (0, 0);
    result.response = latency(1000, 2100.0);
    result.service = latency(1000, 2000.0);
    result.first_byte = Latency::default();
    result.connect = latency(1000, 61.0);
    result.handshake = [("full", latency(700, 1900.0)), ("resume-1.3-psk", latency(300, 900.0))]
        .map(|(kind, latency)| (kind.to_string(), latency))
        .into();
    result.connections_opened = 1600;
    result.connections_opened_in_window = 1002;
    let full = &result.handshakes.negotiated[0];
    let negotiated = vec![
        Negotiated {
            kind: "resume-1.3-psk".into(),
            signature: None,
            chain_certificates: None,
            chain_bytes: None,
            count: 480,
            ..full.clone()
        },
        Negotiated { count: 1120, ..full.clone() },
    ];
    result.handshakes = Handshakes {
        full: 1120,
        resumed: [("resume-1.3-psk".to_string(), 480)].into(),
        primed: 64,
        offered: 482,
        declined: 2,
        in_window: 1000,
        resumed_in_window: 300,
        per_second: 500.0,
        negotiated,
        ..Handshakes::default()
    };
    result.engine.cost = Cost {
        cpu_us: 350_000.0,
        cpu_us_per_handshake: Some(350.0),
        utilisation: 0.0875,
        cores: 2,
        ..Cost::default()
    };
    result.engine.workers =
        [1, 3].map(|core| WorkerCost { core: Some(core), cpu_us: 1e5, utilisation: 0.05 }).into();
    result.servers[0].cost.cpu_us_per_request = None;
    result.servers[0].cost.cpu_us_per_handshake = Some(1900.0);
    result.partial = true;
    result
}

/// A port without a listener.
fn refused() -> LoadResult {
    LoadResult {
        url: "http://127.0.0.1:1/".into(),
        asked: Asked {
            connections: 1,
            workers: 1,
            mix: 1,
            requests_per_connection: "1".into(),
            ..Asked::default()
        },
        window_s: 0.3,
        errors: [("connect_refused".to_string(), 31)].into(),
        error_examples: [("connect_refused".to_string(), "connection refused (os error 111)".to_string())]
            .into(),
        error_ratio: 1.0,
        validity: "invalid: errors (31 connect_refused)".into(),
        limit: Limit::Neither,
        ..LoadResult::default()
    }
}

#[test]
fn a_closed_loop_over_tls() {
    shows(&usual(), include_str!("usual.txt"));
}

#[test]
fn http2_with_a_server_that_drains() {
    shows(&http2(), include_str!("http2.txt"));
}

#[test]
fn calls_of_grpc() {
    shows(&grpc(), include_str!("grpc.txt"));
}

#[test]
fn an_open_loop_that_ramps_beyond_the_server() {
    shows(&ramp(), include_str!("ramp.txt"));
}

#[test]
fn handshakes_alone_ended_early() {
    shows(&handshakes(), include_str!("handshakes.txt"));
}

#[test]
fn a_port_that_refuses() {
    shows(&refused(), include_str!("refused.txt"));
}

#[test]
fn the_usual_run_fits_one_screen_even_with_all_times() {
    let mut result = usual();
    result.asked.rate = Some(1000.0);
    result.pacer = ramp().pacer;
    result.connect = latency(64, 60.0);
    result.handshake = [("full".to_string(), latency(64, 1900.0))].into();
    assert!(table(&result).lines().count() <= 24, "{}", table(&result));
}

#[test]
fn many_combinations_are_summed_up() {
    let mut result = usual();
    let one = result.handshakes.negotiated[0].clone();
    let suite = |number: u64| Negotiated { suite: format!("suite-{number}"), count: number, ..one.clone() };
    result.handshakes.negotiated = (1..=6).map(suite).collect();
    let text = table(&result);
    assert!(text.contains("  negotiated     6 x TLS 1.3 suite-6 "), "the most frequent first\n{text}");
    assert!(text.contains("\n                 3 x 2 further combinations\n"), "{text}");
}

#[test]
fn no_columns_touch_and_none_is_beyond_the_hundredth() {
    let mut result = ramp();
    for (at, step) in result.steps.iter_mut().enumerate() {
        let at = 1000.0 * at as f64;
        (step.rate, step.from_s, step.to_s) = (1_234_567.0, at, at + 1000.0);
        step.response =
            Latency { count: 1_234_567_000, censored: 9, censored_from_us: Some(0.0), ..latency(1, 1.0) };
        step.response.max_us = 99_950.0;
    }
    result.handshake = [("resume-1.2-ticket".to_string(), latency(123_456_789, 99_940.0))].into();
    let text = table(&result);
    assert!(
        text.contains("\n    1 234 567/s, 1000-2000 s\n                 1 234 567 000 >=1.10 us  "),
        "{text}"
    );
    assert!(text.lines().all(|line| line.chars().count() <= WIDTH), "{text}");
}

#[test]
fn one_of_a_thing_is_no_plural() {
    let mut result = handshakes();
    result.requests = 1;
    assert!(table(&result).contains("  finished       1 handshake, "), "{}", table(&result));
}

/// For a server with many threads of which one does all the work, the table names that thread.
#[test]
fn the_busiest_thread_is_named_where_there_are_several_cores() {
    let mut result = usual();
    result.servers[0].cost = Cost { utilisation: 0.3, cores: 4, ..result.servers[0].cost.clone() };
    result.servers[0].busiest_thread = Some(BusyThread { name: "node".into(), utilisation: 0.984 });
    let expected =
        "  gateway CPU    38.0 us per request, 30 % of 4 cores (busiest thread `node` 98 %), peak 12.6 MB";
    assert!(table(&result).contains(expected), "{}", table(&result));
}
