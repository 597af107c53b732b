//! A ratio and its verdict.

use super::rule::{Better, Noise, Note, Rule};
use crate::hodges_lehmann::Estimate;
use crate::weight::{BLOCKS_FOR_INTERVAL, Weight};
use crate::words::{difference, percent, plural};
use serde::{Deserialize, Serialize};
use std::fmt;

/// The verdict of a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The interval excludes 1, after adjustment for the number of comparisons, and the ratio is beyond the noise.
    Different,
    /// The whole interval lies within the margin.
    Equivalent,
    /// Undecided.
    Undecided,
}

impl fmt::Display for Verdict {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(match self {
            Self::Different => "different",
            Self::Equivalent => "equivalent",
            Self::Undecided => "undecided",
        })
    }
}

/// A ratio and its verdict.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Ratio {
    /// The first over the second; null if neither has a pair.
    #[serde(rename = "ratio")]
    pub value: Option<f64>,
    /// Lower end of its interval; null below five blocks.
    pub low: Option<f64>,
    /// Upper end.
    pub high: Option<f64>,
    /// The coverage of the interval with this many blocks.
    pub coverage: Option<f64>,
    /// Exact p-value of the signed-rank test, or between two results of the rank-sum test.
    pub p_value: Option<f64>,
    /// The same, adjusted for its family (Benjamini and Hochberg).
    pub p_adjusted: Option<f64>,
    /// Its weight by number of blocks; between two results, of the smaller one.
    pub weight: Weight,
    /// The verdict.
    pub verdict: Verdict,
    /// Why it is undecided, if not clear from the numbers.
    pub note: Option<String>,
    /// Whether it is undecided for lack of valid runs: no or too few blocks with both, or
    /// no valid or a moved noise reference.
    #[serde(default)]
    pub lacks_evidence: bool,
}

impl Ratio {
    /// Not decided yet. A `note` says why it cannot be.
    pub fn of(estimate: Option<Estimate>, blocks: usize, note: Option<Note>) -> Self {
        let interval = estimate.and_then(|estimate| estimate.interval);
        Self {
            value: estimate.map(|estimate| estimate.value),
            low: interval.map(|interval| interval.low),
            high: interval.map(|interval| interval.high),
            coverage: interval.map(|interval| interval.coverage),
            p_value: estimate.map(|estimate| estimate.p_value),
            p_adjusted: None,
            weight: Weight::of(blocks),
            verdict: Verdict::Undecided,
            lacks_evidence: matches!(note, Some(Note::NoEvidence(_))),
            note: note.map(|note| note.text().to_owned()),
        }
    }

    /// Whether it counts in its family for the adjustment: unsupported comparisons do not.
    pub fn is_asked(&self) -> bool {
        self.weight != Weight::None && self.note.is_none()
    }

    /// Decides, unless a note already says why not. Without a known noise floor, nothing is called
    /// different.
    pub fn decide(&mut self, blocks: u32, rule: Rule, floor: Result<Option<Noise>, &'static str>) {
        if self.note.is_some() {
            return;
        }
        match (self.judged(blocks, rule, floor.unwrap_or_default()), floor) {
            (Ok(Verdict::Different), Err(why)) => {
                self.lacks_evidence = true;
                self.note = Some(why.into());
            }
            (Ok(verdict), _) => self.verdict = verdict,
            (Err(note), _) => {
                self.lacks_evidence = matches!(note, Note::NoEvidence(_));
                self.note = Some(note.text().to_owned());
            }
        }
    }

    /// The verdict, or why it is undecided if not clear from the numbers.
    fn judged(&self, blocks: u32, rule: Rule, noise: Option<Noise>) -> Result<Verdict, Note> {
        let Rule { margin, error_rate } = rule;
        let Some(value) = self.value else {
            return Err(Note::NoEvidence("no block has a valid run of both".into()));
        };
        let Some((low, high)) = self.interval() else {
            let blocks = plural(blocks.into(), "block");
            let least = BLOCKS_FOR_INTERVAL;
            return Err(Note::NoEvidence(format!("{blocks}: no interval below {least}")));
        };
        // An indication has too few blocks to pass an adjustment: the smallest p of five is 0.0625. It is based
        // only on the interval and the noise floor, and labelled an indication.
        let is_verdict = self.weight == Weight::Verdict;
        let is_adjusted_away =
            is_verdict && self.p_adjusted.is_some_and(|p_value| p_value > error_rate.get());
        let is_within_margin = low >= 1.0 / (1.0 + margin) && high <= 1.0 + margin;
        let excludes_one = low > 1.0 || high < 1.0;
        if is_within_margin {
            Ok(Verdict::Equivalent)
        } else if !excludes_one {
            Ok(Verdict::Undecided)
        } else if is_adjusted_away {
            Err(Note::Unsupported("not after adjustment for the number of comparisons".into()))
        } else {
            match noise.filter(|noise| value.ln().abs() <= noise.reach) {
                Some(noise) => Err(Note::Unsupported(format!("within the {noise}"))),
                None => Ok(Verdict::Different),
            }
        }
    }

    /// Both ends; `None` below five blocks.
    pub fn interval(&self) -> Option<(f64, f64)> {
        self.low.zip(self.high)
    }

    /// What it shows of the noise if it is of a thing and itself, as a logarithm; `None` without an interval. As long
    /// as the interval holds 1, that is the estimate. Chance is accounted for by the interval of each comparison;
    /// counted here once more, it would hide what is there. Where the interval excludes 1, something is at work that
    /// chance is not, and its farther end counts.
    pub fn reach(&self) -> Option<f64> {
        let (value, (low, high)) = self.value.zip(self.interval())?;
        Some(match low > 1.0 || high < 1.0 {
            true => low.ln().abs().max(high.ln().abs()),
            false => value.ln().abs(),
        })
    }

