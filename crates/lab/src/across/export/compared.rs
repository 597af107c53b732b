//! The export of two results of one plan.

use super::junit::{Case, Outcome};
use super::{Table, further, junit, markdown, number, values};
use crate::across::Across;
use crate::base::leaves::name;
use weir_report::text::short;

/// Two results, in formats for other programs.
#[derive(Clone, Copy, Debug)]
pub struct Compared<'a>(pub &'a Across);

const COLUMNS: &str = "cell,target,mode,load,factors,metric,unit,version_a,version_b,unchanged,broken,rate_a,rate_b,a,b,\
    ratio,low,high,coverage,p_value,p_adjusted,blocks_a,blocks_b,weight,verdict,note";

impl Compared<'_> {
    /// One row for each change.
    pub fn csv(&self) -> String {
        let rows = self.0.changes.iter().map(|one| {
            vec![
                one.cell.clone(),
                one.target.clone(),
                number(one.of.levels.get("mode")),
                number(one.of.levels.get("load_model")),
                further(&one.of.levels),
                one.metric.key(),
                one.metric.unit().into(),
                one.version_a.clone(),
                one.version_b.clone(),
                one.unchanged.to_string(),
                one.broken.to_string(),
                number(one.rate_a),
                number(one.rate_b),
                number(one.a),
                number(one.b),
                number(one.ratio.value),
                number(one.ratio.low),
                number(one.ratio.high),
                number(one.ratio.coverage),
                number(one.ratio.p_value),
                number(one.ratio.p_adjusted),
                one.blocks_a.to_string(),
                one.blocks_b.to_string(),
                name(one.ratio.weight),
                one.ratio.verdict.to_string(),
                number(one.ratio.note.as_ref()),
            ]
        });
        values(COLUMNS, rows.collect())
    }

    /// The results, labels, and tables of the changed and the unchanged.
    pub fn markdown(&self) -> String {
        let subject = self.0.subject;
        let value = |value: Option<f64>| value.map_or_else(|| "-".into(), short);
        let of = |unchanged: bool, title: String| {
            let rows = self.0.changes.iter().filter(|one| one.unchanged == unchanged).map(|one| {
                vec![
                    one.heading(),
                    one.place.clone(),
                    one.subject(),
                    format!("{} -> {} {}", value(one.a), value(one.b), one.metric.unit()),
                    one.ratio.text(),
                    one.verdict_text(self.0.margin),
                ]
            });
            let columns = vec!["metric", "where", subject, "A -> B", "B/A", "verdict"];
            Table { title, columns, rows: rows.collect() }
        };
        let tables =
            [of(false, format!("Changed {subject}s")), of(true, format!("Unchanged {subject}s: the drift"))];
        let only =
            [("A", &self.0.only_a), ("B", &self.0.only_b)].into_iter().filter(|(_, cells)| !cells.is_empty());
        let only = only.map(|(side, cells)| format!("Only in {side}: {}.", cells.join(", ")));
        let labels: Vec<String> =
            self.0.sides().into_iter().chain(self.0.labels.iter().cloned()).chain(only).collect();
        markdown::render(&format!("{}: two results", self.0.experiment), &labels, &tables)
    }

    /// A test case for each change. Undecided changes are skipped; with `fail_on_regression`, a regression or a broken
    /// cell is a failure, and a change without evidence an error.
    pub fn junit(&self, fail_on_regression: bool) -> String {
        let undecided = if fail_on_regression { self.0.regressions().undecided } else { Vec::new() };
        let case = |one: &crate::across::Change| {
            let words = one.verdict_text(self.0.margin);
            let outcome = match undecided.contains(&one.line(self.0.margin)) && !one.unchanged {
                true => Outcome::Error(words.clone()),
                false => Outcome::of(one.ratio.verdict, fail_on_regression && one.is_regression(), &words),
            };
            let class = if one.unchanged { "unchanged" } else { "changed" };
            let says = format!("{}: {} {words}", one.subject(), one.ratio.text());
            Case { class, name: format!("{}: {}", one.cell, one.metric), outcome, says }
        };
        junit::render(&self.0.experiment, &self.0.changes.iter().map(case).collect::<Vec<_>>())
    }
}
