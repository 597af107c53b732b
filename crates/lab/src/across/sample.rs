//! The runs of a cell in one result, which shares no blocks with another.

use crate::cell::Cell;
use crate::instrument::{RunOf, Shown};
use crate::metric::Metric;
use crate::pairing;

/// What the runs of a cell say of a metric.
#[derive(Clone, Debug)]
pub(crate) struct Sample {
    /// Of each valid run that has one, in the order of the blocks.
    pub(crate) values: Vec<f64>,
    /// Runs that may be used.
    pub(crate) valid: usize,
    /// All of them.
    pub(crate) runs: usize,
    /// What became of the first.
    pub(crate) first: Option<String>,
    /// Requests per second that were offered; `None` in a closed loop.
    pub(crate) rate: Option<f64>,
    /// Why the values say nothing of what was measured.
    pub(crate) note: Option<String>,
}

impl Sample {
    /// `name` is what notes call the cell.
    pub(crate) fn of<I: Shown>(metric: Metric, cell: &Cell, runs: &[&RunOf<I>], name: &str) -> Self {
        let (valid, spoilt) = pairing::usable::<I>(metric, runs);
        let values: Vec<f64> = pairing::values::<I>(metric, &valid).into_values().collect();
        let note = match (valid.len(), values.len()) {
            (0, _) => Some(match spoilt {
                Some(why) => format!("{name} has no run that tells it: {why}"),
                None => format!("{name} has no valid run"),
            }),
            _ => I::unsupported(metric, cell, name, &valid)
                .or_else(|| I::without_value(metric, name, &valid))
                .or_else(|| values.is_empty().then(|| format!("no run of {name} has such a value"))),
        };
        Self {
            values,
            valid: valid.len(),
            runs: runs.len(),
            first: runs.first().map(|run| run.validity.to_string()),
            rate: pairing::rate::<I>(runs),
            note,
        }
    }
}
