//! Many runs of the gateway's worker over the simulated network.

mod support;

use support::{seeds, share, well};
use weir_gateway::document::{HalfClose, ProxyProtocol, Retry};
use weir_sim::{Plan, Report, run};

#[test]
fn what_nothing_disturbs_is_answered() {
    for seed in seeds(40) {
        let report = well(seed, &Plan::plain());
        assert_eq!(report.outcomes[0], 48, "seed {seed}");
    }
}

#[test]
fn a_rough_network_loses_nothing() {
    let mut steps = 0;
    for seed in 0.. {
        steps += well(seed, &Plan::rough()).steps;
        if steps > share(3) {
            break;
        }
    }
}

#[test]
fn tunnels_pass_everything() {
    let mut steps = 0;
    for seed in 0.. {
        let report = well(seed, &Plan::tunnels());
        assert_eq!(report.outcomes[1..], [0, 0, 0], "seed {seed}");
        steps += report.steps;
        well(
            seed,
            &Plan { vanishes: 150, half_closes: 100, refusals: 30, drains: seed % 3 == 0, ..Plan::tunnels() },
        );
        if steps > share(1) {
            break;
        }
    }
}

#[test]
fn whatever_goes_wrong_has_one_reason() {
    const SLOW: [&str; 4] = ["body_too_slow", "body_overdue", "client_too_slow", "response_overdue"];
    let (mut steps, mut retries, mut slow) = (0, 0, [0; SLOW.len()]);
    for seed in 0.. {
        let report = well(seed, &Plan::faulty());
        (steps, retries) = (steps + report.steps, retries + report.counters.retries);
        for (count, reason) in slow.iter_mut().zip(SLOW) {
            *count += report.trace.iter().filter(|line| line.contains(reason)).count();
        }
        if steps > share(4) {
            break;
        }
    }
    println!("{steps} steps, {retries} retries, slow {slow:?}");
    assert!(retries > 10, "{retries}");
    assert!(slow.iter().all(|count| *count > 0), "each of {SLOW:?} is met: {slow:?}");
}

/// A client that ends its stream while it waits is served or counts as disconnected, by the listener's setting.
#[test]
fn a_half_close_is_served_or_has_a_reason() {
    let client_closed = |report: &Report| {
        report.counters.ended().find(|(reason, _)| *reason == "client_closed").map_or(0, |(_, count)| count)
    };
    let mut given_up = 0;
    for seed in seeds(4) {
        // The simulation's TLS clients read nothing after sending close_notify.
        let over_tls = |half_close| half_close == HalfClose::Abort && seed % 2 == 0;
        let of = |half_close, plan| Plan {
            half_closes: 700,
            half_close,
            client_tls: over_tls(half_close),
            ..plan
        };
        for plan in [Plan::plain(), Plan::rough()] {
            let report = well(seed, &of(HalfClose::Serve, plan.clone()));
            assert_eq!((report.outcomes[0], client_closed(&report)), (48, 0), "seed {seed}");
            let report = well(seed, &of(HalfClose::Abort, plan));
            // Every lost request has a reason, which `well` compares with the log.
            given_up += client_closed(&report);
        }
        let queues = Plan { most_connections: Some(2), adopts: false, ..Plan::rough() };
        well(seed, &of(HalfClose::Serve, queues.clone()));
        well(seed, &of(HalfClose::Abort, queues));
        well(seed, &of(HalfClose::Abort, Plan { buffers: true, switches: true, ..Plan::rough() }));
        well(seed, &of(HalfClose::Abort, Plan { drains: true, mirrors: true, ..Plan::rough() }));
        well(seed, &of(HalfClose::Serve, Plan { drains: true, ..Plan::faulty() }));
    }
    assert!(given_up > 0, "{given_up}");
}

#[test]
fn a_drain_ends_and_loses_nothing_in_silence() {
    let mut steps = 0;
    for seed in 0.. {
        steps += well(seed, &Plan::drained()).steps;
        if steps > share(3) {
            break;
        }
    }
}

#[test]
fn requests_wait_for_connections_and_lose_nothing() {
    for seed in seeds(40) {
        let most_connections = Some(1 + (seed % 3) as usize);
        let plain = Plan { most_connections, clients: 8, ..Plan::plain() };
        let report = well(seed, &plain);
        assert_eq!(report.outcomes[0], 96, "seed {seed}");
        well(seed, &Plan { switches: false, adopts: seed % 2 == 0, most_connections, ..Plan::rough() });
        well(seed, &Plan { adopts: false, most_connections, ..Plan::faulty() });
        well(seed, &Plan { most_connections, ..Plan::drained() });
    }
}

