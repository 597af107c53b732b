//! Comparisons of targets, and the words that may be said about them.

use crate::experiment::{Case, Compare, Level, Load, Mode, Selector, is_setting};
use crate::metric::Metric;
use crate::pairing::{self, Paired, Side};
use crate::plan::{Cell, Group, Plan};
use crate::run::RunRecord;
use crate::stats::{ErrorRate, fdr};
use crate::verdict::{self, Ratio, Rule};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use weir_load::result::Latency;

pub use crate::verdict::Verdict;

/// Whether a percentile falls among samples that took longer than it was waited for: time-outs, arrivals never sent.
pub(crate) fn is_lower_bound(latency: &Latency, percentile: Option<f64>) -> bool {
    latency.censored_from_us.zip(percentile).is_some_and(|(from, percentile)| from <= percentile)
}

/// A target against a baseline in one mode and under one load.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// What is compared.
    pub metric: Metric,
    /// Target over baseline. Before the further factors, which take every key that is left.
    #[serde(flatten)]
    pub ratio: Ratio,
    /// The denominator of the ratio.
    pub baseline: String,
    /// The numerator.
    pub target: String,
    /// The folder that describes it.
    #[serde(default)]
    pub folder: String,
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
    /// Blocks in which both were valid and had a value.
    pub blocks: u32,
    /// What is to be known of its runs beside the verdict: some were limited, or a target was saturated at the equal rate.
    #[serde(default)]
    pub remark: Option<String>,
    /// Whether it compares a target with itself.
    pub aa: bool,
}

/// All comparisons of a plan: each target with the baseline, the A/A pair, and the levels of the factors that it asks
/// for, for each group and metric.
pub(crate) fn all(plan: &Plan, cells: &[(&Cell, Vec<&RunRecord>)]) -> Vec<Comparison> {
    let rule = plan.rule();
    let error_rate = rule.error_rate;
    let mut found = Vec::new();
    for (cell, runs) in cells.iter().filter(|(cell, _)| cell.mode.upstream().is_some()) {
        let own = if cell.is_again() { Some(cell.subject()) } else { plan.baseline.as_deref() };
        if let Some(baseline) = own.filter(|baseline| *baseline != cell.name)
            && let Some((_, of_baseline)) =
                cells.iter().find(|(other, _)| other.name == *baseline && other.group() == cell.group())
        {
            for metric in Metric::of_load(cell.load, cell.case) {
                let sides = [(cell.name.as_str(), cell.load, runs), (baseline, cell.load, of_baseline)];
                found.push(one(metric, cell, None, sides, error_rate));
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
                found.push(one(metric, cell, Some(factor), sides, error_rate));
            }
        }
    }
    adjust(&mut found);
    let floors = floors(&found);
    for comparison in &mut found {
        comparison.decide(rule, &floors);
    }
    found.sort_by_key(|one| (one.load, one.metric, one.factor.is_some(), one.mode, one.aa));
    found
}

fn one(
    metric: Metric,
    cell: &Cell,
    factor: Option<&String>,
    sides: [Side<'_, '_>; 2],
    error_rate: ErrorRate,
) -> Comparison {
    let [(target, _, runs), (baseline, ..)] = sides;
    let Paired { estimate, blocks, note, remark } = pairing::pair(metric, sides, error_rate);
    Comparison {
        metric,
        ratio: Ratio::of(estimate, blocks, note),
        baseline: baseline.to_owned(),
        target: target.to_owned(),
        folder: cell.target.clone(),
        mode: cell.mode,
        case: cell.case,
        connections: cell.connections,
        bytes: cell.bytes,
        load: cell.load,
        factors: cell.group().factors,
        factor: factor.cloned(),
        rate: runs.iter().find_map(|run| run.rate),
        blocks: blocks as u32,
        remark,
        aa: cell.is_again(),
    }
}

/// Adjusts the p-values within each family: one metric under one load. The A/A pair asks nothing and is in no family;
/// neither is a comparison that its runs cannot support.
fn adjust(comparisons: &mut [Comparison]) {
    let is_asked = |one: &&mut Comparison| one.ratio.is_asked() && !one.aa;
    let family = |one: &Comparison| (one.load, one.metric);
    fdr::adjust(comparisons.iter_mut().filter(is_asked), family, |one| {
        (one.ratio.p_value, &mut one.ratio.p_adjusted)
    });
}

/// The noise floors of each metric and group.
pub(crate) type Floors = verdict::Floors<(Metric, Group)>;

pub(crate) fn floors(comparisons: &[Comparison]) -> Floors {
    let pairs = comparisons.iter().filter(|comparison| comparison.aa);
    Floors::of(pairs.map(|one| ((one.metric, one.group()), one.ratio.reach())))
}

impl Comparison {
    fn decide(&mut self, rule: Rule, floors: &Floors) {
        let floor = if self.aa { Ok(None) } else { floors.get(&(self.metric, self.group())) };
        self.ratio.decide(self.blocks, rule, floor);
    }

    /// The group that it is of.
    pub fn group(&self) -> Group {
        let Self { case, mode, connections, bytes, load, .. } = *self;
        Group { case, mode, connections, bytes, load, factors: self.factors.clone() }
    }

    /// `different: 28 % lower`, and the remark.
    pub fn verdict_text(&self, margin: f64) -> String {
        verdict::with_remark(self.ratio.words(margin), self.remark.as_deref())
    }

    /// The line of this comparison on standard output, under the heading of its metric and load.
    pub fn line(&self, margin: f64) -> String {
        format!("{} vs {}: {} {}", self.target, self.baseline, self.ratio.text(), self.verdict_text(margin))
    }
}
