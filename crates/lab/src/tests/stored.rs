//! Stored runs of any instrument are checked against the plan and judged by today's rules, a cell shows their median,
//! and a comparison drops no block for its value.

use crate::base::error::LabError;
use crate::experiment::Level;
use crate::experiment::metric::Metric;
use crate::findings::comparison::Comparison;
use crate::findings::judge::Judge;
use crate::findings::results::Results;
use crate::instrument::gateway::Gateway;
use crate::instrument::gateway::synthetic::{Shape, Synthetic, Truth};
use crate::instrument::stacks::synthetic::{self, Made};
use crate::instrument::stacks::{Side, Stacks};
use crate::planning::planned_run::{PlannedRun, Stage};
use crate::stats::verdict::Verdict;
use crate::store::Store;
use crate::store::run::{Run, RunOf, Validity};

/// Twelve blocks of `fast` and of `slow`, the baseline.
fn gateways() -> Results<Gateway> {
    Synthetic::new(Shape { aa: false, blocks: 12, groups: 1, versions: &[] }, 1).experiment(Truth::NOTHING)
}

fn stacks() -> Results<Stacks> {
    synthetic::results(&Made::NOTHING)
}

/// The server's time of a run is zero.
fn without_time(run: &mut RunOf<Stacks>) {
    if let Some(times) = run.seen.seen.times.get_mut(&Side::Server) {
        times.total_ns = 0;
    }
}

fn without_cost(run: &mut RunOf<Gateway>) {
    let load = run.seen.observation.load.as_mut().expect("has a result");
    load.servers[0].cost.cpu_us_per_request = Some(0.0);
}

fn is_of<Seen>(run: &Run<Seen>, name: &str, block: u32) -> bool {
    run.run.cell.name == name && run.run.stage == Stage::Block(block)
}

/// Changes the runs, stores them and loads them.
fn reread<I: Judge>(results: &Results<I>, change: impl Fn(&mut RunOf<I>)) -> Result<Results<I>, LabError> {
    let directory = tempfile::tempdir().expect("a directory");
    let store = Store::create(&directory.path().join("results")).expect("is made");
    store.write_json("plan.json", &results.plan).expect("is written");
    store.write_json("machine.json", &results.machine).expect("is written");
    for run in &results.runs {
        let mut run = run.clone();
        change(&mut run);
        store.write_run::<I>(&run).expect("is written");
    }
    Results::read(store.directory())
}

/// The validity stored with a run does not count.
fn are_judged_anew<I: Judge>(results: &Results<I>, spoil: impl Fn(&mut RunOf<I>)) {
    let read = reread(results, |run| {
        if is_of(run, "fast", 1) {
            spoil(run);
            run.validity = Validity::Valid;
        }
        if is_of(run, "fast", 2) {
            run.validity = Validity::Invalid("by an old rule".into());
        }
    });
    let runs = read.expect("is read").runs;
    let of_block = |block: u32| {
        runs.iter().filter(move |run| is_of(run, "fast", block)).map(|run| run.validity.is_valid())
    };
    assert!(of_block(1).count() > 0 && of_block(1).all(|is_valid| !is_valid), "{}", I::NAME);
    assert!(of_block(2).count() > 0 && of_block(2).all(|is_valid| is_valid), "{}", I::NAME);
}

#[test]
fn stored_runs_are_judged_by_the_rules_of_today() {
    are_judged_anew(&gateways(), |run| run.seen.observation.load = None);
    are_judged_anew(&stacks(), |run| run.seen.seen.is_done = false);
}

fn is_refused<I: Judge>(results: &Results<I>) {
    let refused = |change: fn(&mut PlannedRun)| {
        let other = reread(results, |run| {
            if is_of(run, "fast", 1) {
                change(&mut run.run);
            }
        });
        other.expect_err("is rejected").to_string()
    };
    let error = refused(|run| run.id = run.id.replace("b001", "b099"));
    assert!(error.contains("runs/b099-") && error.ends_with("expected a run of plan.json"), "{error}");
    let error = refused(|run| run.cell.levels = run.cell.levels.with("bytes", Level::new(7)));
    assert!(error.contains("runs/b001-") && error.ends_with("as planned"), "{error}");
}

#[test]
fn a_run_that_is_not_planned_is_rejected_with_its_file() {
    is_refused(&gateways());
    is_refused(&stacks());
}

fn shows_the_median<I: Judge>(results: &Results<I>, metric: Metric) {
    let mut shown = 0;
    for found in &results.summary.cells {
        let Some(value) = found.values.get(&metric) else { continue };
        let of_cell = results.runs.iter().filter(|run| run.run.cell.id == found.cell.id);
        let mut values: Vec<f64> = of_cell.filter_map(|run| I::value(metric, run)).collect();
        values.sort_by(f64::total_cmp);
        let median = f64::midpoint(values[5], values[6]);
        assert!((value.value / median - 1.0).abs() < 1e-12, "{}: {value:?}, not {median}", found.cell);
        shown += 1;
    }
    assert!(shown > 0, "{}", I::NAME);
}

/// Regression test: TLS stacks showed the estimate of the location instead, beside medians everywhere else.
#[test]
fn the_value_of_a_cell_is_the_median_of_its_blocks() {
    shows_the_median(&gateways(), Metric::CpuUsPerRequest);
    shows_the_median(&stacks(), Metric::ServerUsPerHandshake);
}

fn is_undecided<I: Judge>(results: &Results<I>, metric: Metric, empty: impl Fn(&mut RunOf<I>)) {
    let read = reread(results, |run| {
        if is_of(run, "fast", 5) {
            empty(run);
        }
    });
    let summary = read.expect("is read").summary;
    let is_it = |one: &&Comparison| one.target == "fast" && one.metric == metric;
    let one = summary.comparisons.iter().find(is_it).expect("is compared");
    assert_eq!((one.blocks, one.ratio.verdict), (11, Verdict::Undecided), "{one:?}");
    assert_eq!(one.ratio.note.as_deref(), Some("11 of 12 blocks have a value above 0"));
}

/// Regression test: the block was dropped, and the other eleven gave a verdict.
#[test]
fn a_pair_with_a_zero_in_it_leaves_its_comparison_undecided() {
    is_undecided(&gateways(), Metric::CpuUsPerRequest, without_cost);
    is_undecided(&stacks(), Metric::ServerUsPerHandshake, without_time);
}
