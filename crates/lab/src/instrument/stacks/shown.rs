//! The presentation of results of TLS stacks.

use super::output::Side;
use super::scaling::{self, in_locks};
use super::values::{COUNTED, Ran, measured};
use super::{Stacks, instructions, title, view};
use crate::base::error::LabError;
use crate::experiment::metric::Metric;
use crate::findings::results::Results;
use crate::findings::summary::{CellSummary, Summary};
use crate::findings::value::Value;
use crate::planning::cell::Cell;
use crate::planning::plan::Plan;
use crate::report::shown::{Looks, Page, Shown};
use crate::store::Store;
use crate::store::run::Run;
use serde_json::json;
use std::collections::BTreeSet;
use std::fmt::Write;
use weir_report::markup::{command_line, quote};
use weir_report::text::{WIDTH, flow, wrap};

/// The CPU metrics of both sides, and their units.
pub(super) const COSTS: [(Metric, &str); 3] = [
    (Metric::CpuUsPerHandshake, "handshake"),
    (Metric::CpuUsPerOperation, "operation"),
    (Metric::CpuUsPerMb, "MB"),
];

impl Shown for Stacks {
    fn cost(found: &CellSummary) -> Option<(f64, &'static str)> {
        COSTS.into_iter().find_map(|(metric, unit)| Some((found.get(metric)?, unit)))
    }

    fn differences(results: [&Results<Self>; 2], [first, second]: [&str; 2]) -> Vec<String> {
        let [a, b] = results.map(|results| view::facts(&results.runs));
        let mut differences = Vec::new();
        for (engine, before) in a {
            let Some(after) = b.get(engine) else { continue };
            for (what, left, right) in [
                ("TLS", &before.tls, &after.tls),
                ("crypto", &before.crypto, &after.crypto),
                ("compiler", &before.compiler, &after.compiler),
                ("allocator", &before.allocator, &after.allocator),
                ("features", &before.features.join(" "), &after.features.join(" ")),
            ] {
                if left != right {
                    differences.push(format!("{engine}: {what}: {left} in {first}, {right} in {second}"));
                }
            }
        }
        differences
    }

    /// Adds instruction counts, scaling drops, and the versions that engines report.
    fn complete(results: &mut Results<Self>) -> Result<(), LabError> {
        let Results { directory, runs, summary, .. } = results;
        let store = Store::open(directory);
        let facts = view::facts(runs);
        for found in &mut summary.cells {
            if let Some(facts) = facts.get(found.cell.subject.as_str()) {
                found.version.clone_from(&facts.tls);
            }
            if let Some(counted) = instructions::counted(&store, &found.cell)? {
                let of = |side, metric| Some((metric, Value::exactly(*counted.counts.get(&side)?)));
                let counts = [
                    of(Side::Server, Metric::ServerInstructions),
                    of(Side::Client, Metric::ClientInstructions),
                ];
                found.values.extend(counts.into_iter().flatten());
                found.why_uncounted = counted.why;
            }
        }
        let drops = scaling::drops(&summary.cells, summary.machine.cores.len());
        summary.notes.extend(scaling::largest(&drops));
        summary.notes.extend(counting(summary));
        Ok(())
    }

    fn setting(_: &Summary) -> String {
        "Both sides in one process, in memory: no sockets, no network, no HTTP.".into()
    }

    fn row(_: &Plan, cell: &Cell, compared: Option<&str>) -> String {
        title::of(&compared.map_or_else(|| cell.levels.clone(), |key| cell.levels.without(key)))
    }

    fn place_title(cell: &Cell) -> String {
        cell.levels.id()
    }

    fn title(cell: &Cell) -> String {
        format!("{}: {}", title::of(&cell.levels), cell.name)
    }

    fn chapter(cell: &Cell) -> String {
        cell.levels.word("do").to_owned()
    }

    fn tables(text: &mut String, results: &Results<Self>) {
        let Results { plan, summary, .. } = results;
        let names = summary.cells.iter().map(|found| found.cell.name.chars().count());
        let width = names.max().unwrap_or_default().min(NAME);
        let mut scenario = String::new();
        for found in &summary.cells {
            let own = title::of(&found.cell.levels);
            if own != scenario {
                text.push('\n');
                wrap(text, &own);
                scenario = own;
            }
            row(text, plan, found, width);
        }
    }

    fn columns(cell: &Cell) -> (String, Vec<Metric>) {
        (format!("Cells: {}", cell.levels.word("do")), [measured(cell), &COUNTED].concat())
    }

    fn page(results: &Results<Self>, _: &Store, looks: &Looks<'_>) -> Page {
        view::page(results, looks)
    }

    fn reproduction(_: &Plan, _: &Cell, runs: &[&Run<Ran>]) -> Option<String> {
        let Ran { folder, environment, command, scenario, .. } = &runs.last()?.seen;
        let folder = quote(&folder.display().to_string());
        let line = command_line(environment.iter().chain(command));
        Some(format!("cd {folder} && {line} <<'SCENARIO'\n{scenario}SCENARIO"))
    }

