//! Runs of the simulator for tests: their seeds, their number of steps, and the report of a failure.

use weir_sim::{Plan, Report, run, shrink};

/// The total number of steps of all tests that take a share of it, unless `WEIR_SIM_STEPS` sets another number.
const STEPS: u64 = 800_000;

/// The seeds to run: the first `count` from 0, or only `WEIR_SIM_SEED` if that is set.
pub(crate) fn seeds(count: u64) -> std::ops::Range<u64> {
    match std::env::var("WEIR_SIM_SEED").ok().and_then(|seed| seed.parse().ok()) {
        Some(seed) => seed..seed + 1,
        None => 0..count,
    }
}

/// The number of steps of a test that takes this many tenths of the total.
pub(crate) fn share(tenths: u64) -> u64 {
    let steps = std::env::var("WEIR_SIM_STEPS").ok().and_then(|steps| steps.parse().ok());
    steps.unwrap_or(STEPS) / 10 * tenths
}

/// Runs a plan that must violate no rule; otherwise prints the smallest failing run found.
#[expect(clippy::print_stdout, reason = "to run it again")]
pub(crate) fn well(seed: u64, plan: &Plan) -> Report {
    let report = run(seed, plan);
    if report.violations.is_empty() {
        return report;
    }
    let first = report.violations[0].clone();
    // Printed first, since shrinking is slow.
    println!("seed {seed}: {}\n  run({seed}, &{plan:?})", report.violations.join("\n  "));
    if std::env::var_os("WEIR_SIM_TRACE").is_some() {
        println!("{}", report.trace.join("\n"));
    }
    let (small_seed, small, report) = shrink(seed, plan);
    let from = report.trace.len().saturating_sub(60);
    panic!(
        "seed {seed}: {first}\n  smallest: run({small_seed}, &{small:?})\n  {}\n  the last events:\n    {}",
        report.violations.join("\n  "),
        report.trace[from..].join("\n    ")
    );
}
