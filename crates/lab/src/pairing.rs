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

/// Pairs the valid runs of two cells, each given with its name.
pub(crate) fn pair(metric: Metric, load: Load, sides: [(&str, &Vec<&RunRecord>); 2]) -> Paired {
    let sides = sides.map(|(name, runs)| (name, valid(runs)));
    let unsupported = sides.iter().find_map(|(name, runs)| unsupported(metric, load, name, runs));
    let without_value = sides.iter().find_map(|(name, runs)| metric.has_no_value(name, runs));
    let [first, second] = match without_value {
        Some(_) => [BTreeMap::new(), BTreeMap::new()],
        None => [&sides[0].1, &sides[1].1].map(|runs| values(metric, runs)),
    };
    let pairs: Vec<(f64, f64)> =
        second.iter().filter_map(|(block, value)| Some((*value, *first.get(block)?))).collect();
    Paired {
        estimate: stats::compare_pairs(&pairs),
        blocks: pairs.len(),
        note: unsupported.or(without_value),
    }
}

/// Those that may be used.
pub(crate) fn valid<'a>(runs: &[&'a RunRecord]) -> Vec<&'a RunRecord> {
    runs.iter().copied().filter(|run| run.validity.is_valid()).collect()
}

/// Each run's value, by its block.
pub(crate) fn values(metric: Metric, runs: &[&RunRecord]) -> BTreeMap<Stage, f64> {
    runs.iter().filter_map(|run| Some((run.run.stage, metric.of_run(&run.parts()?)?))).collect()
}

/// Why such runs tell nothing about the target.
pub(crate) fn unsupported(metric: Metric, load: Load, name: &str, runs: &[&RunRecord]) -> Option<String> {
    let limit = usual_limit(runs);
    (!metric.is_supported(load, limit)).then(|| match limit {
        Some(limit) => format!("{name} was limited by {limit}"),
        None => format!("{name} has no valid run"),
    })
}
