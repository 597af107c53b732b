//! Claims: the verdict on each statement that an experiment checks.

pub(crate) mod profiled;

use crate::doctor::Hardware;
use crate::experiment::metric::Metric;
use crate::experiment::{Claim, Layout, Predicate, SUBJECTS};
use crate::findings::comparison::{Floors, Runs};
use crate::findings::judge::Judge;
use crate::findings::pairing::{self, Paired, Side};
use crate::planning::cell::Cell;
use crate::planning::plan::Plan;
use crate::planning::planned_run::Stage;
use crate::stats::verdict::{Noise, Note};
use crate::stats::{BLOCKS_FOR_INTERVAL, ErrorRate, Estimate, Interval, Weight};
use crate::store::run::RunOf;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fmt;
use weir_load::plural;
use weir_profile::Category;

/// A claim and its verdict.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Finding {
    /// The claim's short name.
    pub id: String,
    /// The statement's source.
    pub source: String,
    /// The statement.
    pub says: String,
    /// The source's figures.
    pub figures: Option<String>,
    /// The original's, where they differ.
    pub original: Option<String>,
    /// The metric; null if the claim is on a share of CPU time or not testable.
    pub metric: Option<Metric>,
    /// The categories whose share of CPU time it is on, in percent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub share_of: Vec<Category>,
    /// The expected value (or ratio).
    pub expect: Option<Predicate>,
    /// Whether it is a ratio of two cells.
    pub is_ratio: bool,
    /// The verdict.
    pub verdict: ClaimVerdict,
    /// The reason, in a sentence.
    pub why: String,
    /// Its weight, by the blocks of the cell with the fewest.
    pub weight: Weight,
    /// Each cell that it covers.
    pub cells: Vec<Evidence>,
}

/// One cell's evidence on a claim.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Evidence {
    /// The cell.
    pub cell: String,
    /// The cell that it is compared with; null if its own value counts.
    pub against: Option<String>,
    /// The value, or the ratio; for errors, the worst run's.
    pub value: Option<f64>,
    /// Lower bound of its interval, for errors the best run's; null below five blocks.
    pub low: Option<f64>,
    /// Upper bound.
    pub high: Option<f64>,
    /// Blocks behind the value.
    pub blocks: u32,
    /// The verdict by this cell alone.
    pub verdict: ClaimVerdict,
    /// Why it is no evidence.
    pub note: Option<String>,
    /// A remark on its runs.
    #[serde(default)]
    pub remark: Option<String>,
}

/// The verdict on a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum ClaimVerdict {
    /// The whole interval of every cell meets it.
    #[serde(rename = "confirmed")]
    Confirmed,
    /// The interval of at least one cell lies outside it.
    #[serde(rename = "contradicted")]
    Contradicted,
    /// Neither could be shown, or no valid cell is evidence.
    #[serde(rename = "undecided")]
    Undecided,
    /// No run of this experiment can test it.
    #[serde(rename = "not testable here")]
    NotTestable,
}

impl fmt::Display for ClaimVerdict {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(match self {
            Self::Confirmed => "confirmed",
            Self::Contradicted => "contradicted",
            Self::Undecided => "undecided",
            Self::NotTestable => "not testable here",
        })
    }
}

/// Why a ratio is missing when its other side was not run.
const OTHER_NOT_RUN: &str = "its counterpart was not run";

/// Checks every claim of a plan on this hardware.
pub(crate) fn all<I: Judge>(
    plan: &Plan,
    hardware: &Hardware,
    cells: &Runs<'_, I>,
    floors: &Floors,
) -> Vec<Finding> {
    let error_rate = plan.rule().error_rate;
    let layout = plan.experiment.layout;
    let find = |claim: &Claim| match claim.untestable(&hardware.features) {
        Some(why) => finding(&Claim { not_testable: Some(why), ..claim.clone() }, Vec::new()),
        None => find::<I>(claim, layout, cells, floors, error_rate),
    };
    plan.experiment.claims.iter().map(find).collect()
}

