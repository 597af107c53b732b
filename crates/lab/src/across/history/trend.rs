//! The state of a cell in the newest result, judged by past changes.

use super::{Point, Step};
use crate::experiment::metric::Metric;
use crate::stats::Better;
use std::fmt;

/// Past changes needed to learn a threshold, as ten results have: the quartiles of fewer mean little.
pub const LEAST_CHANGES: usize = 9;

/// The default for fewer: nightly runs of one program on changing hosts differ by less in nine of ten.
pub const DEFAULT_THRESHOLD: f64 = 0.3;

/// The state of a cell in the newest result.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Latest {
    /// The cell is missing.
    Absent,
    /// It has no value comparable with an earlier one.
    Alone,
    /// It has no valid run, but earlier results have: the index of the newest of them.
    Broken(usize),
    /// It changed, or stayed the same.
    Changed(Last),
}

/// The last change and its judgement.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Last {
    /// The change.
    pub step: Step,
    /// A change beyond this share is reported.
    pub threshold: f64,
    /// The origin of the threshold.
    pub rule: Rule,
    /// The verdict.
    pub verdict: Trend,
}

/// The origin of a threshold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// Learnt from this many past changes: the third quartile plus three interquartile ranges.
    Learnt(usize),
    /// The default, as this many past changes are too few.
    Default(usize),
    /// Given with `--threshold`.
    Given,
    /// The minimum, as the learnt or default one is smaller.
    Minimum,
}

/// The verdict on a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trend {
    /// For the worse, beyond the threshold.
    Regression,
    /// For the better, beyond the threshold.
    Improvement,
    /// Beyond the threshold, for a metric without a better direction.
    Moved,
    /// Within the threshold.
    Usual,
}

impl fmt::Display for Rule {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Learnt(changes) => write!(formatter, "Q3 + 3 IQR of {changes} past changes"),
            Self::Default(changes) => {
                write!(formatter, "the default: fewer than {LEAST_CHANGES} past changes ({changes})")
            }
            Self::Given => formatter.write_str("--threshold"),
            Self::Minimum => formatter.write_str("the minimum change reported"),
        }
    }
}

impl fmt::Display for Trend {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(match self {
            Self::Regression => "regression",
            Self::Improvement => "improvement",
            Self::Moved => "moved",
            Self::Usual => "usual",
        })
    }
}

impl Latest {
    /// `newest` is the index of the newest result, even if it lacks the cell.
    pub(super) fn of(
        metric: Metric,
        points: &[Point],
        newest: usize,
        given: Option<f64>,
        minimum: f64,
    ) -> Self {
        let Some((last, past)) = points.split_last().filter(|(last, _)| last.result == newest) else {
            return Self::Absent;
        };
        let worked = past.iter().rev().find(|point| point.blocks > 0);
        match (worked, last.change) {
            (Some(before), _) if last.blocks == 0 => Self::Broken(before.result),
            (_, Some(step)) => Self::Changed(Last::of(metric, step, past, given, minimum)),
            (_, None) => Self::Alone,
        }
    }

    /// The change, if there is one.
    pub fn change(&self) -> Option<&Last> {
        match self {
            Self::Changed(last) => Some(last),
            Self::Absent | Self::Alone | Self::Broken(_) => None,
        }
    }

    /// Whether it is for the worse, beyond the threshold, or broken.
    pub fn is_regression(&self) -> bool {
        match self {
            Self::Changed(last) => last.verdict == Trend::Regression,
            Self::Broken(_) => true,
            Self::Absent | Self::Alone => false,
        }
    }
}

impl Last {
    fn of(metric: Metric, step: Step, past: &[Point], given: Option<f64>, minimum: f64) -> Self {
        let past_changes: Vec<f64> =
            past.iter().filter_map(|point| point.change).map(|step| step.ratio).collect();
        let (threshold, rule) = match given {
            Some(threshold) => (threshold, Rule::Given),
            None => threshold(&past_changes, minimum),
        };
        // Symmetric: halving is as large a change as doubling.
        let verdict = match (step.ratio.ln().abs() > threshold.ln_1p(), metric.better()) {
            (false, _) => Trend::Usual,
            (true, Better::Neither) => Trend::Moved,
            (true, _) if metric.better().is_worse(step.ratio) => Trend::Regression,
            (true, _) => Trend::Improvement,
        };
        Self { step, threshold, rule, verdict }
    }
}

/// With [`LEAST_CHANGES`] or more past changes, the third quartile of their sizes plus three interquartile ranges; else
/// the default; never less than `minimum`.
fn threshold(past_changes: &[f64], minimum: f64) -> (f64, Rule) {
    let mut sizes: Vec<f64> = past_changes.iter().map(|ratio| ratio.ln().abs()).collect();
    sizes.sort_by(f64::total_cmp);
    let (threshold, rule) = match (quantile(&sizes, 0.25), quantile(&sizes, 0.75)) {
        (Some(first), Some(third)) if sizes.len() >= LEAST_CHANGES => {
            ((third + 3.0 * (third - first)).exp_m1(), Rule::Learnt(sizes.len()))
        }
        _ => (DEFAULT_THRESHOLD, Rule::Default(sizes.len())),
    };
    if threshold < minimum { (minimum, Rule::Minimum) } else { (threshold, rule) }
}

/// A quantile of sorted values, interpolated linearly (R's default).
pub(super) fn quantile(sorted: &[f64], quantile: f64) -> Option<f64> {
    let at = (sorted.len().checked_sub(1)?) as f64 * quantile;
    let below = sorted[at.floor() as usize];
    Some(below + at.fract() * (sorted[at.ceil() as usize] - below))
}
