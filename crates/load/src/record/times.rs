//! Distributions of times, as recorded and as reported.

use crate::result::Latency;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Serializer, V2Serializer};
use std::time::Duration;

/// An HDR histogram of nanoseconds with 3 digits, and separately the censored times.
#[derive(Clone)]
pub(crate) struct Times {
    known: Histogram<u64>,
    /// Created on first use: most runs have none.
    censored: Option<Box<Histogram<u64>>>,
}

/// 1 hour; longer times are clamped. No timeout is longer.
const LONGEST: Duration = Duration::from_secs(3600);

const DIGITS: u8 = 3;

impl Default for Times {
    fn default() -> Self {
        Self { known: histogram(), censored: None }
    }
}

impl Times {
    #[inline]
    pub(crate) fn record(&mut self, time: Duration) {
        self.known.saturating_record(time.as_nanos() as u64);
    }

    /// Given up after `time`: a censored sample.
    pub(crate) fn record_censored(&mut self, time: Duration) {
        let censored = self.censored.get_or_insert_with(|| Box::new(histogram()));
        censored.saturating_record(time.as_nanos() as u64);
    }

    pub(crate) fn add(&mut self, other: &Self) {
        // Histograms with equal bounds can always be merged.
        let _ = self.known.add(&other.known);
        if let Some(others) = &other.censored {
            let _ = self.censored.get_or_insert_with(|| Box::new(histogram())).add(&**others);
        }
    }

    pub(crate) fn max_us(&self) -> f64 {
        us(self.known.max())
    }

    /// The `quantile` (0 to 1) of the known times, given enough samples.
    pub(crate) fn quantile_us(&self, quantile: f64) -> Option<f64> {
        enough(self.known.len(), quantile).then(|| us(self.known.value_at_quantile(quantile)))
    }

    /// The 99th percentile of the known times, or the largest with too few samples.
    pub(crate) fn p99_or_max_us(&self) -> f64 {
        self.quantile_us(0.99).unwrap_or_else(|| self.max_us())
    }

    /// As reported.
    pub(crate) fn distribution(&self) -> Latency {
        let mut all = self.known.clone();
        if let Some(censored) = &self.censored {
            let _ = all.add(&**censored);
        }
        let quantile = |quantile| enough(all.len(), quantile).then(|| us(all.value_at_quantile(quantile)));
        let mut bytes = Vec::new();
        // Writing into memory cannot fail.
        let _ = V2Serializer::new().serialize(&all, &mut bytes);
        let censored = self.censored.as_ref().filter(|censored| !censored.is_empty());
        Latency {
            count: all.len(),
            mean_us: if all.is_empty() { 0.0 } else { all.mean() / 1e3 },
            sd_us: if all.is_empty() { 0.0 } else { all.stdev() / 1e3 },
            p50_us: quantile(0.5),
            p90_us: quantile(0.9),
            p95_us: quantile(0.95),
            p99_us: quantile(0.99),
            p999_us: quantile(0.999),
            max_us: us(all.max()),
            censored: censored.map_or(0, |censored| censored.len()),
            censored_from_us: censored.map(|censored| us(censored.min())),
            hdr_v2: BASE64_STANDARD.encode(bytes),
        }
    }
}

/// Whether there are ten times the samples that a quantile needs to exist.
pub(crate) fn enough(samples: u64, quantile: f64) -> bool {
    samples >= (10.0 / (1.0 - quantile)).round() as u64
}

fn histogram() -> Histogram<u64> {
    let longest = LONGEST.as_nanos() as u64;
    let histogram = Histogram::new_with_bounds(1, longest, DIGITS);
    // Only contradictory bounds are rejected.
    histogram.unwrap_or_else(|_| unreachable!("1 ns to 1 h with 3 digits is a valid histogram"))
}

fn us(ns: u64) -> f64 {
    ns as f64 / 1e3
}

#[cfg(test)]
mod tests {
    use super::*;
    use hdrhistogram::serialization::Deserializer;

    fn times(us: impl IntoIterator<Item = u64>) -> Times {
        let mut times = Times::default();
        us.into_iter().for_each(|us| times.record(Duration::from_micros(us)));
        times
    }

    #[test]
    fn percentiles_need_ten_times_their_samples() {
        let have = |count| {
            let d = times(1..=count).distribution();
            [d.p50_us, d.p90_us, d.p95_us, d.p99_us, d.p999_us].map(|p| p.is_some())
        };
        assert_eq!(have(19), [false; 5]);
        assert_eq!(have(20), [true, false, false, false, false]);
        assert_eq!(have(100), [true, true, false, false, false]);
        assert_eq!(have(199), [true, true, false, false, false]);
        assert_eq!(have(200), [true, true, true, false, false]);
        assert_eq!(have(999), [true, true, true, false, false]);
        assert_eq!(have(1000), [true, true, true, true, false]);
        assert_eq!(have(10_000), [true; 5]);
    }

    #[test]
    fn a_distribution_is_right_to_three_digits() {
        let d = times(1..=10_000).distribution();
        let near =
            |value: f64, expected: f64| assert!((value / expected - 1.0).abs() < 0.002, "{value} {expected}");
        near(d.mean_us, 5000.5);
        near(d.sd_us, 2886.8);
        near(d.p50_us.unwrap(), 5000.0);
        near(d.p90_us.unwrap(), 9000.0);
        near(d.p95_us.unwrap(), 9500.0);
        near(d.p99_us.unwrap(), 9900.0);
        near(d.p999_us.unwrap(), 9990.0);
        near(d.max_us, 10_000.0);
    }

    #[test]
    fn censored_samples_are_in_the_tail_and_counted() {
        let mut given_up = times(std::iter::repeat_n(100, 980));
        (0..20).for_each(|_| given_up.record_censored(Duration::from_secs(2)));
        let mut all = times([]);
        all.add(&given_up);
        let d = all.distribution();
        assert_eq!((d.count, d.censored), (1000, 20));
        let (bound, p99) = (d.censored_from_us.unwrap(), d.p99_us.unwrap());
        assert!((bound / 2e6 - 1.0).abs() < 0.002 && p99 >= bound, "{bound} {p99}");
        assert!(d.p90_us.unwrap() < bound, "the ninetieth is not among them");
        assert_eq!(times([1]).distribution().censored_from_us, None);
    }

    #[test]
    fn the_stored_form_can_be_read_and_merged_by_others() {
        let d = times([100, 200, 300_000]).distribution();
        let bytes = BASE64_STANDARD.decode(d.hdr_v2).unwrap();
        let histogram: Histogram<u64> = Deserializer::new().deserialize(&mut bytes.as_slice()).unwrap();
        assert_eq!(histogram.len(), 3);
        assert_eq!(histogram.count_between(99_000, 201_000), 2);
    }

    #[test]
    fn an_empty_distribution_has_no_numbers_that_are_none() {
        let d = Times::default().distribution();
        assert_eq!((d.count, d.mean_us, d.sd_us, d.max_us, d.p50_us), (0, 0.0, 0.0, 0.0, None));
    }
}
