//! The gain that a profile predicts for a change.

use crate::condition::Condition;
use crate::fact::Facts;
use serde::{Deserialize, Serialize};
use weir_profile::{Category, Profile};

/// A share of the CPU time that a change would save.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Gain {
    /// At least this share, 0 to 1.
    pub low: f64,
    /// At most this share.
    pub high: f64,
}

/// The saving of a change in the CPU time of some categories.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Saving {
    categories: Vec<Category>,
    /// The minimum and maximum share of their CPU time that is saved, 0 to 1.
    saves: [f64; 2],
    /// The saving applies only under these conditions.
    #[serde(default)]
    when: Option<Condition>,
}

impl Gain {
    /// The sum of the savings, with the shares of a profile.
    pub(crate) fn of(savings: &[Saving], facts: &Facts, profile: &Profile) -> Self {
        let is_meant = |saving: &&Saving| saving.when.as_ref().is_none_or(|when| when.holds(facts));
        let savings: Vec<&Saving> = savings.iter().filter(is_meant).collect();
        let sum = |share: fn(weir_profile::Share) -> f64, part: fn(&Saving) -> f64| -> f64 {
            let of = |saving: &Saving| -> f64 {
                let shares: f64 =
                    saving.categories.iter().map(|category| share(profile.own(*category))).sum();
                shares * part(saving)
            };
            savings.iter().copied().map(of).sum()
        };
        Self {
            low: sum(|one| one.low, |saving| saving.saves[0]),
            high: sum(|one| one.high, |saving| saving.saves[1]).min(1.0),
        }
    }

    /// The middle, which ranks findings.
    pub(crate) fn middle(self) -> f64 {
        (self.low + self.high) / 2.0
    }
}
