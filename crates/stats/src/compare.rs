//! Comparing two targets: in the same blocks, or in two results without shared blocks.

use crate::hodges_lehmann::{self, Estimate};
use crate::weight::ErrorRate;

/// Compares two targets measured in the same blocks.
///
/// `pairs` holds `(baseline, target)` of each block in which both runs were valid. The estimate and its interval are
/// ratios target / baseline. `None` when no pair has two positive values.
pub fn compare_pairs(pairs: &[(f64, f64)], error_rate: ErrorRate) -> Option<Estimate> {
    let logs: Vec<f64> = pairs
        .iter()
        .filter(|(baseline, target)| {
            *baseline > 0.0 && *target > 0.0 && baseline.is_finite() && target.is_finite()
        })
        .map(|(baseline, target)| (target / baseline).ln())
        .collect();
    hodges_lehmann::estimate(&logs, error_rate).map(Estimate::exp)
}

/// The location of one cell's values over its blocks, with its interval: Hodges-Lehmann on the logarithms.
pub fn location(values: &[f64]) -> Option<Estimate> {
    hodges_lehmann::estimate(&logarithms(values), ErrorRate::default()).map(Estimate::exp)
}

/// Compares the values of one cell in two results, which share no blocks: the ratio second / first. `None` when one
/// has no positive value.
pub fn compare_samples(first: &[f64], second: &[f64]) -> Option<Estimate> {
    hodges_lehmann::shift(&logarithms(first), &logarithms(second)).map(Estimate::exp)
}

fn logarithms(values: &[f64]) -> Vec<f64> {
    values.iter().filter(|value| **value > 0.0 && value.is_finite()).map(|value| value.ln()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fdr;
    use crate::rng::Rng;

    #[test]
    fn a_constant_ratio_is_found_whatever_the_blocks_do() {
        let pairs: Vec<_> = (1..=10).map(|block| (f64::from(block), 0.8 * f64::from(block))).collect();
        let found = compare_pairs(&pairs, ErrorRate::default()).expect("ten pairs");
        assert!((found.value - 0.8).abs() < 1e-12);
        let interval = found.interval.expect("ten blocks have an interval");
        assert!((interval.low - 0.8).abs() < 1e-12 && (interval.high - 0.8).abs() < 1e-12);
    }

    #[test]
    fn fewer_than_five_blocks_have_no_interval() {
        let found = compare_pairs(&[(1.0, 2.0), (1.0, 2.1), (1.0, 1.9), (1.0, 2.0)], ErrorRate::default())
            .expect("four pairs");
        assert!((found.value - 2.0).abs() < 0.05);
        assert_eq!(found.interval, None);
    }

    /// An experiment that compares a target with itself must not find a difference more often than it says it will.
    /// 1000 synthetic experiments of 12 blocks, with drift between blocks and skewed noise within them.
    #[test]
    fn a_thousand_simulated_aa_experiments_raise_alarms_at_the_nominal_rate() {
        let mut rng = Rng::new(20_261_121);
        let (mut outside, mut p_small) = (0_u32, 0_u32);
        for _ in 0..1000 {
            let pairs: Vec<_> = (0..12)
                .map(|_| {
                    let mood = (0.15 * rng.normal()).exp();
                    let mut once =
                        || 20.0 * mood * (0.04 * rng.normal()).exp() * (1.0 + 0.02 * -rng.unit().ln());
                    (once(), once())
                })
                .collect();
            let found = compare_pairs(&pairs, ErrorRate::default()).expect("pairs");
            let interval = found.interval.expect("twelve blocks");
            outside += u32::from(interval.low > 1.0 || interval.high < 1.0);
            p_small += u32::from(found.p_value < 0.05);
        }
        // Nominal: 1 - 0.9575 = 4.25 % of 1000; three standard deviations are 19.
        assert!((23..=62).contains(&outside), "{outside} of 1000 intervals miss 1");
        assert_eq!(outside, p_small, "the interval and the test are the same procedure");
    }

    /// Someone adds 12 blocks until there is a difference, up to `looks` times 12. How often, of 2000 times, is the
    /// same thing called different?
    fn alarms(looks: usize, error_rate: fn(usize) -> ErrorRate) -> u32 {
        let mut rng = Rng::new(20_261_122);
        let mut alarms = 0;
        for _ in 0..2000 {
            let mut pairs = Vec::new();
            let is_alarm = (1..=looks).any(|look| {
                pairs.extend((0..12).map(|_| ((0.03 * rng.normal()).exp(), (0.03 * rng.normal()).exp())));
                let found = compare_pairs(&pairs, error_rate(look)).expect("pairs");
                let interval = found.interval.expect("twelve blocks or more");
                interval.low > 1.0 || interval.high < 1.0
            });
            alarms += u32::from(is_alarm);
        }
        alarms
    }

    /// Without correction, the second look adds to the false alarms of the first.
    #[test]
    fn adding_blocks_after_a_look_is_held_to_a_smaller_error_rate() {
        let found = [1, 2, 4]
            .map(|looks| (alarms(looks, |_| ErrorRate::default()), alarms(looks, ErrorRate::of_looks)));
        let [(once, same), (twice, twice_held), (often, often_held)] = found;
        assert_eq!(once, same);
        // Nominal with 12 blocks: 4.25 % of 2000, with a standard deviation of 9.
        assert!((58..=112).contains(&once), "{found:?}");
        assert!(twice > twice_held && often > often_held, "{found:?}");
        assert!(twice_held <= 140 && often_held <= 180, "{found:?}");
    }

    /// With several comparisons in one family, all of them A/A, adjusted p-values keep the share of experiments with
    /// any false alarm near the nominal rate.
    #[test]
    fn a_family_of_aa_comparisons_keeps_the_nominal_rate() {
        let mut rng = Rng::new(7);
        let mut alarms = 0_u32;
        for _ in 0..1000 {
            let p: Vec<f64> = (0..8)
                .map(|_| {
                    let pairs: Vec<_> =
                        (0..12).map(|_| ((0.05 * rng.normal()).exp(), (0.05 * rng.normal()).exp())).collect();
                    compare_pairs(&pairs, ErrorRate::default()).expect("pairs").p_value
                })
                .collect();
            alarms += u32::from(fdr::benjamini_hochberg(&p).iter().any(|adjusted| *adjusted <= 0.05));
        }
        assert!(alarms <= 71, "{alarms} of 1000 experiments raised a false alarm");
        assert!(alarms >= 5, "{alarms} alarms: the test has lost its power");
    }
}
