//! An experiment from its plan to its stored runs: calibration, then the blocks.

use crate::base::error::LabError;
use crate::experiment::{Precision, Stop};
use crate::findings::comparison;
use crate::findings::judge::Facts;
use crate::findings::summary::by_cell;
use crate::planning::plan::{Plan, Turn};
use crate::planning::planned_run::Stage;
use crate::planning::schedule;
use crate::running::disturbance;
use crate::running::measure::{Executor, Measure, Request};
use crate::running::progress::Progress;
use crate::stats;
use crate::store::Store;
use crate::store::run::{Run, RunOf};
use std::collections::BTreeMap;

/// The consequence of a broken subject.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Broken {
    /// The experiment ends as soon as calibration or the first two blocks show it: the user asked for that subject.
    Ends,
    /// The experiment continues with the others.
    GoesOn,
}

/// Makes every run of the plan that is not stored yet.
///
/// The number of blocks and the equal rates are fixed before the first block and stored with the plan: no result of
/// a block can change how many there are.
pub(crate) fn conduct<I: Measure>(
    plan: &mut Plan,
    store: &Store,
    executor: &mut dyn Executor<I>,
    progress: &mut dyn Progress,
    broken: Broken,
) -> Result<(), LabError> {
    store.write_json("plan.json", plan)?;
    let runs = calibrate::<I>(plan, store, executor, progress, broken)?;
    plan.overheads_ms.extend(overheads_ms::<I>(&runs));
    if plan.rates.is_empty() {
        I::calibrated(plan, &runs, broken == Broken::Ends)?;
    }
    if let (true, Stop::Minutes(minutes)) = (plan.blocks.is_empty(), plan.experiment.stop) {
        let spent = runs.iter().map(|run| I::facts(&run.seen).elapsed_ms).sum();
        plan.fix_blocks(plan.blocks_that_fit(minutes, spent));
    }
    store.write_json("plan.json", plan)?;
    let turns = plan.blocks.iter().map(Vec::len).sum::<usize>() as u64;
    progress.begin(turns, plan.blocks_ms(plan.blocks.len() as u32));
    let mut all = Vec::new();
    let mut repeats = (plan.experiment.repeats * turns as f64) as usize;
    for (block, done) in plan.blocks.clone().iter().zip(1..) {
        all.extend(make::<I>(plan, block, &mut repeats, store, executor, progress)?);
        if broken == Broken::Ends
            && done == BLOCKS_TO_SHOW
            && let Some(run) = failing::<I>(&all).next()
        {
            return Err(LabError::Broken(epitaph::<I>(run, store)));
        }
        let Stop::Precision(rule) = plan.experiment.stop else { continue };
        if done < plan.blocks.len() && done >= rule.least as usize && is_precise::<I>(plan, &all, rule) {
            plan.blocks.truncate(done);
            plan.is_precise = true;
            store.write_json("plan.json", plan)?;
            break;
        }
    }
    progress.end();
    Ok(())
}

/// Makes the calibration runs. A subject that failed in each of its runs is tried again: its port may have been taken.
fn calibrate<I: Measure>(
    plan: &Plan,
    store: &Store,
    executor: &mut dyn Executor<I>,
    progress: &mut dyn Progress,
    broken: Broken,
) -> Result<Vec<RunOf<I>>, LabError> {
    progress.begin(plan.calibration.len() as u64, plan.calibration_total_ms());
    let mut runs = make::<I>(plan, &plan.calibration, &mut 0, store, executor, progress)?;
    if broken == Broken::GoesOn {
        return Ok(runs);
    }
    let failed: Vec<&str> = failing::<I>(&runs).map(|run| run.run.id.as_str()).collect();
    if !failed.is_empty() {
        let is_of_failed = |turn: &&Turn| turn.0.iter().any(|run| failed.contains(&run.id.as_str()));
        let again: Vec<Turn> = plan.calibration.iter().filter(is_of_failed).cloned().collect();
        let again = make::<I>(plan, &again, &mut 0, store, executor, progress)?;
        runs.retain(|run| again.iter().all(|other| other.run.id != run.run.id));
        runs.extend(again);
    }
    if let Some(run) = failing::<I>(&runs).next() {
        return Err(LabError::Calibration(epitaph::<I>(run, store)));
    }
    Ok(runs)
}

/// The runs of cells in which every run failed through its subject's fault.
fn failing<I: Measure>(runs: &[RunOf<I>]) -> impl Iterator<Item = &RunOf<I>> {
    let is_its_fault = |run: &RunOf<I>| I::facts(&run.seen).broken.is_some();
    runs.iter()
        .filter(move |run| runs.iter().filter(|other| other.run.cell == run.run.cell).all(is_its_fault))
}

/// This many blocks show that a subject is broken: one could be an accident.
const BLOCKS_TO_SHOW: usize = 2;

/// Why a run failed, the last lines of its subject, and where the rest is.
fn epitaph<I: Measure>(run: &RunOf<I>, store: &Store) -> String {
    let Facts { broken, logs, .. } = I::facts(&run.seen);
    let (why, words) = broken.unwrap_or_default();
    let place = I::short(&run.run.cell);
    let place = if place.is_empty() { String::new() } else { format!(" in {place}") };
    let mut text = format!("{}{place}: {why}", run.run.cell.name);
    let words: Vec<&str> = words.lines().collect();
    for line in &words[words.len().saturating_sub(LAST_LINES)..] {
        text.push_str(&format!("\n  | {line}"));
    }
    if let Some(logs) = logs {
        text.push_str(&format!("\n  logs: {}", store.directory().join(logs).display()));
    }
    text + "\n  next: fix it, leave it out, or continue without it (--allow-invalid)"
}

