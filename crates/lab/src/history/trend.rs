//! What the newest result says of a cell, by the changes before it.

use super::{Point, Step};
use crate::metric::Metric;
use crate::stats::Better;
use std::fmt;

/// Past changes from which a threshold is learnt, which ten results have: fewer have no quartiles to speak of.
pub const LEAST_CHANGES: usize = 9;

/// Where there are fewer: nightly runs of one program on changing hosts differ by less in nine of ten.
pub const DEFAULT_THRESHOLD: f64 = 0.3;

/// What the newest result says of a cell.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Latest {
    /// Nothing: it does not have the cell.
    Absent,
    /// It has no value that can be compared with an earlier one.
    Alone,
    /// It has no valid run, and an earlier result had some: the newest of these, as an index.
    Broken(usize),
    /// So much has it changed.
    Changed(Last),
}

/// The last change, and the rule that it is measured by.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Last {
    /// The change.
    pub step: Step,
    /// A change beyond this share is reported.
    pub threshold: f64,
    /// Where the threshold is from.
    pub rule: Rule,
    /// What it comes to.
    pub verdict: Trend,
}

/// Where a threshold is from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// From so many past changes: the third quartile and three interquartile ranges.
    Learnt(usize),
    /// The default, since so many past changes are too few.
    Default(usize),
    /// It was given.
    Given,
    /// The minimum, which the others fell below.
    Minimum,
}

/// What a change comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trend {
    /// For the worse, beyond the threshold.
    Regression,
    /// For the better, beyond the threshold.
    Improvement,
    /// Beyond the threshold, of a metric that is neither better nor worse for it.
    Moved,
    /// Within the threshold.
    Usual,
}

impl fmt::Display for Rule {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Learnt(changes) => write!(formatter, "Q3 + 3 IQR of {changes} past changes"),
            Self::Default(changes) => {
                write!(formatter, "the default: {changes} past changes, fewer than {LEAST_CHANGES}")
            }
            Self::Given => formatter.write_str("--threshold"),
            Self::Minimum => formatter.write_str("the least that is reported"),
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
    /// `newest` is the index of the newest result, whether it has the cell or not.
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

    /// Whether it is for the worse, beyond the threshold, or works no more.
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
        // As far up as down: half as much is as large a change as twice as much.
        let verdict = match (step.ratio.ln().abs() > threshold.ln_1p(), metric.better()) {
            (false, _) => Trend::Usual,
            (true, Better::Neither) => Trend::Moved,
            (true, _) if metric.better().is_worse(step.ratio) => Trend::Regression,
            (true, _) => Trend::Improvement,
        };
        Self { step, threshold, rule, verdict }
    }
}

/// The third quartile of the sizes of past changes and three interquartile ranges, from [`LEAST_CHANGES`] on; the default
/// below; never less than `minimum`.
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

/// A quantile of sorted values, between two of them in proportion (as R's default does).
pub(super) fn quantile(sorted: &[f64], quantile: f64) -> Option<f64> {
    let at = (sorted.len().checked_sub(1)?) as f64 * quantile;
    let below = sorted[at.floor() as usize];
    Some(below + at.fract() * (sorted[at.ceil() as usize] - below))
}
