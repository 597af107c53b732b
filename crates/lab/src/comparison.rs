//! Comparisons of targets, and the words that may be said about them.

use crate::experiment::{AGAIN, Case, Compare, Level, Load, Mode, Selector, is_setting};
use crate::metric::Metric;
use crate::pairing::{self, Paired, Side};
use crate::plan::{Cell, Group, Plan};
use crate::run::RunRecord;
use crate::stats::{self, Weight, fdr};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use weir_load::result::Latency;

/// The false-discovery rate that a verdict allows.
const ALPHA: f64 = 0.05;

/// Whether a percentile falls among samples that took longer than it was waited for: time-outs, arrivals never sent.
pub(crate) fn is_lower_bound(latency: &Latency, percentile: Option<f64>) -> bool {
    latency.censored_from_us.zip(percentile).is_some_and(|(from, percentile)| from <= percentile)
}

/// What a comparison came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The interval excludes 1, after adjustment for the number of comparisons, and the ratio is beyond the A/A noise.
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

/// A target against a baseline in one mode and under one load.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// What is compared.
    pub metric: Metric,
    /// The denominator of the ratio.
    pub baseline: String,
    /// The numerator.
    pub target: String,
    /// Client side, upstream side.
    pub mode: Mode,
    /// What a client does.
    pub case: Case,
    /// Connections held open.
    pub connections: u32,
    /// Body bytes of an answer.
    pub bytes: u64,
    /// How requests arrive.
    pub load: Load,
    /// The levels of the experiment's further factors.
    #[serde(default, flatten, serialize_with = "crate::cell::further")]
    pub factors: BTreeMap<String, Level>,
    /// The factor of which two levels are compared; null where two targets are.
    #[serde(default)]
    pub factor: Option<String>,
    /// Requests per second that were offered; null in a closed loop.
    pub rate: Option<f64>,
    /// Target over baseline; null when no block has both.
    pub ratio: Option<f64>,
    /// Lower end of its interval; null below five blocks.
    pub low: Option<f64>,
    /// Upper end.
    pub high: Option<f64>,
    /// The coverage of the interval that so many blocks allow.
    pub coverage: Option<f64>,
    /// Exact p-value of the signed-rank test.
    pub p_value: Option<f64>,
    /// The same, adjusted for the comparisons of this metric under this load (Benjamini and Hochberg).
    pub p_adjusted: Option<f64>,
    /// Blocks in which both were valid.
    pub blocks: u32,
    /// How sure it is, by its blocks.
    pub weight: Weight,
    /// The verdict.
    pub verdict: Verdict,
    /// Why it is undecided, where the numbers alone do not say it.
    pub note: Option<String>,
    /// Whether it compares a target with itself.
    pub aa: bool,
}

/// All comparisons of a plan: each target with the baseline, the A/A pair, and the levels of the factors that it asks
/// for, for each group and metric.
pub(crate) fn all(plan: &Plan, cells: &[(&Cell, Vec<&RunRecord>)]) -> Vec<Comparison> {
    let mut found = Vec::new();
    for (cell, runs) in cells.iter().filter(|(cell, _)| cell.mode.upstream().is_some()) {
        let own = if cell.is_again() { cell.name.strip_suffix(AGAIN) } else { plan.baseline.as_deref() };
        if let Some(baseline) = own.filter(|baseline| *baseline != cell.name)
            && let Some((_, of_baseline)) =
                cells.iter().find(|(other, _)| other.name == *baseline && other.group() == cell.group())
        {
            for metric in Metric::of_load(cell.load, cell.case) {
                let sides = [(cell.name.as_str(), cell.load, runs), (baseline, cell.load, of_baseline)];
                found.push(one(metric, cell, None, sides));
            }
        }
        for compare in plan.experiment.compare.iter().filter(|one| !cell.is_again() && cell.has(&one.cell)) {
            let Compare { factor, baseline, .. } = compare;
            let Some(level) = cell.level(factor).filter(|level| level != baseline) else { continue };
            let wanted = Selector::from_iter([(factor.clone(), baseline.clone())]);
            let Some((other, of_baseline)) = cells.iter().find(|(other, _)| cell.is_but_for(other, &wanted))
            else {
                continue;
            };
            // A target's name has its settings in it.
            let names = match factor == "target" || is_setting(factor) {
                true => [cell.name.clone(), other.name.clone()],
                false => [&level, baseline].map(|level| format!("{} {factor}={level}", cell.name)),
            };
            for metric in Metric::of_load(cell.load, cell.case) {
                let sides =
                    [(names[0].as_str(), cell.load, runs), (names[1].as_str(), other.load, of_baseline)];
                found.push(one(metric, cell, Some(factor), sides));
            }
        }
    }
    adjust(&mut found);
    let noise = noise(&found);
    for comparison in &mut found {
        comparison.decide(plan.experiment.margin, noise.get(&comparison.noise_key()).copied());
    }
    found.sort_by_key(|one| (one.load, one.metric, one.factor.is_some(), one.mode, one.aa));
    found
}

