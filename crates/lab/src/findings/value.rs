//! A cell's value of one metric.

use crate::stats::{self, ErrorRate, hodges_lehmann};

/// A cell's value of a metric.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Value {
    /// The median over the blocks, or its substitute.
    pub value: f64,
    /// Lower bound of the location's interval (Hodges and Lehmann); `None` below five blocks.
    pub low: Option<f64>,
    /// Upper bound.
    pub high: Option<f64>,
}

impl Value {
    /// The median of the blocks' values, with the interval of their location; `None` without values.
    pub(crate) fn of(values: &[f64]) -> Option<Self> {
        // Zeros have no logarithm: then the values themselves count.
        let location = match values.iter().all(|value| *value > 0.0) {
            true => stats::location(values),
            false => hodges_lehmann::estimate(values, ErrorRate::default()),
        };
        let interval = location.and_then(|estimate| estimate.interval);
        let (low, high) = (interval.map(|interval| interval.low), interval.map(|interval| interval.high));
        Some(Self { value: stats::median(values)?, low, high })
    }

    /// A value that does not come from blocks.
    pub(crate) fn exactly(value: f64) -> Self {
        Self { value, low: None, high: None }
    }

    /// Both bounds; `None` below five blocks.
    pub fn interval(&self) -> Option<(f64, f64)> {
        self.low.zip(self.high)
    }
}
