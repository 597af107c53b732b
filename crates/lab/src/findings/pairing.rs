//! Two cells block by block: the pairs of valid runs, their estimate, and why it may not count.

use crate::experiment::metric::Metric;
use crate::findings::judge::Judge;
use crate::planning::cell::Cell;
use crate::planning::planned_run::Stage;
use crate::stats::verdict::Note;
use crate::stats::{self, ErrorRate, Estimate, hodges_lehmann};
use crate::store::run::RunOf;
use std::collections::BTreeMap;

/// The estimate from the pairs of two cells.
#[derive(Clone, Debug, Default)]
pub(crate) struct Paired {
    /// The first over the second.
    pub(crate) estimate: Option<Estimate>,
    /// Blocks behind it.
    pub(crate) blocks: usize,
    /// Why it may not count, whatever the numbers are.
    pub(crate) note: Option<Note>,
    /// A remark on the runs beside the verdict.
    pub(crate) remark: Option<String>,
}

/// One side of a comparison: its name, the cell, its runs.
#[derive(Debug)]
pub(crate) struct Side<'a, I: Judge> {
    pub(crate) name: &'a str,
    pub(crate) cell: &'a Cell,
    pub(crate) runs: &'a [&'a RunOf<I>],
}

/// Pairs the valid runs of two cells.
pub(crate) fn pair<I: Judge>(metric: Metric, sides: [Side<'_, I>; 2], error_rate: ErrorRate) -> Paired {
    let offered = sides.each_ref().map(|side| rate::<I>(side.runs));
    let unlike = I::unlike(sides.each_ref().map(|side| side.cell), sides.each_ref().map(|side| side.runs));
    let duets = sides.each_ref().map(|side| side.runs.iter().any(|run| run.run.beside.is_some()));
    let found = match duets {
        // One runs beside the other, whatever else each ran beside.
        [true, true] => {
            let of_pair = beside_each_other::<I>(&sides);
            if of_pair[0].is_empty() {
                let why =
                    format!("{} and {} never ran in a duet with each other", sides[0].name, sides[1].name);
                return Paired { note: Some(Note::NoEvidence(why)), ..Paired::default() };
            }
            let with = |side: &Side<'_, I>, runs| OfSide::new(metric, &Side { runs, ..*side });
            [with(&sides[0], &of_pair[0]), with(&sides[1], &of_pair[1])]
        }
        _ => sides.map(|side| OfSide::new(metric, &side)),
    };
    let [no_run, unsupported] = [|one: &OfSide| one.no_run.clone(), |one: &OfSide| one.unsupported.clone()]
        .map(|of| found.iter().find_map(of));
    let [first, second] = found.each_ref().map(|one| &one.values);
    let pairs: Vec<(f64, f64)> =
        second.iter().filter_map(|(block, value)| Some((*value, *first.get(block)?))).collect();
    let estimate = stats::compare_pairs(&pairs, error_rate);
    let blocks = estimate.map_or(0, |estimate| estimate.blocks);
    // Leaving out only the blocks without a ratio would leave out one kind of block.
    let dropped = || {
        let all = pairs.len();
        (blocks < all).then(|| format!("{blocks} of {all} blocks have a value above 0"))
    };
    let why = || unsupported.or_else(dropped).or_else(|| other_rates(metric, offered));
    Paired {
        estimate,
        blocks,
        note: no_run.map(Note::NoEvidence).or_else(|| why().map(Note::Unsupported)),
        remark: joined(found.into_iter().filter_map(|one| one.remark).chain(unlike).collect()),
    }
}

/// The runs of each side in a duet with the other side.
fn beside_each_other<'a, I: Judge>(sides: &[Side<'a, I>; 2]) -> [Vec<&'a RunOf<I>>; 2] {
    let [first, second] = sides.each_ref().map(|side| side.cell.id.as_str());
    let beside = |side: &Side<'a, I>, other| {
        side.runs.iter().copied().filter(|run| run.run.beside.as_deref() == Some(other)).collect()
    };
    [beside(&sides[0], second), beside(&sides[1], first)]
}

