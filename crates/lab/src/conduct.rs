//! An experiment from its plan to its stored runs: calibration, then the blocks.

use crate::comparison;
use crate::error::LabError;
use crate::experiment::{Load, Precision, Stop};
use crate::plan::{EqualRate, Group, Plan, PlannedRun, Stage};
use crate::progress::Progress;
use crate::run::{Executor, Observation, Request, RunRecord};
use crate::store::Store;
use crate::summary::by_cell;
use std::collections::BTreeMap;

/// What becomes of an experiment when a target does not work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Broken {
    /// It ends as soon as calibration or the first two blocks show it: whoever asked for the target waits for no more.
    Ends,
    /// It goes on with the others.
    GoesOn,
}

/// Makes every run of the plan that is not stored yet.
///
/// The number of blocks and the equal rates are fixed before the first block and written into the stored plan: what a
/// block shows cannot change how many there will be.
pub(crate) fn conduct(
    plan: &mut Plan,
    store: &Store,
    executor: &mut dyn Executor,
    progress: &mut dyn Progress,
    broken: Broken,
) -> Result<(), LabError> {
    store.write_json("plan.json", plan)?;
    let records = calibrate(plan, store, executor, progress, broken)?;
    plan.overheads_ms.extend(overheads_ms(&records));
    if plan.rates.is_empty() {
        plan.rates = equal_rates(plan, &records, broken)?;
    }
    if let (true, Stop::Minutes(minutes)) = (plan.blocks.is_empty(), plan.experiment.stop) {
        let spent = records.iter().map(|record| record.observation.elapsed_ms).sum();
        plan.fix_blocks(plan.blocks_that_fit(minutes, spent));
    }
    store.write_json("plan.json", plan)?;
    let runs = plan.blocks.iter().map(Vec::len).sum::<usize>() as u64;
    progress.begin(runs, plan.block_ms() * plan.blocks.len() as u64);
    let mut all = Vec::new();
    for (block, done) in plan.blocks.clone().iter().zip(1..) {
        all.extend(make(plan, block, store, executor, progress)?);
        if broken == Broken::Ends
            && done == BLOCKS_TO_SHOW
            && let Some(record) = failing(&all).next()
        {
            return Err(LabError::Broken(epitaph(record, store)));
        }
        let Stop::Precision(rule) = plan.experiment.stop else { continue };
        if done < plan.blocks.len() && done >= rule.least as usize && is_precise(plan, &all, rule) {
            plan.blocks.truncate(done);
            plan.is_precise = true;
            store.write_json("plan.json", plan)?;
            break;
        }
    }
    progress.end();
    Ok(())
}

/// Makes the calibration runs. A target that failed in each of its runs is tried once more: its port may have been taken.
fn calibrate(
    plan: &Plan,
    store: &Store,
    executor: &mut dyn Executor,
    progress: &mut dyn Progress,
    broken: Broken,
) -> Result<Vec<RunRecord>, LabError> {
    progress.begin(plan.calibration.len() as u64, plan.calibration_total_ms());
    let mut records = make(plan, &plan.calibration, store, executor, progress)?;
    if broken == Broken::GoesOn {
        return Ok(records);
    }
    let failed: Vec<&RunRecord> = failing(&records).collect();
    if !failed.is_empty() {
        let is_of_failed = |run: &&PlannedRun| failed.iter().any(|record| record.run.id == run.id);
        let again: Vec<PlannedRun> = plan.calibration.iter().filter(is_of_failed).cloned().collect();
        let again = make(plan, &again, store, executor, progress)?;
        records.retain(|record| again.iter().all(|other| other.run.id != record.run.id));
        records.extend(again);
    }
    if let Some(record) = failing(&records).next() {
        return Err(LabError::Calibration(epitaph(record, store)));
    }
    Ok(records)
}

/// The runs of cells of which each run failed, and through its target's fault.
fn failing(records: &[RunRecord]) -> impl Iterator<Item = &RunRecord> {
    let is_targets_fault = |record: &RunRecord| {
        record.observation.failure.as_ref().is_some_and(|why| why.starts_with("target: "))
    };
    records.iter().filter(move |record| {
        records.iter().filter(|other| other.run.cell == record.run.cell).all(is_targets_fault)
    })
}

