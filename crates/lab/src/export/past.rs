//! A cell over many results.

use super::reported::name;
use super::{Table, csv, number};
use crate::history::{History, Series};
use crate::store::stamp;

/// Many results as other programs read them.
#[derive(Clone, Copy, Debug)]
pub struct Past<'a>(pub &'a History);

const COLUMNS: [&str; 17] = [
    "cell",
    "target",
    "metric",
    "unit",
    "result",
    "started",
    "version",
    "rate",
    "value",
    "low",
    "high",
    "blocks",
    "change",
    "threshold",
    "rule",
    "verdict",
    "note",
];

impl Past<'_> {
    /// One row for each result of each cell; threshold, rule and verdict are those of the last change.
    pub fn csv(&self) -> String {
        let mut rows = Vec::new();
        for series in &self.0.series {
            let Series { cell, target, metric, points, last } = series;
            for (index, point) in points.iter().enumerate() {
                let last = last.as_ref().filter(|_| index + 1 == points.len());
                let entry = &self.0.results[point.result];
                rows.push(vec![
                    cell.clone(),
                    target.clone(),
                    name(*metric),
                    metric.unit().into(),
                    entry.directory.display().to_string(),
                    stamp(entry.started_unix),
                    point.version.clone(),
                    number(point.rate),
                    number(point.value),
                    number(point.low),
                    number(point.high),
                    point.blocks.to_string(),
                    number(point.change),
                    number(last.map(|last| last.threshold)),
                    number(last.map(|last| last.rule)),
                    number(last.map(|last| last.verdict)),
                    number(point.note.as_ref()),
                ]);
            }
        }
        csv::render(&Table { title: String::new(), columns: COLUMNS.to_vec(), rows })
    }
}
