//! Two cells block by block: the pairs of valid runs, what they come to, and why they may say nothing.

use crate::experiment::Load;
use crate::limit::Limit;
use crate::metric::Metric;
use crate::plan::Stage;
use crate::run::RunRecord;
use crate::stats::{self, ErrorRate, Estimate};
use crate::verdict::Note;
use std::collections::BTreeMap;
use weir_load::plural;

/// Where one in so many runs was held down, or more, there is no verdict: from 29 % of one side on the estimate of Hodges
/// and Lehmann is wherever such runs are.
const ONE_OF: usize = 4;

/// What the pairs of two cells come to.
#[derive(Clone, Debug, Default)]
pub(crate) struct Paired {
    /// The first over the second.
    pub(crate) estimate: Option<Estimate>,
    /// Blocks that it rests on.
    pub(crate) blocks: usize,
    /// Why nothing may be said of it, whatever the numbers are.
    pub(crate) note: Option<Note>,
    /// What is to be known of the runs beside whatever is said.
    pub(crate) remark: Option<String>,
}

/// One side of a comparison: the cell's name, how its requests arrive, its runs.
pub(crate) type Side<'a, 'r> = (&'a str, Load, &'a Vec<&'r RunRecord>);

/// Pairs the valid runs of two cells.
pub(crate) fn pair(metric: Metric, sides: [Side<'_, '_>; 2], error_rate: ErrorRate) -> Paired {
    let offered = sides.map(|(_, _, runs)| runs.iter().find_map(|run| run.rate));
    let sides = sides.map(|(name, load, runs)| (name, load, valid(runs)));
    let no_run = sides.iter().find(|(_, _, runs)| runs.is_empty()).map(|(name, ..)| Note::no_valid_run(name));
    let unsupported = sides.iter().find_map(|(name, load, runs)| unsupported(metric, *load, name, runs));
    let without_value = sides.iter().find_map(|(name, _, runs)| metric.has_no_value(name, runs));
    let [first, second] = match without_value {
        Some(_) => [BTreeMap::new(), BTreeMap::new()],
        None => [&sides[0].2, &sides[1].2].map(|runs| values(metric, runs)),
    };
    let pairs: Vec<(f64, f64)> =
        second.iter().filter_map(|(block, value)| Some((*value, *first.get(block)?))).collect();
    let estimate = stats::compare_pairs(&pairs, error_rate);
    let blocks = estimate.map_or(0, |estimate| estimate.blocks);
    // To leave out just the blocks without a ratio would be to leave out one kind.
    let dropped = || {
        let all = pairs.len();
        (blocks < all).then(|| format!("{blocks} of {all} blocks have a value above 0"))
    };
    let remarks: Vec<String> =
        sides.iter().filter_map(|(name, load, runs)| remark(metric, *load, name, runs)).collect();
    Paired {
        estimate,
        blocks,
        note: no_run.or_else(|| {
            let unsupported = unsupported.or(without_value).or_else(dropped);
            unsupported.or_else(|| other_rates(metric, offered)).map(Note::Unsupported)
        }),
        remark: joined(remarks),
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

/// Why such runs tell nothing about the target: a quarter of them or more was held down by something else.
pub(crate) fn unsupported(metric: Metric, load: Load, name: &str, runs: &[&RunRecord]) -> Option<String> {
    if runs.is_empty() {
        return Some(Note::no_valid_run(name).text().to_owned());
    }
    let (held, words) = held_down(metric, load, name, runs);
    words.filter(|_| ONE_OF * held >= runs.len())
}

/// What is to be known of such runs where they do tell something: fewer than a quarter were held down by something else, or
/// the target was saturated at a rate that was to be below its maximum.
pub(crate) fn remark(metric: Metric, load: Load, name: &str, runs: &[&RunRecord]) -> Option<String> {
    let (held, words) = held_down(metric, load, name, runs);
    let few = words.filter(|_| ONE_OF * held < runs.len());
    let full = runs.iter().filter(|run| run.limit == Some(Limit::Gateway)).count();
    let is_saturated = load == Load::EqualRate && metric.depends_on_rate() && full > 0;
    let saturated = is_saturated.then(|| {
        format!("{name} was saturated at this rate in {full} of {}", plural(runs.len() as u64, "run"))
    });
    joined(few.into_iter().chain(saturated).collect())
}

/// How many of the runs were held down by something else than the target, and by what.
fn held_down(metric: Metric, load: Load, name: &str, runs: &[&RunRecord]) -> (usize, Option<String>) {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for run in runs {
        let by = match run.limit {
            None if !metric.is_supported(load, None) => "has no result".to_owned(),
            Some(limit) if !metric.is_supported(load, Some(limit)) => format!("was limited by {limit}"),
            _ if metric.is_starved(load, run) => "shared its cores with other processes".to_owned(),
            _ => continue,
        };
        *counts.entry(by).or_default() += 1;
    }
    let words = counts
        .iter()
        .map(|(by, count)| format!("{name} {by} in {count} of {}", plural(runs.len() as u64, "run")));
    (counts.values().sum(), joined(words.collect()))
}

fn joined(words: Vec<String>) -> Option<String> {
    (!words.is_empty()).then(|| words.join("; "))
}