    /// Cells include their scenario, and comparisons are called contrasts.
    fn json(results: &Results<Self>) -> serde_json::Value {
        let summary = &results.summary;
        let cell =
            |cell: &Cell| json!({ "name": cell.name, "engine": cell.subject, "scenario": cell.levels });
        let value = |(metric, value): (&Metric, &Value)| {
            (metric.key(), json!({ "value": value.value, "low": value.low, "high": value.high }))
        };
        let found = |found: &CellSummary| {
            json!({
                "cell": cell(&found.cell),
                "blocks": found.blocks,
                "invalid_runs": found.invalid_runs,
                "why_invalid": found.why_invalid,
                "why_uncounted": found.why_uncounted,
                "values": found.values.iter().map(value).collect::<serde_json::Map<_, _>>(),
            })
        };
        let contrasts = summary.comparisons.iter().map(|one| {
            let mut fields = json!(one.ratio);
            fields["metric"] = json!(one.metric);
            fields["cell"] = cell(&one.cell);
            fields["target"] = json!(one.target);
            fields["baseline"] = json!(one.baseline);
            fields["factor"] = json!(one.factor);
            fields["blocks"] = json!(one.blocks);
            fields["remark"] = json!(one.remark);
            fields["aa"] = json!(one.aa);
            fields
        });
        json!({
            "schema": 1,
            "experiment": summary.experiment,
            "weight": summary.weight,
            "foreign": summary.foreign,
            "facts": view::facts(&results.runs),
            "cells": summary.cells.iter().map(found).collect::<Vec<_>>(),
            "drops": scaling::drops(&summary.cells, summary.machine.cores.len()),
            "contrasts": contrasts.collect::<Vec<_>>(),
            "claims": summary.claims,
        })
    }
}

/// Notes on instruction counts, if the experiment asked for them.
pub(super) fn counting(summary: &Summary) -> Vec<String> {
    let is_counted = |found: &CellSummary| COUNTED.iter().any(|metric| found.values.contains_key(metric));
    let mut labels = Vec::new();
    if summary.cells.iter().any(is_counted) {
        labels.push("Instruction counts are for the AVX2 path, as valgrind hides AVX-512.".into());
    }
    let uncounted = summary.cells.iter().filter_map(|found| {
        let why = found.why_uncounted.as_ref()?;
        Some(format!("{}: instructions not counted: {}.", found.cell.subject, why.trim_end_matches('.')))
    });
    labels.extend(uncounted.collect::<BTreeSet<_>>());
    labels
}

/// A cell's name and values, wrapped over lines.
fn row(text: &mut String, plan: &Plan, found: &CellSummary, width: usize) {
    // Zero waits are the rule and need no mention.
    let is_news =
        |(metric, located): &(&Metric, &Value)| **metric != Metric::WaitsPerHandshake || located.value > 0.0;
    let word = |(metric, located): (&Metric, &Value)| match metric {
        Metric::LockNsPerHandshake => in_locks(plan, found, located.value),
        _ => value(*metric, located.value),
    };
    let values: Vec<String> = found.values.iter().filter(is_news).map(word).collect();
    let name = &found.cell.name;
    if values.is_empty() {
        flow(text, &format!("{name}: {}", found.why_invalid.as_deref().unwrap_or("no run")), 2, 6);
        return;
    }
    let mut line = format!("  {name:<width$}");
    for value in values {
        if line.chars().count() + GAP.len() + value.chars().count() > WIDTH {
            let _ = writeln!(text, "{line}");
            line = " ".repeat(width + 2);
        }
        line += GAP;
        line += &value;
    }
    let _ = writeln!(text, "{line}");
}

/// The widest name that keeps the values aligned.
const NAME: usize = 32;
/// Between values.
const GAP: &str = "  ";

/// A value with its name and unit, and the rate derived from it.
fn value(metric: Metric, value: f64) -> String {
    let plain = |name: &str| format!("{name} {value:.1} {}", metric.unit()).trim().to_owned();
    match metric {
        Metric::ServerUsPerHandshake => format!("{} ({:.0}/s)", plain("server"), 1e6 / value),
        Metric::ClientUsPerHandshake => format!("{} ({:.0}/s)", plain("client"), 1e6 / value),
        Metric::SendMbPerSecond => plain("send"),
        Metric::ReceiveMbPerSecond => plain("receive"),
        Metric::HandshakesPerSecond => plain("both sides"),
        Metric::WaitsPerHandshake => format!("waits {value:.4}"),
        Metric::ServerInstructions => format!("server {:.1} k instructions", value / 1e3),
        Metric::ClientInstructions => format!("client {:.1} k instructions", value / 1e3),
        _ => plain(""),
    }
}
