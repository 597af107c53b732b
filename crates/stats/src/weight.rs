//! How much may be said with so many blocks, and how often chance may be called a difference.

use serde::{Deserialize, Serialize};

/// Fewer blocks than this give no interval at all.
pub const BLOCKS_FOR_INTERVAL: usize = 5;

/// Fewer blocks than this give an indication, not a verdict.
pub const BLOCKS_FOR_VERDICT: usize = 10;

/// More blocks than this are not planned: the estimate sorts the means of all their pairs, two million with 2000.
pub const MOST_BLOCKS: u32 = 2000;

/// How sure a comparison is, by its number of blocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Weight {
    /// Fewer than five blocks: a ratio, no interval.
    #[default]
    None,
    /// Five to nine blocks.
    Indication,
    /// Ten blocks or more.
    Verdict,
}

impl Weight {
    /// The weight of so many blocks.
    pub fn of(blocks: usize) -> Self {
        match blocks {
            0..BLOCKS_FOR_INTERVAL => Self::None,
            BLOCKS_FOR_INTERVAL..BLOCKS_FOR_VERDICT => Self::Indication,
            _ => Self::Verdict,
        }
    }
}

/// How often a comparison of what is the same may be called a difference: 0.05.
///
/// Each time that more blocks are added to a finished result, somebody has looked at it and has asked once more. The rate is
/// divided by the number of looks (Bonferroni), so that the last look is the more careful the more there were before.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ErrorRate(f64);

impl ErrorRate {
    const OF_ONE_LOOK: f64 = 0.05;

    /// Of the last of so many looks, from 1.
    pub fn of_looks(looks: usize) -> Self {
        Self(Self::OF_ONE_LOOK / looks.max(1) as f64)
    }

    /// The rate, above 0 and at most 0.05.
    pub fn get(self) -> f64 {
        self.0
    }
}

impl Default for ErrorRate {
    fn default() -> Self {
        Self::of_looks(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_weight_changes_at_five_and_at_ten_blocks() {
        let found = [0, 4, 5, 9, 10, 12].map(Weight::of);
        let [none, indication, verdict] = [Weight::None, Weight::Indication, Weight::Verdict];
        assert_eq!(found, [none, none, indication, indication, verdict, verdict]);
    }
}
