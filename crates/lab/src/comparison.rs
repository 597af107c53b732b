//! Comparisons of targets, and the words that may be said about them.

use crate::experiment::{Case, Load, Mode};
use crate::limit::Limit;
use crate::plan::{Cell, Plan, Stage};
use crate::run::{Parts, RunRecord};
use crate::stats::{self, Estimate, Weight, fdr};
use crate::summary::usual_limit;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use weir_load::result::Latency;

/// The false-discovery rate that a verdict allows.
const ALPHA: f64 = 0.05;

/// A quantity that is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Metric {
    /// CPU of the gateway per request.
    CpuUsPerRequest,
    /// CPU of the gateway per handshake.
    CpuUsPerHandshake,
    /// 99th percentile of the response time.
    P99Us,
    /// Rate.
    RequestsPerSecond,
    /// Rate of handshakes.
    HandshakesPerSecond,
}

impl Metric {
    /// The two of which one is what an experiment is about.
    pub const CPU: [Self; 2] = [Self::CpuUsPerRequest, Self::CpuUsPerHandshake];

    /// What is compared under a load: at one equal rate a rate says nothing, at saturation latency is the queue's.
    pub fn of_load(load: Load, case: Case) -> [Self; 2] {
        let (cpu, rate) = match case.is_handshake() {
            false => (Self::CpuUsPerRequest, Self::RequestsPerSecond),
            true => (Self::CpuUsPerHandshake, Self::HandshakesPerSecond),
        };
        match load {
            Load::EqualRate => [cpu, Self::P99Us],
            Load::Saturated => [cpu, rate],
        }
    }

    /// Whether it is CPU of the gateway.
    pub fn is_cpu(self) -> bool {
        Self::CPU.contains(&self)
    }

    /// Whether more is better.
    pub fn is_rate(self) -> bool {
        matches!(self, Self::RequestsPerSecond | Self::HandshakesPerSecond)
    }

    /// In words.
    pub fn title(self) -> &'static str {
        match self {
            Self::CpuUsPerRequest => "CPU per request",
            Self::CpuUsPerHandshake => "CPU per handshake",
            Self::P99Us => "p99 response time",
            Self::RequestsPerSecond => "requests per second",
            Self::HandshakesPerSecond => "handshakes per second",
        }
    }

    fn of_run(self, parts: &Parts<'_>) -> Option<f64> {
        match self {
            Self::CpuUsPerRequest => parts.gateway?.cost.cpu_us_per_request,
            Self::CpuUsPerHandshake => parts.gateway?.cost.cpu_us_per_handshake,
            Self::P99Us => parts.load.response.p99_us,
            Self::RequestsPerSecond => Some(parts.load.requests_per_second),
            Self::HandshakesPerSecond => Some(parts.load.handshakes.per_second),
        }
    }

    /// Why these valid runs of a target have no value that could be compared. To leave out just the runs without one
    /// would be to leave out the worst.
    fn has_no_value(self, target: &str, runs: &[&RunRecord]) -> Option<String> {
        if self != Self::P99Us || runs.is_empty() {
            return None;
        }
        let all = || runs.iter().filter_map(|run| run.observation.load.as_ref()).map(|load| &load.response);
        let bounds = all().filter(|response| is_lower_bound(response, response.p99_us)).count();
        let few = all().filter(|response| response.p99_us.is_none()).count();
        match (bounds, few) {
            (0, 0) => None,
            (0, _) => {
                Some(format!("{few} of {} runs of {target} have too few samples for a p99", runs.len()))
            }
            _ => {
                Some(format!("the p99 of {target} is only a lower bound in {bounds} of {} runs", runs.len()))
            }
        }
    }

    /// Whether runs with such a limit tell something about the target.
    fn is_supported(self, load: Load, limit: Option<Limit>) -> bool {
        match (self, load, limit) {
            (Self::CpuUsPerRequest | Self::CpuUsPerHandshake, Load::EqualRate, _) => true,
            (_, _, Some(Limit::Gateway | Limit::Neither)) => true,
            (_, _, Some(Limit::Origin | Limit::Load | Limit::SharedCores) | None) => false,
        }
    }
}

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

