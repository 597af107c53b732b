//! What an experiment with stacks comes to: each cell over its blocks, the comparisons, the claims.

use super::cell::{Scenario, StackCell};
use super::instructions::Counted;
use super::output::{Facts, Side};
use super::plan::StacksPlan;
use super::run::{StackRun, measured};
use super::scaling::{self, Drop};
use crate::busy::Foreign;
use crate::claims::{self, Evidence, Finding};
use crate::experiment::{Claim, Predicate, Selector};
use crate::metric::Metric;
use crate::pairing::Paired;
use crate::stats::{self, ErrorRate, Weight, fdr, hodges_lehmann};
use crate::validity::Validity;
use crate::verdict::{self, Note, Ratio, Rule};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The whole of the findings.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StacksSummary {
    /// Version of this layout.
    pub schema: u32,
    /// The experiment's name.
    pub experiment: String,
    /// How much the best founded comparison weighs.
    pub weight: Weight,
    /// How busy other processes kept the cores.
    #[serde(default)]
    pub foreign: Foreign,
    /// What each engine said of itself, by its name.
    pub facts: BTreeMap<String, Facts>,
    /// One entry for each cell.
    pub cells: Vec<CellFindings>,
    /// Where more threads make less than the cores allow.
    #[serde(default)]
    pub drops: Vec<Drop>,
    /// The comparisons.
    pub contrasts: Vec<Contrast>,
    /// The statements that the experiment checks.
    pub claims: Vec<Finding>,
}

/// What a cell came to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CellFindings {
    /// Which.
    pub cell: StackCell,
    /// Blocks with a valid run.
    pub blocks: u32,
    /// Runs that were invalid.
    pub invalid_runs: u32,
    /// Why the first of these was.
    pub why_invalid: Option<String>,
    /// Why its instructions were not counted, where they were to be.
    #[serde(default)]
    pub why_uncounted: Option<String>,
    /// Each metric that it has, with its location over the blocks (Hodges-Lehmann).
    pub values: BTreeMap<Metric, Located>,
}

/// A value with its interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Located {
    /// The estimate.
    pub value: f64,
    /// Lower end of its interval; null below five blocks.
    pub low: Option<f64>,
    /// Upper end.
    pub high: Option<f64>,
}

/// An engine against the baseline in one scenario, or two levels of a factor.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Contrast {
    /// What is compared.
    pub metric: Metric,
    /// The numerator's cell.
    pub cell: StackCell,
    /// The numerator, in words.
    pub target: String,
    /// The denominator, in words.
    pub baseline: String,
    /// The factor of which two levels are compared; null where two engines are.
    pub factor: Option<String>,
    /// Target over baseline.
    #[serde(flatten)]
    pub ratio: Ratio,
    /// Blocks in which both were valid.
    pub blocks: u32,
    /// What is to be known beside the verdict, such as different allocators.
    pub remark: Option<String>,
    /// Whether it compares an engine with itself.
    pub aa: bool,
}

type Runs<'a> = BTreeMap<&'a StackCell, Vec<&'a StackRun>>;

impl StacksSummary {
    const SCHEMA: u32 = 1;

    /// Sums up the runs of a plan.
    pub(crate) fn of(plan: &StacksPlan, records: &[StackRun]) -> Self {
        let mut runs: Runs<'_> = plan.cells.iter().map(|cell| (cell, Vec::new())).collect();
        for record in records {
            if let Some(of_cell) = runs.get_mut(&record.run.cell) {
                of_cell.push(record);
            }
        }
        let contrasts = contrasts(plan, &runs);
        let findings = |cell: &StackCell| found(cell, &runs[cell]);
        let blocks = contrasts.iter().filter(|one| !one.aa).map(|one| one.blocks).max();
        let cells: Vec<CellFindings> = plan.cells.iter().map(findings).collect();
        let best = blocks.or_else(|| cells.iter().map(|cell| cell.blocks).max()).unwrap_or(0);
        let of_engine =
            |record: &StackRun| Some((record.run.cell.engine.clone(), record.seen.facts.clone()?));
        let floors = floors(&contrasts);
        Self {
            schema: Self::SCHEMA,
            experiment: plan.experiment.name.clone(),
            weight: Weight::of(best as usize),
            foreign: Foreign::of(records.iter().map(|record| record.foreign_cpu)),
            facts: records.iter().filter_map(of_engine).collect(),
            claims: plan.experiment.claims.iter().map(|claim| find(claim, plan, &runs, &floors)).collect(),
            drops: Vec::new(),
            cells,
            contrasts,
        }
    }

