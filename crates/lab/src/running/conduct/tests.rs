use super::*;
use crate::experiment::options::RunOptions;
use crate::experiment::{Experiment, Stop};
use crate::instrument::gateway::target::Targets;
use crate::instrument::gateway::testing::{experiment, plan as planned, targets};
use crate::instrument::gateway::{Gateway, Mode, Place as _};
use crate::testing::MockExecutor;

const COSTS: [(&str, f64); 3] = [("direct", 10.0), ("fast", 20.0), ("slow", 25.0)];

struct Bench {
    _directory: tempfile::TempDir,
    store: Store,
    targets: Targets,
}

fn bench() -> Bench {
    let directory = tempfile::tempdir().expect("a directory");
    let store = Store::create(&directory.path().join("results")).expect("is made");
    let targets = targets(directory.path());
    Bench { _directory: directory, store, targets }
}

fn plan(bench: &Bench, change: impl FnOnce(&mut Experiment)) -> Plan {
    let mut experiment = experiment();
    change(&mut experiment);
    planned(experiment, &bench.targets, &RunOptions::default()).expect("plans")
}

#[test]
fn calibration_comes_first_and_each_block_runs_each_cell_once() {
    let bench = bench();
    let mut plan = plan(&bench, |_| {});
    let mut executor = MockExecutor::new(&COSTS);
    conduct::<Gateway>(&mut plan, &bench.store, &mut executor, &mut (), Broken::Ends).expect("runs");
    // fast and slow in two modes, direct in one; the A/A twin is calibrated with its target.
    let (calibration, blocks) = executor.asked.split_at(5);
    assert!(
        calibration
            .iter()
            .all(|(id, rate, window)| id.starts_with("cal-") && rate.is_none() && *window == 20)
    );
    let cells = plan.cells.len();
    assert_eq!(cells, 2 * (2 * 3 + 1));
    assert_eq!(blocks.len(), 6 * cells);
    for (index, block) in blocks.chunks(cells).enumerate() {
        let mut names: Vec<&str> = block.iter().map(|(id, _, _)| &id[9..]).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), cells);
        assert!(
            block
                .iter()
                .all(|(id, _, window)| id.starts_with(&format!("b{:03}-", index + 1)) && *window == 50)
        );
    }
    assert_eq!(bench.store.runs::<Gateway>().expect("reads").len(), 5 + 6 * cells);
    assert_eq!(bench.store.plan().expect("reads"), plan);
}

#[test]
fn the_order_is_that_of_the_seed_and_differs_between_blocks() {
    let bench = bench();
    let order = |seed| {
        let plan = plan(&bench, |experiment| experiment.seed = seed);
        plan.blocks
            .iter()
            .map(|block| {
                block.iter().flat_map(|turn| &turn.0).map(|run| run.cell.to_string()).collect::<Vec<_>>()
            })
            .collect::<Vec<_>>()
    };
    assert_eq!(order(1), order(1));
    assert_ne!(order(1), order(2));
    let blocks = order(1);
    assert_ne!(blocks[0], blocks[1]);
}

#[test]
fn compared_cells_run_close_together() {
    let bench = bench();
    for block in &plan(&bench, |_| {}).blocks {
        let groups: Vec<_> = block.iter().flat_map(|turn| &turn.0).map(|run| run.cell.place()).collect();
        let mut changes = groups.clone();
        changes.dedup();
        let mut distinct = groups.clone();
        distinct.sort();
        distinct.dedup();
        assert_eq!(changes.len(), distinct.len());
    }
}

