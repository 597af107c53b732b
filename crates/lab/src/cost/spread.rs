//! A figure over the rounds.

use crate::stats::median;
use serde::Serialize;

/// The median and the range of the rounds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Spread {
    /// The median.
    pub median: f64,
    /// The smallest.
    pub min: f64,
    /// The largest.
    pub max: f64,
}

impl Spread {
    /// The spread of one value per round; `None` without values.
    pub fn of(values: &[f64]) -> Option<Self> {
        let median = median(values)?;
        let (min, max) = values
            .iter()
            .filter(|value| value.is_finite())
            .fold((median, median), |(min, max), value| (min.min(*value), max.max(*value)));
        Some(Self { median, min, max })
    }

    /// The spread of two figures combined round by round.
    pub fn paired(one: &[f64], other: &[f64], combine: impl Fn(f64, f64) -> f64) -> Option<Self> {
        let values: Vec<f64> = one.iter().zip(other).map(|(one, other)| combine(*one, *other)).collect();
        Self::of(&values)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_are_paired_before_the_median_is_taken() {
        let spread = |median, min, max| Some(Spread { median, min, max });
        assert_eq!(Spread::of(&[3.0, 1.0, 2.0]), spread(2.0, 1.0, 3.0));
        assert_eq!(Spread::of(&[]), None);
        // The machine was half as fast in the second round, which does not affect the ratio.
        assert_eq!(Spread::paired(&[2.0, 4.0], &[1.0, 2.0], |a, b| a / b), spread(2.0, 2.0, 2.0));
        assert_eq!(Spread::paired(&[2.0, 4.0], &[0.0, 2.0], |a, b| a / b), spread(2.0, 2.0, 2.0));
    }
}
