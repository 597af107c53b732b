//! Claims, which are statements of a study as predicates on named cells, and comparisons.

use super::{Level, Levels};
use crate::experiment::metric::Metric;
use serde::{Deserialize, Serialize};
use std::fmt;
use weir_profile::Category;

/// A statement and the predicate that checks it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Claim {
    /// A short name: letters, digits, `-`.
    pub id: String,
    /// The source of the statement, such as `S3`.
    pub source: String,
    /// The statement, as a sentence.
    pub says: String,
    /// The source's figures.
    #[serde(default)]
    pub figures: Option<String>,
    /// The original's figures, if the source is second-hand and they differ.
    #[serde(default)]
    pub original: Option<String>,
    /// The metric; omitted if the claim is on a share of CPU time or not testable.
    #[serde(default)]
    pub metric: Option<Metric>,
    /// The categories whose share of CPU time the claim is on, in percent, by the cells' profiles.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub share_of: Vec<Category>,
    /// The cells it is about: all with these levels.
    #[serde(default)]
    pub cell: Levels,
    /// The cell that each of them is compared with: the one with these levels instead of its own. The value is then the
    /// ratio of the two; without `against`, it is the cell's own.
    #[serde(default)]
    pub against: Option<Levels>,
    /// The predicate on the value.
    #[serde(default)]
    pub expect: Option<Predicate>,
    /// The features of the CPU that the statement is about, such as `avx512ifma`: without them it is not testable.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cpu: Vec<String>,
    /// Why the claim is not testable.
    #[serde(default)]
    pub not_testable: Option<String>,
}

impl Claim {
    /// Why it is not testable on a CPU with these features; older results name none.
    pub(crate) fn untestable(&self, features: &[String]) -> Option<String> {
        let lacking = || {
            let mut lacked = self.cpu.iter().filter(|feature| !features.contains(feature));
            let feature = lacked.next().filter(|_| !features.is_empty())?;
            Some(format!("the CPU lacks {feature}"))
        };
        self.not_testable.clone().or_else(lacking)
    }
}

/// A further comparison: cells with each level of a factor, against the same cells with the baseline level.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Compare {
    /// The factor.
    pub factor: String,
    /// The level that is the denominator.
    pub baseline: Level,
    /// The cells compared: all with these levels.
    #[serde(default)]
    pub cell: Levels,
}

/// A predicate on a value: `< 1`, `<= 1`, `> 1`, `>= 1`, or `0.97 .. 1.03`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Predicate {
    /// Below the number.
    Below(f64),
    /// At most the number.
    AtMost(f64),
    /// Above the number.
    Above(f64),
    /// At least the number.
    AtLeast(f64),
    /// From the first to the second.
    Within(f64, f64),
}

impl Predicate {
    /// Whether a value satisfies it.
    pub fn holds(self, value: f64) -> bool {
        match self {
            Self::Below(bound) => value < bound,
            Self::AtMost(bound) => value <= bound,
            Self::Above(bound) => value > bound,
            Self::AtLeast(bound) => value >= bound,
            Self::Within(low, high) => (low..=high).contains(&value),
        }
    }

    /// The predicate on the inverse of a positive value, with bounds of three decimals.
    pub(crate) fn inverse(self) -> Self {
        let inverse = |bound: f64| (1000.0 / bound).round() / 1000.0;
        match self {
            Self::Below(bound) => Self::Above(inverse(bound)),
            Self::AtMost(bound) => Self::AtLeast(inverse(bound)),
            Self::Above(bound) => Self::Below(inverse(bound)),
            Self::AtLeast(bound) => Self::AtMost(inverse(bound)),
            Self::Within(low, high) => Self::Within(inverse(high), inverse(low)),
        }
    }

    /// Whether every value of an interval satisfies it (`Some(true)`), none does (`Some(false)`), or some do (`None`).
    pub fn of_interval(self, low: f64, high: f64) -> Option<bool> {
        match (self.holds(low), self.holds(high)) {
            (true, true) => Some(true),
            // An interval that contains the bounds has values outside and inside.
            (false, false) => match self {
                Self::Within(least, most) if low < least && high > most => None,
                _ => Some(false),
            },
            _ => None,
        }
    }
}

impl fmt::Display for Predicate {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Below(bound) => write!(formatter, "< {bound}"),
            Self::AtMost(bound) => write!(formatter, "<= {bound}"),
            Self::Above(bound) => write!(formatter, "> {bound}"),
            Self::AtLeast(bound) => write!(formatter, ">= {bound}"),
            Self::Within(low, high) => write!(formatter, "{low} .. {high}"),
        }
    }
}

impl From<Predicate> for String {
    fn from(predicate: Predicate) -> Self {
        predicate.to_string()
    }
}

impl TryFrom<String> for Predicate {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let number = |text: &str| text.trim().parse::<f64>().ok().filter(|number| number.is_finite());
        let read = || {
            if let Some((low, high)) = text.split_once("..") {
                let (low, high) = (number(low)?, number(high)?);
                return (low <= high).then_some(Self::Within(low, high));
            }
            let (sign, bound) = text.split_at(text.find(|c: char| !matches!(c, '<' | '>' | '='))?);
            let bound = number(bound)?;
            match sign {
                "<" => Some(Self::Below(bound)),
                "<=" => Some(Self::AtMost(bound)),
                ">" => Some(Self::Above(bound)),
                ">=" => Some(Self::AtLeast(bound)),
                _ => None,
            }
        };
        read().ok_or_else(|| {
            format!("invalid value `{text}`: expected a predicate such as `< 1`, `>= 1` or `0.97 .. 1.03`")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_inverse_of_a_predicate_holds_for_the_inverse_of_a_value() {
        for (text, inverse) in [
            ("> 1.03", "< 0.971"),
            (">= 2", "<= 0.5"),
            ("< 0.97", "> 1.031"),
            ("<= 0.75", ">= 1.333"),
            ("1.7 .. 2.3", "0.435 .. 0.588"),
        ] {
            let predicate = Predicate::try_from(text.to_owned()).expect("parses");
            assert_eq!(predicate.inverse().to_string(), inverse, "{text}");
        }
    }

    #[test]
    fn predicates_are_parsed_and_judge_intervals() {
        let predicate = |text: &str| Predicate::try_from(text.to_owned()).expect("parses");
        for (text, low, high, expected) in [
            ("< 1", 0.8, 0.9, Some(true)),
            ("< 1", 0.8, 1.0, None),
            ("<1", 1.0, 1.1, Some(false)),
            ("<= 1", 0.8, 1.0, Some(true)),
            ("> 1.05", 1.06, 2.0, Some(true)),
            (">= 2", 1.0, 1.5, Some(false)),
            ("0.97 .. 1.03", 0.98, 1.02, Some(true)),
            ("0.97..1.03", 0.9, 1.0, None),
            ("0.97 .. 1.03", 0.9, 1.1, None),
            ("0.97 .. 1.03", 1.04, 1.1, Some(false)),
            ("0.97 .. 1.03", 0.8, 0.9, Some(false)),
        ] {
            assert_eq!(predicate(text).of_interval(low, high), expected, "{text} [{low}, {high}]");
            assert_eq!(predicate(&predicate(text).to_string()), predicate(text));
        }
        for text in ["", "1", "=> 1", "< x", "2 .. 1", "..", "< 1 2"] {
            assert!(Predicate::try_from(text.to_owned()).is_err(), "{text}");
        }
    }
}