/// So many blocks show that a target does not work: one could be an accident.
const BLOCKS_TO_SHOW: usize = 2;

/// Why a run failed, the last lines of its target, and where the rest is.
fn epitaph(record: &RunRecord, store: &Store) -> String {
    let Observation { failure, processes, logs, .. } = &record.observation;
    let cell = &record.run.cell;
    let why = failure.as_deref().unwrap_or_default();
    let mut text = format!("{} in {}: {why}", cell.name, cell.mode);
    let target = processes.iter().find(|process| process.role == "target");
    let words: Vec<&str> = target.map_or(Vec::new(), |target| target.stderr.lines().collect());
    for line in &words[words.len().saturating_sub(LAST_LINES)..] {
        text.push_str(&format!("\n  | {line}"));
    }
    if let Some(logs) = logs {
        text.push_str(&format!("\n  logs: {}", store.directory().join(logs).display()));
    }
    text + "\n  next: mend it, leave it out, or go on without it (--allow-invalid)"
}

/// What a target said last is most often why it ended.
const LAST_LINES: usize = 10;

/// Whether no interval of the rule's metric is wider than it asks for. Where the ratios lie is not looked at.
fn is_precise(plan: &Plan, records: &[RunRecord], rule: Precision) -> bool {
    let comparisons = comparison::all(plan, &by_cell(plan, records));
    let mut widths = comparisons
        .iter()
        .filter(|one| one.metric == rule.metric && !one.aa)
        .map(|one| one.ratio.interval().map(|(low, high)| high / low - 1.0))
        .peekable();
    widths.peek().is_some() && widths.all(|width| width.is_some_and(|width| width <= rule.width))
}

fn make(
    plan: &Plan,
    runs: &[PlannedRun],
    store: &Store,
    executor: &mut dyn Executor,
    progress: &mut dyn Progress,
) -> Result<Vec<RunRecord>, LabError> {
    let mut records = Vec::with_capacity(runs.len());
    for run in runs {
        // Only a valid calibration tells a rate: another one is made again when the experiment goes on.
        let is_of_use = |record: &RunRecord| run.stage != Stage::Calibration || record.validity.is_valid();
        if let Some(record) = store.run(&run.id)?.filter(is_of_use) {
            progress.skipped();
            records.push(record);
            continue;
        }
        let rate = plan.rate(&run.cell);
        let request = Request::new(run, plan.experiment.conditions(&run.cell)?, rate);
        progress.starts(run, plan.blocks.len());
        let observation = match run.cell.load == Load::EqualRate && rate.is_none() {
            true => Observation {
                failure: Some("calibration: no target gave a valid run, so there is no equal rate".into()),
                ..Observation::default()
            },
            false => executor.execute(&request)?,
        };
        let record = RunRecord::new(&request, observation);
        store.write_run(&record)?;
        progress.ended(&record);
        records.push(record);
    }
    Ok(records)
}

/// What a run of each target costs beyond its phases: the slow half of what calibration saw.
fn overheads_ms(records: &[RunRecord]) -> BTreeMap<String, u64> {
    let mut by_target: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    for record in records.iter().filter(|record| record.observation.failure.is_none()) {
        let phases = record.served_ms + record.warmup_ms + record.window_ms;
        let spent = record.observation.elapsed_ms.saturating_sub(phases) as f64;
        by_target.entry(&record.run.cell.target).or_default().push(spent);
    }
    let slow_half = |(target, all): (&str, Vec<f64>)| {
        let median = crate::stats::median(&all)?;
        let slow: Vec<f64> = all.into_iter().filter(|value| *value >= median).collect();
        // Some milliseconds more for writing the result and the lab's own turn.
        Some((target.to_owned(), crate::stats::median(&slow).unwrap_or(median) as u64 + 5))
    };
    by_target.into_iter().filter_map(slow_half).collect()
}

