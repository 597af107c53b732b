//! The runs of a cell in one result; two results share no blocks.

use crate::experiment::metric::Metric;
use crate::findings::pairing;
use crate::planning::cell::Cell;
use crate::report::shown::Shown;
use crate::store::run::RunOf;

/// A metric over the runs of a cell.
#[derive(Clone, Debug)]
pub(crate) struct Sample {
    /// The values of the valid runs that have one, in the order of the blocks.
    pub(crate) values: Vec<f64>,
    /// Usable runs.
    pub(crate) valid: usize,
    /// All runs.
    pub(crate) runs: usize,
    /// The validity of the first run.
    pub(crate) first: Option<String>,
    /// Offered requests per second; `None` in a closed loop.
    pub(crate) rate: Option<f64>,
    /// Why the values are no evidence.
    pub(crate) note: Option<String>,
}

impl Sample {
    /// `name` is the cell's name in notes.
    pub(crate) fn of<I: Shown>(metric: Metric, cell: &Cell, runs: &[&RunOf<I>], name: &str) -> Self {
        let (valid, spoilt) = pairing::usable::<I>(metric, runs);
        let values: Vec<f64> = pairing::values::<I>(metric, &valid).into_values().collect();
        let note = match (valid.len(), values.len()) {
            (0, _) => Some(match spoilt {
                Some(why) => format!("{name} has no usable run: {why}"),
                None => format!("{name} has no valid run"),
            }),
            _ => I::unsupported(metric, cell, name, &valid)
                .or_else(|| I::without_value(metric, name, &valid))
                .or_else(|| values.is_empty().then(|| format!("no run of {name} has this value"))),
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