    /// Whether it is significantly worse, for a quantity with this direction.
    pub fn is_worse(&self, better: Better) -> bool {
        self.verdict == Verdict::Different && self.value.is_some_and(|value| better.is_worse(value))
    }

    /// `0.72 [0.69, 0.76]`.
    pub fn text(&self) -> String {
        match (self.value, self.interval()) {
            (Some(value), Some((low, high))) => format!("{value:.2} [{low:.2}, {high:.2}]"),
            (Some(value), None) => format!("{value:.2}"),
            _ => "-".into(),
        }
    }

    /// `different: 28 % lower`.
    pub fn words(&self, margin: f64) -> String {
        let words = match (self.verdict, self.value) {
            (Verdict::Different, Some(value)) => format!("different: {}", difference(value, margin)),
            (Verdict::Equivalent, _) => format!("equivalent within {}", percent(margin, margin)),
            _ => self.note.as_ref().map_or_else(|| "undecided".into(), |note| format!("undecided: {note}")),
        };
        if self.is_indication() { format!("{words} (indication)") } else { words }
    }

    /// Whether it has so few blocks that it is only an indication.
    pub fn is_indication(&self) -> bool {
        self.weight == Weight::Indication && self.value.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hodges_lehmann::Interval;
    use crate::weight::ErrorRate;

    fn ratio(value: f64, low: f64, high: f64, blocks: usize) -> Ratio {
        let interval = Some(Interval { low, high, coverage: 0.95 });
        Ratio::of(Some(Estimate { value, interval, p_value: 0.01, blocks }), blocks, None)
    }

    fn decided(mut ratio: Ratio, p_adjusted: f64, floor: Option<f64>) -> Result<Verdict, String> {
        ratio.p_adjusted = Some(p_adjusted);
        let noise = floor.map(|ratio: f64| Noise { name: "A/A noise", reach: ratio.ln() });
        ratio.decide(12, Rule { margin: 0.03, error_rate: ErrorRate::default() }, Ok(noise));
        ratio.note.map_or(Ok(ratio.verdict), Err)
    }

    #[test]
    fn the_rule_case_by_case() {
        for (found, p_adjusted, floor, expected) in [
            (ratio(1.02, 1.01, 1.029, 12), 0.001, None, Ok(Verdict::Equivalent)),
            (ratio(1.02, 0.99, 1.05, 12), 0.3, None, Ok(Verdict::Undecided)),
            (ratio(1.05, 1.02, 1.08, 12), 0.01, None, Ok(Verdict::Different)),
            (ratio(1.05, 1.02, 1.08, 12), 0.01, Some(1.04), Ok(Verdict::Different)),
            (ratio(1.05, 1.02, 1.08, 12), 0.01, Some(1.06), Err("within the A/A noise of 6.0 %")),
            (
                ratio(0.95, 0.93, 0.98, 12),
                0.06,
                None,
                Err("not after adjustment for the number of comparisons"),
            ),
            (ratio(0.95, 0.93, 0.98, 9), 0.06, None, Ok(Verdict::Different)),
            (Ratio::of(None, 0, None), 1.0, None, Err("no block has a valid run of both")),
        ] {
            let words = format!("{found:?}");
            assert_eq!(decided(found, p_adjusted, floor), expected.map_err(str::to_owned), "{words}");
        }
    }

    /// Regression test: `--fail-on regression` passed a ratio that looked worse because its noise was unknown.
    #[test]
    fn what_cannot_be_held_against_its_noise_lacks_evidence() {
        let rule = Rule { margin: 0.03, error_rate: ErrorRate::default() };
        let decided = |floor| {
            let mut found = Ratio { p_adjusted: Some(0.001), ..ratio(1.05, 1.02, 1.08, 12) };
            found.decide(12, rule, floor);
            (found.verdict, found.lacks_evidence)
        };
        assert_eq!(decided(Ok(None)), (Verdict::Different, false));
        assert_eq!(decided(Err("the A/A pair has no value")), (Verdict::Undecided, true));
    }

    /// Regression test: a margin of 1.5 % was printed as 2 %, and 0.1 % as 0 %.
    #[test]
    fn a_margin_is_printed_with_the_digits_that_it_has() {
        for (margin, equivalent, different) in [
            (0.03, "equivalent within 3 %", "different: 2 % lower"),
            (0.07, "equivalent within 7 %", "different: 2 % lower"),
            (0.5, "equivalent within 50 %", "different: 2 % lower"),
            (0.015, "equivalent within 1.5 %", "different: 1.7 % lower"),
            (0.001, "equivalent within 0.1 %", "different: 1.7 % lower"),
            (0.0025, "equivalent within 0.25 %", "different: 1.70 % lower"),
        ] {
            let said = |verdict| Ratio { verdict, ..ratio(0.983, 0.98, 0.99, 12) }.words(margin);
            assert_eq!(said(Verdict::Equivalent), equivalent);
            assert_eq!(said(Verdict::Different), different);
        }
    }

    #[test]
    fn an_interval_that_excludes_one_shows_more_than_chance() {
        let reach = |value, low, high| ratio(value, low, high, 12).reach();
        assert_eq!(reach(1.01, 0.98, 1.04), Some(1.01_f64.ln()));
        assert_eq!(reach(1.03, 1.01, 1.05), Some(1.05_f64.ln()));
        assert_eq!(reach(0.97, 0.95, 0.99), Some(-0.95_f64.ln()));
        assert_eq!(Ratio { low: None, ..ratio(0.97, 0.95, 0.99, 4) }.reach(), None);
    }
}