#[test]
fn buffered_messages_lose_nothing() {
    for seed in seeds(40) {
        let most_connections = (seed % 2 == 0).then_some(2);
        let with = |plan| Plan { buffers: true, most_connections, ..plan };
        assert_eq!(well(seed, &with(Plan::plain())).outcomes[0], 48, "seed {seed}");
        well(seed, &with(Plan { adopts: most_connections.is_none(), switches: false, ..Plan::rough() }));
        well(seed, &with(Plan { adopts: most_connections.is_none(), ..Plan::faulty() }));
        well(seed, &with(Plan::drained()));
    }
}

/// Only the drain ends connections, and the gateway responds to each request that arrives before the end of its
/// connection.
#[test]
fn reloads_and_a_drain_lose_nothing() {
    for seed in seeds(40) {
        let with =
            |plan| Plan { drains: true, switches: false, adopts: true, mirrors: seed % 3 == 0, ..plan };
        well(seed, &with(Plan::plain()));
        well(seed, &with(Plan { servers: 1 + (seed % 3) as usize, buffers: seed % 2 == 0, ..Plan::rough() }));
        well(seed, &with(Plan { most_connections: Some(2), clients: 8, ..Plan::rough() }));
        well(seed, &with(Plan { adopts: seed % 2 == 0, workers: 2, ..Plan::lending() }));
    }
}

/// A reload that renames the listener drains its connections. Late requests on these follow the configuration before
/// the reload.
#[test]
fn connections_of_a_renamed_listener_keep_its_last_configuration() {
    let mut steps = 0;
    for seed in 0.. {
        let with = |plan| Plan { renames: true, adopts: true, switches: false, ..plan };
        let two = Plan { workers: 2, servers: 3, ..Plan::rough() };
        for plan in [Plan::plain(), Plan::rough(), Plan::faulty(), two, Plan::rough().over_http2()] {
            steps += well(seed, &with(plan)).steps;
        }
        if steps > share(2) {
            break;
        }
    }
}

#[test]
fn servers_that_fail_get_no_requests() {
    let (mut steps, mut ejections, mut retries) = (0, 0, 0);
    for seed in seeds(40) {
        let servers = 2 + (seed % 3) as usize;
        let workers = 1 + (seed % 2) as usize;
        let plan = Plan { servers, workers, drains: seed % 5 == 0, ..Plan::failing() };
        for plan in [Plan { bad_answers: 20, vanishes: 20, requests: 40, ..plan.clone() }, plan] {
            let report = well(seed, &plan);
            steps += report.steps;
            ejections += report.counters.ejections;
            retries += report.counters.retries;
        }
    }
    println!("{steps} steps, {ejections} ejections, {retries} retries");
    let is_one = std::env::var_os("WEIR_SIM_SEED").is_some();
    assert!(is_one || (ejections > 20 && retries > 20), "{ejections} ejections, {retries} retries");
}

/// Runs whose only faults are error responses, and runs with other faults, too.
#[test]
fn errors_eject_their_servers_and_other_servers_are_asked() {
    let (mut ejections, mut retries, mut errors) = (0, 0, 0);
    for seed in seeds(8) {
        let servers = 1 + (seed % 4) as usize;
        let eject_percent = (seed % 3 == 0).then_some(30);
        let with = |plan| Plan { servers, eject_percent, workers: 1 + (seed % 2) as usize, ..plan };
        let erring = with(Plan { requests: 20, ..Plan::erring() });
        let plain = Plan { rough: false, switches: false, adopts: false, ..erring.clone() };
        let report = well(seed, &plain);
        // A response before the end of the request body, followed by a close, may be lost.
        assert!(report.outcomes[1] + report.outcomes[2] <= 3, "seed {seed}: {:?}", report.outcomes);
        let rough = well(seed, &Plan { buffers: seed % 2 == 0, mirrors: seed % 5 == 0, ..erring.clone() });
        for Report { counters, .. } in [report, rough] {
            (ejections, retries) = (ejections + counters.ejections, retries + counters.retries);
            errors += counters.responses.0[5];
        }
        let Plan { errors, ejects_errors, retries_errors, .. } = erring;
        let failing = Plan { drains: seed % 2 == 0, ..Plan::failing() };
        well(seed, &Plan { errors, ejects_errors, retries_errors, ..with(failing) });
    }
    println!("{ejections} ejections, {retries} retries, {errors} errors");
    let is_one = std::env::var_os("WEIR_SIM_SEED").is_some();
    assert!(is_one || (ejections > 20 && retries > 50 && errors > 50), "{ejections}, {retries}, {errors}");
}