fn one(metric: Metric, cell: &Cell, factor: Option<&String>, sides: [Side<'_, '_>; 2]) -> Comparison {
    let [(target, _, runs), (baseline, ..)] = sides;
    let Paired { estimate, blocks, note } = pairing::pair(metric, sides);
    let interval = estimate.and_then(|estimate| estimate.interval);
    Comparison {
        metric,
        baseline: baseline.to_owned(),
        target: target.to_owned(),
        mode: cell.mode,
        case: cell.case,
        connections: cell.connections,
        bytes: cell.bytes,
        load: cell.load,
        factors: cell.group().factors,
        factor: factor.cloned(),
        rate: runs.iter().find_map(|run| run.rate),
        ratio: estimate.map(|estimate| estimate.value),
        low: interval.map(|interval| interval.low),
        high: interval.map(|interval| interval.high),
        coverage: interval.map(|interval| interval.coverage),
        p_value: estimate.map(|estimate| estimate.p_value),
        p_adjusted: None,
        blocks: blocks as u32,
        weight: Weight::of(blocks),
        verdict: Verdict::Undecided,
        note,
        aa: cell.is_again(),
    }
}

/// Adjusts the p-values within each family: one metric under one load. The A/A pair asks nothing and is in no family;
/// neither is a comparison that its runs cannot support.
fn adjust(comparisons: &mut [Comparison]) {
    let mut families: BTreeMap<(Load, Metric), Vec<usize>> = BTreeMap::new();
    for (index, comparison) in comparisons.iter().enumerate() {
        if comparison.weight != Weight::None && comparison.note.is_none() && !comparison.aa {
            families.entry((comparison.load, comparison.metric)).or_default().push(index);
        }
    }
    for family in families.into_values() {
        let p_values: Vec<f64> =
            family.iter().map(|index| comparisons[*index].p_value.unwrap_or(1.0)).collect();
        for (index, adjusted) in family.into_iter().zip(fdr::benjamini_hochberg(&p_values)) {
            comparisons[index].p_adjusted = Some(adjusted);
        }
    }
}

type NoiseKey = (Metric, Group);

/// How far the A/A pair's interval reaches from 1, as a logarithm.
fn noise(comparisons: &[Comparison]) -> BTreeMap<NoiseKey, f64> {
    let reach = |comparison: &Comparison| Some(comparison.low?.ln().abs().max(comparison.high?.ln().abs()));
    let pairs = comparisons.iter().filter(|comparison| comparison.aa);
    pairs.filter_map(|comparison| Some((comparison.noise_key(), reach(comparison)?))).collect()
}

impl Comparison {
    fn noise_key(&self) -> NoiseKey {
        (self.metric, self.group())
    }

    fn decide(&mut self, margin: f64, noise: Option<f64>) {
        if self.note.is_some() {
            return;
        }
        let (Some(ratio), Some(low), Some(high)) = (self.ratio, self.low, self.high) else {
            self.note = Some(match self.blocks {
                0 => "no block has a valid run of both".into(),
                blocks => format!("{blocks} blocks: no interval below {}", stats::BLOCKS_FOR_INTERVAL),
            });
            return;
        };
        // So few blocks as an indication has cannot pass an adjustment: the least p of five is 0.0625. What it says rests
        // on the interval and the noise floor alone, and is said to be no more than an indication.
        let adjusted = self.p_adjusted.filter(|_| self.weight == Weight::Verdict);
        let is_adjusted_away = adjusted.is_some_and(|p_value| p_value > ALPHA);
        let within_margin = low >= 1.0 / (1.0 + margin) && high <= 1.0 + margin;
        let excludes_one = low > 1.0 || high < 1.0;
        if within_margin {
            self.verdict = Verdict::Equivalent;
        } else if excludes_one && is_adjusted_away {
            self.note = Some("not after adjustment for the number of comparisons".into());
        } else if excludes_one {
            match noise.filter(|noise| !self.aa && ratio.ln().abs() <= *noise) {
                Some(noise) => {
                    self.note = Some(format!("within the A/A noise of {:.1} %", noise.exp_m1() * 100.0));
                }
                None => self.verdict = Verdict::Different,
            }
        }
    }

    /// The group that it is of.
    pub fn group(&self) -> Group {
        let Self { case, mode, connections, bytes, load, .. } = *self;
        Group { case, mode, connections, bytes, load, factors: self.factors.clone() }
    }

    /// `0.72 [0.69, 0.76]`.
    pub fn ratio_text(&self) -> String {
        match (self.ratio, self.low, self.high) {
            (Some(ratio), Some(low), Some(high)) => format!("{ratio:.2} [{low:.2}, {high:.2}]"),
            (Some(ratio), _, _) => format!("{ratio:.2}"),
            _ => "-".into(),
        }
    }

    /// `different: 28 % lower`.
    pub fn verdict_text(&self, margin: f64) -> String {
        let words = match (self.verdict, self.ratio) {
            (Verdict::Different, Some(ratio)) if ratio < 1.0 => {
                format!("different: {:.0} % lower", (1.0 - ratio) * 100.0)
            }
            (Verdict::Different, Some(ratio)) => format!("different: {:.0} % higher", (ratio - 1.0) * 100.0),
            (Verdict::Equivalent, _) => format!("equivalent within {:.0} %", margin * 100.0),
            _ => match &self.note {
                Some(note) => format!("undecided: {note}"),
                None => "undecided".into(),
            },
        };
        match self.weight {
            Weight::Indication if self.verdict != Verdict::Undecided => format!("{words} (indication)"),
            _ => words,
        }
    }

    /// The line of this comparison on standard output, under the heading of its metric and load.
    pub fn line(&self, margin: f64) -> String {
        format!("{} vs {}: {} {}", self.target, self.baseline, self.ratio_text(), self.verdict_text(margin))
    }
}