    /// The same with what was counted, and with what threads make of so many cores.
    pub(super) fn with(mut self, counted: &[Counted], cores: usize) -> Self {
        for found in &mut self.cells {
            found.add(counted.iter().find(|counted| counted.cell == found.cell));
        }
        self.drops = scaling::drops(&self.cells, cores);
        self
    }
}

impl CellFindings {
    /// Valid if any of its runs is.
    pub fn validity(&self) -> Validity {
        match &self.why_invalid {
            _ if self.blocks > 0 => Validity::Valid,
            Some(why) => Validity::from(why.clone()),
            None => Validity::Invalid("not run".into()),
        }
    }

    /// Adds what was counted of it.
    fn add(&mut self, counted: Option<&Counted>) {
        let Some(Counted { counts, why, .. }) = counted else { return };
        let metric = |side: &Side| match side {
            Side::Client => Some(Metric::ClientInstructions),
            Side::Server => Some(Metric::ServerInstructions),
            Side::Operation => None,
        };
        let located = |(side, count): (&Side, &f64)| {
            Some((metric(side)?, Located { value: *count, low: None, high: None }))
        };
        self.values.extend(counts.iter().filter_map(located));
        self.why_uncounted.clone_from(why);
    }
}

fn found(cell: &StackCell, runs: &[&StackRun]) -> CellFindings {
    let valid: Vec<&StackRun> = runs.iter().copied().filter(|run| run.validity.is_valid()).collect();
    let located = |metric: Metric| {
        let values: Vec<f64> = valid.iter().filter_map(|run| run.value(metric)).collect();
        let estimate = hodges_lehmann::estimate(&values, ErrorRate::default())?;
        let interval = estimate.interval;
        let (low, high) = (interval.map(|interval| interval.low), interval.map(|interval| interval.high));
        Some((metric, Located { value: estimate.value, low, high }))
    };
    let invalid = runs.iter().find(|run| !run.validity.is_valid());
    CellFindings {
        cell: cell.clone(),
        blocks: valid.len() as u32,
        invalid_runs: (runs.len() - valid.len()) as u32,
        why_invalid: invalid.map(|run| run.validity.to_string()),
        why_uncounted: None,
        values: Metric::OF_STACKS.into_iter().filter_map(located).collect(),
    }
}

fn contrasts(plan: &StacksPlan, runs: &Runs<'_>) -> Vec<Contrast> {
    let error_rate = plan.rule().error_rate;
    let mut all = Vec::new();
    for cell in &plan.cells {
        let own = if cell.is_again() { Some(&cell.engine) } else { plan.baseline.as_ref() };
        let of = |name: &String| {
            plan.cells.iter().find(|other| other.scenario == cell.scenario && other.name == *name)
        };
        if let Some(baseline) = own.filter(|name| **name != cell.name).and_then(of) {
            let names = [cell.name.clone(), baseline.name.clone()];
            all.extend(
                cell.scenario
                    .compared()
                    .iter()
                    .map(|metric| one(*metric, [cell, baseline], names.clone(), None, (runs, error_rate))),
            );
        }
        for compare in plan.experiment.compare.iter().filter(|one| !cell.is_again() && cell.has(&one.cell)) {
            let Some(level) = cell.level(&compare.factor).filter(|level| *level != compare.baseline) else {
                continue;
            };
            let wanted = Selector::from_iter([(compare.factor.clone(), compare.baseline.clone())]);
            let Some(other) = plan.cells.iter().find(|other| cell.is_but_for(other, &wanted)) else {
                continue;
            };
            let factor = &compare.factor;
            let names = match factor.as_str() {
                "engine" => [cell.name.clone(), other.name.clone()],
                _ => [&level, &compare.baseline].map(|level| format!("{} {factor}={level}", cell.name)),
            };
            all.extend(
                cell.scenario.compared().iter().map(|metric| {
                    one(*metric, [cell, other], names.clone(), Some(factor), (runs, error_rate))
                }),
            );
        }
    }
    let is_asked = |one: &&mut Contrast| one.ratio.is_asked() && !one.aa;
    fdr::adjust(
        all.iter_mut().filter(is_asked),
        |one| one.metric,
        |one| (one.ratio.p_value, &mut one.ratio.p_adjusted),
    );
    let floors = floors(&all);
    all.iter_mut().for_each(|one| one.decide(plan.rule(), &floors));
    all.sort_by_key(|one| (one.metric, one.factor.is_some(), one.aa));
    all
}

