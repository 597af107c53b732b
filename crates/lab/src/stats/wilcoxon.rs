//! The Wilcoxon signed-rank statistic and its exact distribution.

use super::exact::{Distribution, doubled_ranks};

/// The distribution of the signed-rank statistic for `n` differences without ties. Exact in `f64` up to n = 53, and to
/// rounding beyond.
pub fn signed_rank(n: usize) -> Distribution {
    of_ranks(&(1..=n).collect::<Vec<_>>())
}

/// The distribution for any ranks, given as whole numbers: the number of the 2^n sign patterns whose positive ranks add
/// up to each sum.
fn of_ranks(ranks: &[usize]) -> Distribution {
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

/// The two-sided p-value of the hypothesis that `differences` are symmetric about zero.
///
/// Zeros are dropped (Wilcoxon's own rule); tied magnitudes get their mean rank, and the distribution is that of the
/// ranks as they are. With nothing but zeros the answer is 1.
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
mod tests {
    use super::*;

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
    fn hollander_and_wolfe_depression_scale() {
        // R: wilcox.test(x, y, paired = TRUE) gives V = 40, p-value = 0.03906.
        close(p_value(&super::super::hodges_lehmann::tests::DEPRESSION), 0.039_062_5);
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
