//! A result of TLS stacks.

use super::{Cells, Reported, Shown, case, judged, labels, name, row, words};
use crate::export::{Table, number};
use crate::metric::Metric;
use crate::stacks::{CellFindings, Contrast, Located, StackCell, StacksResults};
use crate::table;

impl<'a> From<&'a StacksResults> for Reported<'a> {
    fn from(results: &'a StacksResults) -> Self {
        let StacksResults { plan, summary, .. } = results;
        let cases = summary
            .cells
            .iter()
            .map(|found| case(found.cell.to_string(), &found.validity(), found.blocks, found.invalid_runs));
        Self {
            experiment: &plan.experiment.name,
            labels: labels(plan.quick, results.labels()),
            cells: Cells {
                rows: summary.cells.iter().flat_map(|found| rows(found, results)).collect(),
                tables: tables(&summary.cells),
                cases: cases.collect(),
                unmeasured: summary.cells.iter().filter_map(unmeasured).collect(),
            },
            comparisons: summary.contrasts.iter().map(|one| shown(one, results)).collect(),
            claims: &summary.claims,
        }
    }
}

/// A cell without a valid run, and why the first of its runs was none.
fn unmeasured(found: &CellFindings) -> Option<String> {
    let validity = found.validity();
    (!validity.is_valid()).then(|| format!("{}: {validity}", found.cell))
}

/// What every row of a cell says of it.
fn about(kind: &str, cell: &StackCell, results: &StacksResults) -> Vec<(&'static str, String)> {
    vec![
        ("kind", kind.to_owned()),
        ("version", results.version(&cell.engine).to_owned()),
        ("factors", words(cell.scenario.levels())),
    ]
}

/// A row for each value; a cell without any is a row with its reason all the same.
fn rows(found: &CellFindings, results: &StacksResults) -> Vec<Vec<String>> {
    let cell = &found.cell;
    let fields = || {
        let mut fields = about("cell", cell, results);
        fields.extend([
            ("name", cell.to_string()),
            ("target", cell.name.clone()),
            ("blocks", found.blocks.to_string()),
            ("verdict", found.validity().to_string()),
        ]);
        fields
    };
    let with_value = |(metric, located): (&Metric, &Located)| {
        let mut fields = fields();
        fields.extend([
            ("metric", name(metric)),
            ("unit", metric.unit().into()),
            ("value", number(Some(located.value))),
            ("low", number(located.low)),
            ("high", number(located.high)),
        ]);
        row(&fields)
    };
    match found.values.is_empty() {
        true => vec![row(&fields())],
        false => found.values.iter().map(with_value).collect(),
    }
}

/// A table for each task, since each has metrics of its own.
fn tables(cells: &[CellFindings]) -> Vec<Table> {
    let mut tasks: Vec<&str> = Vec::new();
    for name in cells.iter().map(task) {
        if !tasks.contains(&name) {
            tasks.push(name);
        }
    }
    let table = |name: &str| {
        let cells: Vec<_> = cells.iter().filter(|found| task(found) == name).collect();
        let is_known = |metric: &Metric| cells.iter().any(|found| found.values.contains_key(metric));
        let all = Metric::OF_STACKS.into_iter().chain(Metric::COUNTED);
        let metrics: Vec<Metric> = all.filter(is_known).collect();
        let titles = metrics.iter().map(|metric| metric.title());
        let columns = ["cell"].into_iter().chain(titles).chain(["valid runs", "validity"]).collect();
        let row = |found: &&CellFindings| {
            let values = metrics.iter().map(|metric| value(*metric, found.values.get(metric)));
            let valid = format!("{} of {}", found.blocks, found.blocks + found.invalid_runs);
            let all = [found.cell.to_string()].into_iter().chain(values);
            all.chain([valid, found.validity().to_string()]).collect()
        };
        Table { title: format!("Cells: {name}"), columns, rows: cells.iter().map(row).collect() }
    };
    tasks.into_iter().map(table).collect()
}

fn task(found: &CellFindings) -> &str {
    found.cell.scenario.word("do")
}

/// `61.2 [60.1, 63.0] us`.
fn value(metric: Metric, located: Option<&Located>) -> String {
    let text = match located {
        None => return "-".into(),
        Some(Located { value, low: Some(low), high: Some(high) }) => {
            format!("{} [{}, {}]", table::short(*value), table::short(*low), table::short(*high))
        }
        Some(Located { value, .. }) => table::short(*value),
    };
    format!("{text} {}", metric.unit()).trim_end().to_owned()
}

fn shown(one: &Contrast, results: &StacksResults) -> Shown {
    let mut fields = about(if one.aa { "aa" } else { "comparison" }, &one.cell, results);
    fields.extend([
        ("name", number(one.factor.as_ref())),
        ("target", one.target.clone()),
        ("metric", name(one.metric)),
        ("against", one.baseline.clone()),
    ]);
    fields.extend(judged(&one.ratio, one.blocks, one.remark.as_ref()));
    Shown {
        row: row(&fields),
        metric: one.metric.to_string(),
        place: one.cell.scenario.to_string(),
        target: one.target.clone(),
        baseline: one.baseline.clone(),
        ratio: one.ratio.clone(),
        words: one.words(results.plan.experiment.margin),
        is_worse: one.ratio.is_worse(one.metric.better()),
        is_with_baseline: !one.aa && one.factor.is_none(),
    }
}
