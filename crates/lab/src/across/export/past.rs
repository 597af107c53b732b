//! The export of a history.

use super::{number, values};
use crate::across::history::{History, Latest, Series};
use crate::store::stamp;

/// A history, in formats for other programs.
#[derive(Clone, Copy, Debug)]
pub struct Past<'a>(pub &'a History);

const COLUMNS: &str = "cell,target,metric,unit,result,started,version,rate,value,low,high,blocks,change,since,threshold,\
    rule,verdict,note";

impl Past<'_> {
    /// One row for each result of each cell. Threshold, rule and verdict belong to the newest result's change; the
    /// verdict is `broken` if it has no valid run but an earlier one has. A change is relative to the result `since`.
    pub fn csv(&self) -> String {
        let mut rows = Vec::new();
        let directory = |result: usize| self.0.results[result].directory.display().to_string();
        for series in &self.0.series {
            let Series { cell, target, metric, points, latest } = series;
            for (index, point) in points.iter().enumerate() {
                let latest = Some(latest).filter(|_| index + 1 == points.len());
                let last = latest.and_then(Latest::change);
                let verdict = match latest {
                    Some(Latest::Broken(_)) => "broken".into(),
                    _ => number(last.map(|last| last.verdict)),
                };
                rows.push(vec![
                    cell.clone(),
                    target.clone(),
                    metric.key(),
                    metric.unit().into(),
                    directory(point.result),
                    stamp(self.0.results[point.result].started_unix),
                    point.version.clone(),
                    number(point.rate),
                    number(point.value),
                    number(point.low),
                    number(point.high),
                    point.blocks.to_string(),
                    number(point.change.map(|step| step.ratio)),
                    number(point.change.map(|step| directory(step.since))),
                    number(last.map(|last| last.threshold)),
                    number(last.map(|last| last.rule)),
                    verdict,
                    number(point.note.as_ref()),
                ]);
            }
        }
        values(COLUMNS, rows)
    }
}