/// The claims worth showing, and a line about the rest: in a reduced experiment the claims about cells that were not
/// run would hide the others. `summary.json` has them all.
pub(crate) fn shown(findings: &[Finding]) -> (Vec<&Finding>, Option<String>) {
    let (unrun, shown): (Vec<&Finding>, Vec<&Finding>) = findings.iter().partition(|claim| claim.is_unrun());
    let verb = if unrun.len() == 1 { "is" } else { "are" };
    let words = || format!("{} {verb} about cells that were not run.", plural(unrun.len() as u64, "claim"));
    (shown, (!unrun.is_empty()).then(words))
}

impl Finding {
    /// Whether none of its cells was run, or none together with its counterpart.
    fn is_unrun(&self) -> bool {
        let is_without_other = |one: &Evidence| one.note.as_deref() == Some(OTHER_NOT_RUN);
        self.verdict == ClaimVerdict::Undecided && self.cells.iter().all(is_without_other)
    }

    /// Its verdict in words: `contradicted (indication)`.
    pub fn verdict_text(&self) -> String {
        let is_decided = matches!(self.verdict, ClaimVerdict::Confirmed | ClaimVerdict::Contradicted);
        match self.weight {
            Weight::Indication if is_decided => format!("{} (indication)", self.verdict),
            _ => self.verdict.to_string(),
        }
    }

    /// The expected value: `CPU per request: ratio < 1`; empty if not testable.
    pub fn asked_text(&self) -> String {
        if let Some(expect) = self.expect.filter(|_| !self.share_of.is_empty()) {
            let names: Vec<&str> = self.share_of.iter().map(|category| category.words()).collect();
            return format!("share of CPU time in {}: {expect} %", names.join(" and "));
        }
        let Some((metric, expect)) = self.metric.zip(self.expect) else { return String::new() };
        match self.is_ratio {
            true => format!("{}: ratio {expect}", metric.title()),
            false => format!("{}: {expect} {}", metric.title(), metric.unit()).trim_end().to_owned(),
        }
    }

    /// The figures of the source and of the original.
    pub fn figures_text(&self) -> String {
        let figures = [("", &self.figures), ("the original: ", &self.original)];
        let figures = figures.iter().filter_map(|(whose, text)| Some(format!("{whose}{}", text.as_ref()?)));
        figures.collect::<Vec<_>>().join("; ")
    }
}

impl Evidence {
    /// `0.93 [0.90, 0.97]`.
    pub fn value_text(&self) -> String {
        let number = |value: f64| match value.abs() {
            large if large >= 1000.0 => format!("{value:.0}"),
            middle if middle >= 10.0 => format!("{value:.1}"),
            _ => format!("{value:.3}"),
        };
        match (self.value, self.low, self.high) {
            (Some(value), Some(low), Some(high)) => {
                format!("{} [{}, {}]", number(value), number(low), number(high))
            }
            (Some(value), ..) => number(value),
            _ => "-".into(),
        }
    }
}

fn find<I: Judge>(
    claim: &Claim,
    layout: Layout,
    cells: &Runs<'_, I>,
    floors: &Floors,
    error_rate: ErrorRate,
) -> Finding {
    let mut evidence = Vec::new();
    let asked = measured(claim, layout);
    if let (Some(metric), Some(asked)) = (claim.metric, asked) {
        for (cell, runs) in cells.iter().filter(|(cell, _)| is_meant::<I>(claim, metric, cell)) {
            evidence.extend(one::<I>(claim, asked, (cell, runs), cells, floors, error_rate));
        }
    }
    let mut found = finding(claim, evidence);
    if let Some((metric, expect)) = asked.filter(|(metric, _)| claim.metric != Some(*metric)) {
        (found.metric, found.expect) = (Some(metric), Some(expect));
        found.why.push_str("; judged by its CPU time, as it ran in duets");
    }
    found
}

/// The metric that decides a claim, and its predicate. A duet has no rate and no time of its own: there a ratio of two
/// full cores' CPU time stands for that of their rates.
fn measured(claim: &Claim, layout: Layout) -> Option<(Metric, Predicate)> {
    let (metric, expect) = claim.metric.zip(claim.expect)?;
    let by_cpu = metric.by_cpu().filter(|_| layout == Layout::Duet && claim.against.is_some());
    Some(match by_cpu {
        Some((metric, true)) => (metric, expect.inverse()),
        Some((metric, false)) => (metric, expect),
        None => (metric, expect),
    })
}

