//! Many runs of the gateway's worker over a simulated network.

use weir_sim::{Plan, Report, run, shrink};

/// Steps that all tests here take together, unless `WEIR_SIM_STEPS` asks for more.
const STEPS: u64 = 3_000_000;

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
        well(seed, &Plan { vanishes: 150, refusals: 30, drains: seed % 3 == 0, ..Plan::tunnels() });
        if steps > share(1) {
            break;
        }
    }
}

#[test]
fn whatever_goes_wrong_has_one_reason() {
    const SLOW: [&str; 4] = ["body_too_slow", "body_overdue", "client_too_slow", "answer_overdue"];
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

/// A check that cannot fail checks nothing.
#[test]
fn a_network_that_changes_bytes_is_noticed() {
    let plan = Plan { corrupts: true, ..Plan::rough() };
    let noticed = (0..10).filter(|seed| !run(*seed, &plan).violations.is_empty()).count();
    assert!(noticed >= 8, "{noticed} of 10");
}

/// The seeds to run: `WEIR_SIM_SEED` alone, if it is set.
fn seeds(count: u64) -> std::ops::Range<u64> {
    match std::env::var("WEIR_SIM_SEED").ok().and_then(|seed| seed.parse().ok()) {
        Some(seed) => seed..seed + 1,
        None => 0..count,
    }
}

/// So many tenths of all steps.
fn share(tenths: u64) -> u64 {
    let steps = std::env::var("WEIR_SIM_STEPS").ok().and_then(|steps| steps.parse().ok());
    steps.unwrap_or(STEPS) / 10 * tenths
}

/// Runs a plan that must break no rule. Prints the smallest failing run that it finds otherwise.
fn well(seed: u64, plan: &Plan) -> Report {
    let report = run(seed, plan);
    if report.violations.is_empty() {
        return report;
    }
    let first = report.violations[0].clone();
    let (small_seed, small, report) = shrink(seed, plan);
    let from = report.trace.len().saturating_sub(60);
    panic!(
        "seed {seed}: {first}\n  smallest: run({small_seed}, &{small:?})\n  {}\n  the last events:\n    {}",
        report.violations.join("\n  "),
        report.trace[from..].join("\n    ")
    );
}
