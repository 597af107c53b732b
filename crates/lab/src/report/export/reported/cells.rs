//! The cells and comparisons of a result, in each format.

use super::row::{Cells, Compared, judged, row};
use crate::experiment::metric::Metric;
use crate::findings::comparison::Comparison;
use crate::findings::results::Results;
use crate::findings::summary::CellSummary;
use crate::findings::value::Value;
use crate::planning::cell::Cell;
use crate::report::export::{Table, further, number};
use crate::report::shown::Shown;
use crate::store::run::Validity;
use weir_report::export::junit::{Case, Outcome};
use weir_report::text::short;

pub(super) fn of<I: Shown>(results: &Results<I>) -> Cells {
    let cells = &results.summary.cells;
    Cells {
        rows: cells.iter().flat_map(rows).collect(),
        tables: tables::<I>(cells),
        cases: cells.iter().map(case).collect(),
        unmeasured: cells.iter().filter_map(|found| unmeasured(found, results)).collect(),
    }
}

/// A cell without a valid run, with the reason and the directory of the logs.
fn unmeasured<I: Shown>(found: &CellSummary, results: &Results<I>) -> Option<String> {
    let runs = results.runs.iter().filter(|run| run.run.cell == found.cell);
    let logs = runs.filter_map(|run| I::facts(&run.seen).logs).next();
    let logs = logs.map(|logs| format!("; logs: {}", results.directory.join(logs).display()));
    (!found.validity.is_valid())
        .then(|| format!("{}: {}{}", found.cell, found.validity, logs.unwrap_or_default()))
}

/// A cell without a valid run is a failure.
fn case(found: &CellSummary) -> Case {
    let outcome = match found.validity {
        Validity::Valid => Outcome::Passed,
        Validity::Invalid(_) => Outcome::Failed(found.validity.to_string()),
    };
    let says = format!("{} valid runs, {} invalid", found.blocks, found.invalid_runs);
    Case { class: "cell", name: found.cell.to_string(), outcome, says }
}

/// The levels of a cell in its rows: those with columns of their own, and the rest.
fn about(kind: &str, cell: &Cell, version: &str) -> Vec<(&'static str, String)> {
    let columns = ["case", "mode", "connections", "bytes"].into_iter();
    let mut fields: Vec<(&str, String)> =
        columns.map(|column| (column, number(cell.levels.get(column)))).collect();
    fields.extend([
        ("kind", kind.to_owned()),
        ("version", version.to_owned()),
        ("load", number(cell.levels.get("load_model"))),
        ("factors", further(&cell.levels)),
    ]);
    fields
}

/// A row for each value; a cell without values has one row with the reason.
fn rows(found: &CellSummary) -> Vec<Vec<String>> {
    let fields = || {
        let mut fields = about("cell", &found.cell, &found.version);
        fields.extend([
            ("name", found.cell.to_string()),
            ("target", found.cell.name.clone()),
            ("blocks", found.blocks.to_string()),
            ("verdict", found.validity.to_string()),
            ("note", number(found.limit.map(|limit| format!("limit: {limit}")))),
        ]);
        fields
    };
    let with_value = |(metric, value): (&Metric, &Value)| {
        let mut fields = fields();
        fields.extend([
            ("metric", metric.key()),
            ("unit", metric.unit().into()),
            ("value", number(Some(value.value))),
            ("low", number(value.low)),
            ("high", number(value.high)),
        ]);
        row(&fields)
    };
    match found.values.is_empty() {
        true => vec![row(&fields())],
        false => found.values.iter().map(with_value).collect(),
    }
}

/// Cells with the same metrics in one table.
fn tables<I: Shown>(cells: &[CellSummary]) -> Vec<Table> {
    let mut titles: Vec<(String, Vec<Metric>)> = Vec::new();
    for columns in cells.iter().map(|found| I::columns(&found.cell)) {
        if !titles.contains(&columns) {
            titles.push(columns);
        }
    }
    let table = |(title, metrics): (String, Vec<Metric>)| {
        let cells: Vec<&CellSummary> =
            cells.iter().filter(|found| I::columns(&found.cell).0 == title).collect();
        let is_known = |metric: &Metric| cells.iter().any(|found| found.values.contains_key(metric));
        let metrics: Vec<Metric> = metrics.into_iter().filter(is_known).collect();
        let names = metrics.iter().map(|metric| metric.title());
        let limit = cells.iter().any(|found| found.limit.is_some()).then_some("limit");
        let columns =
            ["cell"].into_iter().chain(names).chain(limit).chain(["valid runs", "validity"]).collect();
        let row = |found: &&CellSummary| {
            let values = metrics.iter().map(|metric| value(*metric, found.values.get(metric)));
            let limit = limit.map(|_| found.limit.map_or_else(|| "-".into(), |limit| limit.to_string()));
            let valid = format!("{} of {}", found.blocks, found.runs());
            let all = [found.cell.to_string()].into_iter().chain(values);
            all.chain(limit).chain([valid, found.validity.to_string()]).collect()
        };
        Table { title, columns, rows: cells.iter().map(row).collect() }
    };
    titles.into_iter().map(table).collect()
}

/// `61.2 [60.1, 63.0] us`.
fn value(metric: Metric, value: Option<&Value>) -> String {
    let text = match value {
        None => return "-".into(),
        Some(Value { value, low: Some(low), high: Some(high) }) => {
            format!("{} [{}, {}]", short(*value), short(*low), short(*high))
        }
        Some(Value { value, .. }) => short(*value),
    };
    format!("{text} {}", metric.unit()).trim_end().to_owned()
}

/// A comparison in each format.
pub(super) fn compared<I: Shown>(one: &Comparison, results: &Results<I>) -> Compared {
    let found = results.summary.cell(&one.cell);
    let version = found.map_or("", |found| found.version.as_str());
    let mut fields = about(if one.aa { "aa" } else { "comparison" }, &one.cell, version);
    fields.extend([
        ("name", number(one.factor.as_ref())),
        ("target", one.target.clone()),
        ("metric", one.metric.key()),
        ("against", one.baseline.clone()),
    ]);
    fields.extend(judged(&one.ratio, one.blocks, one.remark.as_ref()));
    Compared {
        row: row(&fields),
        metric: one.heading(),
        place: I::place_title(&one.cell),
        target: one.target.clone(),
        baseline: one.baseline.clone(),
        ratio: one.ratio.clone(),
        words: one.verdict_text(results.plan.experiment.margin),
        is_worse: one.is_worse(),
        is_judged: one.is_with_baseline(),
    }
}
