//! Two profiles by category.

use crate::category::Category;
use crate::profile::{Profile, Share};
use serde::Serialize;

/// The difference between two profiles, each scaled by what all its samples stand for.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Difference {
    /// What all samples of the first and of the second stand for: 100 for shares in percent, or CPU microseconds per
    /// request.
    pub totals: [f64; 2],
    /// The categories of either, the largest change first.
    pub changes: Vec<Change>,
}

/// The change of one category's own time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Change {
    /// The category.
    pub category: Category,
    /// In the first profile.
    pub before: f64,
    /// In the second.
    pub after: f64,
    /// `after - before`.
    pub change: f64,
    /// The lower end of its 95 % interval, as far as sampling is concerned.
    pub low: f64,
    /// The upper end.
    pub high: f64,
}

/// The 95 % quantile of the normal distribution, two-sided.
const Z: f64 = 1.96;

impl Difference {
    /// Compares two profiles. `totals` are what all samples of each stand for.
    pub fn new(before: &Profile, after: &Profile, totals: [f64; 2]) -> Self {
        let is_in_either =
            |category: &Category| before.own(*category).samples + after.own(*category).samples > 0;
        let change = |category: Category| {
            let [b, a] = [before.own(category), after.own(category)];
            let [scaled_b, scaled_a] = [b.share * totals[0], a.share * totals[1]];
            let reach =
                Z * (variance(b, before.samples, totals[0]) + variance(a, after.samples, totals[1])).sqrt();
            let change = scaled_a - scaled_b;
            Change {
                category,
                before: scaled_b,
                after: scaled_a,
                change,
                low: change - reach,
                high: change + reach,
            }
        };
        let mut changes: Vec<Change> = Category::ALL.into_iter().filter(is_in_either).map(change).collect();
        changes.sort_by(|one, other| other.change.abs().total_cmp(&one.change.abs()));
        Self { totals, changes }
    }
}

/// The variance of a scaled share.
fn variance(share: Share, samples: u64, total: f64) -> f64 {
    total.powi(2) * share.share * (1.0 - share.share) / samples.max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::Rules;
    use crate::stacks::Stacks;

    fn profile(folded: &str) -> Profile {
        Profile::new(&Stacks::from_folded(folded).expect("parses"), &Rules::built_in())
    }

    #[test]
    fn the_changes_add_up_to_the_difference_of_the_totals() {
        let before = profile("main;SSL_read;aes_gcm_enc 60\nmain;memcpy 40\n");
        let after = profile("main;SSL_read;aes_gcm_enc 30\nmain;tcp_sendmsg [kernel.kallsyms] 30\n");
        let difference = Difference::new(&before, &after, [10.0, 8.0]);
        let sum: f64 = difference.changes.iter().map(|change| change.change).sum();
        assert!((sum + 2.0).abs() < 1e-9, "{difference:?}");
        let first = difference.changes[0];
        assert_eq!((first.category, first.change), (Category::Copying, -4.0));
        assert!(first.low < -4.0 && first.high < 0.0, "{first:?}");
    }
}
