//! The rule that a ratio is held against.

use crate::error_rate::ErrorRate;

/// What a ratio is held against before anything is said of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rule {
    /// Two values within this ratio are called equivalent: 0.03 is 3 %.
    pub margin: f64,
    /// The false-discovery rate that it allows.
    pub error_rate: ErrorRate,
}
