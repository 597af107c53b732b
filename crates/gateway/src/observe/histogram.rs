//! The histogram of all requests' durations, and the bounds of its buckets. `latency.rs` has those of services and
//! routes.

use super::exposition::Exposition;
use super::latency::Measured;
use super::row::Row;
use super::values::{Field, Sample, labelled};

/// A histogram of durations, with the buckets of [`BOUNDS`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Histogram {
    /// Counts up to each bound of [`BOUNDS`]; the last bucket counts longer durations.
    buckets: [u64; BOUNDS.len() + 1],
    sum_us: u64,
}

/// The upper bounds of the buckets, in microseconds. Each is twice the previous one: [`Measured`] finds its bucket by
/// doubling. [`Latency`](super::latency::Latency) uses every second bound.
pub(super) const BOUNDS: [u64; 16] = {
    let mut bounds = [500; 16];
    let mut at = 1;
    while at < bounds.len() {
        bounds[at] = bounds[at - 1] * 2;
        at += 1;
    }
    bounds
};

impl Histogram {
    #[inline]
    pub(super) fn record(&mut self, Measured { bucket, micros, .. }: Measured) {
        self.buckets[bucket] += 1;
        self.sum_us += micros;
    }
}

impl Field for Histogram {
    fn add(&mut self, other: &Self) {
        for (mine, theirs) in self.buckets.iter_mut().zip(other.buckets) {
            *mine += theirs;
        }
        self.sum_us += other.sum_us;
    }

    /// Returns a single sample: the sum of the durations, in microseconds.
    fn samples(&self, row: &Row) -> Vec<Sample<'_>> {
        labelled(row, &[self.sum_us])
    }

    fn write(&self, row: &Row, text: &mut Exposition) {
        text.family(row.name, row.kind.name(), row.help);
        text.histogram(row.name, &[], BOUNDS.into_iter(), &self.buckets, self.sum_us);
    }
}
