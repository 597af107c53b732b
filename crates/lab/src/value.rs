//! What a cell comes to in one metric.

use crate::metric::Metric;
use crate::stats::{self, ErrorRate, hodges_lehmann};
use weir_report::text::short;

/// A cell's value of a metric.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Value {
    /// The median over the blocks, or what takes its place.
    pub value: f64,
    /// Lower end of the location's interval (Hodges and Lehmann); `None` below five blocks.
    pub low: Option<f64>,
    /// Upper end.
    pub high: Option<f64>,
}

impl Value {
    /// The median of the values of blocks, with the interval of their location; `None` without any.
    pub(crate) fn of(values: &[f64]) -> Option<Self> {
        // A logarithm of nothing is nothing: where there are zeros, the values themselves are taken.
        let location = match values.iter().all(|value| *value > 0.0) {
            true => stats::location(values),
            false => hodges_lehmann::estimate(values, ErrorRate::default()),
        };
        let interval = location.and_then(|estimate| estimate.interval);
        let (low, high) = (interval.map(|interval| interval.low), interval.map(|interval| interval.high));
        Some(Self { value: stats::median(values)?, low, high })
    }

    /// A value without blocks of its own.
    pub(crate) fn exactly(value: f64) -> Self {
        Self { value, low: None, high: None }
    }

    /// `server's time per handshake 61.2 us`.
    pub(crate) fn words(&self, metric: Metric) -> String {
        format!("{metric} {} {}", short(self.value), metric.unit()).trim_end().to_owned()
    }

    /// Both ends; `None` below five blocks.
    pub fn interval(&self) -> Option<(f64, f64)> {
        self.low.zip(self.high)
    }
}