/// The joint verdict of a claim's cells.
pub(crate) fn finding(claim: &Claim, evidence: Vec<Evidence>) -> Finding {
    let (verdict, why) = match &claim.not_testable {
        Some(why) => (ClaimVerdict::NotTestable, why.clone()),
        None => together(&evidence),
    };
    let bears = evidence.iter().filter(|one| one.verdict == verdict);
    let blocks = bears.map(|one| one.blocks as usize).min().unwrap_or(0);
    let Claim { id, source, says, figures, original, metric, share_of, expect, .. } = claim.clone();
    Finding {
        id,
        source,
        says,
        figures,
        original,
        metric,
        share_of,
        expect,
        is_ratio: claim.against.is_some(),
        verdict,
        why,
        weight: Weight::of(blocks),
        cells: evidence,
    }
}

/// Whether a claim covers a cell. A control, which nothing is compared with, must be named.
fn is_meant<I: Judge>(claim: &Claim, metric: Metric, cell: &Cell) -> bool {
    let is_named = || SUBJECTS.iter().any(|key| claim.cell.get(key).is_some());
    I::has(metric, cell) && (!I::is_control(cell) || is_named()) && !cell.is_again() && cell.has(&claim.cell)
}

/// `None` for the counterpart of the others.
fn one<I: Judge>(
    claim: &Claim,
    (metric, expect): (Metric, Predicate),
    (cell, runs): (&Cell, &[&RunOf<I>]),
    cells: &Runs<'_, I>,
    floors: &Floors,
    error_rate: ErrorRate,
) -> Option<Evidence> {
    let name = cell.to_string();
    let side = Side { name: &name, cell, runs };
    let (against, paired, floor) = match &claim.against {
        None if metric == Metric::ErrorRatio => {
            let paired = of_errors::<I>(&name, runs);
            let found = judge_errors(expect, &paired);
            return Some(with_verdict(name, None, paired, found));
        }
        None => (None, pairing::alone::<I>(metric, &side, error_rate), Ok(None)),
        Some(levels) if cell.has(levels) => return None,
        Some(levels) => {
            let Some((other, of_other)) = cells.iter().find(|(other, _)| cell.is_but_for(other, levels))
            else {
                return Some(with_verdict(name, None, Paired::default(), Err(OTHER_NOT_RUN.into())));
            };
            let of = other.to_string();
            let paired = pairing::pair::<I>(
                metric,
                [side, Side { name: &of, cell: other, runs: of_other }],
                error_rate,
            );
            (Some(of), paired, floors.get(&(metric, cell.place())))
        }
    };
    let found = judge(expect, &paired, floor);
    Some(with_verdict(name, against, paired, found))
}

fn with_verdict(
    cell: String,
    against: Option<String>,
    paired: Paired,
    found: Result<ClaimVerdict, String>,
) -> Evidence {
    let (verdict, note) = match found {
        Ok(verdict) => (verdict, None),
        Err(why) => (ClaimVerdict::Undecided, Some(why)),
    };
    let Paired { estimate, blocks, remark, .. } = paired;
    let interval = estimate.and_then(|estimate| estimate.interval);
    Evidence {
        cell,
        against,
        value: estimate.map(|estimate| estimate.value),
        low: interval.map(|interval| interval.low),
        high: interval.map(|interval| interval.high),
        blocks: blocks as u32,
        verdict,
        note,
        remark,
    }
}