/// All comparisons of a plan: each target with the baseline, and the A/A pair, for each group and metric.
pub(crate) fn all(plan: &Plan, cells: &[(&Cell, Vec<&RunRecord>)]) -> Vec<Comparison> {
    let mut found = Vec::new();
    for (cell, runs) in cells.iter().filter(|(cell, _)| cell.mode.upstream().is_some()) {
        let aa = cell.name != cell.target;
        let baseline = if aa { Some(&cell.target) } else { plan.baseline.as_ref() };
        let Some(baseline) = baseline.filter(|baseline| **baseline != cell.name) else { continue };
        let of_baseline =
            |(other, _): &&(&Cell, Vec<&RunRecord>)| other.name == *baseline && other.group() == cell.group();
        let Some((_, baseline_runs)) = cells.iter().find(of_baseline) else { continue };
        for metric in Metric::of_load(cell.load, cell.case) {
            found.push(one(metric, cell, baseline, runs, baseline_runs, aa));
        }
    }
    adjust(&mut found);
    let noise = noise(&found);
    for comparison in &mut found {
        comparison.decide(plan.experiment.margin, noise.get(&comparison.noise_key()).copied());
    }
    found.sort_by_key(|comparison| (comparison.load, comparison.metric, comparison.mode, comparison.aa));
    found
}

fn one<'a>(
    metric: Metric,
    cell: &Cell,
    baseline: &str,
    runs: &[&'a RunRecord],
    baseline_runs: &[&'a RunRecord],
    aa: bool,
) -> Comparison {
    let valid = |runs: &[&'a RunRecord]| -> Vec<&'a RunRecord> {
        runs.iter().copied().filter(|run| run.validity.is_valid()).collect()
    };
    let both = [(cell.name.as_str(), valid(runs)), (baseline, valid(baseline_runs))];
    let without_value = both.iter().find_map(|(name, runs)| metric.has_no_value(name, runs));
    let values = |runs: &[&RunRecord]| -> BTreeMap<Stage, f64> {
        let of_run = |run: &&RunRecord| Some((run.run.stage, metric.of_run(&run.parts()?)?));
        runs.iter().filter(|_| without_value.is_none()).filter_map(of_run).collect()
    };
    let (target_values, baseline_values) = (values(&both[0].1), values(&both[1].1));
    let pairs: Vec<(f64, f64)> = baseline_values
        .iter()
        .filter_map(|(block, value)| Some((*value, *target_values.get(block)?)))
        .collect();
    let estimate: Option<Estimate> = stats::compare_pairs(&pairs);
    let interval = estimate.and_then(|estimate| estimate.interval);
    let unsupported = || {
        both.iter().find_map(|(name, runs)| {
            let limit = usual_limit(runs);
            (!metric.is_supported(cell.load, limit)).then(|| match limit {
                Some(limit) => format!("{name} was limited by {limit}"),
                None => format!("{name} has no valid run"),
            })
        })
    };
    Comparison {
        metric,
        baseline: baseline.to_owned(),
        target: cell.name.clone(),
        mode: cell.mode,
        case: cell.case,
        connections: cell.connections,
        bytes: cell.bytes,
        load: cell.load,
        rate: runs.iter().find_map(|run| run.rate),
        ratio: estimate.map(|estimate| estimate.value),
        low: interval.map(|interval| interval.low),
        high: interval.map(|interval| interval.high),
        coverage: interval.map(|interval| interval.coverage),
        p_value: estimate.map(|estimate| estimate.p_value),
        p_adjusted: None,
        blocks: pairs.len() as u32,
        weight: Weight::of(pairs.len()),
        verdict: Verdict::Undecided,
        note: unsupported().or(without_value),
        aa,
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

type NoiseKey = (Metric, Load, Mode, u32, u64);

/// How far the A/A pair's interval reaches from 1, as a logarithm.
fn noise(comparisons: &[Comparison]) -> BTreeMap<NoiseKey, f64> {
    let reach = |comparison: &Comparison| Some(comparison.low?.ln().abs().max(comparison.high?.ln().abs()));
    let pairs = comparisons.iter().filter(|comparison| comparison.aa);
    pairs.filter_map(|comparison| Some((comparison.noise_key(), reach(comparison)?))).collect()
}

impl Comparison {
    fn noise_key(&self) -> NoiseKey {
        (self.metric, self.load, self.mode, self.connections, self.bytes)
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
        format!(
            "{:<7} {} vs {}: {} {}",
            self.mode,
            self.target,
            self.baseline,
            self.ratio_text(),
            self.verdict_text(margin)
        )
    }
}