/// The equal rate of each mode: a share of the slowest target's maximum, in two significant digits.
///
/// A mode without a gateway takes the lowest rate of the modes with the same client side, where there is one: its
/// latency is there to be read beside theirs.
fn equal_rates(plan: &Plan, records: &[RunRecord], broken: Broken) -> Result<Vec<EqualRate>, LabError> {
    let mut maxima: BTreeMap<(Group, &str), f64> = BTreeMap::new();
    for record in records.iter().filter(|record| record.run.stage == Stage::Calibration) {
        let Some(load) = record.observation.load.as_ref().filter(|_| record.validity.is_valid()) else {
            continue;
        };
        let cell = &record.run.cell;
        let maximum = maxima.entry((cell.group(), &cell.name)).or_default();
        *maximum = maximum.max(load.requests_per_second);
    }
    let mut slowest: BTreeMap<Group, (&str, f64)> = BTreeMap::new();
    for ((group, name), maximum) in maxima {
        let entry = slowest.entry(group).or_insert((name, maximum));
        if maximum < entry.1 {
            *entry = (name, maximum);
        }
    }
    let needs_rates = || plan.cells.iter().all(|cell| cell.load == Load::EqualRate);
    if slowest.is_empty() && !plan.calibration.is_empty() && (broken == Broken::Ends || needs_rates()) {
        let reasons = records.iter().find(|record| !record.validity.is_valid());
        let reason =
            reasons.map_or_else(String::new, |record| format!("; {}: {}", record.run.id, record.validity));
        return Err(LabError::Calibration(format!("no target gave a valid run{reason}")));
    }
    let mut rates: Vec<EqualRate> = slowest
        .into_iter()
        .map(|(Group { mode, connections, bytes, factors, .. }, (slowest, maximum))| EqualRate {
            mode,
            connections,
            bytes,
            factors,
            requests_per_second: two_digits(plan.experiment.rate_share * maximum),
            slowest: slowest.to_owned(),
            slowest_maximum: maximum,
        })
        .collect();
    let with_gateway: Vec<EqualRate> =
        rates.iter().filter(|rate| rate.mode.upstream().is_some()).cloned().collect();
    for rate in rates.iter_mut().filter(|rate| rate.mode.upstream().is_none()) {
        let beside = with_gateway.iter().filter(|other| {
            (other.mode.client(), other.connections, other.bytes, &other.factors)
                == (rate.mode.client(), rate.connections, rate.bytes, &rate.factors)
        });
        if let Some(lowest) = beside.min_by(|a, b| a.requests_per_second.total_cmp(&b.requests_per_second))
            && lowest.requests_per_second < rate.requests_per_second
        {
            *rate = EqualRate { mode: rate.mode, ..lowest.clone() };
        }
    }
    Ok(rates)
}