/// The verdict by an interval, or why there is none. The ratio may be off by as much as the A/A pair is: the verdict
/// must hold on both sides of that noise.
fn judge(
    expect: Predicate,
    paired: &Paired,
    floor: Result<Option<Noise>, &'static str>,
) -> Result<ClaimVerdict, String> {
    if let Some(note) = &paired.note {
        return Err(note.text().to_owned());
    }
    let (value, Interval { low, high, .. }) = with_interval(paired)?;
    let Some(is_met) = expect.of_interval(low, high) else { return Ok(ClaimVerdict::Undecided) };
    let moved = |noise: &Noise| [-noise.reach, noise.reach].map(|reach| value * reach.exp());
    let is_within = |noise: &Noise| moved(noise).iter().any(|value| expect.holds(*value) != is_met);
    match floor?.filter(is_within) {
        Some(noise) => Err(format!("its bound is within the {noise}")),
        None if is_met => Ok(ClaimVerdict::Confirmed),
        None => Ok(ClaimVerdict::Contradicted),
    }
}

/// Errors are counted, not estimated: one run that does not meet the claim contradicts it, and all must confirm it.
fn judge_errors(expect: Predicate, paired: &Paired) -> Result<ClaimVerdict, String> {
    let note = || paired.note.as_ref().map(|note| note.text().to_owned());
    let without_result = || note().map_or(Ok(ClaimVerdict::Confirmed), Err);
    match with_interval(paired) {
        Ok((_, all)) if expect.of_interval(all.low, all.high) == Some(true) => without_result(),
        Ok(_) => Ok(ClaimVerdict::Contradicted),
        Err(few) => Err(note().unwrap_or(few)),
    }
}

fn with_interval(paired: &Paired) -> Result<(f64, Interval), String> {
    let found = paired.estimate.and_then(|estimate| Some((estimate.value, estimate.interval?)));
    found.ok_or_else(|| {
        format!("{}: no interval below {BLOCKS_FOR_INTERVAL}", plural(paired.blocks as u64, "block"))
    })
}

/// The worst of all runs, with the range from best to worst: valid runs alone have no errors.
fn of_errors<I: Judge>(name: &str, runs: &[&RunOf<I>]) -> Paired {
    let found = runs.iter().filter_map(|run| Some((run.run.stage, I::value(Metric::ErrorRatio, run)?)));
    let (stages, values): (BTreeSet<Stage>, Vec<f64>) = found.unzip();
    let (blocks, missing, all) = (stages.len(), runs.len() - values.len(), runs.len());
    let least = values.iter().copied().fold(f64::INFINITY, f64::min);
    let worst = values.iter().copied().fold(0.0, f64::max);
    let interval = Interval { low: least, high: worst, coverage: 1.0 };
    let interval = Some(interval).filter(|_| blocks >= BLOCKS_FOR_INTERVAL);
    let estimate = Estimate { value: worst, interval, p_value: 1.0, blocks };
    Paired {
        estimate: Some(estimate).filter(|_| blocks > 0),
        blocks,
        note: (missing > 0)
            .then(|| Note::NoEvidence(format!("{name} has no result in {missing} of {all} runs"))),
        remark: None,
    }
}

/// One cell contradicts a claim; to confirm it, all must.
fn together(evidence: &[Evidence]) -> (ClaimVerdict, String) {
    let number = |verdict| evidence.iter().filter(|one| one.verdict == verdict).count();
    let (confirmed, contradicted) = (number(ClaimVerdict::Confirmed), number(ClaimVerdict::Contradicted));
    let all = evidence.len();
    let first_note = || evidence.iter().find_map(|one| one.note.clone());
    let rest = || first_note().unwrap_or_else(|| "the interval straddles the bound".into());
    match (confirmed, contradicted) {
        _ if all == 0 => (ClaimVerdict::Undecided, "none of its cells was run".into()),
        (_, 1) if all == 1 => (ClaimVerdict::Contradicted, "in its only cell".into()),
        (1, _) if all == 1 => (ClaimVerdict::Confirmed, "in its only cell".into()),
        _ if all == 1 => (ClaimVerdict::Undecided, rest()),
        (_, 1..) => (ClaimVerdict::Contradicted, format!("contradicted in {contradicted} of {all} cells")),
        _ if confirmed == all => (ClaimVerdict::Confirmed, format!("confirmed in all {all} cells")),
        _ => (ClaimVerdict::Undecided, format!("confirmed in {confirmed} of {all} cells; {}", rest())),
    }
}