#[test]
fn the_equal_rate_is_half_of_the_slowest_targets_maximum() {
    let bench = bench();
    let mut plan = plan(&bench, |_| {});
    let mut executor = MockExecutor::new(&COSTS);
    conduct::<Gateway>(&mut plan, &bench.store, &mut executor, &mut (), Broken::Ends).expect("runs");
    let rate = |mode| plan.rates.iter().find(|rate| rate.place.mode() == mode).expect("a rate");
    let cleartext = rate(Mode::H1cH1c);
    assert_eq!(cleartext.slowest, "slow");
    // 1e6 / 25 us, with 2 % of noise.
    assert!((36_000.0..44_000.0).contains(&cleartext.slowest_maximum), "{cleartext:?}");
    assert_eq!(
        cleartext.requests_per_second,
        crate::instrument::gateway::two_digits(0.5 * cleartext.slowest_maximum)
    );
    assert_eq!(
        rate(Mode::H1c).requests_per_second,
        cleartext.requests_per_second,
        "direct gets the same rate"
    );
    for (id, offered, _) in
        executor.asked.iter().filter(|(id, _, _)| id.contains("h1-h1c") && id.contains("equal-rate"))
    {
        assert_eq!(*offered, Some(rate(Mode::H1H1c).requests_per_second), "{id}");
    }
}

#[test]
fn the_best_of_several_calibration_runs_counts() {
    let bench = bench();
    let mut plan = plan(&bench, |experiment| experiment.calibration_runs = 4);
    let mut executor = MockExecutor::new(&COSTS);
    conduct::<Gateway>(&mut plan, &bench.store, &mut executor, &mut (), Broken::Ends).expect("runs");
    assert_eq!(executor.asked.iter().filter(|(id, _, _)| id.starts_with("cal-")).count(), 4 * 5);
    let runs = bench.store.runs::<Gateway>().expect("reads");
    let slow = runs.iter().filter(|run| {
        run.run.stage == Stage::Calibration
            && run.run.cell.subject == "slow"
            && run.run.cell.mode() == Mode::H1cH1c
    });
    let best = slow
        .filter_map(|run| run.seen.observation.load.as_ref())
        .map(|load| load.requests_per_second)
        .fold(0.0, f64::max);
    let rate = plan.rates.iter().find(|rate| rate.place.mode() == Mode::H1cH1c).expect("a rate");
    assert_eq!((rate.slowest.as_str(), rate.slowest_maximum), ("slow", best));
}

#[test]
fn a_fixed_rate_needs_no_calibration() {
    let bench = bench();
    let mut plan = plan(&bench, |experiment| experiment.set_constant("rate", 5000.0.into()));
    let mut executor = MockExecutor::new(&COSTS);
    conduct::<Gateway>(&mut plan, &bench.store, &mut executor, &mut (), Broken::Ends).expect("runs");
    assert!(
        executor
            .asked
            .iter()
            .all(|(id, rate, _)| rate.is_none_or(|rate| rate == 5000.0) && !id.starts_with("cal"))
    );
}

#[test]
fn minutes_become_whole_blocks_once_calibration_has_measured_a_run() {
    let bench = bench();
    let mut plan = plan(&bench, |experiment| {
        experiment.stop = Stop::Minutes(1.0);
    });
    assert!(plan.blocks.is_empty());
    conduct::<Gateway>(&mut plan, &bench.store, &mut MockExecutor::new(&COSTS), &mut (), Broken::Ends)
        .expect("runs");
    // The mock reports 300 ms for each run, of which 270 are overhead: 14 runs of 10 + 50 + 275 ms in 58.5 s.
    assert_eq!(plan.blocks.len(), 12);
    assert_eq!(plan.blocks_that_fit(10_000.0, 0), crate::stats::MOST_BLOCKS, "a week is too long");
}

/// Regression test: the overhead of one target was taken for that of all.
#[test]
fn each_target_has_its_own_overhead() {
    let bench = bench();
    let mut plan = plan(&bench, |_| {});
    let (calibration, block) = (plan.calibration_total_ms(), plan.blocks_ms(1));
    plan.overheads_ms.insert("slow".into(), 6000);
    // Two of five calibration runs are of `slow`, and four of 14 in a block.
    assert_eq!(plan.calibration_total_ms() - calibration, 2 * 5650);
    assert_eq!(plan.blocks_ms(1) - block, 4 * 5650);
    conduct::<Gateway>(&mut plan, &bench.store, &mut MockExecutor::new(&COSTS), &mut (), Broken::Ends)
        .expect("runs");
    // 300 ms, of which 30 are phases; and 5 for the lab itself.
    let measured = ["direct", "fast", "slow"].map(|name| (name.to_owned(), 275));
    assert_eq!(plan.overheads_ms, BTreeMap::from(measured));
    let mut records = bench.store.runs::<Gateway>().expect("reads");
    records.retain(|record| record.run.stage == Stage::Calibration);
    for record in records.iter_mut().filter(|record| record.run.cell.subject == "slow") {
        record.seen.observation.elapsed_ms = 7030;
    }
    assert_eq!(overheads_ms::<Gateway>(&records)["slow"], 7005);
    assert_eq!(overheads_ms::<Gateway>(&records)["fast"], 275);
}

