//! Runs of the gateway's worker with clients that speak HTTP/2.

mod support;

use support::{seeds, share, well};
use weir_gateway::document::{HalfClose, ProxyProtocol, Retry};
use weir_sim::{Plan, Report, Tunnels};

/// The number of early ends for a reason.
fn ended(report: &Report, reason: &str) -> u64 {
    report.counters.ended().find(|(known, _)| *known == reason).map_or(0, |(_, count)| count)
}

/// Also a regression test: when a response ended without data while the connection's buffer was full, the gateway
/// recorded the end as sent, and reset the stream.
#[test]
fn undisturbed_streams_get_their_responses() {
    for seed in seeds(30) {
        let report = well(seed, &Plan::plain().over_http2());
        assert_eq!(report.outcomes, [48, 0, 0, 0], "seed {seed}");
        let tls = Plan { client_tls: true, upstream_tls: seed % 2 == 0, requests: 5, ..Plan::plain() };
        assert_eq!(well(seed, &tls.over_http2()).outcomes, [20, 0, 0, 0], "seed {seed}");
    }
}

/// Regression test: on a slow connection, the gateway counted responses that waited for their turn as stalled by the
/// client, and reset them although the client kept reading.
#[test]
fn a_rough_network_loses_no_stream() {
    let (mut steps, mut tunnels) = (0, Tunnels::default());
    for seed in 0.. {
        let buffers = seed % 3 == 0;
        let report = well(seed, &Plan { buffers, mirrors: seed % 4 == 0, ..Plan::rough() }.over_http2());
        (steps, tunnels) = (steps + report.steps, tunnels.and(report.tunnels));
        if steps > share(1) {
            break;
        }
    }
    println!("{steps} steps, {tunnels:?}");
    assert!(tunnels.complete[1][0] > 2 && tunnels.refused[1][0] > 0, "WebSockets on streams: {tunnels:?}");
}

/// Runs with every kind of fault of clients, streams and servers, with clients of both HTTP versions. Some of the
/// gateways drain.
#[test]
fn each_fault_of_a_stream_has_one_reason() {
    const REASONS: [&str; 5] =
        ["client_reset", "client_closed", "client_stalled", "bad_http2_stream", "upstream_truncated"];
    let (mut steps, mut counts, mut tunnels) = (0, [0; REASONS.len()], Tunnels::default());
    for seed in 0.. {
        let of = |plan: Plan| {
            let http2 = if seed % 2 == 0 { 1000 } else { 500 };
            Plan { http2, buffers: seed % 5 == 0, stalls: 200, ..plan.over_http2() }
        };
        let drains = seed % 4 == 0;
        for plan in [
            Plan { drains, half_close: HalfClose::Serve, ..Plan::faulty() },
            Plan { drains, client_tls: true, upstream_tls: seed % 2 == 0, requests: 5, ..Plan::faulty() },
            Plan { drains, workers: 2, drains_servers: seed % 3 == 0, ..Plan::failing() },
        ] {
            let report = well(seed, &of(plan));
            (steps, tunnels) = (steps + report.steps, tunnels.and(report.tunnels));
            for (count, reason) in counts.iter_mut().zip(REASONS) {
                *count += ended(&report, reason);
            }
        }
        if steps > share(2) {
            break;
        }
    }
    println!("{steps} steps, {counts:?}, {tunnels:?}");
    let is_one = std::env::var_os("WEIR_SIM_SEED").is_some();
    assert!(is_one || counts.iter().all(|count| *count > 0), "each of {REASONS:?} is met: {counts:?}");
    let are_met = tunnels.complete[1][0] > 2 && tunnels.cut[1][0] > 2;
    assert!(is_one || are_met, "WebSockets on streams are complete or cut: {tunnels:?}");
}

/// The network has no delays, so every delay would be due to a stalled stream.
#[test]
fn a_stalled_stream_delays_no_other() {
    let mut stalled = 0;
    for seed in seeds(40) {
        let buffers = seed % 3 == 0;
        let report = well(seed, &Plan { stalls: 200, buffers, ..Plan::plain().over_http2() });
        // The limit that a stalled stream reaches first decides its reason.
        for reason in ["client_stalled", "client_too_slow", "response_overdue"] {
            stalled += ended(&report, reason);
        }
    }
    assert!(stalled > 20, "{stalled}");
}

#[test]
fn streams_wait_for_connections_and_lose_nothing() {
    for seed in seeds(8) {
        let most_connections = Some(1 + (seed % 3) as usize);
        let plain = Plan { most_connections, clients: 8, ..Plan::plain().over_http2() };
        assert_eq!(well(seed, &plain).outcomes, [96, 0, 0, 0], "seed {seed}");
        well(
            seed,
            &Plan { adopts: seed % 2 == 0, clients: 2, ..Plan { most_connections, ..Plan::rough() } }
                .over_http2(),
        );
        well(seed, &Plan { adopts: false, most_connections, ..Plan::faulty() }.over_http2());
        let few = Plan { most_waiting: Some(seed as usize % 3), workers: 2, ..plain.clone() };
        well(seed, &Plan { rough: true, clients: 4, ..few });
        let lending = Plan { most_connections, vanishes: 300, refusals: 30, clients: 4, ..Plan::lending() };
        well(seed, &Plan { http2: 600, drains: seed % 2 == 0, ..lending.over_http2() });
    }
}

#[test]
fn streams_are_retried_and_their_servers_ejected() {
    let (mut retries, mut ejections) = (0, 0);
    for seed in seeds(8) {
        let servers = 1 + (seed % 4) as usize;
        let retry = if seed % 2 == 0 { Retry::Always } else { Retry::Idempotent };
        let report = well(seed, &Plan { servers, retry, requests: 20, ..Plan::erring() }.over_http2());
        (retries, ejections) = (retries + report.counters.retries, ejections + report.counters.ejections);
        let errors = Plan { errors: 500, ejects_errors: true, retries_errors: true, ..Plan::failing() };
        well(seed, &Plan { retry, buffers: seed % 3 == 0, http2: 700, ..errors.over_http2() });
    }
    let is_one = std::env::var_os("WEIR_SIM_SEED").is_some();
    assert!(is_one || (retries > 10 && ejections > 5), "{retries} retries, {ejections} ejections");
}

/// Only the drain ends connections. After GOAWAY, clients send the unprocessed requests on other connections.
#[test]
fn a_drain_loses_no_stream() {
    for seed in seeds(30) {
        let with = |plan| Plan { drains: true, adopts: true, mirrors: seed % 3 == 0, ..plan };
        well(seed, &with(Plan::plain().over_http2()));
        // A drain may cut tunnels.
        let rough = Plan { switches: false, ..Plan::rough().over_http2() };
        well(seed, &with(Plan { buffers: seed % 2 == 0, ..rough }));
        well(seed, &with(Plan { http2: 500, workers: 2, ..Plan::faulty().over_http2() }));
    }
}

#[test]
fn streams_behind_a_proxy_have_its_clients_address() {
    for seed in seeds(8) {
        let announces = [None, Some(ProxyProtocol::V1), Some(ProxyProtocol::V2)][(seed % 3) as usize];
        let with = |plan: Plan| Plan { announced: seed % 4 != 3, announces, ..plan.over_http2() };
        assert_eq!(well(seed, &with(Plan::plain())).outcomes, [48, 0, 0, 0], "seed {seed}");
        well(seed, &with(Plan { client_tls: seed % 2 == 0, requests: 6, ..Plan::rough() }));
    }
}