/// The retry settings also apply to error responses. Every server sends only errors, so each request is a candidate for
/// a retry.
#[test]
fn another_server_is_asked_as_often_as_it_may_be() {
    let mut retries = [0; 5];
    for seed in seeds(2) {
        let erring = Plan { errors: 1000, ejects_errors: false, requests: 100, ..Plan::erring() };
        let plain = Plan { servers: 4, rough: false, switches: false, adopts: false, ..erring };
        let always = Plan { retry: Retry::Always, retry_percent: 100, ..plain.clone() };
        let plans = [
            plain.clone(),
            Plan { client_tls: seed % 2 == 0, upstream_tls: true, requests: 20, ..always.clone() },
            always,
            Plan { retry_percent: 0, ..plain.clone() },
            Plan { retries_errors: false, ..plain },
        ];
        for (retries, plan) in retries.iter_mut().zip(plans) {
            *retries += well(seed, &plan).counters.retries;
        }
    }
    println!("{retries:?}");
    assert!(retries[2] > retries[0] && retries[0] > 0 && retries[1] > 0, "{retries:?}");
    assert_eq!(retries[3..], [0, 0]);
}

#[test]
fn a_drained_server_gets_nothing_new_and_nothing_is_lost() {
    for seed in seeds(20) {
        let servers = 2 + (seed % 3) as usize;
        let with = |plan| Plan { servers, requests: 30, drains_servers: true, ..plan };
        assert_eq!(well(seed, &with(Plan::plain())).outcomes[0], 120, "seed {seed}");
        well(seed, &with(Plan { workers: 1 + (seed % 2) as usize, buffers: seed % 3 == 0, ..Plan::rough() }));
        well(seed, &with(Plan { adopts: seed % 2 == 0, ..Plan::lending() }));
        well(seed, &with(Plan::failing()));
        well(seed, &with(Plan { mirrors: seed % 2 == 0, ..Plan::drained() }));
    }
}

#[test]
fn what_may_be_repeated_is_a_setting() {
    let mut retries = [0; 4];
    for seed in seeds(10) {
        let plans = [(Retry::Idempotent, 10), (Retry::Always, 10), (Retry::Never, 10), (Retry::Always, 0)];
        for (at, (retry, retry_percent)) in plans.into_iter().enumerate() {
            let plan = Plan { retry, retry_percent, garbage: 0, adopts: false, ..Plan::faulty() };
            retries[at] += well(seed, &plan).counters.retries;
        }
    }
    println!("{retries:?}");
    let is_one = std::env::var_os("WEIR_SIM_SEED").is_some();
    assert!(is_one || (retries[1] > retries[0] && retries[0] > 0), "{retries:?}");
    assert_eq!(retries[2..], [0, 0]);
}

#[test]
fn copies_go_elsewhere_and_their_answers_nowhere() {
    let mut copies = 0;
    for seed in seeds(25) {
        let report = well(seed, &Plan { mirrors: true, ..Plan::plain() });
        assert_eq!(report.outcomes[0], 48, "seed {seed}");
        copies += report.counters.mirrors().map(|(_, count)| count).sum::<u64>();
        well(seed, &Plan { mirrors: true, buffers: seed % 2 == 0, ..Plan::rough() });
        well(seed, &Plan { mirrors: true, drains: seed % 2 == 0, ..Plan::faulty() });
    }
    assert!(copies > 10, "{copies}");
}

#[test]
fn a_full_queue_refuses_and_loses_nothing() {
    let mut refused = 0;
    for seed in seeds(30) {
        let most_waiting = Some((seed % 3) as usize);
        let few = Plan { most_connections: Some(1), most_waiting, clients: 6, ..Plan::plain() };
        refused += well(seed, &few).outcomes[1];
        let (adopts, workers) = (seed % 2 == 0, 1 + (seed % 2) as usize);
        well(seed, &Plan { adopts, workers, rough: true, ..few.clone() });
        well(seed, &Plan { most_connections: Some(2), most_waiting, adopts, workers, ..Plan::faulty() });
    }
    let is_one = std::env::var_os("WEIR_SIM_SEED").is_some();
    assert!(is_one || refused > 20, "{refused}");
}

