//! Two cells block by block: the pairs of valid runs, what they come to, and why they may say nothing.

use crate::experiment::Load;
use crate::metric::Metric;
use crate::plan::Stage;
use crate::run::RunRecord;
use crate::stats::{self, Estimate};
use crate::summary::usual_limit;
use std::collections::BTreeMap;

/// What the pairs of two cells come to.
#[derive(Clone, Debug)]
pub(crate) struct Paired {
    /// The first over the second.
    pub(crate) estimate: Option<Estimate>,
    /// Blocks in which both have a value.
    pub(crate) blocks: usize,
    /// Why nothing may be said of it, whatever the numbers are.
    pub(crate) note: Option<String>,
}

/// One side of a comparison: the cell's name, how its requests arrive, its runs.
pub(crate) type Side<'a, 'r> = (&'a str, Load, &'a Vec<&'r RunRecord>);

/// Pairs the valid runs of two cells.
pub(crate) fn pair(metric: Metric, sides: [Side<'_, '_>; 2]) -> Paired {
    let offered = sides.map(|(_, _, runs)| runs.iter().find_map(|run| run.rate));
    let sides = sides.map(|(name, load, runs)| (name, load, valid(runs)));
    let unsupported = sides.iter().find_map(|(name, load, runs)| unsupported(metric, *load, name, runs));
    let without_value = sides.iter().find_map(|(name, _, runs)| metric.has_no_value(name, runs));
    let [first, second] = match without_value {
        Some(_) => [BTreeMap::new(), BTreeMap::new()],
        None => [&sides[0].2, &sides[1].2].map(|runs| values(metric, runs)),
    };
    let pairs: Vec<(f64, f64)> =
        second.iter().filter_map(|(block, value)| Some((*value, *first.get(block)?))).collect();
    Paired {
        estimate: stats::compare_pairs(&pairs),
        blocks: pairs.len(),
        note: unsupported.or(without_value).or_else(|| other_rates(metric, offered)),
    }
}

/// What depends on the load is compared at one offered rate alone, or between loads on purpose.
fn other_rates(metric: Metric, offered: [Option<f64>; 2]) -> Option<String> {
    let [Some(first), Some(second)] = offered else { return None };
    (metric.depends_on_rate() && first != second)
        .then(|| format!("offered were {first:.0}/s and {second:.0}/s, not one rate"))
}

/// Those that may be used.
pub(crate) fn valid<'a>(runs: &[&'a RunRecord]) -> Vec<&'a RunRecord> {
    runs.iter().copied().filter(|run| run.validity.is_valid()).collect()
}

/// Each run's value, by its block.
pub(crate) fn values(metric: Metric, runs: &[&RunRecord]) -> BTreeMap<Stage, f64> {
    runs.iter().filter_map(|run| Some((run.run.stage, metric.of_run(&run.parts()?)?))).collect()
}

/// Why such runs tell nothing about the target: half of them or more were held down by something else.
pub(crate) fn unsupported(metric: Metric, load: Load, name: &str, runs: &[&RunRecord]) -> Option<String> {
    if runs.is_empty() {
        return Some(format!("{name} has no valid run"));
    }
    let (held, free): (Vec<&RunRecord>, Vec<&RunRecord>) =
        runs.iter().copied().partition(|run| !metric.is_supported(load, run.limit));
    if held.len() >= free.len() {
        return usual_limit(&held).map(|limit| format!("{name} was limited by {limit}"));
    }
    let is_starved = |run: &&&RunRecord| metric.is_starved(load, run);
    let starved = free.iter().filter(is_starved).count();
    (2 * (held.len() + starved) >= runs.len())
        .then(|| format!("{name} shared its cores with other processes in {starved} of {} runs", runs.len()))
}
