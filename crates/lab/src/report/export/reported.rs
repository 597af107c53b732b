//! The export of one result: its cells, comparisons and claims.

mod cells;
mod claims;
mod row;

use row::{COLUMNS, Cells, Compared};

use super::junit::{Case, Outcome};
use super::{Table, junit, markdown, values};
use crate::findings::claims::Finding;
use crate::findings::evidence::{Asked, Regressions};
use crate::findings::results::Results;
use crate::report::shown::Shown;
use crate::report::words::{QUICK, labels};

/// One result, in formats for other programs.
#[derive(Clone, Debug)]
pub struct Reported {
    experiment: String,
    labels: Vec<String>,
    cells: Cells,
    comparisons: Vec<Compared>,
    claims: Vec<Finding>,
}

impl<I: Shown> From<&Results<I>> for Reported {
    fn from(results: &Results<I>) -> Self {
        let Results { plan, summary, .. } = results;
        let quick = plan.experiment.quick.then(|| QUICK.to_owned());
        Self {
            experiment: plan.experiment.name.clone(),
            labels: quick.into_iter().chain(labels::<I>(plan, summary)).collect(),
            cells: cells::of(results),
            comparisons: summary.comparisons.iter().map(|one| cells::compared(one, results)).collect(),
            claims: summary.claims.clone(),
        }
    }
}

impl Reported {
    /// The comparisons of two levels alone; a regression in one of them is one.
    pub(crate) fn of_levels<I: Shown>(results: &Results<I>) -> Self {
        let asked = results.summary.comparisons.iter().filter(|one| one.factor.is_some());
        let compared = asked.map(|one| Compared { is_judged: true, ..cells::compared(one, results) });
        let (cells, comparisons) = (Cells::default(), compared.collect());
        Self { cells, comparisons, claims: Vec::new(), ..Self::from(results) }
    }

    /// One row for each value of a cell, each comparison, each claim, and each cell of a claim.
    pub fn csv(&self) -> String {
        let comparisons = self.comparisons.iter().map(|one| one.row.clone()).collect();
        let rows = [self.cells.rows.clone(), comparisons, claims::rows(&self.claims)].concat();
        values(COLUMNS, rows)
    }

    /// Labels and tables.
    pub fn markdown(&self) -> String {
        let rows = self.comparisons.iter().map(|one| {
            let what = format!("{} / {}", one.target, one.baseline);
            vec![one.metric.clone(), one.place.clone(), what, one.ratio.text(), one.words.clone()]
        });
        let comparisons = Table {
            title: "Comparisons".into(),
            columns: vec!["metric", "where", "what", "ratio", "verdict"],
            rows: rows.collect(),
        };
        let mut tables = self.cells.tables.clone();
        tables.extend([comparisons, claims::table(&self.claims)]);
        markdown::render(&self.experiment, &self.labels, &tables)
    }

    /// A test case for each cell (invalid is a failure), each claim (contradicted is a failure, undecided is skipped)
    /// and each comparison with the baseline: with `fail_on_regression`, a regression is a failure, and a comparison
    /// without evidence an error.
    pub fn junit(&self, fail_on_regression: bool) -> String {
        let undecided = if fail_on_regression { self.regressions().undecided } else { Vec::new() };
        let mut cases = self.cells.cases.clone();
        cases.extend(self.claims.iter().map(claims::case));
        cases.extend(self.judged().map(|one| Case {
            class: "comparison",
            name: one.title(),
            outcome: match undecided.contains(&one.line()) {
                true => Outcome::Error(one.words.clone()),
                false => Outcome::of(one.ratio.verdict, fail_on_regression && one.is_worse, &one.words),
            },
            says: format!("{} {}", one.ratio.text(), one.words),
        }));
        if fail_on_regression && self.judged().next().is_none() {
            let (name, outcome) =
                ("with a baseline".to_owned(), Outcome::Error("nothing is compared".into()));
            cases.push(Case { class: "comparison", name, outcome, says: String::new() });
        }
        junit::render(&self.experiment, &cases)
    }

    /// The comparisons with the baseline, or those asked for, that show a regression, and the undecided ones.
    pub fn regressions(&self) -> Regressions {
        Regressions::of(self.judged().map(|one| Asked {
            line: one.line(),
            ratio: &one.ratio,
            is_worse: one.is_worse,
        }))
    }

    /// Cells without a valid run, one line each; if there are none, comparisons without a block that is valid on both
    /// sides.
    pub fn unmeasured(&self) -> Vec<String> {
        if !self.cells.unmeasured.is_empty() {
            return self.cells.unmeasured.clone();
        }
        let cannot = |one: &&Compared| one.ratio.lacks_evidence && one.ratio.value.is_none();
        self.comparisons.iter().filter(cannot).map(Compared::line).collect()
    }

    fn judged(&self) -> impl Iterator<Item = &Compared> {
        self.comparisons.iter().filter(|one| one.is_judged)
    }
}

#[cfg(test)]
mod tests;
