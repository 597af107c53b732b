//! Runs of the gateway's worker with servers that speak HTTP/2, and clients of both versions.

mod support;

use support::{seeds, share, well};
use weir_gateway::document::{HalfClose, Retry};
use weir_sim::{Plan, Report, Tunnels};

/// The number of early ends for a reason.
fn ended(report: &Report, reason: &str) -> u64 {
    report.counters.ended().find(|(known, _)| *known == reason).map_or(0, |(_, count)| count)
}

/// Varies the HTTP versions of the plan's clients by seed.
fn with_clients(seed: u64, plan: Plan) -> Plan {
    match seed % 3 {
        0 => plan,
        1 => plan.over_http2(),
        _ => Plan { http2: 500, ..plan.over_http2() },
    }
}

#[test]
fn requests_that_nothing_disturbs_are_answered() {
    for seed in seeds(30) {
        let report = well(seed, &with_clients(seed, Plan::plain().to_http2()));
        assert_eq!(report.outcomes, [48, 0, 0, 0], "seed {seed}");
        let most_streams = Some(1 + (seed % 4) as u32);
        let few = Plan { most_streams, clients: 8, ..Plan::plain() };
        assert_eq!(well(seed, &with_clients(seed, few.to_http2())).outcomes, [96, 0, 0, 0], "seed {seed}");
        let client_tls = seed % 2 == 0;
        let tls = Plan { client_tls, upstream_tls: true, requests: 5, ..Plan::plain() };
        assert_eq!(well(seed, &with_clients(seed, tls.to_http2())).outcomes, [20, 0, 0, 0], "seed {seed}");
    }
}

#[test]
fn a_rough_network_loses_no_request() {
    let (mut steps, mut tunnels) = (0, Tunnels::default());
    for seed in 0.. {
        let (buffers, mirrors, upstream_tls) = (seed % 3 == 0, seed % 4 == 0, seed % 5 == 4);
        let most_streams = (seed % 2 == 0).then_some(1 + (seed % 7) as u32);
        let plan = Plan { buffers, mirrors, upstream_tls, most_streams, ..Plan::rough() };
        let report = well(seed, &with_clients(seed, plan.to_http2()));
        (steps, tunnels) = (steps + report.steps, tunnels.and(report.tunnels));
        if steps > share(2) {
            break;
        }
    }
    println!("{steps} steps, {tunnels:?}");
    let are_met = |counts: [[usize; 2]; 2], least| counts.iter().all(|[_, of_http2]| *of_http2 > least);
    let are_met = are_met(tunnels.complete, 2) && are_met(tunnels.refused, 0);
    assert!(are_met, "WebSockets of both versions: {tunnels:?}");
}

/// Runs with every kind of fault of servers and clients. Some of the gateways drain.
#[test]
fn whatever_a_server_does_has_one_reason() {
    // The gateway retries a request that GOAWAY refuses, on another connection, so no request ends for that reason.
    const REASONS: [&str; 4] =
        ["upstream_reset", "upstream_truncated", "bad_upstream_http2", "upstream_timeout"];
    let (mut steps, mut unprocessed, mut counts) = (0, 0, [0; REASONS.len()]);
    let mut tunnels = Tunnels::default();
    for seed in 0.. {
        let drains = seed % 4 == 0;
        let most_streams = (seed % 2 == 0).then_some(1 + (seed % 7) as u32);
        let of = |plan: Plan| {
            let plan = Plan { most_streams, buffers: seed % 5 == 0, ..plan.to_http2() };
            with_clients(seed, plan)
        };
        for plan in [
            Plan { drains, half_close: HalfClose::Serve, ..Plan::faulty() },
            Plan { bad_answers: 100, ..Plan::rough() },
            Plan { drains, upstream_tls: true, client_tls: seed % 2 == 0, requests: 5, ..Plan::faulty() },
            Plan { drains, workers: 2, drains_servers: seed % 3 == 0, ..Plan::failing() },
        ] {
            let report = well(seed, &of(plan));
            (steps, tunnels) = (steps + report.steps, tunnels.and(report.tunnels));
            unprocessed += report.counters.unprocessed_retries;
            for (count, reason) in counts.iter_mut().zip(REASONS) {
                *count += ended(&report, reason);
            }
        }
        if steps > share(3) {
            break;
        }
    }
    println!("{steps} steps, {counts:?}, {unprocessed} unprocessed, {tunnels:?}");
    let is_one = std::env::var_os("WEIR_SIM_SEED").is_some();
    let is_met = counts.iter().all(|count| *count > 0) && unprocessed > 10;
    assert!(is_one || is_met, "each of {REASONS:?} is met: {counts:?}, {unprocessed} unprocessed");
    let are_cut = tunnels.cut.iter().all(|[_, of_http2]| *of_http2 > 0);
    let are_unsupported = tunnels.unsupported.iter().all(|count| *count > 5);
    assert!(is_one || (are_cut && are_unsupported), "WebSockets of both versions: {tunnels:?}");
}

