//! A result of gateways.

use super::{Cells, Reported, Shown, case, judged, labels, name, row, words};
use crate::cell::Cell;
use crate::comparison::Comparison;
use crate::experiment::Level;
use crate::export::{Table, number};
use crate::metric::Metric;
use crate::results::Results;
use crate::summary::CellSummary;
use crate::table;
use std::collections::BTreeMap;

impl<'a> From<&'a Results> for Reported<'a> {
    fn from(results: &'a Results) -> Self {
        let Results { plan, summary, .. } = results;
        let cases = pairs(results)
            .map(|(cell, found)| case(cell.to_string(), &found.validity, found.blocks, found.invalid_runs));
        Self {
            experiment: &plan.experiment.name,
            labels: labels(plan.experiment.quick, table::labels(plan, summary)),
            cells: Cells {
                rows: rows(results),
                tables: vec![cells(results)],
                cases: cases.collect(),
                unmeasured: unmeasured(results),
            },
            comparisons: summary.comparisons.iter().map(|one| shown(one, results)).collect(),
            claims: &summary.claims,
        }
    }
}

/// Each cell without a valid run, why the first of its runs was none, and where the logs are.
fn unmeasured(results: &Results) -> Vec<String> {
    let line = |(cell, found): (&Cell, &CellSummary)| {
        let runs = results.records.iter().filter(|run| run.run.cell == *cell);
        let logs = runs.filter_map(|run| run.observation.logs.as_ref()).next();
        let logs = logs.map(|logs| format!("; logs: {}", results.directory.join(logs).display()));
        (!found.validity.is_valid())
            .then(|| format!("{cell}: {}{}", found.validity, logs.unwrap_or_default()))
    };
    pairs(results).filter_map(line).collect()
}

/// The summary has the cells in the plan's order.
fn pairs(results: &Results) -> impl Iterator<Item = (&Cell, &CellSummary)> {
    results.plan.cells.iter().zip(&results.summary.cells)
}

fn cells(results: &Results) -> Table {
    let value = |value: Option<f64>| value.map_or_else(|| "-".into(), table::short);
    let row = |(cell, found): (&Cell, &CellSummary)| {
        vec![
            cell.to_string(),
            value(found.per_second()),
            value(found.cpu_us()),
            value(found.p50_us),
            value(found.p95_us),
            value(found.p99_us),
            found.limit.map_or_else(|| "-".into(), |limit| limit.to_string()),
            format!("{} of {}", found.blocks, found.blocks + found.invalid_runs),
            found.validity.to_string(),
        ]
    };
    let columns =
        ["cell", "per second", "CPU, us", "p50, us", "p95, us", "p99, us", "limit", "valid runs", "validity"];
    Table { title: "Cells".into(), columns: columns.to_vec(), rows: pairs(results).map(row).collect() }
}

pub(super) fn rows(results: &Results) -> Vec<Vec<String>> {
    let mut rows = Vec::new();
    for (cell, found) in pairs(results) {
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
            of(Metric::P95Us, found.p95_us, None),
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
                further(&found.factors),
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

fn shown(one: &Comparison, results: &Results) -> Shown {
    let mut fields = vec![
        ("kind", if one.aa { "aa" } else { "comparison" }.to_owned()),
        ("name", number(one.factor.as_ref())),
        ("case", one.case.to_string()),
        ("target", one.target.clone()),
        ("version", number(results.summary.machine.versions.get(&one.folder))),
        ("mode", one.mode.to_string()),
        ("connections", one.connections.to_string()),
        ("bytes", one.bytes.to_string()),
        ("load", one.load.to_string()),
        ("factors", further(&one.factors)),
        ("metric", name(one.metric)),
        ("against", one.baseline.clone()),
    ];
    fields.extend(judged(&one.ratio, one.blocks, one.remark.as_ref()));
    Shown {
        row: row(&fields),
        metric: format!("{}, {}", one.metric, one.load),
        place: format!("{}, {}", one.mode, one.group()),
        target: one.target.clone(),
        baseline: one.baseline.clone(),
        ratio: one.ratio.clone(),
        words: one.verdict_text(results.plan.experiment.margin),
        is_worse: one.ratio.is_worse(one.metric.better()),
        is_with_baseline: !one.aa && one.factor.is_none(),
    }
}

fn further(factors: &BTreeMap<String, Level>) -> String {
    words(factors.iter().map(|(key, level)| (key.as_str(), level)))
}
