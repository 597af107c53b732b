//! How often chance may be called a difference.

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