fn one(
    metric: Metric,
    cells: [&StackCell; 2],
    [target, baseline]: [String; 2],
    factor: Option<&String>,
    (runs, error_rate): (&Runs<'_>, ErrorRate),
) -> Contrast {
    let Paired { estimate, blocks, note, remark } = pair(metric, cells, runs, error_rate);
    Contrast {
        metric,
        cell: cells[0].clone(),
        target,
        baseline,
        factor: factor.cloned(),
        ratio: Ratio::of(estimate, blocks, note),
        blocks: blocks as u32,
        remark,
        aa: cells[0].is_again(),
    }
}

/// The first over the second, block by block.
fn pair(metric: Metric, cells: [&StackCell; 2], runs: &Runs<'_>, error_rate: ErrorRate) -> Paired {
    let [first, second] = cells.map(|cell| by_block(metric, runs.get(cell).map_or(&[][..], Vec::as_slice)));
    let without = || {
        let empty = [&first, &second].into_iter().zip(cells).find(|(values, _)| values.is_empty());
        empty.map(|(_, cell)| Note::no_valid_run(&cell.name))
    };
    let pairs: Vec<(f64, f64)> =
        second.iter().filter_map(|(block, value)| Some((*value, *first.get(block)?))).collect();
    let estimate = stats::compare_pairs(&pairs, error_rate);
    let blocks = estimate.map_or(0, |estimate| estimate.blocks);
    Paired { estimate, blocks, note: without(), remark: unlike(cells, runs) }
}

fn by_block(metric: Metric, runs: &[&StackRun]) -> BTreeMap<u32, f64> {
    let valid = runs.iter().filter(|run| run.validity.is_valid());
    valid.filter_map(|run| Some((run.run.block, run.value(metric)?))).collect()
}

/// What two cells differ in that nobody asked about: whose memory they use.
fn unlike(cells: [&StackCell; 2], runs: &Runs<'_>) -> Option<String> {
    let [first, second] = cells.map(|cell| cell.scenario.word("allocator"));
    if first != second {
        return None;
    }
    let allocator = |cell: &StackCell| {
        let facts = runs.get(cell)?.iter().find_map(|run| run.seen.facts.as_ref())?;
        Some(facts.allocator.clone())
    };
    let [first, second] = cells.map(allocator);
    let (first, second) = (first?, second?);
    (first != second).then(|| format!("the allocators differ: {first} and {second}"))
}

type Floors = verdict::Floors<(Metric, Scenario)>;

fn floors(contrasts: &[Contrast]) -> Floors {
    let pairs = contrasts.iter().filter(|one| one.aa);
    Floors::of(pairs.map(|one| ((one.metric, one.cell.scenario.clone()), one.ratio.reach())))
}

impl Contrast {
    fn decide(&mut self, rule: Rule, floors: &Floors) {
        let floor = if self.aa { Ok(None) } else { floors.get(&(self.metric, self.cell.scenario.clone())) };
        self.ratio.decide(self.blocks, rule, floor);
    }

    /// The verdict in words.
    pub fn words(&self, margin: f64) -> String {
        verdict::with_remark(self.ratio.words(margin), self.remark.as_deref())
    }
}

fn find(claim: &Claim, plan: &StacksPlan, runs: &Runs<'_>, floors: &Floors) -> Finding {
    let mut evidence = Vec::new();
    if let (Some(metric), Some(expect)) = (claim.metric, claim.expect) {
        let meant = plan.cells.iter().filter(|cell| !cell.is_again() && cell.has(&claim.cell));
        evidence.extend(meant.filter_map(|cell| of_cell(claim, metric, expect, cell, plan, runs, floors)));
    }
    claims::finding(claim, evidence)
}

/// `None` for the cell that the others are compared with, and for one without such a metric.
fn of_cell(
    claim: &Claim,
    metric: Metric,
    expect: Predicate,
    cell: &StackCell,
    plan: &StacksPlan,
    runs: &Runs<'_>,
    floors: &Floors,
) -> Option<Evidence> {
    if !measured(cell.scenario.task()?).contains(&metric) {
        return None;
    }
    let (against, paired, floor) = match &claim.against {
        None => (None, by_itself(metric, cell, runs), Ok(None)),
        Some(levels) if cell.has(levels) => return None,
        Some(levels) => {
            let other = plan.cells.iter().find(|other| cell.is_but_for(other, levels))?;
            let floor = floors.get(&(metric, cell.scenario.clone()));
            (Some(other.to_string()), pair(metric, [cell, other], runs, plan.rule().error_rate), floor)
        }
    };
    Some(claims::evidence(cell.to_string(), against, expect, paired, floor))
}

fn by_itself(metric: Metric, cell: &StackCell, runs: &Runs<'_>) -> Paired {
    let values: Vec<f64> = by_block(metric, &runs[cell]).into_values().collect();
    let estimate = hodges_lehmann::estimate(&values, ErrorRate::default());
    let note = values.is_empty().then(|| Note::no_valid_run(&cell.name));
    Paired { estimate, blocks: values.len(), note, remark: None }
}