/// A subject's last lines usually say why it exited.
const LAST_LINES: usize = 10;

/// Whether no interval of the rule's metric is wider than required. The ratios themselves do not matter.
fn is_precise<I: Measure>(plan: &Plan, runs: &[RunOf<I>], rule: Precision) -> bool {
    let comparisons = comparison::all::<I>(plan, &by_cell(plan, runs));
    let mut widths = comparisons
        .iter()
        .filter(|one| one.metric == rule.metric && !one.aa)
        .map(|one| one.ratio.interval().map(|(low, high)| high / low - 1.0))
        .peekable();
    widths.peek().is_some() && widths.all(|width| width.is_some_and(|width| width <= rule.width))
}

/// Makes the runs of turns that are not stored yet. A disturbed group is repeated, within what is left of
/// `repeats`.
fn make<I: Measure>(
    plan: &Plan,
    turns: &[Turn],
    repeats: &mut usize,
    store: &Store,
    executor: &mut dyn Executor<I>,
    progress: &mut dyn Progress,
) -> Result<Vec<RunOf<I>>, LabError> {
    let mut runs = Vec::with_capacity(turns.len());
    for group in schedule::groups(plan, turns) {
        let (made, is_new) = attempt::<I>(plan, group, store, executor, progress)?;
        let disturbed = disturbance::of::<I>(&made).filter(|_| is_new && *repeats >= group.len());
        let Some(share) = disturbed else {
            runs.extend(made);
            continue;
        };
        *repeats -= group.len();
        progress.ended(&disturbance::again(share, group));
        let again = fresh::<I>(plan, group, executor, progress)?;
        let (kept, other) = disturbance::quieter::<I>(made, again);
        kept.iter().try_for_each(|run| store.write_run::<I>(run))?;
        other.iter().try_for_each(|run| store.write_disturbed::<I>(run))?;
        runs.extend(kept);
    }
    Ok(runs)
}

/// The runs of a group, those already stored included, and whether all are new.
fn attempt<I: Measure>(
    plan: &Plan,
    group: &[Turn],
    store: &Store,
    executor: &mut dyn Executor<I>,
    progress: &mut dyn Progress,
) -> Result<(Vec<RunOf<I>>, bool), LabError> {
    let (mut runs, mut is_new) = (Vec::new(), true);
    for turn in group {
        let stored = turn.0.iter().map(|run| store.run::<I>(&run.id)).collect::<Result<Vec<_>, _>>()?;
        // Only a valid calibration yields a rate: an invalid one is repeated on resumption.
        let is_of_use = |run: &RunOf<I>| run.run.stage != Stage::Calibration || run.validity.is_valid();
        let stored: Vec<RunOf<I>> = stored.into_iter().flatten().filter(is_of_use).collect();
        if stored.len() == turn.0.len() {
            is_new = false;
            progress.turned(true);
            runs.extend(stored);
            continue;
        }
        let made = fresh::<I>(plan, std::slice::from_ref(turn), executor, progress)?;
        made.iter().try_for_each(|run| store.write_run::<I>(run))?;
        progress.turned(false);
        runs.extend(made);
    }
    Ok((runs, is_new))
}

/// Makes the runs of turns and judges them; stores none.
fn fresh<I: Measure>(
    plan: &Plan,
    turns: &[Turn],
    executor: &mut dyn Executor<I>,
    progress: &mut dyn Progress,
) -> Result<Vec<RunOf<I>>, LabError> {
    let mut runs = Vec::new();
    for Turn(turn) in turns {
        let requests: Vec<Request<'_>> = turn
            .iter()
            .map(|run| Request { run, experiment: &plan.experiment, rate: I::rate(plan, &run.cell) })
            .collect();
        progress.starts(turn, plan.blocks.len());
        for (run, seen) in turn.iter().zip(executor.execute(&requests)?) {
            let mut run = Run::new(run, seen);
            I::judge(&plan.experiment, &mut run)?;
            progress.ended(&I::line(&run));
            runs.push(run);
        }
    }
    Ok(runs)
}

/// The overhead of each subject's runs beyond their phases: the slower half of those in calibration.
fn overheads_ms<I: Measure>(runs: &[RunOf<I>]) -> BTreeMap<String, u64> {
    let mut by_subject: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    for run in runs {
        let Facts { elapsed_ms, phases_ms, has_failed, .. } = I::facts(&run.seen);
        if !has_failed {
            let spent = elapsed_ms.saturating_sub(phases_ms) as f64;
            by_subject.entry(&run.run.cell.subject).or_default().push(spent);
        }
    }
    let slow_half = |(subject, all): (&str, Vec<f64>)| {
        let median = stats::median(&all)?;
        let slow: Vec<f64> = all.into_iter().filter(|value| *value >= median).collect();
        // A few milliseconds for storing the result and for the lab itself.
        Some((subject.to_owned(), stats::median(&slow).unwrap_or(median) as u64 + 5))
    };
    by_subject.into_iter().filter_map(slow_half).collect()
}

#[cfg(test)]
mod tests;
