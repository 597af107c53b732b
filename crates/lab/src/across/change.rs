//! One metric of one cell in two results, and its verdict.

use super::matching::{Between, Matched, Pair, rates_differ};
use super::sample::Sample;
use crate::experiment::metric::Metric;
use crate::findings::comparison::heading;
use crate::planning::cell::{Cell, Levels};
use crate::report::shown::Shown;
use crate::stats::verdict::{Noise, Note, Ratio, Rule, Verdict};
use crate::stats::{self, ErrorRate, fdr};
use serde::ser::SerializeMap as _;
use serde::{Serialize, Serializer};
use std::collections::{BTreeMap, BTreeSet};

/// One metric of one cell in two results.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Change {
    /// The cell's stable name.
    pub cell: String,
    /// The target or engine.
    pub target: String,
    /// The cell's levels, by factor.
    #[serde(flatten, serialize_with = "levels")]
    pub(crate) of: Cell,
    /// The group of changes that are judged together, by metric.
    #[serde(skip)]
    pub(crate) family: String,
    /// The title of its place.
    #[serde(skip)]
    pub(crate) place: String,
    /// The short form of the title.
    #[serde(skip)]
    short: String,
    /// The metric compared.
    pub metric: Metric,
    /// The version in A.
    pub version_a: String,
    /// The version in B.
    pub version_b: String,
    /// Whether both ran the same program, so that any change is drift.
    pub unchanged: bool,
    /// Whether the program has changed, with valid runs in A but none in B.
    pub broken: bool,
    /// Offered requests per second in A; null in a closed loop and for TLS stacks.
    pub rate_a: Option<f64>,
    /// Offered requests per second in B.
    pub rate_b: Option<f64>,
    /// Median over the blocks of A.
    pub a: Option<f64>,
    /// Median over the blocks of B.
    pub b: Option<f64>,
    /// B divided by A: the shift of the logarithms (Hodges and Lehmann).
    #[serde(flatten)]
    pub ratio: Ratio,
    /// Blocks of A with a valid run.
    pub blocks_a: u32,
    /// Blocks of B with a valid run.
    pub blocks_b: u32,
}

/// The fields that locate a change, beside the cell's name.
fn levels<S: Serializer>(cell: &Cell, serializer: S) -> Result<S::Ok, S::Error> {
    let mut map = serializer.serialize_map(None)?;
    match (cell.levels.get("mode"), cell.levels.get("load_model")) {
        (Some(mode), Some(load)) => {
            map.serialize_entry("mode", mode)?;
            map.serialize_entry("load", load)?;
        }
        _ => map.serialize_entry("scenario", &cell.levels)?,
    }
    map.end()
}

/// Every metric of every common cell. Unless a target or engine is known to have changed, none counts as unchanged.
pub(super) fn all<I: Shown>(
    between: Between<'_, I>,
    matched: &Matched<'_, I>,
    changed: &BTreeSet<&str>,
    margin: f64,
) -> Vec<Change> {
    let is_unchanged = |cell: &Cell| {
        let is_known_same = !changed.is_empty() && !changed.contains(cell.subject.as_str());
        I::is_control(cell) || is_known_same
    };
    let mut changes = Vec::new();
    for pair in &matched.both {
        // A control consists of the lab's own programs: there is no subject to measure the CPU of.
        let metrics = I::compared(pair.cell).into_iter();
        let metrics = metrics.filter(|metric| !I::is_control(pair.cell) || !metric.is_cpu());
        changes.extend(metrics.map(|metric| one(metric, between, pair, is_unchanged(pair.cell))));
    }
    let is_asked = |one: &&mut Change| one.ratio.is_asked();
    let family = |one: &Change| (one.family.clone(), one.metric, one.unchanged);
    fdr::adjust(changes.iter_mut().filter(is_asked), family, |one| {
        (one.ratio.p_value, &mut one.ratio.p_adjusted)
    });
    judge::<I>(&mut changes, margin);
    changes.sort_by(|left, right| left.order().cmp(&right.order()));
    changes
}

