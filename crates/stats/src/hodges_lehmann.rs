//! The Hodges-Lehmann estimates of a location and of a shift, with intervals from the signed-rank and the rank-sum
//! distribution.

use crate::exact::Distribution;
use crate::mann_whitney::{self, rank_sum};
use crate::median::median;
use crate::weight::{BLOCKS_FOR_INTERVAL, ErrorRate};
use crate::wilcoxon::{self, signed_rank};

/// An estimated location.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// The median of the Walsh averages, or of the differences between two samples.
    pub value: f64,
    /// Its interval; `None` below [`BLOCKS_FOR_INTERVAL`] values.
    pub interval: Option<Interval>,
    /// Two-sided exact p-value of the hypothesis that the location is 0 (of a ratio: 1).
    pub p_value: f64,
    /// Number of values; for two samples, that of the smaller.
    pub blocks: usize,
}

/// An interval of an [`Estimate`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// The coverage probability: at least 1 minus the error rate if that is
    /// attainable, which depends on the number of blocks.
    pub coverage: f64,
}

impl Estimate {
    /// Converts an estimate of a logarithm to one of the number.
    pub fn exp(self) -> Self {
        let interval = self.interval.map(|interval| Interval {
            low: interval.low.exp(),
            high: interval.high.exp(),
            coverage: interval.coverage,
        });
        Self { value: self.value.exp(), interval, ..self }
    }
}

/// Estimates the centre of `values`; `None` when there is no value.
pub fn estimate(values: &[f64], error_rate: ErrorRate) -> Option<Estimate> {
    let walsh = walsh_averages(values);
    let blocks = values.len();
    let value = median(&walsh)?;
    let interval =
        (blocks >= BLOCKS_FOR_INTERVAL).then(|| interval(&walsh, &signed_rank(blocks), error_rate));
    Some(Estimate { value, interval, p_value: wilcoxon::p_value(values), blocks })
}

/// Estimates the shift from `first` to `second`, two samples without shared blocks; `None` when one is empty.
pub fn shift(first: &[f64], second: &[f64]) -> Option<Estimate> {
    let mut differences: Vec<f64> =
        second.iter().flat_map(|above| first.iter().map(move |below| above - below)).collect();
    differences.sort_by(f64::total_cmp);
    let blocks = first.len().min(second.len());
    let value = median(&differences)?;
    let interval = (blocks >= BLOCKS_FOR_INTERVAL)
        .then(|| interval(&differences, &rank_sum(first.len(), second.len()), ErrorRate::default()));
    Some(Estimate { value, interval, p_value: mann_whitney::p_value(first, second), blocks })
}

/// The means of all pairs of `values`, each value with itself included, in rising order.
fn walsh_averages(values: &[f64]) -> Vec<f64> {
    let mut averages = Vec::with_capacity(values.len() * (values.len() + 1) / 2);
    for (index, left) in values.iter().enumerate() {
        averages.extend(values[index..].iter().map(|right| (left + right) / 2.0));
    }
    averages.sort_by(f64::total_cmp);
    averages
}

/// From the k-th smallest to the k-th largest, where k is the quantile of the statistic that counts those above zero
/// (or, for two samples, pairs) at half the error rate. k = 1 is the widest interval.
fn interval(sorted: &[f64], distribution: &Distribution, error_rate: ErrorRate) -> Interval {
    let k = distribution.quantile(error_rate.get() / 2.0).max(1);
    let coverage = 1.0 - 2.0 * distribution.cumulative(k - 1);
    Interval { low: sorted[k - 1], high: sorted[sorted.len() - k], coverage }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wilcoxon::tests::DEPRESSION;

    fn close(left: f64, right: f64) {
        assert!((left - right).abs() < 1e-9, "{left} is not {right}");
    }

    #[test]
    fn hollander_and_wolfe_depression_scale() {
        // R: wilcox.test(x, y, paired = TRUE, conf.int = TRUE): (pseudo)median 0.46, interval 0.010 to 0.786.
        let found = estimate(&DEPRESSION, ErrorRate::default()).expect("nine values");
        close(found.value, 0.46);
        let interval = found.interval.expect("nine values");
        close(interval.low, 0.01);
        close(interval.high, 0.786);
        close(interval.coverage, 0.9609375);
    }

    #[test]
    fn the_coverage_is_what_is_attainable() {
        // R: attr(wilcox.test(1:n, conf.int = TRUE)$conf.int, "conf.level")
        for (n, coverage) in
            [(5, 0.9375), (6, 0.96875), (8, 0.9609375), (10, 0.951171875), (12, 0.95751953125)]
        {
            let values: Vec<f64> = (1..=n).map(f64::from).collect();
            close(
                estimate(&values, ErrorRate::default())
                    .expect("values")
                    .interval
                    .expect("five or more")
                    .coverage,
                coverage,
            );
        }
    }

    /// Regression test: from 1024 blocks the interval started above its end, and so lay within any margin.
    #[test]
    fn the_interval_of_thousands_of_blocks_is_around_the_estimate() {
        let values: Vec<f64> = (0..2000).map(|n| 1.05_f64.ln() + (f64::from(n) - 999.5) / 20_000.0).collect();
        let found = estimate(&values, ErrorRate::default()).expect("values");
        close(found.value, 1.05_f64.ln());
        let Interval { low, high, coverage } = found.interval.expect("five or more");
        assert!(low < found.value && found.value < high && low > 0.045 && high < 0.053, "{low} {high}");
        assert!((0.95..0.951).contains(&coverage), "{coverage}");
    }

    #[test]
    fn five_values_span_the_whole_range() {
        let found = estimate(&[3.0, 1.0, 2.0, 10.0, 4.0], ErrorRate::default()).expect("five values");
        let interval = found.interval.expect("five values");
        assert_eq!((interval.low, interval.high), (1.0, 10.0));
        assert_eq!(found.value, 3.0);
    }

    #[test]
    fn a_shift_and_its_interval() {
        // R: wilcox.test(c(11, 12.5, 14, 17, 20.5), c(1, 2.2, 3.1, 4.7, 6), conf.int = TRUE): all 25 differences lie
        // above zero, so p = 2 / 252; qwilcox(0.025, 5, 5) is 3, and the interval runs from the third difference to the
        // third but last.
        let found = shift(&[1.0, 2.2, 3.1, 4.7, 6.0], &[11.0, 12.5, 14.0, 17.0, 20.5]).expect("values");
        close(found.p_value, 2.0 / 252.0);
        close(found.value, 11.0);
        let interval = found.interval.expect("five values in each");
        close(interval.low, 6.5);
        close(interval.high, 17.4);
        close(interval.coverage, 1.0 - 8.0 / 252.0);
    }

    #[test]
    fn nothing_gives_nothing() {
        assert_eq!(
            (estimate(&[], ErrorRate::default()), shift(&[], &[1.0]), shift(&[1.0], &[])),
            (None, None, None)
        );
    }
}
