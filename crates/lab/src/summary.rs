//! What an experiment comes to: each cell over its blocks, and what the comparisons and claims say.

use crate::cell::Cell;
use crate::claims::{self, Finding};
use crate::comparison::{self, Comparison, Runs};
use crate::foreign::Foreign;
use crate::instrument::{Instrument, RunOf};
use crate::machine::Machine;
use crate::metric::Metric;
use crate::pairing;
use crate::plan::Plan;
use crate::run::{Run, Stage, Validity};
use crate::stats::Weight;
use crate::value::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;
use weir_load::result::Limit;

/// The whole of an experiment's findings.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Summary {
    /// The experiment's name.
    pub experiment: String,
    /// `verdict` if a comparison rests on 10 blocks, `indication` if one does on 5, otherwise `none`. Where nothing is
    /// compared the cells count.
    pub weight: Weight,
    /// How busy other processes kept the cores.
    pub foreign: Foreign,
    /// What else has to be known before any number is read, a line each.
    pub notes: Vec<String>,
    /// Where it was measured.
    pub machine: Machine,
    /// One entry for each cell, in the plan's order.
    pub cells: Vec<CellSummary>,
    /// One entry for each pair of cells and metric.
    pub comparisons: Vec<Comparison>,
    /// The statements that the experiment checks.
    pub claims: Vec<Finding>,
}

/// What a cell came to.
#[derive(Clone, Debug, PartialEq)]
pub struct CellSummary {
    /// Which.
    pub cell: Cell,
    /// Its subject's version; empty where it is not told.
    pub version: String,
    /// Requests (or connections without one) per second that were offered; `None` in a closed loop.
    pub rate: Option<f64>,
    /// Blocks with a valid run: the number that its values rest on.
    pub blocks: u32,
    /// Runs that were valid: in a layout of duets a cell may have several in a block.
    pub valid_runs: u32,
    /// Runs that were invalid.
    pub invalid_runs: u32,
    /// The most frequent limit of its valid runs.
    pub limit: Option<Limit>,
    /// `valid`, or why no run was.
    pub validity: Validity,
    /// Why the first invalid run was, whether or not others are valid.
    pub why_invalid: Option<String>,
    /// Why a value that was to be counted beside the blocks is not there.
    pub why_uncounted: Option<String>,
    /// Each metric that it has.
    pub values: BTreeMap<Metric, Value>,
}

/// The stored runs of each cell, in the order of the plan; calibration is not among them.
pub(crate) fn by_cell<'a, S>(plan: &'a Plan, runs: &'a [Run<S>]) -> Vec<(&'a Cell, Vec<&'a Run<S>>)> {
    let mut of_cell: BTreeMap<&Cell, Vec<_>> = BTreeMap::new();
    for run in runs.iter().filter(|run| run.run.stage != Stage::Calibration) {
        of_cell.entry(&run.run.cell).or_default().push(run);
    }
    plan.cells.iter().map(|cell| (cell, of_cell.remove(cell).unwrap_or_default())).collect()
}

impl Summary {
    /// Sums up the stored runs of a plan.
    pub(crate) fn of<I: Instrument>(plan: &Plan, machine: &Machine, runs: &[RunOf<I>]) -> Self {
        let cells = by_cell(plan, runs);
        let comparisons = comparison::all::<I>(plan, &cells);
        let claims = claims::all::<I>(plan, &cells, &comparison::floors(&comparisons));
        let of_blocks = cells.iter().flat_map(|(_, runs)| runs).map(|run| I::facts(&run.seen).taken);
        let foreign = Foreign::of(of_blocks);
        let cells: Vec<CellSummary> = summaries::<I>(&cells, machine);
        let most = *compared_blocks(&comparisons, &cells).end();
        Self {
            experiment: plan.experiment.name.clone(),
            weight: Weight::of(most as usize),
            foreign,
            notes: Vec::new(),
            machine: machine.clone(),
            comparisons,
            cells,
            claims,
        }
    }

    /// The fewest and the most blocks that a comparison rests on; where nothing is compared, a cell.
    pub(crate) fn blocks(&self) -> RangeInclusive<u32> {
        compared_blocks(&self.comparisons, &self.cells)
    }

    /// What a cell came to.
    pub fn cell(&self, cell: &Cell) -> Option<&CellSummary> {
        self.cells.iter().find(|found| found.cell == *cell)
    }
}

/// Each pair of cells is compared in what they are about, whatever else in, and an A/A pair is not what was asked for.
fn compared_blocks(comparisons: &[Comparison], cells: &[CellSummary]) -> RangeInclusive<u32> {
    let compared = comparisons.iter().filter(|one| !one.aa && one.is_main);
    let mut blocks: Vec<u32> = compared.map(|one| one.blocks).collect();
    if blocks.is_empty() {
        blocks = cells.iter().map(|cell| cell.blocks).collect();
    }
    let least = blocks.iter().copied().min().unwrap_or(0);
    least..=blocks.into_iter().max().unwrap_or(0)
}

fn summaries<I: Instrument>(cells: &Runs<'_, I>, machine: &Machine) -> Vec<CellSummary> {
    let one = |(cell, runs): &(&Cell, Vec<&RunOf<I>>)| {
        let valid = pairing::valid::<I>(runs);
        let value = |metric: &Metric| {
            let (telling, _) = pairing::telling::<I>(*metric, runs);
            Some((*metric, I::summarise(*metric, cell, &telling, runs)?))
        };
        let (alone, _) = pairing::telling::<I>(Metric::Utilisation, runs);
        let invalid = runs.iter().find(|run| !run.validity.is_valid());
        CellSummary {
            cell: (*cell).clone(),
            version: machine.versions.get(&cell.subject).cloned().unwrap_or_default(),
            rate: pairing::rate::<I>(runs),
            blocks: valid.iter().map(|run| run.run.stage).collect::<BTreeSet<_>>().len() as u32,
            valid_runs: valid.len() as u32,
            invalid_runs: (runs.len() - valid.len()) as u32,
            limit: usual_limit::<I>(&alone),
            validity: match (valid.first(), runs.first()) {
                (Some(_), _) => Validity::Valid,
                (None, Some(run)) => run.validity.clone(),
                (None, None) => Validity::Invalid("not run".into()),
            },
            why_invalid: invalid.map(|run| run.validity.to_string()),
            why_uncounted: None,
            values: I::METRICS.iter().filter_map(value).collect(),
        }
    };
    cells.iter().map(one).collect()
}

/// The limit of most of the runs.
fn usual_limit<I: Instrument>(runs: &[&RunOf<I>]) -> Option<Limit> {
    let mut counts: BTreeMap<Limit, usize> = BTreeMap::new();
    for limit in runs.iter().filter_map(|run| I::facts(&run.seen).limit) {
        *counts.entry(limit).or_default() += 1;
    }
    counts.into_iter().max_by_key(|(_, count)| *count).map(|(limit, _)| limit)
}

impl CellSummary {
    /// Its value of a metric, if it has one.
    pub fn get(&self, metric: Metric) -> Option<f64> {
        self.values.get(&metric).map(|value| value.value)
    }

    /// Its runs, valid and invalid.
    pub fn runs(&self) -> u32 {
        self.valid_runs + self.invalid_runs
    }
}
