//! Comparisons of cells, and their verdicts in words.

use crate::experiment::metric::Metric;
use crate::experiment::{Layout, Levels};
use crate::findings::judge::Judge;
use crate::findings::pairing::{self, Paired, Side};
use crate::planning::cell::Cell;
use crate::planning::counterpart::{Counterpart, counterparts};
use crate::planning::plan::Plan;
use crate::stats::verdict::Ratio;
use crate::stats::{self, fdr};
use crate::store::run::RunOf;

/// A cell against another: a subject against the baseline, a level against another, or a subject against itself.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// The metric.
    pub metric: Metric,
    /// The first over the second.
    pub ratio: Ratio,
    /// The denominator of the ratio, in words.
    pub baseline: String,
    /// The numerator, in words.
    pub target: String,
    /// The numerator's cell.
    pub cell: Cell,
    /// The family that it is judged with, of the same metric.
    pub family: String,
    /// The factor whose two levels are compared; `None` for two subjects.
    pub factor: Option<String>,
    /// Requests per second offered; `None` in a closed loop.
    pub rate: Option<f64>,
    /// Blocks in which both were valid and had a value.
    pub blocks: u32,
    /// A remark on its runs beside the verdict.
    pub remark: Option<String>,
    /// Whether it compares a subject with itself.
    pub aa: bool,
    /// Whether it is of its cell's main metric.
    pub is_main: bool,
}

/// The cells of a plan with their runs.
pub(crate) type Runs<'a, I> = [(&'a Cell, Vec<&'a RunOf<I>>)];

/// All comparisons of a plan, for each place and metric: each subject with the baseline, the A/A pair, and the
/// requested levels of the factors.
pub(crate) fn all<I: Judge>(plan: &Plan, cells: &Runs<'_, I>) -> Vec<Comparison> {
    let rule = plan.rule();
    let mut found = Vec::new();
    let all: Vec<&Cell> = cells.iter().map(|(cell, _)| *cell).collect();
    for (cell, runs) in cells.iter().filter(|(cell, _)| !I::is_control(cell)) {
        for Counterpart { index, factor, names } in counterparts(plan, &all, cell) {
            let (other, of_other) = &cells[index];
            for (rank, metric) in compared::<I>(plan, cell).into_iter().enumerate() {
                let sides = [(&names[0], *cell, runs), (&names[1], *other, of_other)];
                let sides = sides.map(|(name, cell, runs)| Side { name, cell, runs });
                let Paired { estimate, blocks, note, remark } =
                    pairing::pair::<I>(metric, sides, rule.error_rate);
                found.push(Comparison {
                    metric,
                    ratio: Ratio::of(estimate, blocks, note),
                    target: names[0].clone(),
                    baseline: names[1].clone(),
                    cell: (*cell).clone(),
                    family: I::family(cell).to_owned(),
                    factor: factor.clone(),
                    rate: pairing::rate::<I>(runs),
                    blocks: blocks as u32,
                    remark,
                    aa: cell.is_again(),
                    is_main: rank == 0,
                });
            }
        }
    }
    // Within each family. The A/A pair tests nothing and belongs to none; neither do comparisons without evidence.
    fdr::adjust(
        found.iter_mut().filter(|one| one.ratio.is_asked() && !one.aa),
        |one: &Comparison| (one.family.clone(), one.metric),
        |one| (one.ratio.p_value, &mut one.ratio.p_adjusted),
    );
    let floors = floors(&found);
    for one in &mut found {
        let floor = if one.aa { Ok(None) } else { floors.get(&(one.metric, one.cell.place())) };
        one.ratio.decide(one.blocks, rule, floor);
    }
    found.sort_by_key(|one| {
        (one.family.clone(), one.metric, one.factor.is_some(), I::order(&one.cell), one.aa)
    });
    found
}

/// The metrics compared in a cell. The two of a duet share their cores: there only the metrics by CPU clocks count.
pub(crate) fn compared<I: Judge>(plan: &Plan, cell: &Cell) -> Vec<Metric> {
    match plan.experiment.layout {
        Layout::Blocks => I::compared(cell),
        Layout::Duet => I::compared_in_duets(cell),
    }
}

/// The noise floors of each metric and place.
pub(crate) type Floors = stats::verdict::Floors<(Metric, Levels)>;

pub(crate) fn floors(comparisons: &[Comparison]) -> Floors {
    let pairs = comparisons.iter().filter(|one| one.aa);
    Floors::of(pairs.map(|one| ((one.metric, one.cell.place()), one.ratio.reach())))
}

impl Comparison {
    /// Whether it is shown to be worse.
    pub(crate) fn is_worse(&self) -> bool {
        self.ratio.is_worse(self.metric.better())
    }

    /// Whether it compares two subjects, not two levels of a factor or the A/A pair.
    pub(crate) fn is_with_baseline(&self) -> bool {
        !self.aa && self.factor.is_none()
    }

    /// `different: 28 % lower`, and the remark.
    pub fn verdict_text(&self, margin: f64) -> String {
        stats::verdict::with_remark(self.ratio.words(margin), self.remark.as_deref())
    }

    /// The heading of comparisons of its kind: the metric, and what else they share.
    pub(crate) fn heading(&self) -> String {
        heading(self.metric, &self.family)
    }

    /// The line of this comparison on standard output, under its heading.
    pub fn line(&self, margin: f64) -> String {
        format!("{} vs {}: {} {}", self.target, self.baseline, self.ratio.text(), self.verdict_text(margin))
    }
}

/// A metric in one family: `CPU per request, saturated`.
pub(crate) fn heading(metric: Metric, family: &str) -> String {
    match family {
        "" => metric.to_string(),
        family => format!("{metric}, {family}"),
    }
}
