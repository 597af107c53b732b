//! One result: its cells, its comparisons and its claims.

use super::junit::{Case, Outcome};
use super::{Table, csv, junit, markdown, number};
use crate::cell::Cell;
use crate::claims::ClaimVerdict;
use crate::comparison::{Comparison, Verdict};
use crate::experiment::Level;
use crate::metric::Metric;
use crate::results::Results;
use crate::stats::Weight;
use crate::summary::CellSummary;
use crate::table;
use serde::Serialize;
use std::collections::BTreeMap;

/// One result as other programs read it.
#[derive(Clone, Copy, Debug)]
pub struct Reported<'a>(pub &'a Results);

/// In the form of one value on each row: a cell has a row for each metric, a claim one for the whole (`claim`) and one
/// for each cell that it is about (`claim-cell`).
const COLUMNS: [&str; 23] = [
    "kind",
    "name",
    "case",
    "target",
    "version",
    "mode",
    "connections",
    "bytes",
    "load",
    "factors",
    "metric",
    "unit",
    "against",
    "value",
    "low",
    "high",
    "coverage",
    "blocks",
    "p_value",
    "p_adjusted",
    "weight",
    "verdict",
    "note",
];

impl Reported<'_> {
    /// One row for each value of a cell, for each comparison, for each claim, and for each cell of a claim.
    pub fn csv(&self) -> String {
        let rows = [self.cells(), self.comparisons(), self.claims()].concat();
        csv::render(&Table { title: String::new(), columns: COLUMNS.to_vec(), rows })
    }

    /// Labels and tables.
    pub fn markdown(&self) -> String {
        let Results { plan, summary, .. } = self.0;
        let labels = table::labels(plan, summary);
        let value = |value: Option<f64>| value.map_or_else(|| "-".into(), table::short);
        let cells = self.pairs().map(|(cell, found)| {
            vec![
                cell.to_string(),
                value(found.per_second()),
                value(found.cpu_us()),
                value(found.p50_us),
                value(found.p99_us),
                found.limit.map_or_else(|| "-".into(), |limit| limit.to_string()),
                format!("{} of {}", found.blocks, found.blocks + found.invalid_runs),
                found.validity.to_string(),
            ]
        });
        let cells = Table {
            title: "Cells".into(),
            columns: vec![
                "cell",
                "per second",
                "CPU, us",
                "p50, us",
                "p99, us",
                "limit",
                "valid runs",
                "validity",
            ],
            rows: cells.collect(),
        };
        let comparisons = summary.comparisons.iter().map(|one| {
            vec![
                format!("{}, {}", one.metric, one.load),
                where_it_is(one),
                format!("{} / {}", one.target, one.baseline),
                one.ratio_text(),
                one.verdict_text(plan.experiment.margin),
            ]
        });
        let comparisons = Table {
            title: "Comparisons".into(),
            columns: vec!["metric", "where", "what", "ratio", "verdict"],
            rows: comparisons.collect(),
        };
        let claims = summary.claims.iter().map(|claim| {
            vec![
                claim.id.clone(),
                claim.source.clone(),
                claim.says.clone(),
                claim.verdict_text(),
                claim.why.clone(),
            ]
        });
        let claims = Table {
            title: "Claims".into(),
            columns: vec!["claim", "source", "says", "verdict", "why"],
            rows: claims.collect(),
        };
        markdown::render(&plan.experiment.name, &labels, &[cells, comparisons, claims])
    }

    /// A test case for each cell (invalid is a failure), each claim (contradicted is a failure, what is not decided is
    /// skipped) and each comparison with the baseline, in which a regression is a failure if it is to be one.
    pub fn junit(&self, fail_on_regression: bool) -> String {
        let Results { plan, summary, .. } = self.0;
        let mut cases = Vec::new();
        for (cell, found) in self.pairs() {
            let outcome = match found.validity.is_valid() {
                true => Outcome::Passed,
                false => Outcome::Failed(found.validity.to_string()),
            };
            let says = format!("{} valid runs, {} invalid", found.blocks, found.invalid_runs);
            cases.push(Case { class: "cell", name: cell.to_string(), outcome, says });
        }
        for claim in &summary.claims {
            let why = format!("{}: {}", claim.verdict_text(), claim.why);
            let outcome = match claim.verdict {
                ClaimVerdict::Confirmed => Outcome::Passed,
                ClaimVerdict::Contradicted => Outcome::Failed(why),
                ClaimVerdict::Undecided | ClaimVerdict::NotTestable => Outcome::Skipped(why),
            };
            cases.push(Case { class: "claim", name: claim.id.clone(), outcome, says: claim.says.clone() });
        }
        for one in self.with_baseline() {
            let words = one.verdict_text(plan.experiment.margin);
            let outcome = match one.verdict {
                Verdict::Different if fail_on_regression && one.is_worse() => Outcome::Failed(words.clone()),
                Verdict::Undecided => Outcome::Skipped(words.clone()),
                Verdict::Different | Verdict::Equivalent => Outcome::Passed,
            };
            let name = title(one);
            cases.push(Case {
                class: "comparison",
                name,
                outcome,
                says: format!("{} {words}", one.ratio_text()),
            });
        }
        junit::render(&plan.experiment.name, &cases)
    }

    /// The comparisons with the baseline that are different for the worse, a line for each.
    pub fn regressions(&self) -> Vec<String> {
        let margin = self.0.plan.experiment.margin;
        let line =
            |one: &Comparison| format!("{}: {} {}", title(one), one.ratio_text(), one.verdict_text(margin));
        self.with_baseline().filter(|one| one.is_worse()).map(line).collect()
    }

    fn with_baseline(&self) -> impl Iterator<Item = &Comparison> {
        self.0.summary.comparisons.iter().filter(|one| !one.aa && one.factor.is_none())
    }

    /// The summary has the cells in the plan's order.
    fn pairs(&self) -> impl Iterator<Item = (&Cell, &CellSummary)> {
        self.0.plan.cells.iter().zip(&self.0.summary.cells)
    }

    fn cells(&self) -> Vec<Vec<String>> {
        let mut rows = Vec::new();
        for (cell, found) in self.pairs() {
            let per_request = found.cpu_us_per_request_low.zip(found.cpu_us_per_request_high);
            let per_handshake = found.cpu_us_per_handshake_low.zip(found.cpu_us_per_handshake_high);
            let of = |metric: Metric, value, interval| (name(metric), metric.unit(), value, interval);
            // What is neither compared nor claimed is no `Metric`, and has the name that it has in the summary.
            let beside = |key: &str, unit, value| (key.to_owned(), unit, value, None);
            let error_ratio = name(Metric::ErrorRatio);
            for (metric, unit, value, interval) in [
                of(Metric::CpuUsPerRequest, found.cpu_us_per_request, per_request),
                of(Metric::CpuUsPerHandshake, found.cpu_us_per_handshake, per_handshake),
                beside("origin_cpu_us_per_request", "us", found.origin_cpu_us_per_request),
                beside("origin_cpu_us_per_handshake", "us", found.origin_cpu_us_per_handshake),
                beside("load_cpu_us_per_request", "us", found.load_cpu_us_per_request),
                beside("load_cpu_us_per_handshake", "us", found.load_cpu_us_per_handshake),
                beside("switches_per_request", "", found.switches_per_request),
                of(Metric::RequestsPerSecond, found.requests_per_second, None),
                of(Metric::HandshakesPerSecond, found.handshakes_per_second, None),
                of(Metric::MeanUs, found.mean_us, None),
                beside("sd_us", "us", found.sd_us),
                of(Metric::P50Us, found.p50_us, None),
                of(Metric::P99Us, found.p99_us, None),
                of(Metric::RssKib, found.rss_kib, None),
                beside("rss_end_kib", "KiB", found.rss_end_kib),
                of(Metric::GcThroughputPercent, found.gc_throughput_percent, None),
                of(Metric::AfterFullGcKib, found.after_full_gc_kib, None),
                of(Metric::Utilisation, found.utilisation, None),
                of(Metric::ErrorRatio, found.error_ratio, None),
            ] {
                // A cell without any value is a row with its reason all the same.
                let is_bare = metric == error_ratio && found.blocks == 0;
                if value.is_none() && !is_bare {
                    continue;
                }
                rows.push(vec![
                    "cell".into(),
                    cell.to_string(),
                    found.case.to_string(),
                    found.target.clone(),
                    found.version.clone(),
                    found.mode.to_string(),
                    found.connections.to_string(),
                    found.bytes.to_string(),
                    found.load.to_string(),
                    words(&found.factors),
                    metric,
                    unit.into(),
                    String::new(),
                    number(value),
                    number(interval.map(|interval| interval.0)),
                    number(interval.map(|interval| interval.1)),
                    String::new(),
                    found.blocks.to_string(),
                    String::new(),
                    String::new(),
                    String::new(),
                    found.validity.to_string(),
                    number(found.limit.map(|limit| format!("limit: {limit}"))),
                ]);
            }
        }
        rows
    }

    fn comparisons(&self) -> Vec<Vec<String>> {
        let versions = &self.0.summary.machine.versions;
        let row = |one: &Comparison| {
            vec![
                if one.aa { "aa" } else { "comparison" }.into(),
                number(one.factor.as_ref()),
                one.case.to_string(),
                one.target.clone(),
                number(versions.get(&one.folder)),
                one.mode.to_string(),
                one.connections.to_string(),
                one.bytes.to_string(),
                one.load.to_string(),
                words(&one.factors),
                name(one.metric),
                String::new(),
                one.baseline.clone(),
                number(one.ratio),
                number(one.low),
                number(one.high),
                number(one.coverage),
                one.blocks.to_string(),
                number(one.p_value),
                number(one.p_adjusted),
                name(one.weight),
                one.verdict.to_string(),
                number(one.note.as_ref().or(one.remark.as_ref())),
            ]
        };
        self.0.summary.comparisons.iter().map(row).collect()
    }

    fn claims(&self) -> Vec<Vec<String>> {
        let mut rows = Vec::new();
        for claim in &self.0.summary.claims {
            let metric = claim.metric.map_or_else(String::new, name);
            rows.push(row(&[
                ("kind", "claim".into()),
                ("name", claim.id.clone()),
                ("metric", metric.clone()),
                ("weight", name(claim.weight)),
                ("verdict", claim.verdict.to_string()),
                ("note", claim.why.clone()),
            ]));
            rows.extend(claim.cells.iter().map(|one| {
                row(&[
                    ("kind", "claim-cell".into()),
                    ("name", claim.id.clone()),
                    ("target", one.cell.clone()),
                    ("metric", metric.clone()),
                    ("against", number(one.against.as_ref())),
                    ("value", number(one.value)),
                    ("low", number(one.low)),
                    ("high", number(one.high)),
                    ("blocks", one.blocks.to_string()),
                    ("weight", name(Weight::of(one.blocks as usize))),
                    ("verdict", one.verdict.to_string()),
                    ("note", number(one.note.as_ref().or(one.remark.as_ref()))),
                ])
            }));
        }
        rows
    }
}

/// A row with such fields; the others are empty.
fn row(fields: &[(&str, String)]) -> Vec<String> {
    let field = |column: &&str| fields.iter().find(|(known, _)| known == column);
    COLUMNS.iter().map(|column| field(column).map_or_else(String::new, |(_, text)| text.clone())).collect()
}

/// The name that a metric or a weight has in JSON.
pub(super) fn name(of: impl Serialize) -> String {
    let value = serde_json::to_value(of).unwrap_or_default();
    value.as_str().unwrap_or_default().to_owned()
}

fn words(factors: &BTreeMap<String, Level>) -> String {
    factors.iter().map(|(key, level)| format!("{key}={level}")).collect::<Vec<_>>().join(";")
}

/// What is compared, and where.
fn title(one: &Comparison) -> String {
    format!("{}, {}, {}: {} vs {}", one.metric, one.load, where_it_is(one), one.target, one.baseline)
}

/// `h1-h1c, 64 connections, 1000 bytes, delay_ms 30`.
fn where_it_is(one: &Comparison) -> String {
    format!("{}, {}", one.mode, one.group())
}

#[cfg(test)]
mod tests;
