//! What a ratio is held against before anything is said of it, and reasons to say nothing.

use crate::weight::ErrorRate;
use std::collections::BTreeMap;
use std::fmt;

/// What a ratio is held against before anything is said of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rule {
    /// Two values within this ratio are called equivalent: 0.03 is 3 %.
    pub margin: f64,
    /// The false-discovery rate that it allows.
    pub error_rate: ErrorRate,
}

/// Which way a quantity is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Better {
    /// More is.
    More,
    /// Less is.
    Less,
    /// It says how something was used, not how good it is.
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

/// How far what has not changed seems to be from itself, as a logarithm, and what to call that.
#[derive(Clone, Copy, Debug)]
pub struct Noise {
    /// Such as `A/A noise`: it stands before the figure.
    pub name: &'static str,
    /// A ratio beyond `exp(reach)`, or below its inverse, exceeds it; at least 0.
    pub reach: f64,
}

impl fmt::Display for Noise {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} of {:.1} %", self.name, self.reach.exp_m1() * 100.0)
    }
}

/// How far the A/A pairs seem to be from themselves, by what they share with the comparisons that are held against them.
#[derive(Clone, Debug)]
pub struct Floors<K>(BTreeMap<K, Option<Noise>>);

impl<K: Ord> Floors<K> {
    /// From what each A/A pair shows; `None` where it has no interval.
    pub fn of(pairs: impl Iterator<Item = (K, Option<f64>)>) -> Self {
        let noise = |reach| Noise { name: "A/A noise", reach };
        Self(pairs.map(|(key, reach)| (key, reach.map(noise))).collect())
    }

    /// What a difference has to exceed: nothing where no A/A pair was planned.
    ///
    /// # Errors
    /// One was planned, and has too few valid runs: what was asked for as a proof is not there.
    pub fn get(&self, key: &K) -> Result<Option<Noise>, &'static str> {
        match self.0.get(key) {
            Some(Some(noise)) => Ok(Some(*noise)),
            Some(None) => Err("the A/A pair has no value, so the noise floor is not known"),
            None => Ok(None),
        }
    }
}

/// Why nothing may be said of a ratio, whatever its numbers are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Note {
    /// There is no valid run to say it from: another try may have one.
    NoEvidence(String),
    /// Such runs cannot support it, however many there are.
    Unsupported(String),
}

impl Note {
    /// The reason, in words.
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
        assert_eq!(words("b"), Err("the A/A pair has no value, so the noise floor is not known"));
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