#[test]
fn workers_lend_each_other_what_both_want() {
    let mut lent = 0;
    for seed in seeds(20) {
        let plan = Plan { most_connections: Some(1 + (seed % 3) as usize), ..Plan::lending() };
        let plan = Plan { workers: 2 + (seed % 4 / 3) as usize, ..plan };
        lent += well(seed, &plan).counters.taken_over;
        let faults = Plan { vanishes: 300, half_closes: 100, bad_answers: 100, refusals: 30, ..plan.clone() };
        lent += well(seed, &faults).counters.taken_over;
        well(seed, &Plan { adopts: true, drains: seed % 2 == 0, health: seed % 3 == 0, ..faults });
    }
    let is_one = std::env::var_os("WEIR_SIM_SEED").is_some();
    assert!(is_one || lent > 100, "{lent}");
}

#[test]
fn who_is_announced_is_who_it_was() {
    for seed in seeds(20) {
        let announces = [None, Some(ProxyProtocol::V1), Some(ProxyProtocol::V2)][(seed % 3) as usize];
        let with = |plan| Plan { announced: seed % 4 != 3, announces, ..plan };
        assert_eq!(well(seed, &with(Plan::plain())).outcomes[0], 48, "seed {seed}");
        well(seed, &with(Plan::rough()));
        well(seed, &with(Plan { most_connections: Some(2), adopts: false, ..Plan::faulty() }));
        well(seed, &with(Plan { client_tls: true, requests: 4, ..Plan::rough() }));
    }
}

#[test]
fn names_decide_who_decrypts() {
    for seed in seeds(6) {
        let with =
            |plan| Plan { client_tls: true, passes: true, announced: seed % 2 == 0, requests: 6, ..plan };
        assert_eq!(well(seed, &with(Plan::plain())).outcomes[0], 24, "seed {seed}");
        well(seed, &with(Plan::rough()));
        well(seed, &with(Plan { drains: seed % 2 == 0, ..Plan::faulty() }));
    }
}

/// Regression test: two workers waited for the only connection, and one received it in a message after its client had
/// disconnected. That worker kept the connection idle. The other one, which asks only once, waited until the connection
/// closed.
#[test]
fn a_lent_connection_whose_borrower_has_left_goes_to_who_waits() {
    for seed in seeds(10) {
        let most_connections = Some(1 + (seed % 3) as usize);
        let faults = Plan { vanishes: 300, bad_answers: 100, refusals: 30, ..Plan::lending() };
        well(seed, &Plan { most_connections, ..faults });
    }
}

/// Regression test: a pooled connection closed before its response, and the gateway retried the request at the same
/// server, although this server was ejected or down and others were available.
#[test]
fn a_request_is_not_repeated_at_a_server_that_is_out() {
    for seed in seeds(12) {
        let some = Plan {
            vanishes: 0,
            garbage: 0,
            bad_answers: 20,
            refusals: 0,
            speaks_first: 0,
            ..Plan::failing()
        };
        well(seed, &Plan { servers: 4, clients: 24, outages: 60, adopts: false, switches: false, ..some });
    }
}

#[test]
fn tls_on_either_side() {
    for (client_tls, upstream_tls) in [(true, false), (false, true), (true, true)] {
        for seed in seeds(6) {
            well(seed, &Plan { client_tls, upstream_tls, ..Plan::plain() });
            well(seed, &Plan { client_tls, upstream_tls, ..Plan::rough() });
            well(seed, &Plan { client_tls, upstream_tls, ..Plan::tunnels() });
            well(seed, &Plan { client_tls, upstream_tls, ..Plan::faulty() });
        }
    }
}

#[test]
fn the_same_seed_is_the_same_run() {
    for plan in [Plan::rough(), Plan::drained()] {
        let (first, second) = (run(7, &plan), run(7, &plan));
        assert_eq!((first.steps, first.trace), (second.steps, second.trace));
    }
}

/// Tests the checks themselves: a network that flips bits must cause violations.
#[test]
fn a_network_that_changes_bytes_is_noticed() {
    let plan = Plan { corrupts: true, ..Plan::rough() };
    let noticed = (0..10).filter(|seed| !run(*seed, &plan).violations.is_empty()).count();
    assert!(noticed >= 8, "{noticed} of 10");
}
