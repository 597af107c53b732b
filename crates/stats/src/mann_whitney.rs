//! The rank-sum statistic of Wilcoxon, Mann and Whitney: two samples without shared blocks.

use crate::exact::{Distribution, doubled_ranks};

/// With more values in both samples, use the normal approximation with the same mean and variance:
/// the exact distribution costs the fourth power of their number, and differs only in the fourth digit.
const EXACT_UP_TO: usize = 60;

/// The distribution of the Mann-Whitney statistic of samples of `m` and `n` values without ties: the number of pairs in
/// which the value of the first is the larger.
pub fn rank_sum(m: usize, n: usize) -> Distribution {
    of_ranks(&(1..=m + n).collect::<Vec<_>>(), m)
}

/// The two-sided p-value of the hypothesis that both samples come from one distribution. Tied values get their mean
/// rank, and the distribution is that of the ranks as they are. With an empty sample the result is 1.
pub fn p_value(first: &[f64], second: &[f64]) -> f64 {
    let of_first = first.iter().map(|value| (*value, true));
    let mut all: Vec<(f64, bool)> = of_first.chain(second.iter().map(|value| (*value, false))).collect();
    all.sort_by(|left, right| left.0.total_cmp(&right.0));
    let doubled = doubled_ranks(&all, |left, right| left.0 == right.0);
    let sum: usize =
        all.iter().zip(&doubled).filter(|((_, is_first), _)| *is_first).map(|(_, rank)| rank).sum();
    let distribution = of_ranks(&doubled, first.len());
    let above_least = sum - least(&doubled, first.len());
    (2.0 * distribution.cumulative(above_least).min(distribution.beyond(above_least))).min(1.0)
}

/// The smallest sum of `m` of the ranks, which rise.
fn least(ranks: &[usize], m: usize) -> usize {
    ranks[..m].iter().sum()
}

/// The distribution of the sum of `m` of the ranks, drawn at random, above its minimum.
fn of_ranks(ranks: &[usize], m: usize) -> Distribution {
    let least = least(ranks, m);
    let most = ranks[ranks.len() - m..].iter().sum::<usize>() - least;
    if ranks.len() > EXACT_UP_TO {
        return normal(ranks, m, most);
    }
    // ways[j][s]: how many sets of j of the ranks so far add up to s.
    let mut ways = vec![vec![0.0; least + most + 1]; m + 1];
    ways[0][0] = 1.0;
    for (seen, &rank) in ranks.iter().enumerate() {
        for chosen in (1..=m.min(seen + 1)).rev() {
            let (before, after) = ways.split_at_mut(chosen);
            for sum in (rank..=least + most).rev() {
                after[0][sum] += before[chosen - 1][sum - rank];
            }
        }
    }
    Distribution::new(ways.swap_remove(m).split_off(least))
}

/// The normal approximation with the variance of a sum of `m` drawn without replacement.
fn normal(ranks: &[usize], m: usize, most: usize) -> Distribution {
    let all = ranks.len() as f64;
    let mean = ranks.iter().sum::<usize>() as f64 / all;
    let spread: f64 = ranks.iter().map(|rank| (*rank as f64 - mean).powi(2)).sum();
    let m = m as f64;
    Distribution::normal(most, m * (all - m) * spread / (all * (all - 1.0)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(left: f64, right: f64) {
        assert!((left - right).abs() < 1e-9, "{left} is not {right}");
    }

    /// Hollander and Wolfe (1973), page 69: permeability of the human chorioamnion, at term and between the 12th and
    /// the 26th week.
    const TERM: [f64; 10] = [0.80, 0.83, 1.89, 1.04, 1.45, 1.38, 1.91, 1.64, 0.73, 1.46];
    const EARLY: [f64; 5] = [1.15, 0.88, 0.90, 0.74, 1.21];

    #[test]
    fn quantiles_are_those_of_qwilcox() {
        // R: qwilcox(0.025, m, n)
        for (m, n, quantile) in [(5, 5, 3), (5, 10, 9), (6, 6, 6), (10, 10, 24), (12, 12, 38), (20, 20, 128)]
        {
            assert_eq!(rank_sum(m, n).quantile(0.025), quantile, "{m} and {n}");
        }
    }

    #[test]
    fn the_distribution_equals_a_count_of_all_choices() {
        for (m, n) in [(1, 1), (2, 3), (4, 4), (5, 7), (7, 5)] {
            let mut counts = vec![0_u32; m * n + 1];
            for choice in 0..1_usize << (m + n) {
                if choice.count_ones() as usize == m {
                    let ranks = (1..=m + n).filter(|rank| choice >> (rank - 1) & 1 == 1).sum::<usize>();
                    counts[ranks - m * (m + 1) / 2] += 1;
                }
            }
            let (total, distribution, mut sum) = (counts.iter().sum::<u32>(), rank_sum(m, n), 0);
            for (value, count) in counts.iter().enumerate() {
                sum += count;
                close(distribution.cumulative(value), f64::from(sum) / f64::from(total));
            }
        }
    }

    #[test]
    fn hollander_and_wolfe_permeability() {
        // R: wilcox.test(x, y) gives W = 35, p-value = 0.2544.
        assert!((p_value(&TERM, &EARLY) - 0.254_412).abs() < 1e-6, "{}", p_value(&TERM, &EARLY));
        close(p_value(&TERM, &EARLY), p_value(&EARLY, &TERM));
    }

    #[test]
    fn ties_are_exact_too() {
        close(p_value(&[1.0, 1.0], &[1.0, 1.0]), 1.0);
        // Doubled ranks 2 5 5 8; the first sample has 2 and 5, and 2 of the 6 choices are as small: 7, 7, 10, 10, 13,
        // 13.
        close(p_value(&[1.0, 2.0], &[2.0, 3.0]), 2.0 / 3.0);
        close(p_value(&[], &[1.0]), 1.0);
    }

    #[test]
    fn the_normal_curve_takes_over_where_it_is_as_good() {
        let ranks: Vec<usize> = (1..=60).collect();
        let exact = of_ranks(&ranks, 30);
        let curve = normal(&ranks, 30, 900);
        for value in [200, 300, 318, 350, 450] {
            assert!((exact.cumulative(value) - curve.cumulative(value)).abs() < 1e-3, "{value}");
        }
        assert!(exact.quantile(0.025).abs_diff(curve.quantile(0.025)) <= 1);
        let (low, high): (Vec<f64>, Vec<f64>) =
            ((0..100).map(f64::from).collect(), (150..250).map(f64::from).collect());
        assert!(p_value(&low, &high) < 1e-9);
    }
}
