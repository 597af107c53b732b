use super::*;
use crate::experiment::metric::Metric;
use crate::experiment::{Compare, Grammar as _};
use crate::findings::claims::{ClaimVerdict, Evidence, Finding};
use crate::findings::results::Results;
use crate::findings::summary::Summary;
use crate::instrument::gateway::Gateway;
use crate::instrument::gateway::synthetic::{Shape, Synthetic, Truth};
use crate::instrument::stacks::synthetic::{self, Made};
use crate::stats::Weight;
use crate::store::run::Validity;
use std::collections::BTreeSet;

/// Two targets at two delays, the first of them twice.
fn results() -> Results<Gateway> {
    let shape = Shape { aa: true, blocks: 6, groups: 2, versions: &[("fast", "1.0"), ("slow", "7")] };
    Synthetic::new(shape, 1).experiment(Truth::NOTHING)
}

fn field<'a>(row: &'a [String], column: &str) -> &'a str {
    let at = COLUMNS.split(',').position(|known| known == column).expect("is a column");
    &row[at]
}

/// Regression test: versions were looked up by the row's name, which for an A/A pair or two levels is no target's.
#[test]
fn every_comparison_has_the_version_of_its_target() {
    let mut results = results();
    let compare: Compare = toml::from_str("factor = 'delay_ms'\nbaseline = '0'").expect("is read");
    results.plan.experiment.compare = vec![compare];
    results.summary = Summary::of::<Gateway>(&results.plan, &results.machine, &results.runs);
    let reported = Reported::from(&results);
    let rows: Vec<_> = reported.comparisons.iter().map(|one| one.row.clone()).collect();
    let found: BTreeSet<_> = rows.iter().map(|row| (field(row, "target"), field(row, "version"))).collect();
    let expected =
        [("fast", "1.0"), ("fast delay_ms=1", "1.0"), ("fast-again", "1.0"), ("slow delay_ms=1", "7")];
    assert_eq!(found.into_iter().collect::<Vec<_>>(), expected);
    assert!(
        rows.iter()
            .all(|row| row.len() == COLUMNS.split(',').count() && field(row, "weight") == "indication")
    );
}

/// Regression test: a claim confirmed in one of two cells, which is undecided, read as confirmed.
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
        share_of: Vec::new(),
        expect: None,
        is_ratio: false,
        verdict: ClaimVerdict::Undecided,
        why: "confirmed in 1 of 2 cells".into(),
        weight: Weight::Indication,
        cells: vec![cell("a", ClaimVerdict::Confirmed), cell("b", ClaimVerdict::Undecided)],
    }];
    let rows = claims::rows(&results.summary.claims);
    let columns = ["kind", "name", "target", "value", "weight", "verdict", "note"];
    let found: Vec<_> = rows.iter().map(|row| columns.map(|column| field(row, column))).collect();
    let expected = [
        ["claim", "c", "", "", "indication", "undecided", "confirmed in 1 of 2 cells"],
        ["claim-cell", "c", "a", "1.5", "verdict", "confirmed", ""],
        ["claim-cell", "c", "b", "1.5", "verdict", "undecided", ""],
    ];
    assert_eq!(found, expected);
    assert!(
        rows.iter().all(|row| row.len() == COLUMNS.split(',').count() && field(row, "metric") == "p99_us")
    );
}

/// Regression test: JVM collections, final memory, context switches, the spread, and the cost of origin and load were
/// in the summary only.
#[test]
fn every_figure_of_a_cell_is_a_row() {
    let mut results = results();
    let known = results.summary.cells[0].values.clone();
    let value = known[&Metric::CpuUsPerRequest];
    results.summary.cells[0].values = Gateway::METRICS.iter().map(|metric| (*metric, value)).collect();
    let first = results.plan.cells[0].to_string();
    let rows = cells::of(&results).rows;
    let of_first: Vec<&str> =
        rows.iter().filter(|row| field(row, "name") == first).map(|row| field(row, "metric")).collect();
    let figures: BTreeSet<String> = Gateway::METRICS.iter().map(|metric| metric.key()).collect();
    assert_eq!(of_first.iter().map(|key| (*key).to_owned()).collect::<BTreeSet<_>>(), figures);
    assert_eq!(of_first.len(), figures.len(), "each once");
    assert!(figures.contains("gc_throughput_percent") && figures.contains("load_cpu_us_per_request"));
    assert!(
        rows.iter().all(|row| row.len() == COLUMNS.split(',').count() && !field(row, "value").is_empty())
    );
}