/// The location of a cell's own values, which may be zero: no logarithms.
pub(crate) fn alone<I: Judge>(metric: Metric, side: &Side<'_, I>, error_rate: ErrorRate) -> Paired {
    let found = OfSide::new(metric, side);
    let values: Vec<f64> = found.values.into_values().collect();
    Paired {
        estimate: hodges_lehmann::estimate(&values, error_rate),
        blocks: values.len(),
        note: found.no_run.map(Note::NoEvidence).or(found.unsupported.map(Note::Unsupported)),
        remark: found.remark,
    }
}

/// The data of one side.
struct OfSide {
    no_run: Option<String>,
    unsupported: Option<String>,
    remark: Option<String>,
    values: BTreeMap<Stage, f64>,
}

impl OfSide {
    fn new<I: Judge>(metric: Metric, side: &Side<'_, I>) -> Self {
        let Side { name, cell, runs } = side;
        let (valid, spoilt) = usable::<I>(metric, runs);
        let without_value = I::without_value(metric, name, &valid);
        let values = match without_value {
            Some(_) => BTreeMap::new(),
            None => values::<I>(metric, &valid),
        };
        Self {
            no_run: valid.is_empty().then(|| match &spoilt {
                Some(why) => format!("{name} has no run that measures it: {why}"),
                None => format!("{name} has no valid run"),
            }),
            unsupported: I::unsupported(metric, cell, name, &valid).or(without_value),
            remark: I::remark(metric, cell, name, &valid),
            values,
        }
    }
}

/// A metric that depends on the load is compared at one offered rate only, or between loads on purpose.
fn other_rates(metric: Metric, offered: [Option<f64>; 2]) -> Option<String> {
    let [Some(first), Some(second)] = offered else { return None };
    (metric.depends_on_rate() && first != second)
        .then(|| format!("the offered rates differ: {first:.0}/s and {second:.0}/s"))
}

/// Requests per second offered to these runs.
pub(crate) fn rate<I: Judge>(runs: &[&RunOf<I>]) -> Option<f64> {
    runs.iter().find_map(|run| I::facts(&run.seen).rate)
}

/// The valid runs.
pub(crate) fn valid<'a, I: Judge>(runs: &[&'a RunOf<I>]) -> Vec<&'a RunOf<I>> {
    runs.iter().copied().filter(|run| run.validity.is_valid()).collect()
}

/// The valid runs that measure a metric, and why the first of the others does not. With duets in the plan, CPU clocks
/// are read in duets only, and all else in runs alone.
pub(crate) fn usable<'a, I: Judge>(
    metric: Metric,
    runs: &[&'a RunOf<I>],
) -> (Vec<&'a RunOf<I>>, Option<String>) {
    // Two cells side by side and alone are two different things.
    let is_in_duets = runs.iter().any(|run| run.run.beside.is_some());
    let why = |run: &&RunOf<I>| match run.run.beside {
        Some(_) if !metric.is_of_duets() => Some("it shared its cores with another".to_owned()),
        None if metric.is_of_duets() && is_in_duets => Some("it ran alone".to_owned()),
        _ => I::spoilt(metric, run),
    };
    let mut valid = valid::<I>(runs);
    let spoilt = valid.iter().find_map(why);
    valid.retain(|run| why(run).is_none());
    (valid, spoilt)
}

/// The mean value of each block, in which a cell may run beside several others.
pub(crate) fn values<I: Judge>(metric: Metric, runs: &[&RunOf<I>]) -> BTreeMap<Stage, f64> {
    let mut of_blocks: BTreeMap<Stage, Vec<f64>> = BTreeMap::new();
    for run in runs {
        if let Some(value) = I::value(metric, run) {
            of_blocks.entry(run.run.stage).or_default().push(value);
        }
    }
    let mean = |values: Vec<f64>| values.iter().sum::<f64>() / values.len() as f64;
    of_blocks.into_iter().map(|(stage, values)| (stage, mean(values))).collect()
}

pub(crate) fn joined(words: Vec<String>) -> Option<String> {
    (!words.is_empty()).then(|| words.join("; "))
}
