//! One metric of one cell in two results, and what may be said of it.

use super::matching::{Matched, Pair, rates_differ};
use crate::cell::Group;
use crate::experiment::{Load, Mode};
use crate::metric::Metric;
use crate::pairing;
use crate::plan::Cell;
use crate::results::Results;
use crate::run::RunRecord;
use crate::stats::{self, Estimate, Weight, fdr};
use crate::verdict::{self, Noise, Verdict};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// One metric of one cell in two results.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Change {
    /// The cell's stable name.
    pub cell: String,
    /// The target.
    pub target: String,
    /// Client side, upstream side.
    pub mode: Mode,
    /// How requests arrive.
    pub load: Load,
    /// All of its factors but the target.
    #[serde(skip)]
    pub(crate) group: Group,
    /// What is compared.
    pub metric: Metric,
    /// The target's version in A.
    pub version_a: String,
    /// And in B.
    pub version_b: String,
    /// Whether the target is the same program in both: what moved there is drift.
    pub unchanged: bool,
    /// Whether a changed target has valid runs in A and none in B.
    pub broken: bool,
    /// Requests per second that were offered in A; null in a closed loop.
    pub rate_a: Option<f64>,
    /// And in B.
    pub rate_b: Option<f64>,
    /// Median over the blocks of A.
    pub a: Option<f64>,
    /// And of B.
    pub b: Option<f64>,
    /// B over A: the shift of the logarithms (Hodges and Lehmann).
    pub ratio: Option<f64>,
    /// Lower end of its interval; null below five blocks.
    pub low: Option<f64>,
    /// Upper end.
    pub high: Option<f64>,
    /// The coverage of the interval that so many blocks allow.
    pub coverage: Option<f64>,
    /// Exact p-value of the rank-sum test.
    pub p_value: Option<f64>,
    /// The same, adjusted for the comparisons of this metric under this load (Benjamini and Hochberg).
    pub p_adjusted: Option<f64>,
    /// Blocks of A with a valid run.
    pub blocks_a: u32,
    /// And of B.
    pub blocks_b: u32,
    /// How sure it is, by the blocks of the result that has fewer.
    pub weight: Weight,
    /// The verdict.
    pub verdict: Verdict,
    /// Why it is undecided, where the numbers alone do not say it.
    pub note: Option<String>,
    #[serde(skip)]
    estimate: Option<Estimate>,
}

/// Every metric of every cell that both have. Where no gateway is known to have changed, none is taken for unchanged.
pub(super) fn all(
    a: &Results,
    b: &Results,
    matched: &Matched<'_>,
    changed: &BTreeSet<&str>,
    margin: f64,
) -> Vec<Change> {
    let versions = |cell: &Cell| {
        [a, b].map(|results| results.machine.versions.get(&cell.target).cloned().unwrap_or_default())
    };
    let is_unchanged = |cell: &Cell| {
        let is_known_same = !changed.is_empty() && !changed.contains(cell.target.as_str());
        cell.mode.upstream().is_none() || is_known_same
    };
    let mut changes = Vec::new();
    for pair in &matched.both {
        for metric in Metric::of_load(pair.cell.load, pair.cell.case) {
            if pair.cell.mode.upstream().is_some() || !metric.is_cpu() {
                changes.push(one(metric, pair, versions(pair.cell), is_unchanged(pair.cell)));
            }
        }
    }
    let is_asked = |one: &&mut Change| one.weight != Weight::None && one.note.is_none();
    let family = |one: &Change| (one.load, one.metric, one.unchanged);
    fdr::adjust(changes.iter_mut().filter(is_asked), family, |one| (one.p_value, &mut one.p_adjusted));
    judge(&mut changes, margin);
    changes.sort_by(|left, right| left.place().cmp(&right.place()));
    changes
}