/// Rounds down to two significant digits.
fn two_digits(rate: f64) -> f64 {
    let unit = 10_f64.powf(rate.max(1.0).log10().floor() - 1.0).max(1.0);
    ((rate / unit).floor() * unit).max(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::Mode;
    use crate::options::RunOptions;
    use crate::plan::Targets;
    use crate::testing::{MockExecutor, experiment, targets};

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

    fn plan(bench: &Bench, change: impl FnOnce(&mut crate::experiment::Experiment)) -> Plan {
        let mut experiment = experiment();
        change(&mut experiment);
        Plan::new(experiment, &bench.targets, &RunOptions::default()).expect("plans")
    }

    #[test]
    fn calibration_comes_first_and_each_block_runs_each_cell_once() {
        let bench = bench();
        let mut plan = plan(&bench, |_| {});
        let mut executor = MockExecutor::new(&COSTS);
        conduct(&mut plan, &bench.store, &mut executor, &mut (), Broken::Ends).expect("runs");
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
        assert_eq!(bench.store.runs().expect("reads").len(), 5 + 6 * cells);
        assert_eq!(bench.store.plan().expect("reads"), plan);
    }

    #[test]
    fn the_order_is_that_of_the_seed_and_differs_between_blocks() {
        let bench = bench();
        let order = |seed| {
            let plan = plan(&bench, |experiment| experiment.seed = seed);
            plan.blocks
                .iter()
                .map(|block| block.iter().map(|run| run.cell.to_string()).collect::<Vec<_>>())
                .collect::<Vec<_>>()
        };
        assert_eq!(order(1), order(1));
        assert_ne!(order(1), order(2));
        let blocks = order(1);
        assert_ne!(blocks[0], blocks[1]);
    }

    #[test]
    fn what_is_compared_lies_together() {
        let bench = bench();
        for block in &plan(&bench, |_| {}).blocks {
            let groups: Vec<_> = block.iter().map(|run| run.cell.group()).collect();
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
        conduct(&mut plan, &bench.store, &mut executor, &mut (), Broken::Ends).expect("runs");
        let rate = |mode| plan.rates.iter().find(|rate| rate.mode == mode).expect("a rate");
        let cleartext = rate(Mode::H1cH1c);
        assert_eq!(cleartext.slowest, "slow");
        // 1e6 / 25 us, with 2 % of noise.
        assert!((36_000.0..44_000.0).contains(&cleartext.slowest_maximum), "{cleartext:?}");
        assert_eq!(cleartext.requests_per_second, two_digits(0.5 * cleartext.slowest_maximum));
        assert_eq!(
            rate(Mode::H1c).requests_per_second,
            cleartext.requests_per_second,
            "direct is offered the same"
        );
        for (id, offered, _) in
            executor.asked.iter().filter(|(id, _, _)| id.contains("h1-h1c") && id.contains("equal-rate"))
        {
            assert_eq!(*offered, Some(rate(Mode::H1H1c).requests_per_second), "{id}");
        }
    }

    #[test]
    fn of_several_calibration_runs_the_best_counts() {
        let bench = bench();
        let mut plan = plan(&bench, |experiment| experiment.calibration_runs = 4);
        let mut executor = MockExecutor::new(&COSTS);
        conduct(&mut plan, &bench.store, &mut executor, &mut (), Broken::Ends).expect("runs");
        assert_eq!(executor.asked.iter().filter(|(id, _, _)| id.starts_with("cal-")).count(), 4 * 5);
        let runs = bench.store.runs().expect("reads");
        let slow = runs.iter().filter(|run| {
            run.run.stage == Stage::Calibration
                && run.run.cell.target == "slow"
                && run.run.cell.mode == Mode::H1cH1c
        });
        let best = slow
            .filter_map(|run| run.observation.load.as_ref())
            .map(|load| load.requests_per_second)
            .fold(0.0, f64::max);
        let rate = plan.rates.iter().find(|rate| rate.mode == Mode::H1cH1c).expect("a rate");
        assert_eq!((rate.slowest.as_str(), rate.slowest_maximum), ("slow", best));
    }

    #[test]
    fn a_fixed_rate_needs_no_calibration() {
        let bench = bench();
        let mut plan = plan(&bench, |experiment| experiment.set_constant("rate", 5000.0.into()));
        let mut executor = MockExecutor::new(&COSTS);
        conduct(&mut plan, &bench.store, &mut executor, &mut (), Broken::Ends).expect("runs");
        assert!(
            executor
                .asked
                .iter()
                .all(|(id, rate, _)| rate.is_none_or(|rate| rate == 5000.0) && !id.starts_with("cal"))
        );
    }

    #[test]
    fn minutes_become_whole_blocks_once_calibration_has_told_what_a_run_costs() {
        let bench = bench();
        let mut plan = plan(&bench, |experiment| {
            experiment.stop = Stop::Minutes(1.0);
        });
        assert!(plan.blocks.is_empty());
        conduct(&mut plan, &bench.store, &mut MockExecutor::new(&COSTS), &mut (), Broken::Ends)
            .expect("runs");
        // The mock says 300 ms for each run, of which 270 are overhead: 14 runs of 10 + 50 + 275 ms in 58.5 s.
        assert_eq!(plan.blocks.len(), 12);
        assert_eq!(plan.blocks_that_fit(10_000.0, 0), crate::stats::MOST_BLOCKS, "a week is too long");
    }

    /// What one target takes to start and to end was taken for what all take.
    #[test]
    fn what_a_run_costs_is_each_targets_own() {
        let bench = bench();
        let mut plan = plan(&bench, |_| {});
        let (calibration, block) = (plan.calibration_total_ms(), plan.block_ms());
        plan.overheads_ms.insert("slow".into(), 6000);
        // Two of five calibration runs are of `slow`, and four of 14 in a block.
        assert_eq!(plan.calibration_total_ms() - calibration, 2 * 5300);
        assert_eq!(plan.block_ms() - block, 4 * 5300);
        conduct(&mut plan, &bench.store, &mut MockExecutor::new(&COSTS), &mut (), Broken::Ends)
            .expect("runs");
        // 300 ms, of which 30 are phases; and 5 for the lab itself.
        let measured = ["direct", "fast", "slow"].map(|name| (name.to_owned(), 275));
        assert_eq!(plan.overheads_ms, BTreeMap::from(measured));
        let mut records = bench.store.runs().expect("reads");
        records.retain(|record| record.run.stage == Stage::Calibration);
        for record in records.iter_mut().filter(|record| record.run.cell.target == "slow") {
            record.observation.elapsed_ms = 7030;
        }
        assert_eq!(overheads_ms(&records)["slow"], 7005);
        assert_eq!(overheads_ms(&records)["fast"], 275);
    }

    #[test]
    fn an_interrupted_experiment_goes_on_where_it_stopped() {
        let bench = bench();
        let mut first = plan(&bench, |_| {});
        let mut executor = MockExecutor::new(&COSTS);
        executor.interrupt_at = Some(30);
        let stopped = conduct(&mut first, &bench.store, &mut executor, &mut (), Broken::Ends);
        assert!(matches!(stopped, Err(LabError::Interrupted { .. })));
        let mut again = bench.store.plan().expect("was stored");
        let mut rest = MockExecutor::new(&COSTS);
        conduct(&mut again, &bench.store, &mut rest, &mut (), Broken::Ends).expect("runs");
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
        conduct(&mut plan, &bench.store, &mut executor, &mut (), Broken::GoesOn).expect("runs");
        let invalid = bench.store.runs().expect("reads").into_iter().filter(|run| !run.validity.is_valid());
        assert!(invalid.clone().all(|run| run.run.cell.target == "slow"));
        assert_eq!(invalid.count(), 2 + 6 * 4);
        assert!(plan.rates.iter().all(|rate| rate.slowest != "slow"));
    }

    /// Five minutes of blocks went by before the report said that the target had never started.
    #[test]
    fn a_target_that_fails_calibration_ends_the_experiment_with_its_last_words() {
        let bench = bench();
        let mut plan = plan(&bench, |_| {});
        let mut executor = MockExecutor::new(&COSTS);
        executor.broken = Some(".slow".into());
        let ended = conduct(&mut plan, &bench.store, &mut executor, &mut (), Broken::Ends);
        let error = ended.expect_err("ends").to_string();
        assert!(
            error.starts_with("calibration: slow in h1") && error.contains(": target: it ended"),
            "{error}"
        );
        assert!(error.contains("(--allow-invalid)"), "{error}");
        // Each calibration run, and those of both modes of the broken target once more.
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
        let ended = conduct(&mut plan, &bench.store, &mut executor, &mut (), Broken::GoesOn);
        let error = ended.expect_err("cannot").to_string();
        assert!(error.starts_with("calibration: no target gave a valid run; cal-001"), "{error}");
    }

    #[test]
    fn two_significant_digits() {
        for (rate, rounded) in
            [(13_765.0, 13_000.0), (9999.0, 9900.0), (105.0, 100.0), (57.9, 57.0), (3.3, 3.0), (0.2, 1.0)]
        {
            assert_eq!(two_digits(rate), rounded);
        }
    }
}