#[test]
fn an_interrupted_experiment_resumes_where_it_stopped() {
    let bench = bench();
    let mut first = plan(&bench, |_| {});
    let mut executor = MockExecutor::new(&COSTS);
    executor.interrupt_at = Some(30);
    let stopped = conduct::<Gateway>(&mut first, &bench.store, &mut executor, &mut (), Broken::Ends);
    assert!(matches!(stopped, Err(LabError::Interrupted { .. })));
    let mut again = bench.store.plan().expect("was stored");
    let mut rest = MockExecutor::new(&COSTS);
    conduct::<Gateway>(&mut again, &bench.store, &mut rest, &mut (), Broken::Ends).expect("runs");
    let total = 5 + 6 * first.cells.len();
    assert_eq!((executor.asked.len(), rest.asked.len()), (30, total - 30));
    let mut all: Vec<_> = executor.asked.iter().chain(&rest.asked).map(|(id, _, _)| id).collect();
    all.sort();
    all.dedup();
    assert_eq!(all.len(), total, "no run was made twice");
}

#[test]
fn a_broken_target_does_not_stop_the_others() {
    let bench = bench();
    let mut plan = plan(&bench, |_| {});
    let mut executor = MockExecutor::new(&COSTS);
    executor.broken = Some(".slow".into());
    conduct::<Gateway>(&mut plan, &bench.store, &mut executor, &mut (), Broken::GoesOn).expect("runs");
    let invalid =
        bench.store.runs::<Gateway>().expect("reads").into_iter().filter(|run| !run.validity.is_valid());
    assert!(invalid.clone().all(|run| run.run.cell.subject == "slow"));
    assert_eq!(invalid.count(), 2 + 6 * 4);
    assert!(plan.rates.iter().all(|rate| rate.slowest != "slow"));
}

/// Regression test: five minutes of blocks passed before the report said that the target had never started.
#[test]
fn a_target_that_fails_calibration_ends_the_experiment_with_its_last_words() {
    let bench = bench();
    let mut plan = plan(&bench, |_| {});
    let mut executor = MockExecutor::new(&COSTS);
    executor.broken = Some(".slow".into());
    let ended = conduct::<Gateway>(&mut plan, &bench.store, &mut executor, &mut (), Broken::Ends);
    let error = ended.expect_err("ends").to_string();
    assert!(error.starts_with("calibration: slow in h1") && error.contains(": target: it ended"), "{error}");
    assert!(error.contains("(--allow-invalid)"), "{error}");
    // Each calibration run, and those of both modes of the broken target again.
    assert_eq!(executor.asked.len(), 5 + 2);
}

#[test]
fn with_nothing_but_broken_targets_there_is_no_equal_rate() {
    let bench = bench();
    let mut plan = plan(&bench, |experiment| {
        experiment.set_factor("load_model", vec!["equal-rate".into()]);
    });
    let mut executor = MockExecutor::new(&COSTS);
    executor.broken = Some("request".into());
    let ended = conduct::<Gateway>(&mut plan, &bench.store, &mut executor, &mut (), Broken::GoesOn);
    let error = ended.expect_err("cannot").to_string();
    assert!(error.starts_with("calibration: no target gave a valid run; cal-001"), "{error}");
}

#[test]
fn two_significant_digits() {
    for (rate, rounded) in
        [(13_765.0, 13_000.0), (9999.0, 9900.0), (105.0, 100.0), (57.9, 57.0), (3.3, 3.0), (0.2, 1.0)]
    {
        assert_eq!(crate::instrument::gateway::two_digits(rate), rounded);
    }
}