fn one(metric: Metric, pair: &Pair<'_>, [version_a, version_b]: [String; 2], unchanged: bool) -> Change {
    let Pair { cell, runs } = pair;
    let valid = runs.each_ref().map(|runs| pairing::valid(runs));
    let rates = runs.each_ref().map(|runs| runs.iter().find_map(|run| run.rate));
    let mut notes = ["A", "B"].into_iter().zip(&valid).filter_map(|(side, valid)| {
        let name = format!("{} in {side}", cell.name);
        pairing::unsupported(metric, cell.load, &name, valid).or_else(|| metric.has_no_value(&name, valid))
    });
    let broken = if unchanged { None } else { broken(pair, &valid) };
    let is_broken = broken.is_some();
    let note = broken.or_else(|| notes.next()).or_else(|| rates_differ(cell.load, ["A", "B"], rates));
    let [of_a, of_b] =
        valid.each_ref().map(|valid| pairing::values(metric, valid).into_values().collect::<Vec<f64>>());
    let estimate = stats::compare_samples(&of_a, &of_b);
    let interval = estimate.and_then(|estimate| estimate.interval);
    Change {
        cell: cell.to_string(),
        target: cell.name.clone(),
        mode: cell.mode,
        load: cell.load,
        group: cell.group(),
        metric,
        version_a,
        version_b,
        unchanged,
        broken: is_broken,
        rate_a: rates[0],
        rate_b: rates[1],
        a: stats::median(&of_a),
        b: stats::median(&of_b),
        ratio: estimate.map(|estimate| estimate.value),
        low: interval.map(|interval| interval.low),
        high: interval.map(|interval| interval.high),
        coverage: interval.map(|interval| interval.coverage),
        p_value: estimate.map(|estimate| estimate.p_value),
        p_adjusted: None,
        blocks_a: of_a.len() as u32,
        blocks_b: of_b.len() as u32,
        weight: Weight::of(of_a.len().min(of_b.len())),
        verdict: Verdict::Undecided,
        note,
        estimate,
    }
}

/// How a cell works no more in B, if it does not.
fn broken(pair: &Pair<'_>, valid: &[Vec<&RunRecord>; 2]) -> Option<String> {
    let [of_a, of_b] = valid.each_ref().map(Vec::len);
    let after = &pair.runs[1];
    let why = after.first().map_or_else(String::new, |run| format!(" ({})", run.validity));
    (of_a > 0 && of_b == 0)
        .then(|| format!("broken: {of_a} valid runs in A, none of {} in B{why}", after.len()))
}

/// The unchanged first, since what they show is what the others have to exceed.
fn judge(changes: &mut [Change], margin: f64) {
    for one in changes.iter_mut().filter(|one| one.unchanged) {
        one.decide(margin, None);
    }
    let mut drift: BTreeMap<(Metric, Group), f64> = BTreeMap::new();
    let mut moved: BTreeMap<(Load, Metric), String> = BTreeMap::new();
    for one in changes.iter().filter(|one| one.unchanged) {
        if let Some(ratio) = one.ratio.filter(|_| one.p_adjusted.is_some()) {
            let reach = drift.entry((one.metric, one.group.clone())).or_default();
            *reach = reach.max(Noise::reach(ratio, one.low.zip(one.high)));
        }
        if one.verdict == Verdict::Different {
            let which = format!("{} {} {}", one.target, one.mode, one.ratio_text());
            moved.entry((one.load, one.metric)).or_insert(which);
        }
    }
    for one in changes.iter_mut().filter(|one| !one.unchanged) {
        let reach = drift.get(&(one.metric, one.group.clone()));
        let noise = reach.map(|reach| Noise { name: "drift of the unchanged targets", reach: *reach });
        match moved.get(&(one.load, one.metric)) {
            Some(which) if one.note.is_none() => {
                one.note = Some(format!("the unchanged targets moved as well ({which})"));
            }
            _ => one.decide(margin, noise),
        }
    }
}

impl Change {
    /// Where it stands among the others.
    fn place(&self) -> (Load, Metric, &Group, bool) {
        (self.load, self.metric, &self.group, self.unchanged)
    }

    fn decide(&mut self, margin: f64, noise: Option<Noise>) {
        if self.note.is_some() {
            return;
        }
        if self.estimate.is_none() {
            self.note = Some("no valid run has a value in both".into());
            return;
        }
        match verdict::decide(self.estimate, self.p_adjusted, margin, noise) {
            Ok(verdict) => self.verdict = verdict,
            Err(why) => self.note = Some(why),
        }
    }

    /// Whether a target that has changed is shown to be worse, or works no more.
    pub fn is_regression(&self) -> bool {
        let is_worse = self.ratio.is_some_and(|ratio| self.metric.is_worse(ratio));
        self.broken || (!self.unchanged && self.verdict == Verdict::Different && is_worse)
    }

    /// `0.72 [0.69, 0.76]`.
    pub fn ratio_text(&self) -> String {
        verdict::ratio_text(self.ratio, self.low.zip(self.high))
    }

    /// `different: 28 % lower`.
    pub fn verdict_text(&self, margin: f64) -> String {
        if let Some(note) = self.note.as_ref().filter(|_| self.broken) {
            return note.clone();
        }
        verdict::words(self.verdict, self.ratio, self.note.as_deref(), self.weight, margin)
    }

    /// `weir 0.1.0 -> 0.2.0`, or with one version `weir 0.1.0`.
    pub fn subject(&self) -> String {
        let Self { target, version_a, version_b, .. } = self;
        match (version_a.as_str(), version_b.as_str()) {
            ("", "") => target.clone(),
            (before, after) if before == after => format!("{target} {before}"),
            (before, after) => format!("{target} {before} -> {after}"),
        }
    }
}
