//! The weight of evidence by number of blocks, and the error rate.

use serde::{Deserialize, Serialize};

/// Fewer blocks than this give no interval at all.
pub const BLOCKS_FOR_INTERVAL: usize = 5;

/// Fewer blocks than this give an indication, not a verdict.
pub const BLOCKS_FOR_VERDICT: usize = 10;

/// Maximum number of blocks: the estimate sorts the means of all pairs, two million for 2000.
pub const MOST_BLOCKS: u32 = 2000;

/// The weight of a comparison, by number of blocks.
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
    /// The weight of this many blocks.
    pub fn of(blocks: usize) -> Self {
        match blocks {
            0..BLOCKS_FOR_INTERVAL => Self::None,
            BLOCKS_FOR_INTERVAL..BLOCKS_FOR_VERDICT => Self::Indication,
            _ => Self::Verdict,
        }
    }
}

/// The rate of false differences: 0.05.
///
/// Each time blocks are added to a finished result, someone has looked at it and decided to continue. The rate is
/// divided by the number of looks (Bonferroni), so that each further look is stricter.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ErrorRate(f64);

impl ErrorRate {
    const OF_ONE_LOOK: f64 = 0.05;

    /// For this look, counted from 1.
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
