//! The words that may be said about a ratio, and the rule that chooses between them: for targets within one result, and
//! for one target in two.

use crate::stats::{self, Estimate, Interval, Weight};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// The false-discovery rate that a verdict allows.
const ALPHA: f64 = 0.05;

/// What a comparison came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The interval excludes 1, after adjustment for the number of comparisons, and the ratio is beyond the noise.
    Different,
    /// The whole interval lies within the margin.
    Equivalent,
    /// Neither could be shown.
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

/// How far what has not changed seems to be from itself, as a logarithm, and what to call that.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Noise {
    pub(crate) name: &'static str,
    pub(crate) reach: f64,
}

impl fmt::Display for Noise {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} of {:.1} %", self.name, self.reach.exp_m1() * 100.0)
    }
}

impl Noise {
    /// What the ratio of a thing to itself shows: as long as its interval holds 1, the estimate. Chance is accounted for by
    /// the interval of each comparison; counted here once more, it would hide what is there. Where the interval excludes 1,
    /// something is at work that chance is not, and its farther end counts.
    pub(crate) fn reach(ratio: f64, interval: Option<(f64, f64)>) -> f64 {
        match interval.filter(|(low, high)| *low > 1.0 || *high < 1.0) {
            Some((low, high)) => low.ln().abs().max(high.ln().abs()),
            None => ratio.ln().abs(),
        }
    }
}

/// How far the A/A pairs seem to be from themselves, by what they share with the comparisons that are held against them.
#[derive(Clone, Debug)]
pub(crate) struct Floors<K>(BTreeMap<K, Option<Noise>>);

impl<K: Ord> Floors<K> {
    /// From what each A/A pair shows; `None` where it has no interval.
    pub(crate) fn of(pairs: impl Iterator<Item = (K, Option<f64>)>) -> Self {
        let noise = |reach| Noise { name: "A/A noise", reach };
        Self(pairs.map(|(key, reach)| (key, reach.map(noise))).collect())
    }

    /// What a difference has to exceed: nothing where no A/A pair was planned.
    ///
    /// # Errors
    /// One was planned, and has too few valid runs: what was asked for as a proof is not there.
    pub(crate) fn get(&self, key: &K) -> Result<Option<Noise>, &'static str> {
        match self.0.get(key) {
            Some(Some(noise)) => Ok(Some(*noise)),
            Some(None) => Err("the A/A pair has no value, so the noise floor is not known"),
            None => Ok(None),
        }
    }
}

/// [`decide`] where the noise floor may not be known: then nothing is called different.
pub(crate) fn decide_above(
    floor: Result<Option<Noise>, &'static str>,
    estimate: Option<Estimate>,
    p_adjusted: Option<f64>,
    margin: f64,
) -> Result<Verdict, String> {
    let verdict = decide(estimate, p_adjusted, margin, floor.unwrap_or_default())?;
    match floor {
        Err(why) if verdict == Verdict::Different => Err(why.into()),
        _ => Ok(verdict),
    }
}

/// The estimate of a comparison as it is stored: ratio, ends and coverage of its interval, p-value, blocks.
pub(crate) fn stored_estimate(
    ratio: Option<f64>,
    interval: [Option<f64>; 3],
    p_value: Option<f64>,
    blocks: u32,
) -> Option<Estimate> {
    let interval = match interval {
        [Some(low), Some(high), Some(coverage)] => Some(Interval { low, high, coverage }),
        _ => None,
    };
    Some(Estimate { value: ratio?, interval, p_value: p_value?, blocks: blocks as usize })
}

/// The verdict on a ratio, or why it is undecided where the numbers alone do not say it.
pub(crate) fn decide(
    estimate: Option<Estimate>,
    p_adjusted: Option<f64>,
    margin: f64,
    noise: Option<Noise>,
) -> Result<Verdict, String> {
    let Some(estimate) = estimate else { return Err("no block has a valid run of both".into()) };
    let Some(interval) = estimate.interval else {
        let (blocks, least) = (estimate.blocks, stats::BLOCKS_FOR_INTERVAL);
        return Err(format!("{blocks} blocks: no interval below {least}"));
    };
    // So few blocks as an indication has cannot pass an adjustment: the least p of five is 0.0625. What it says rests
    // on the interval and the noise floor alone, and is said to be no more than an indication.
    let is_verdict = Weight::of(estimate.blocks) == Weight::Verdict;
    let is_adjusted_away = is_verdict && p_adjusted.is_some_and(|p_value| p_value > ALPHA);
    let is_within_margin = interval.low >= 1.0 / (1.0 + margin) && interval.high <= 1.0 + margin;
    let excludes_one = interval.low > 1.0 || interval.high < 1.0;
    if is_within_margin {
        Ok(Verdict::Equivalent)
    } else if !excludes_one {
        Ok(Verdict::Undecided)
    } else if is_adjusted_away {
        Err("not after adjustment for the number of comparisons".into())
    } else {
        match noise.filter(|noise| estimate.value.ln().abs() <= noise.reach) {
            Some(noise) => Err(format!("within the {noise}")),
            None => Ok(Verdict::Different),
        }
    }
}

