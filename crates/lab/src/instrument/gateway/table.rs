//! The cells of gateways on a terminal: a table for each place, its loads side by side.

use super::levels::Place as _;
use super::values::unit_metrics;
use super::vary::{places, words};
use super::{Gateway, Load};
use crate::experiment::metric::Metric;
use crate::findings::results::Results;
use crate::findings::summary::CellSummary;
use crate::planning::cell::Levels;
use std::fmt::Write;
use weir_report::text::{columns, milliseconds, number};

const LEGEND: &str = "
equal, sat: the gateway's CPU us per request or handshake, at the equal rate and at saturation.
origin: the same of the test server. mean, p99: milliseconds, at the equal rate if there is one.
Rate, util (utilisation of the gateway's cores), RSS (MiB) and limit: at saturation.
";

/// All tables, and a legend of their columns.
pub(super) fn render(text: &mut String, results: &Results<Gateway>) {
    for place in places(&results.plan) {
        text.push('\n');
        table(text, results, &place);
    }
    text.push_str(LEGEND);
}

/// The name of a row, its cell at the equal rate, its cell at saturation.
type Row<'a> = (&'a str, Option<&'a CellSummary>, Option<&'a CellSummary>);

fn rows<'a>(results: &'a Results<Gateway>, place: &Levels) -> Vec<Row<'a>> {
    let mut rows: Vec<Row<'_>> = Vec::new();
    // The second of the A/A pair shows the noise floor, which is listed elsewhere.
    let of_place = |found: &&CellSummary| found.cell.place().at(Load::Saturated) == *place;
    for found in results.summary.cells.iter().filter(of_place).filter(|found| !found.cell.is_again()) {
        let name = &found.cell.name;
        // A target's settings are part of its name.
        let of = |load| {
            let mut cells = results.summary.cells.iter();
            cells.find(|other| other.cell.name == *name && other.cell.place() == place.at(load))
        };
        if !rows.iter().any(|(other, ..)| other == name) {
            rows.push((name, of(Load::EqualRate), of(Load::Saturated)));
        }
    }
    rows
}

fn table(text: &mut String, results: &Results<Gateway>, place: &Levels) {
    let rows = rows(results, place);
    let of = unit_metrics(place.case());
    let rate = rows.iter().find_map(|(_, equal, _)| equal.and_then(|cell| cell.rate));
    let rate = rate.map_or_else(String::new, |rate| format!(", equal rate {rate:.0}/s"));
    let (mode, case) = (place.mode(), place.case());
    let _ = writeln!(text, "{mode} ({}), {}{rate}", mode.describe(), words(place));
    let per_second = if case.is_handshake() { "hs/s" } else { "req/s" };
    let last = "ratio, CPU";
    let titles =
        ["target", per_second, "mean", "p99", "err%", "equal", "sat", "util", "origin", "RSS", "limit", last];
    let mut lines = vec![titles.map(str::to_owned)];
    for (name, equal, saturated) in rows {
        let timed = equal.or(saturated);
        lines.push([
            name.to_owned(),
            number(saturated.and_then(|cell| cell.get(of.rate)), 0),
            milliseconds(timed.and_then(|cell| cell.get(Metric::MeanUs))),
            milliseconds(timed.and_then(|cell| cell.get(Metric::P99Us))),
            number(worst_error(equal, saturated), 2),
            number(equal.and_then(|cell| cell.get(of.cpu)), 1),
            number(saturated.and_then(|cell| cell.get(of.cpu)), 1),
            number(saturated.and_then(|cell| cell.get(Metric::Utilisation)), 2),
            number(timed.and_then(|cell| cell.get(of.origin_cpu)), 1),
            number(saturated.or(equal).and_then(|cell| cell.get(Metric::RssKib)).map(|kib| kib / 1024.0), 1),
            saturated.and_then(|cell| cell.limit).map_or_else(|| "-".into(), |limit| limit.to_string()),
            ratio(results, name, place),
        ]);
    }
    columns(text, &lines);
}

/// The larger error share of the two cells, in percent.
fn worst_error(equal: Option<&CellSummary>, saturated: Option<&CellSummary>) -> Option<f64> {
    let of = |cell: Option<&CellSummary>| cell.and_then(|cell| cell.get(Metric::ErrorRatio));
    of(equal).into_iter().chain(of(saturated)).reduce(f64::max).map(|ratio| ratio * 100.0)
}

/// The comparison of a target's CPU, at the equal rate if it has one.
fn ratio(results: &Results<Gateway>, name: &str, place: &Levels) -> String {
    if results.plan.baseline.as_deref() == Some(name) && place.mode().upstream().is_some() {
        return "baseline".into();
    }
    // Sorted by load, and the equal rate comes first.
    let found = results.summary.comparisons.iter().find(|one| {
        one.metric.is_cpu()
            && (one.target == name && one.factor.is_none())
            && one.cell.place().at(Load::Saturated) == *place
    });
    found.map_or_else(|| "-".into(), |comparison| comparison.ratio.text())
}
