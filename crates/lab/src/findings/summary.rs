//! An experiment's findings: each cell over its blocks, the comparisons and the claims.

use crate::experiment::metric::Metric;
use crate::findings::claims::{self, Finding};
use crate::findings::comparison::{self, Comparison, Runs};
use crate::findings::foreign::Foreign;
use crate::findings::judge::Judge;
use crate::findings::pairing;
use crate::findings::value::Value;
use crate::planning::cell::Cell;
use crate::planning::plan::Plan;
use crate::planning::planned_run::Stage;
use crate::stats::Weight;
use crate::store::machine::Machine;
use crate::store::run::{Run, RunOf, Validity};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;
use weir_load::result::Limit;

/// The whole of an experiment's findings.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Summary {
    /// The experiment's name.
    pub experiment: String,
    /// `verdict` if a comparison has 10 blocks, `indication` if one has 5, otherwise `none`. If nothing is compared,
    /// the cells count.
    pub weight: Weight,
    /// The foreign load.
    pub foreign: Foreign,
    /// Further remarks to read before any number, a line each.
    pub notes: Vec<String>,
    /// The machine.
    pub machine: Machine,
    /// One entry for each cell, in the plan's order.
    pub cells: Vec<CellSummary>,
    /// One entry for each pair of cells and metric.
    pub comparisons: Vec<Comparison>,
    /// The experiment's claims.
    pub claims: Vec<Finding>,
}

/// The findings on a cell.
#[derive(Clone, Debug, PartialEq)]
pub struct CellSummary {
    /// The cell.
    pub cell: Cell,
    /// Its subject's version; empty if unknown.
    pub version: String,
    /// Requests (or connections without one) per second offered; `None` in a closed loop.
    pub rate: Option<f64>,
    /// Blocks with a valid run.
    pub blocks: u32,
    /// Valid runs: in a layout of duets a cell may have several in a block.
    pub valid_runs: u32,
    /// Invalid runs.
    pub invalid_runs: u32,
    /// The most frequent limit of the valid runs.
    pub limit: Option<Limit>,
    /// `valid`, or why no run is.
    pub validity: Validity,
    /// Why the first invalid run is, whether or not others are valid.
    pub why_invalid: Option<String>,
    /// Why a value counted outside the blocks is missing.
    pub why_uncounted: Option<String>,
    /// Its values by metric.
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
    pub(crate) fn of<I: Judge>(plan: &Plan, machine: &Machine, runs: &[RunOf<I>]) -> Self {
        let cells = by_cell(plan, runs);
        let comparisons = comparison::all::<I>(plan, &cells);
        let claims = claims::all::<I>(plan, &machine.hardware, &cells, &comparison::floors(&comparisons));
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

    /// The minimum and the maximum number of blocks of a comparison; if nothing is compared, of a cell.
    pub(crate) fn blocks(&self) -> RangeInclusive<u32> {
        compared_blocks(&self.comparisons, &self.cells)
    }

    /// The findings on a cell.
    pub fn cell(&self, cell: &Cell) -> Option<&CellSummary> {
        self.cells.iter().find(|found| found.cell == *cell)
    }
}

/// Only main metrics count, and no A/A pair: it is not what the experiment asks.
fn compared_blocks(comparisons: &[Comparison], cells: &[CellSummary]) -> RangeInclusive<u32> {
    let compared = comparisons.iter().filter(|one| !one.aa && one.is_main);
    let mut blocks: Vec<u32> = compared.map(|one| one.blocks).collect();
    if blocks.is_empty() {
        blocks = cells.iter().map(|cell| cell.blocks).collect();
    }
    let least = blocks.iter().copied().min().unwrap_or(0);
    least..=blocks.into_iter().max().unwrap_or(0)
}

fn summaries<I: Judge>(cells: &Runs<'_, I>, machine: &Machine) -> Vec<CellSummary> {
    let one = |(cell, runs): &(&Cell, Vec<&RunOf<I>>)| {
        let valid = pairing::valid::<I>(runs);
        let value = |metric: &Metric| {
            let (usable, _) = pairing::usable::<I>(*metric, runs);
            Some((*metric, I::summarise(*metric, cell, &usable, runs)?))
        };
        let (alone, _) = pairing::usable::<I>(Metric::Utilisation, runs);
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

/// The most frequent limit.
fn usual_limit<I: Judge>(runs: &[&RunOf<I>]) -> Option<Limit> {
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