/// `0.72 [0.69, 0.76]`.
pub(crate) fn ratio_text(ratio: Option<f64>, interval: Option<(f64, f64)>) -> String {
    match (ratio, interval) {
        (Some(ratio), Some((low, high))) => format!("{ratio:.2} [{low:.2}, {high:.2}]"),
        (Some(ratio), None) => format!("{ratio:.2}"),
        _ => "-".into(),
    }
}

/// `different: 28 % lower`.
pub(crate) fn words(
    verdict: Verdict,
    ratio: Option<f64>,
    note: Option<&str>,
    weight: Weight,
    margin: f64,
) -> String {
    let words = match (verdict, ratio) {
        (Verdict::Different, Some(ratio)) => format!("different: {}", difference(ratio, margin)),
        (Verdict::Equivalent, _) => format!("equivalent within {}", percent(margin, margin)),
        _ => note.map_or_else(|| "undecided".into(), |note| format!("undecided: {note}")),
    };
    match weight {
        Weight::Indication if verdict != Verdict::Undecided => format!("{words} (indication)"),
        _ => words,
    }
}

/// A verdict's words, and what is to be known beside them.
pub(crate) fn with_remark(words: String, remark: Option<&str>) -> String {
    remark.map_or_else(|| words.clone(), |remark| format!("{words}; {remark}"))
}

/// `28 % lower`.
pub(crate) fn difference(ratio: f64, margin: f64) -> String {
    let word = if ratio < 1.0 { "lower" } else { "higher" };
    format!("{} {word}", percent((ratio - 1.0).abs(), margin))
}

/// A share in percent, with as many digits as the margin has: of 1.5 % as of 0.1 % one.
fn percent(share: f64, margin: f64) -> String {
    // To a millionth: 0.07 * 100 is not 7.
    let shown = ((margin * 1e6).round() / 1e4).to_string();
    let digits = shown.split_once('.').map_or(0, |(_, digits)| digits.len());
    format!("{:.digits$} %", share * 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn estimate(value: f64, low: f64, high: f64, blocks: usize) -> Option<Estimate> {
        let interval = Some(Interval { low, high, coverage: 0.95 });
        Some(Estimate { value, interval, p_value: 0.01, blocks })
    }

    fn decided(estimate: Option<Estimate>, p_adjusted: f64, floor: Option<f64>) -> Result<Verdict, String> {
        let noise = floor.map(|ratio: f64| Noise { name: "A/A noise", reach: ratio.ln() });
        decide(estimate, Some(p_adjusted), 0.03, noise)
    }

    #[test]
    fn the_rule_case_by_case() {
        for (found, p_adjusted, floor, expected) in [
            (estimate(1.02, 1.01, 1.029, 12), 0.001, None, Ok(Verdict::Equivalent)),
            (estimate(1.02, 0.99, 1.05, 12), 0.3, None, Ok(Verdict::Undecided)),
            (estimate(1.05, 1.02, 1.08, 12), 0.01, None, Ok(Verdict::Different)),
            (estimate(1.05, 1.02, 1.08, 12), 0.01, Some(1.04), Ok(Verdict::Different)),
            (estimate(1.05, 1.02, 1.08, 12), 0.01, Some(1.06), Err("within the A/A noise of 6.0 %")),
            (
                estimate(0.95, 0.93, 0.98, 12),
                0.06,
                None,
                Err("not after adjustment for the number of comparisons"),
            ),
            (estimate(0.95, 0.93, 0.98, 9), 0.06, None, Ok(Verdict::Different)),
            (None, 1.0, None, Err("no block has a valid run of both")),
        ] {
            assert_eq!(decided(found, p_adjusted, floor), expected.map_err(str::to_owned), "{found:?}");
        }
    }

    /// A margin of 1.5 % was printed as one of 2 %, and one of 0.1 % as none.
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
            let said = |verdict| words(verdict, Some(0.983), None, Weight::Verdict, margin);
            assert_eq!(said(Verdict::Equivalent), equivalent);
            assert_eq!(said(Verdict::Different), different);
        }
    }

    #[test]
    fn an_interval_that_excludes_one_shows_more_than_chance() {
        assert_eq!(Noise::reach(1.01, Some((0.98, 1.04))), 1.01_f64.ln());
        assert_eq!(Noise::reach(1.03, Some((1.01, 1.05))), 1.05_f64.ln());
        assert_eq!(Noise::reach(0.97, Some((0.95, 0.99))), -0.95_f64.ln());
        assert_eq!(Noise::reach(0.97, None), -0.97_f64.ln());
    }
}