fn one<I: Shown>(metric: Metric, between: Between<'_, I>, pair: &Pair<'_, I>, unchanged: bool) -> Change {
    let Pair { cell, runs } = pair;
    let sample = |side: usize| {
        let name = format!("{} in {}", cell.name, between.names[side]);
        Sample::of::<I>(metric, cell, &runs[side], &name)
    };
    let [a, b] = [0, 1].map(sample);
    let [version_a, version_b] = between.results.map(|results| results.version(&cell.subject).to_owned());
    let broken = if unchanged { None } else { broken(&a, &b) };
    let is_broken = broken.is_some();
    let rates = [a.rate, b.rate];
    let no_run = [&a, &b].iter().any(|sample| sample.valid == 0);
    let note = broken.or(a.note).or(b.note).or_else(|| rates_differ(between.names, rates));
    let estimate = stats::compare_samples(&a.values, &b.values);
    let without_value = || estimate.is_none().then(|| "no valid run has a value in both results".to_owned());
    let note = note.or_else(without_value).map(if no_run { Note::NoEvidence } else { Note::Unsupported });
    let blocks = a.values.len().min(b.values.len());
    Change {
        cell: cell.to_string(),
        target: cell.name.clone(),
        of: (*cell).clone(),
        family: I::family(cell).to_owned(),
        place: I::place_title(cell),
        short: I::short(cell),
        metric,
        version_a,
        version_b,
        unchanged,
        broken: is_broken,
        rate_a: rates[0],
        rate_b: rates[1],
        a: stats::median(&a.values),
        b: stats::median(&b.values),
        ratio: Ratio::of(estimate, blocks, note),
        blocks_a: a.values.len() as u32,
        blocks_b: b.values.len() as u32,
    }
}

/// The note on a cell that is broken in B.
fn broken(a: &Sample, b: &Sample) -> Option<String> {
    let why = b.first.as_ref().map_or_else(String::new, |first| format!(" ({first})"));
    (a.valid > 0 && b.valid == 0)
        .then(|| format!("broken: {} valid runs in A, none of {} in B{why}", a.valid, b.runs))
}

/// Judges the unchanged first: the others have to exceed their drift.
fn judge<I: Shown>(changes: &mut [Change], margin: f64) {
    let rule = Rule { margin, error_rate: ErrorRate::default() };
    for one in changes.iter_mut().filter(|one| one.unchanged) {
        one.decide(rule, None);
    }
    let mut drift: BTreeMap<(Metric, Levels), f64> = BTreeMap::new();
    let mut moved: BTreeMap<(String, Metric), String> = BTreeMap::new();
    for one in changes.iter().filter(|one| one.unchanged) {
        if let Some(reach) = one.ratio.reach().filter(|_| one.ratio.p_adjusted.is_some()) {
            let most = drift.entry((one.metric, one.of.place())).or_default();
            *most = most.max(reach);
        }
        if one.ratio.verdict == Verdict::Different {
            let which = format!("{} {} {}", one.target, one.short, one.ratio.text());
            moved.entry((one.family.clone(), one.metric)).or_insert(which);
        }
    }
    for one in changes.iter_mut().filter(|one| !one.unchanged) {
        let reach = drift.get(&(one.metric, one.of.place()));
        let noise = reach.map(|reach| Noise { name: "drift of unchanged cells", reach: *reach });
        match moved.get(&(one.family.clone(), one.metric)) {
            Some(which) if one.ratio.note.is_none() => {
                one.ratio.lacks_evidence = true;
                one.ratio.note = Some(format!("the unchanged {}s moved as well ({which})", I::SUBJECT));
            }
            _ => one.decide(rule, noise),
        }
    }
}

impl Change {
    /// The sort key.
    fn order(&self) -> (&str, Metric, Levels, bool) {
        (&self.family, self.metric, self.of.place(), self.unchanged)
    }

    /// The heading above the changes of a metric: `CPU per request, saturated`.
    pub(crate) fn heading(&self) -> String {
        heading(self.metric, &self.family)
    }

    fn decide(&mut self, rule: Rule, noise: Option<Noise>) {
        self.ratio.decide(self.blocks_a.min(self.blocks_b), rule, Ok(noise));
    }

    /// Whether a changed program is shown to be worse, or is broken.
    pub fn is_regression(&self) -> bool {
        self.broken || (!self.unchanged && self.ratio.is_worse(self.metric.better()))
    }

    /// `different: 28 % lower`, or `broken: ..`.
    pub fn verdict_text(&self, margin: f64) -> String {
        match &self.ratio.note {
            Some(note) if self.broken => note.clone(),
            _ => self.ratio.words(margin),
        }
    }

    /// The cell, the metric and the verdict.
    pub(crate) fn line(&self, margin: f64) -> String {
        format!("{}: {} {} {}", self.cell, self.metric, self.ratio.text(), self.verdict_text(margin))
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