#[test]
fn requests_wait_for_streams_and_lose_nothing() {
    for seed in seeds(8) {
        let most_connections = Some(1 + (seed % 3) as usize);
        let most_streams = Some(1 + (seed % 4) as u32);
        let with = |plan: Plan| {
            let plan = Plan { most_connections, most_streams, clients: 6, ..plan };
            with_clients(seed, plan.to_http2())
        };
        assert_eq!(well(seed, &with(Plan::plain())).outcomes, [72, 0, 0, 0], "seed {seed}");
        well(seed, &with(Plan { adopts: seed % 2 == 0, switches: false, ..Plan::rough() }));
        well(seed, &with(Plan { adopts: false, ..Plan::faulty() }));
        well(seed, &with(Plan { most_waiting: Some(seed as usize % 3), workers: 2, ..Plan::rough() }));
        well(seed, &with(Plan { drains: seed % 2 == 0, vanishes: 300, refusals: 30, ..Plan::lending() }));
    }
}

#[test]
fn requests_are_retried_and_their_servers_ejected() {
    let (mut retries, mut ejections) = (0, 0);
    for seed in seeds(12) {
        let servers = 1 + (seed % 4) as usize;
        let retry = if seed % 2 == 0 { Retry::Always } else { Retry::Idempotent };
        let erring = Plan { servers, retry, requests: 20, ..Plan::erring() };
        let report = well(seed, &with_clients(seed, erring.to_http2()));
        (retries, ejections) = (retries + report.counters.retries, ejections + report.counters.ejections);
        let errors = Plan {
            errors: 500,
            ejects_errors: true,
            retries_errors: true,
            switches: false,
            ..Plan::failing()
        };
        well(seed, &with_clients(seed, Plan { retry, buffers: seed % 3 == 0, ..errors.to_http2() }));
    }
    let is_one = std::env::var_os("WEIR_SIM_SEED").is_some();
    assert!(is_one || (retries > 10 && ejections > 5), "{retries} retries, {ejections} ejections");
}

/// Only the drain ends clients' connections, and a server that sends GOAWAY still completes the requests that it has
/// accepted.
#[test]
fn a_drain_loses_no_request() {
    for seed in seeds(30) {
        let with = |plan: Plan| {
            with_clients(seed, Plan { drains: true, adopts: true, mirrors: seed % 3 == 0, ..plan.to_http2() })
        };
        well(seed, &with(Plan::plain()));
        // A drain may cut tunnels.
        well(seed, &with(Plan { buffers: seed % 2 == 0, switches: false, ..Plan::rough() }));
        well(seed, &with(Plan { workers: 2, ..Plan::faulty() }));
    }
}

#[test]
fn the_policy_for_retries_holds_for_streams() {
    let mut retries = [0; 4];
    for seed in seeds(10) {
        let plans = [(Retry::Idempotent, 10), (Retry::Always, 10), (Retry::Never, 10), (Retry::Always, 0)];
        for (at, (retry, retry_percent)) in plans.into_iter().enumerate() {
            let plan = Plan { retry, retry_percent, garbage: 0, adopts: false, ..Plan::faulty() };
            let counters = well(seed, &plan.to_http2()).counters;
            retries[at] += counters.retries - counters.unprocessed_retries;
        }
    }
    let is_one = std::env::var_os("WEIR_SIM_SEED").is_some();
    assert!(is_one || (retries[1] > 0 && retries[0] > 0), "{retries:?}");
    assert_eq!(retries[2..], [0, 0]);
}

/// Each reload may switch the HTTP version towards servers while requests over both versions are in flight.
#[test]
fn reloads_that_switch_the_version_lose_nothing() {
    for seed in seeds(8) {
        let with = |plan: Plan| {
            let plan = Plan { flips_http2: true, adopts: true, requests: 20, ..plan.to_http2() };
            with_clients(seed, Plan { most_streams: Some(1 + (seed % 5) as u32), ..plan })
        };
        assert_eq!(well(seed, &with(Plan::plain())).outcomes, [80, 0, 0, 0], "seed {seed}");
        well(seed, &with(Plan { buffers: seed % 2 == 0, ..Plan::rough() }));
        well(seed, &with(Plan { most_connections: Some(2), clients: 6, ..Plan::rough() }));
        // A switch of the version replaces the servers by new ones without a health state.
        well(seed, &with(Plan { drains: seed % 2 == 0, workers: 2, ..Plan::faulty() }));
    }
}
