//! The types of the fields in the table of metrics.

use super::exposition::Exposition;
use super::row::{Kind, Row};
use std::collections::BTreeMap;

/// A field of the table of metrics: the values of one metric.
pub(super) trait Field {
    /// Adds the value of another worker.
    fn add(&mut self, other: &Self);

    /// The samples, in the order of the labels' values.
    fn samples(&self, row: &Row) -> Vec<Sample<'_>>;

    /// Appends the metric to Prometheus' text.
    fn write(&self, row: &Row, text: &mut Exposition) {
        if row.kind == Kind::Total {
            return;
        }
        text.family(row.name, row.kind.name(), row.help);
        for Sample { labels, count } in self.samples(row) {
            text.sample(row.name, &labels, count);
        }
    }
}

/// A count with its labels.
#[derive(Debug)]
pub(super) struct Sample<'a> {
    pub labels: Vec<(&'static str, &'a str)>,
    pub count: u64,
}

impl<'a> Sample<'a> {
    /// The value of the first label.
    pub(super) fn label(&self) -> &'a str {
        self.labels.first().map_or("", |(_, value)| value)
    }
}

/// Counts by the values of the row's labels. `ZEROS`: whether to show counts of 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counts<const N: usize, const ZEROS: bool = true>(
    /// The counts, in the order of the labels' values.
    pub [u64; N],
);

/// Values of the whole process. All workers report the same ones.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Process<const N: usize>(pub [u64; N]);

/// Sums of durations by the values of the row's labels, in microseconds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Seconds<const N: usize>(pub [u64; N]);

/// A key of a map of counts, as the labels of a metric.
pub(super) trait Labels {
    fn labels(&self) -> Vec<(&'static str, &str)>;
}

impl Field for u64 {
    fn add(&mut self, other: &Self) {
        *self += other;
    }

    fn samples(&self, row: &Row) -> Vec<Sample<'_>> {
        labelled(row, &[*self])
    }
}

impl<const N: usize, const ZEROS: bool> Field for Counts<N, ZEROS> {
    fn add(&mut self, other: &Self) {
        for (mine, theirs) in self.0.iter_mut().zip(other.0) {
            *mine += theirs;
        }
    }

    fn samples(&self, row: &Row) -> Vec<Sample<'_>> {
        let mut samples = labelled(row, &self.0);
        samples.retain(|sample| ZEROS || sample.count > 0);
        samples
    }
}

impl<const N: usize> Field for Process<N> {
    fn add(&mut self, other: &Self) {
        for (mine, theirs) in self.0.iter_mut().zip(other.0) {
            *mine = theirs.max(*mine);
        }
    }

    fn samples(&self, row: &Row) -> Vec<Sample<'_>> {
        labelled(row, &self.0)
    }
}

impl<const N: usize> Field for Seconds<N> {
    fn add(&mut self, other: &Self) {
        for (mine, theirs) in self.0.iter_mut().zip(other.0) {
            *mine += theirs;
        }
    }

    /// The sums as samples, in microseconds.
    fn samples(&self, row: &Row) -> Vec<Sample<'_>> {
        labelled(row, &self.0)
    }

    fn write(&self, row: &Row, text: &mut Exposition) {
        text.family(row.name, row.kind.name(), row.help);
        for Sample { labels, count } in self.samples(row) {
            text.sample(row.name, &labels, count as f64 / 1e6);
        }
    }
}

impl<K: Labels + Ord + Clone> Field for BTreeMap<K, u64> {
    fn add(&mut self, other: &Self) {
        for (key, count) in other {
            *self.entry(key.clone()).or_default() += count;
        }
    }

    fn samples(&self, _: &Row) -> Vec<Sample<'_>> {
        self.iter().map(|(key, count)| Sample { labels: key.labels(), count: *count }).collect()
    }
}

impl<const N: usize, const ZEROS: bool> Default for Counts<N, ZEROS> {
    fn default() -> Self {
        Self([0; N])
    }
}

impl<const N: usize> Default for Seconds<N> {
    fn default() -> Self {
        Self([0; N])
    }
}

impl<const N: usize> Default for Process<N> {
    fn default() -> Self {
        Self([0; N])
    }
}

/// One sample for each combination of the labels' values.
pub(super) fn labelled(row: &Row, counts: &[u64]) -> Vec<Sample<'static>> {
    let of = |(mut at, count): (usize, &u64)| {
        let mut labels = Vec::new();
        for (label, values) in row.labels.iter().rev() {
            labels.insert(0, (*label, values[at % values.len()]));
            at /= values.len();
        }
        Sample { labels, count: *count }
    };
    counts.iter().enumerate().map(of).collect()
}
