//! The rule for verdicts, and reasons for none.

use crate::weight::ErrorRate;
use std::collections::BTreeMap;
use std::fmt;

/// The rule for verdicts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rule {
    /// Two values within this ratio are called equivalent: 0.03 is 3 %.
    pub margin: f64,
    /// The false-discovery rate.
    pub error_rate: ErrorRate,
}

/// Which direction is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Better {
    /// More is better.
    More,
    /// Less is better.
    Less,
    /// Neither: it describes usage.
    Neither,
}

impl Better {
    /// Whether such a ratio, new over old, is a change for the worse.
    pub fn is_worse(self, ratio: f64) -> bool {
        match self {
            Self::More => ratio < 1.0,
            Self::Less => ratio > 1.0,
            Self::Neither => false,
        }
    }
}

/// The apparent difference of unchanged things, as a logarithm, and its name.
#[derive(Clone, Copy, Debug)]
pub struct Noise {
    /// Such as `A/A noise`: shown before the figure.
    pub name: &'static str,
    /// A ratio beyond `exp(reach)`, or below its inverse, exceeds it; at least 0.
    pub reach: f64,
}

impl fmt::Display for Noise {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} of {:.1} %", self.name, self.reach.exp_m1() * 100.0)
    }
}

/// The noise floors of the A/A pairs, by the key they share with the comparisons.
#[derive(Clone, Debug)]
pub struct Floors<K>(BTreeMap<K, Option<Noise>>);

impl<K: Ord> Floors<K> {
    /// From each A/A pair; `None` without an interval.
    pub fn of(pairs: impl Iterator<Item = (K, Option<f64>)>) -> Self {
        let noise = |reach| Noise { name: "A/A noise", reach };
        Self(pairs.map(|(key, reach)| (key, reach.map(noise))).collect())
    }

    /// The noise floor for a difference: none if no A/A pair was planned.
    ///
    /// # Errors
    /// One was planned, but has too few valid runs.
    pub fn get(&self, key: &K) -> Result<Option<Noise>, &'static str> {
        match self.0.get(key) {
            Some(Some(noise)) => Ok(Some(*noise)),
            Some(None) => Err("the A/A pair has no value, so the noise floor is unknown"),
            None => Ok(None),
        }
    }
}

/// Why a ratio has no verdict, whatever its numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Note {
    /// No valid run; another attempt may have one.
    NoEvidence(String),
    /// Such runs cannot support a verdict, however many there are.
    Unsupported(String),
}

impl Note {
    /// The reason, as text.
    pub fn text(&self) -> &str {
        match self {
            Self::NoEvidence(why) | Self::Unsupported(why) => why,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_planned_pair_without_a_value_is_no_floor_of_zero() {
        let floors = Floors::of([("a", Some(1.06_f64.ln())), ("b", None)].into_iter());
        let words = |key| floors.get(&key).map(|noise| noise.map(|noise| noise.to_string()));
        assert_eq!(words("a"), Ok(Some("A/A noise of 6.0 %".into())));
        assert_eq!(words("b"), Err("the A/A pair has no value, so the noise floor is unknown"));
        assert_eq!(words("c"), Ok(None));
    }

    #[test]
    fn worse_is_the_other_way() {
        let worse = |better: Better| [0.9, 1.0, 1.1].map(|ratio| better.is_worse(ratio));
        assert_eq!(worse(Better::More), [true, false, false]);
        assert_eq!(worse(Better::Less), [false, false, true]);
        assert_eq!(worse(Better::Neither), [false; 3]);
    }
}
