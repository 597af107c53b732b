//! A result that has all its parts.

use crate::histograms::hdr_v2;
use weir_load::ErrorClass;
use weir_load::result::{
    Asked, BusyThread, Ceiling, Cost, Counters, EngineCost, Handshakes, Latency, LoadResult, Negotiated,
    Pacer, PhaseTime, SCHEMA, Second, ServerCost, Step, Tickets, Unsent, WorkerCost,
};

fn latency() -> Latency {
    let times: Vec<u64> = (1..=20_000).map(|n| n * 1000).collect();
    Latency {
        count: 20_000,
        mean_us: 10_000.5,
        sd_us: 5773.5,
        p50_us: Some(10_000.0),
        p90_us: Some(18_000.0),
        p95_us: Some(19_000.0),
        p99_us: Some(19_800.0),
        p999_us: Some(19_980.0),
        max_us: 20_000.0,
        censored: 3,
        censored_from_us: Some(19_998.0),
        hdr_v2: hdr_v2(&times),
    }
}

pub(crate) fn cost() -> Cost {
    Cost {
        cpu_us: 1.9e6,
        cpu_us_per_request: Some(95.0),
        cpu_us_per_handshake: Some(95.0),
        utilisation: 0.95,
        cores: 2,
    }
}

fn counters() -> Counters {
    Counters {
        rss_end_kib: Some(1),
        voluntary_switches: Some(1),
        involuntary_switches: Some(1),
        minor_faults: Some(1),
        major_faults: Some(1),
        open_files: Some(1),
    }
}

/// Every field has a value, and every list and map an entry.
pub(crate) fn full() -> LoadResult {
    let text = str::to_string;
    let kinds = ["resume-1.2-id", "resume-1.2-ticket", "resume-1.3-psk"];
    LoadResult {
        schema: SCHEMA,
        weir: text("0.1.0"),
        url: text("https://[::1]:8443/"),
        asked: Asked {
            connections: 64,
            workers: 2,
            cores: vec![1, 3],
            rate: Some(1000.0),
            arrivals: Some(text("poisson")),
            think_us: 1.5,
            seed: u64::MAX,
            error_budget_percent: 0.1,
            mix: 2,
            requests_per_connection: text("5-10"),
            resume_percent: 30.0,
            close: text("rst"),
            sources: vec![text("127.0.0.2")],
            tls_versions: vec![text("1.2"), text("1.3")],
            suites: vec![text("aes128-gcm-sha256")],
            groups: vec![text("x25519")],
            signatures: vec![text("ecdsa-p256-sha256")],
            alpn: vec![text("http/1.1")],
            verified: true,
        },
        partial: true,
        phases: ["opening", "warm-up", "settle", "window", "drain"]
            .map(|name| PhaseTime { name: text(name), seconds: 1.0 })
            .into(),
        window_s: 1.0,
        window_boot_s: Some(12_345.5),
        requests: 20_000,
        requests_per_second: 20_000.0,
        bytes_received: 1,
        bytes_sent: 1,
        errors: ErrorClass::ALL.map(|class| (text(class.name()), 1)).into(),
        error_examples: ErrorClass::ALL.map(|class| (text(class.name()), text("words"))).into(),
        error_ratio: 0.01,
        unsent: Unsent { count: 3, oldest_us: 2e6, mean_us: 1e6 },
        answered_in_all: 20_001,
        response: latency(),
        service: latency(),
        first_byte: latency(),
        connect: latency(),
        handshake: kinds.iter().chain(&["full"]).map(|kind| (text(kind), latency())).collect(),
        steps: vec![Step { rate: 1000.0, from_s: 0.0, to_s: 1.0, planned: 1000, response: latency() }],
        seconds: vec![Second {
            p50_us: Some(61.0),
            p95_us: Some(110.0),
            p99_us: Some(120.0),
            ..Second::default()
        }],
        connections_opened: 2,
        connections_opened_in_window: 1,
        handshakes: Handshakes {
            resumed: kinds.map(|kind| (text(kind), 1)).into(),
            tickets: [(text("full"), Tickets { least: 1, most: 2 })].into(),
            negotiated: vec![Negotiated {
                version: text("1.3"),
                suite: text("aes128-gcm-sha256"),
                group: Some(text("x25519")),
                signature: Some(text("ecdsa-p256-sha256")),
                kind: text("full"),
                hello_retry: true,
                alpn: Some(text("http/1.1")),
                chain_certificates: Some(2),
                chain_bytes: Some(1234),
                count: 1,
            }],
            ..Handshakes::default()
        },
        engine: EngineCost {
            cost: cost(),
            rss_peak_kib: Some(1),
            counters: counters(),
            workers: vec![WorkerCost { core: Some(1), cpu_us: 1.0, utilisation: 0.5 }],
            loop_lag_p99_us: 1.0,
            loop_lag_max_us: 2.0,
        },
        servers: vec![ServerCost {
            source: text("process 4711"),
            cost: cost(),
            rss_peak_kib: Some(1),
            counters: counters(),
            busiest_thread: Some(BusyThread { name: text("node"), utilisation: 0.98 }),
            ..ServerCost::default()
        }],
        pacer: Some(Pacer { planned: 3, sent: 2, achieved_ratio: 0.9, lag_p99_us: 1.0, lag_max_us: 2.0 }),
        ceiling: Some(Ceiling { cell: text("keep-alive"), per_worker: 90_000.0, share: 0.1 }),
        warnings: vec![text("the rate fell")],
        validity: text("invalid: pacer (..)"),
        ..LoadResult::default()
    }
}