/// The rows of a CSV with this text in a column.
fn rows_of<'a>(rows: &'a [Vec<String>], column: &str, text: &str) -> Vec<&'a Vec<String>> {
    rows.iter().filter(|row| field(row, column) == text).collect()
}

#[test]
fn stacks_have_a_row_for_each_value_with_engine_version_and_scenario() {
    let results = synthetic::results(&Made { effect: 0.5, ..Made::NOTHING });
    let reported = Reported::from(&results);
    // Three scenarios with two engines and the A/A pair: both sides of the handshakes, one value of memory.
    let cells = &reported.cells.rows;
    assert_eq!(cells.len(), 2 * 3 * 2 + 3);
    let of_server = rows_of(cells, "metric", "server_us_per_handshake");
    let fast = rows_of(cells, "name", "handshake.1.3.full.rsa-2048.tickets=2.fast")[0];
    assert!(of_server.contains(&fast), "{fast:?}");
    let columns = ["kind", "target", "version", "unit", "blocks", "verdict", "mode"];
    assert_eq!(
        columns.map(|column| field(fast, column)),
        ["cell", "fast", "fake 1.0", "us", "12", "valid", ""]
    );
    let factors = field(fast, "factors");
    assert!(factors.contains(";do=handshake;") && factors.contains("certificate=rsa-2048;"), "{factors}");
    let [low, value, high] =
        ["low", "value", "high"].map(|column| field(fast, column).parse::<f64>().unwrap());
    assert!(low < value && value < high && (45.0..55.0).contains(&value), "{low} {value} {high}");

    let comparisons: Vec<_> = reported.comparisons.iter().map(|one| one.row.clone()).collect();
    let aa = rows_of(&comparisons, "kind", "aa");
    assert!(aa.len() == 5 && aa.iter().all(|row| field(row, "target") == "slow-again"), "{aa:?}");
    let different = rows_of(&comparisons, "verdict", "different");
    let found: Vec<_> = different.iter().map(|row| (field(row, "metric"), field(row, "against"))).collect();
    assert_eq!(found, [("server_us_per_handshake", "slow"); 2]);
    let whole = reported.csv();
    for part in ["claim,half,", "claim-cell,half,"] {
        assert_eq!(whole.lines().filter(|line| line.starts_with(part)).count(), 1, "{whole}");
    }
}

#[test]
fn stacks_have_a_table_for_each_task_and_a_case_for_each_finding() {
    let worse = synthetic::results(&Made { effect: 1.5, ..Made::NOTHING });
    let reported = Reported::from(&worse);
    let page = reported.markdown();
    for part in [
        "- Noise floor (A/A, ",
        "## Cells: handshake\n\n| cell | server's time per handshake | client's time per handshake | valid runs |",
        "## Cells: memory\n\n| cell | memory per session | valid runs | validity |",
        "| handshake.1.3.full.rsa-2048.tickets=2 | fast / slow | 1.",
        "## Claims",
    ] {
        assert!(page.contains(part), "{part}: {page}");
    }
    let regressions = reported.regressions().shown;
    assert_eq!(regressions.len(), 2, "{regressions:?}");
    let line = "server's time per handshake, handshake.1.3.full.ecdsa-p256.tickets=2: fast vs slow: 1.";
    assert!(regressions[0].starts_with(line), "{regressions:?}");
    // The contradicted claim fails in any case, regressions only on request.
    assert!(reported.junit(false).contains(" failures=\"1\""), "{}", reported.junit(false));
    assert!(reported.junit(true).contains(" failures=\"3\""), "{}", reported.junit(true));
    let better = synthetic::results(&Made { effect: 0.5, ..Made::NOTHING });
    assert!(Reported::from(&better).regressions().shown.is_empty(), "less time is no regression");
}

#[test]
fn a_cell_of_stacks_without_a_valid_run_is_a_row_and_a_failure() {
    let mut results = synthetic::results(&Made::NOTHING);
    for record in results.runs.iter_mut().filter(|record| record.run.cell.name == "fast") {
        record.validity = Validity::Invalid("no `done`".into());
    }
    synthetic::sum_up(&mut results);
    let reported = Reported::from(&results);
    let fast = rows_of(&reported.cells.rows, "target", "fast");
    assert_eq!(fast.len(), 3);
    assert!(fast.iter().all(|row| field(row, "verdict") == "invalid: no `done`"), "{fast:?}");
    let text = reported.junit(false);
    let failed = text.matches("<failure message=\"invalid: no `done`\"/>").count();
    assert_eq!(failed, 3, "{text}");
}
