//! The Wilcoxon signed-rank statistic and its exact distribution.

use crate::exact::{Distribution, doubled_ranks};

/// With more differences, use the normal approximation with the same mean and variance: the number
/// of sign patterns overflows an `f64` from 1024, and the two differ only in the fourth digit.
const EXACT_UP_TO: usize = 200;

/// The distribution of the signed-rank statistic for `n` differences without ties. Exact in `f64` up to n = 53, to
/// rounding up to 200, and the normal approximation beyond.
pub fn signed_rank(n: usize) -> Distribution {
    of_ranks(&(1..=n).collect::<Vec<_>>())
}

/// The distribution for any ranks, given as whole numbers: the number of the 2^n sign patterns whose positive ranks add
/// up to each sum.
fn of_ranks(ranks: &[usize]) -> Distribution {
    if ranks.len() > EXACT_UP_TO {
        return normal(ranks);
    }
    let mut counts = vec![0.0; ranks.iter().sum::<usize>() + 1];
    counts[0] = 1.0;
    let mut reach = 0;
    for &rank in ranks {
        reach += rank;
        for value in (rank..=reach).rev() {
            counts[value] += counts[value - rank];
        }
    }
    Distribution::new(counts)
}

/// The normal approximation with the variance of a sum over random signs.
fn normal(ranks: &[usize]) -> Distribution {
    let variance = ranks.iter().map(|rank| (*rank as f64).powi(2)).sum::<f64>() / 4.0;
    Distribution::normal(ranks.iter().sum(), variance)
}

/// The two-sided p-value of the hypothesis that `differences` are symmetric about zero.
///
/// Zeros are dropped (Wilcoxon's own rule); tied magnitudes get their mean rank, and the distribution is that of the
/// ranks as they are. With only zeros the result is 1.
pub fn p_value(differences: &[f64]) -> f64 {
    let mut sorted: Vec<f64> = differences.iter().copied().filter(|value| *value != 0.0).collect();
    sorted.sort_by(|left, right| left.abs().total_cmp(&right.abs()));
    let doubled = doubled_ranks(&sorted, |left, right| left.abs() == right.abs());
    if doubled.is_empty() {
        return 1.0;
    }
    let positive: usize =
        sorted.iter().zip(&doubled).filter(|(value, _)| **value > 0.0).map(|(_, rank)| rank).sum();
    let largest: usize = doubled.iter().sum();
    let tail = positive.min(largest - positive);
    (2.0 * of_ranks(&doubled).cumulative(tail)).min(1.0)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Hollander and Wolfe (1973), page 29: the Hamilton depression scale at two visits, the differences.
    pub(crate) const DEPRESSION: [f64; 9] = [0.952, -0.147, 1.022, 0.43, 0.62, 0.59, 0.49, -0.08, 0.01];

    fn close(left: f64, right: f64) {
        assert!((left - right).abs() < 1e-9, "{left} is not {right}");
    }

    #[test]
    fn quantiles_are_those_of_qsignrank() {
        // R: qsignrank(0.025, c(5, 6, 7, 8, 9, 10, 11, 12, 15, 20))
        let expected =
            [(5, 0), (6, 1), (7, 3), (8, 4), (9, 6), (10, 9), (11, 11), (12, 14), (15, 26), (20, 53)];
        for (n, quantile) in expected {
            assert_eq!(signed_rank(n).quantile(0.025), quantile, "n = {n}");
        }
    }

    #[test]
    fn the_distribution_equals_a_count_of_all_sign_patterns() {
        for n in 1..=10_usize {
            let mut counts = vec![0_u32; n * (n + 1) / 2 + 1];
            for pattern in 0..1_usize << n {
                counts[(1..=n).filter(|rank| pattern >> (rank - 1) & 1 == 1).sum::<usize>()] += 1;
            }
            let (distribution, mut sum) = (signed_rank(n), 0);
            for (value, count) in counts.iter().enumerate() {
                sum += count;
                close(distribution.cumulative(value), f64::from(sum) / f64::from(1_u32 << n));
            }
        }
    }

    #[test]
    fn the_normal_curve_takes_over_where_it_is_as_good() {
        let ranks: Vec<usize> = (1..=EXACT_UP_TO).collect();
        let (exact, curve) = (of_ranks(&ranks), normal(&ranks));
        for value in [7000, 8443, 9000, 10_050, 12_000] {
            assert!((exact.cumulative(value) - curve.cumulative(value)).abs() < 5e-4, "{value}");
        }
        assert!(exact.quantile(0.025).abs_diff(curve.quantile(0.025)) <= 10);
    }

    /// Regression test: from 1024 differences the number of sign patterns was infinite, and every share of them 0.
    #[test]
    fn thousands_of_differences_have_a_distribution() {
        let found = signed_rank(2000);
        // Mean 1000500, standard deviation 25829.57: 1.959964 of these below.
        assert!(found.quantile(0.025).abs_diff(949_875) <= 2, "{}", found.quantile(0.025));
        let alternating: Vec<f64> = (1..=2000).map(|n| f64::from(n) * f64::from(1 - 2 * (n % 2))).collect();
        assert!(p_value(&alternating) > 0.9, "{}", p_value(&alternating));
        let positive: Vec<f64> = (1..=2000).map(f64::from).collect();
        assert!(p_value(&positive) < 1e-9);
    }

    #[test]
    fn hollander_and_wolfe_depression_scale() {
        // R: wilcox.test(x, y, paired = TRUE) gives V = 40, p-value = 0.03906.
        close(p_value(&DEPRESSION), 0.039_062_5);
    }

    #[test]
    fn five_of_one_sign_cannot_go_below_one_sixteenth() {
        close(p_value(&[0.1, 0.2, 0.3, 0.4, 0.5]), 0.0625);
        close(p_value(&[-0.1, -0.2, -0.3, -0.4, -0.5]), 0.0625);
    }

    #[test]
    fn ties_and_zeros_are_exact_too() {
        close(p_value(&[0.0, 0.0]), 1.0);
        // Magnitudes 1 1 1, all positive: 2 of the 8 patterns are as extreme.
        close(p_value(&[1.0, 1.0, 1.0, 0.0]), 0.25);
        // Mean ranks 1.5, 1.5, 3 with signs + - +: V = 4.5; P(V <= 1.5) = 3/8.
        close(p_value(&[1.0, -1.0, 2.0]), 0.75);
    }
}
