use super::*;
use crate::claims::{Evidence, Finding};
use crate::experiment::Compare;
use crate::summary::Summary;
use crate::synthetic::{Shape, Synthetic, Truth};
use std::collections::BTreeSet;

/// Two targets at two delays, the first of them twice.
fn results() -> Results {
    let shape = Shape { aa: true, blocks: 6, groups: 2, versions: &[("fast", "1.0"), ("slow", "7")] };
    Synthetic::new(shape, 1).experiment(Truth::NOTHING)
}

fn field<'a>(row: &'a [String], column: &str) -> &'a str {
    let at = COLUMNS.iter().position(|known| *known == column).expect("is a column");
    &row[at]
}

/// Versions were looked up by the name in the row: that of an A/A pair or of two levels is no target's.
#[test]
fn every_comparison_has_the_version_of_its_target() {
    let mut results = results();
    let compare: Compare = toml::from_str("factor = 'delay_ms'\nbaseline = '0'").expect("is read");
    results.plan.experiment.compare = vec![compare];
    results.summary = Summary::of(&results.plan, &results.machine, &results.records);
    let rows = Reported(&results).comparisons();
    let found: BTreeSet<_> = rows.iter().map(|row| (field(row, "target"), field(row, "version"))).collect();
    let expected =
        [("fast", "1.0"), ("fast delay_ms=1", "1.0"), ("fast-again", "1.0"), ("slow delay_ms=1", "7")];
    assert_eq!(found.into_iter().collect::<Vec<_>>(), expected);
    assert!(rows.iter().all(|row| row.len() == COLUMNS.len() && field(row, "weight") == "indication"));
}

/// A claim that was confirmed in one of two cells, and so is undecided, read as confirmed.
#[test]
fn a_claim_has_a_row_for_the_whole() {
    let mut results = results();
    let cell = |cell: &str, verdict| Evidence {
        cell: cell.into(),
        against: None,
        value: Some(1.5),
        low: None,
        high: None,
        blocks: 12,
        verdict,
        note: None,
        remark: None,
    };
    results.summary.claims = vec![Finding {
        id: "c".into(),
        source: "S".into(),
        says: "It is so.".into(),
        figures: None,
        original: None,
        metric: Some(Metric::P99Us),
        expect: None,
        is_ratio: false,
        verdict: ClaimVerdict::Undecided,
        why: "confirmed in 1 of 2 cells".into(),
        weight: Weight::Indication,
        cells: vec![cell("a", ClaimVerdict::Confirmed), cell("b", ClaimVerdict::Undecided)],
    }];
    let rows = Reported(&results).claims();
    let columns = ["kind", "name", "target", "value", "weight", "verdict", "note"];
    let found: Vec<_> = rows.iter().map(|row| columns.map(|column| field(row, column))).collect();
    let expected = [
        ["claim", "c", "", "", "indication", "undecided", "confirmed in 1 of 2 cells"],
        ["claim-cell", "c", "a", "1.5", "verdict", "confirmed", ""],
        ["claim-cell", "c", "b", "1.5", "verdict", "undecided", ""],
    ];
    assert_eq!(found, expected);
    assert!(rows.iter().all(|row| row.len() == COLUMNS.len() && field(row, "metric") == "p99_us"));
}

/// Collections of a JVM, memory at the end, switches, the spread and the cost of origin and load were in the summary alone.
#[test]
fn every_figure_of_a_cell_is_a_row() {
    let mut results = results();
    let mut cell = serde_json::to_value(&results.summary.cells[0]).expect("serialises");
    let figures: BTreeSet<String> = {
        let fields = cell.as_object_mut().expect("is an object");
        fields.values_mut().filter(|value| value.is_null()).for_each(|value| *value = 2.5.into());
        let is_other = |key: &str| {
            key.ends_with("_low")
                || key.ends_with("_high")
                || ["connections", "bytes", "delay_ms", "rate", "blocks", "invalid_runs"].contains(&key)
        };
        let figures = fields.iter().filter(|(key, value)| value.is_number() && !is_other(key));
        figures.map(|(key, _)| key.clone()).collect()
    };
    results.summary.cells[0] = serde_json::from_value(cell).expect("is one still");
    let first = results.plan.cells[0].to_string();
    let rows = Reported(&results).cells();
    let of_first = || rows.iter().filter(|row| field(row, "name") == first);
    assert_eq!(of_first().map(|row| field(row, "metric").to_owned()).collect::<BTreeSet<_>>(), figures);
    assert_eq!(of_first().count(), figures.len(), "each once");
    assert!(figures.contains("gc_throughput_percent") && figures.contains("load_cpu_us_per_request"));
    assert!(rows.iter().all(|row| row.len() == COLUMNS.len() && !field(row, "value").is_empty()));
}
