//! The commands that read stored results.

use super::formats::{csv, xml};
use super::stored::{BEFORE, Stored, edit, store, text};
use crate::common::Weir;
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};

#[track_caller]
pub(super) fn ends(args: &[&str], code: i32, parts: &[&str]) -> String {
    let ended = Weir::run(args);
    let said = format!("{}{}", ended.stdout, ended.stderr);
    assert_eq!(ended.code, Some(code), "{args:?}: {said}");
    assert!(!said.contains("panicked"), "{args:?}: {said}");
    // Long lines are wrapped at spaces.
    let words = said.split_whitespace().collect::<Vec<_>>().join(" ");
    for part in parts {
        assert!(words.contains(part), "{args:?}: no `{part}` in {said}");
    }
    ended.stdout
}

#[test]
fn the_statements_of_the_studies_are_listed_and_verdicts_are_kept() {
    let directory = tempfile::tempdir().unwrap();
    let own = store(&directory, "own", &BEFORE);
    ends(&["studies", text(&own)], 1, &["own: it measured no statement of a study"]);
    ends(&["studies", "/nowhere"], 1, &["/nowhere: no such file or directory"]);
    ends(&["studies", "--keep"], 2, &["<RESULT>"]);
    ends(
        &["studies", "run", "S5"],
        2,
        &["S5", "expected one of S1 (TLS 1.3 of rustls at high concurrency), S2"],
    );

    let cheap = Stored { targets: [("weir", "1", 15.0), ("floor", "5", 10.0)], ..BEFORE };
    let of_study = store(&directory, "of-study", &cheap);
    let plan = of_study.join("plan.json");
    edit(&plan, &plan, |plan| plan["experiment"]["claims"][0]["source"] = json!("S3"));
    let folder = directory.path().join("kept");
    let keep = format!("--keep={}", text(&folder));
    let listed =
        ends(&["studies", text(&of_study), &keep], 0, &["S1: ", "S2: ", "S3: ", "S4: ", "not testable here"]);
    assert!(
        !listed.contains("weir costs at most twice"),
        "the experiment is not one of the studies': {listed}"
    );
    let kept: Value = serde_json::from_str(&fs::read_to_string(folder.join("tiny.json")).unwrap()).unwrap();
    let result = &kept["results"][0];
    assert!(result["on"]["command"].as_str().unwrap().starts_with("weir run tiny"), "{kept}");
    assert_eq!(result["claims"][0]["finding"]["verdict"], "confirmed", "{kept}");

    let page = directory.path().join("page.md");
    ends(&["studies", "--markdown", text(&page)], 0, &[]);
    let page = fs::read_to_string(&page).unwrap();
    assert!(
        page.starts_with("# The studies, statement by statement\n") && page.contains("## S4: "),
        "{page}"
    );
}

#[test]
fn a_report_is_exported_and_fails_on_a_regression_against_the_baseline() {
    let directory = tempfile::tempdir().unwrap();
    let results = store(&directory, "before", &BEFORE);
    let [table, page, tests] = ["t.csv", "p.md", "j.xml"].map(|name| directory.path().join(name));
    let outputs = ["--csv", text(&table), "--markdown", text(&page), "--junit", text(&tests)];
    let said = ends(&[&["report", text(&results), "--full"][..], &outputs].concat(), 0, &["Report: "]);
    assert!(said.contains("weir vs floor"), "{said}");

    let rows = csv(&fs::read_to_string(&table).unwrap());
    let of = |kind: &str| rows.iter().filter(|row| row["kind"] == kind).collect::<Vec<_>>();
    let cost =
        of("cell").into_iter().find(|row| row["target"] == "weir" && row["metric"] == "cpu_us_per_request");
    let cost = cost.unwrap();
    assert!((20.0..20.4).contains(&cost["value"].parse::<f64>().unwrap()), "{cost:?}");
    assert_eq!(
        (cost["blocks"].as_str(), cost["verdict"].as_str(), cost["version"].as_str()),
        ("6", "valid", "1")
    );
    let compared = of("comparison");
    assert_eq!(compared.len(), 2, "CPU and rate");
    assert!(
        compared.iter().all(|row| row["verdict"] == "different" && row["against"] == "floor"),
        "{compared:?}"
    );
    assert_eq!(of("claim").len(), 1);

    let elements = xml(&fs::read_to_string(&tests).unwrap());
    let count = |name: &str| elements.iter().filter(|(element, _)| element == name).count();
    assert_eq!((count("testcase"), count("failure")), (5, 0), "{elements:?}");
    let page = fs::read_to_string(&page).unwrap();
    for part in ["# tiny", "## Cells", "## Comparisons", "## Claims", "| --- |"] {
        assert!(page.contains(part), "no `{part}` in {page}");
    }

    let failing = [&["report", text(&results), "--fail-on", "regression"][..], &outputs].concat();
    ends(&failing, 4, &["regression: CPU per request", "weir vs floor"]);
    let elements = xml(&fs::read_to_string(&tests).unwrap());
    assert_eq!(elements.iter().filter(|(element, _)| element == "failure").count(), 2, "{elements:?}");
    let better = Stored { targets: [("weir", "1", 8.0), ("floor", "5", 10.0)], ..BEFORE };
    let better = store(&directory, "better", &better);
    ends(&["report", text(&better), "--full", "--fail-on", "regression"], 0, &["different"]);
    ends(&["report", text(&results), "--fail-on", "rain"], 2, &["rain", "regression"]);
    ends(
        &["report", text(&results), "--csv", "-", "--junit", "-"],
        2,
        &["--junit", "--csv uses standard output"],
    );
    ends(&["report", text(&results), "--csv", "/no/such/folder/x"], 1, &["--csv", "/no/such/folder/x"]);
    let alone = ends(&["report", text(&results), "--csv", "-"], 0, &[]);
    assert_eq!(csv(&alone).len(), rows.len());
}

#[test]
fn an_invalid_cell_is_a_failed_test_case() {
    let directory = tempfile::tempdir().unwrap();
    let results = store(&directory, "before", &BEFORE);
    for entry in fs::read_dir(results.join("runs")).unwrap() {
        let path = entry.unwrap().path();
        if text(&path).contains(".weir.json") {
            edit(&path, &path, |run| run["observation"]["failure"] = json!("target: it <ended> & \"died\""));
        }
    }
    let said = ends(&["report", text(&results), "--junit", "-"], 0, &[]);
    let elements = xml(&said);
    let failures: Vec<_> = elements.iter().filter(|(element, _)| element == "failure").collect();
    assert_eq!(failures.len(), 1, "{elements:?}");
    assert!(failures[0].1.contains("it &lt;ended&gt; &amp; &quot;died&quot;"), "{failures:?}");
    assert_eq!(
        elements.iter().filter(|(element, _)| element == "skipped").count(),
        3,
        "claim and comparisons"
    );
}

#[test]
fn a_release_is_compared_with_the_one_before() {
    let directory = tempfile::tempdir().unwrap();
    let a = store(&directory, "a", &BEFORE);
    let slower = Stored { started: 2_000_000, targets: [("weir", "2", 23.0), ("floor", "5", 10.0)] };
    let b = store(&directory, "b", &slower);
    let [a, b] = [text(&a), text(&b)];
    let said = ends(&["compare", a, b], 0, &["weir 1 -> 2", "floor 5 (unchanged)", "% higher (indication)"]);
    assert!(
        said.lines().filter(|line| !line.contains("/tmp")).all(|line| line.chars().count() <= 100),
        "{said}"
    );
    ends(&["compare", a, b, "--fail-on", "regression"], 4, &["regression: request.h1c-h1c"]);
    ends(&["compare", b, a, "--fail-on", "regression"], 0, &["weir 2 -> 1", "% lower (indication)"]);

    let json = ends(&["compare", a, b, "--json", "-"], 0, &[]);
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!((&json["schema"], &json["experiment"]), (&json!(1), &json!("tiny")));
    let changes = json["changes"].as_array().unwrap();
    assert_eq!(changes.len(), 4);
    let weir =
        changes.iter().find(|one| one["target"] == "weir" && one["metric"] == "cpu_us_per_request").unwrap();
    assert!((weir["ratio"].as_f64().unwrap() - 1.15).abs() < 0.02, "{weir}");
    assert_eq!((&weir["verdict"], &weir["weight"]), (&json!("different"), &json!("indication")));
    let rows = csv(&ends(&["compare", a, b, "--csv", "-"], 0, &[]));
    assert_eq!(rows.len(), 4);
    assert!(rows.iter().filter(|row| row["unchanged"] == "true").all(|row| row["target"] == "floor"));
    let elements = xml(&ends(&["compare", a, b, "--junit", "-", "--fail-on", "regression"], 4, &[]));
    assert_eq!(elements.iter().filter(|(element, _)| element == "failure").count(), 2);
    ends(
        &["compare", a, b, "--markdown", "-"],
        0,
        &["## Changed targets", "## Unchanged targets: the drift"],
    );
}

/// Regression test: with one block, no comparison had a verdict, and the gate let every release pass.
#[test]
fn a_gate_passes_an_upgrade_without_effect_and_none_without_evidence() {
    let directory = tempfile::tempdir().unwrap();
    let release = |name: &str, started: u64, version: &str, cost: f64| {
        let targets = [("weir", version, cost), ("floor", "5", 10.0)];
        store(&directory, name, &Stored { started, targets })
    };
    let before = release("before", 1_000_000, "1", 20.0);
    let burns = release("burns", 2_000_000, "2", 22.0);
    let same = release("same", 3_000_000, "2", 20.0);
    let gate = ["--fail-on", "regression"];
    let compare = |after: &Path, more: &[&str], code: i32, parts: &[&str]| {
        ends(&[&["compare", text(&before), text(after)][..], &gate, more].concat(), code, parts)
    };
    compare(&burns, &[], 4, &["weir: regression: request.h1c-h1c", "10 % higher"]);
    compare(&same, &[], 0, &["equivalent within 3 %"]);
    for run in fs::read_dir(same.join("runs")).unwrap() {
        let run = run.unwrap().path();
        if !run.file_name().unwrap().to_str().unwrap().starts_with("b001") {
            fs::remove_file(run).unwrap();
        }
    }
    let open = ["no evidence: it is undecided whether there is a regression", "1 block: no interval below 5"];
    compare(&same, &[], 3, &open);
    compare(&same, &["--allow-invalid"], 0, &[]);
    let junit = directory.path().join("junit.xml");
    compare(&same, &["--junit", text(&junit)], 3, &open);
    let elements = xml(&fs::read_to_string(&junit).unwrap());
    assert_eq!(elements.iter().filter(|(element, _)| element == "error").count(), 2, "{elements:?}");
    ends(&[&["report", text(&same)][..], &gate].concat(), 3, &open);
    // A result without the cell is no evidence about it.
    let history = ["history", text(&before), text(&burns), "--cell", "target=weir"];
    ends(&[&history[..], &gate].concat(), 0, &[]);
}

#[test]
fn a_release_that_does_not_work_fails_both_gates() {
    let directory = tempfile::tempdir().unwrap();
    let a = store(&directory, "a", &BEFORE);
    let b = store(
        &directory,
        "b",
        &Stored { started: 2_000_000, targets: [("weir", "2", 20.0), BEFORE.targets[1]] },
    );
    for entry in fs::read_dir(b.join("runs")).unwrap() {
        let path = entry.unwrap().path();
        if text(&path).contains(".weir.json") {
            edit(&path, &path, |run| run["observation"]["failure"] = json!("target: it ended"));
        }
    }
    let fails = ["--fail-on", "regression"];
    let compare = [&["compare", text(&a), text(&b)][..], &fails].concat();
    ends(&compare, 4, &["- broken: 6 valid runs in A, none of 6 in B (invalid: target: it ended"]);
    let history = [&["history", text(&a), text(&b)][..], &fails].concat();
    ends(&history, 4, &["CPU per request: broken: valid runs in 19700112-134640, none in the newest result"]);
}

#[test]
fn drift_that_also_affects_an_unchanged_target_is_no_regression() {
    let directory = tempfile::tempdir().unwrap();
    let a = store(&directory, "a", &BEFORE);
    let drifted = Stored { started: 2_000_000, targets: [("weir", "2", 26.0), ("floor", "5", 12.0)] };
    let b = store(&directory, "b", &drifted);
    let args = ["compare", text(&a), text(&b), "--fail-on", "regression"];
    let parts = ["undecided: the unchanged targets moved as well", "(floor h1c-h1c 1.", "no evidence: "];
    ends(&args, 3, &parts);
    ends(&[&args[..], &["--allow-invalid"]].concat(), 0, &parts[..2]);
}

#[test]
fn incomparable_results_are_rejected_with_the_reason() {
    let directory = tempfile::tempdir().unwrap();
    let a = store(&directory, "a", &BEFORE);
    let change_of = |name: &str, file: &str, change: fn(&mut Value)| {
        let results = store(&directory, name, &BEFORE);
        edit(&results.join(file), &results.join(file), change);
        results
    };
    for (results, part) in [
        (
            change_of("name", "plan.json", |plan| plan["experiment"]["name"] = json!("other")),
            "experiment: `tiny` in A",
        ),
        (
            change_of("window", "plan.json", |plan| plan["experiment"]["constants"]["window_ms"] = json!(60)),
            "window_ms: `30` in A, `60` in B",
        ),
        (change_of("cpu", "machine.json", |machine| machine["cpu"] = json!("Z80")), "processor: "),
    ] {
        ends(&["compare", text(&a), text(&results)], 2, &[part]);
        ends(&["history", text(&a), text(&results)], 2, &[part.split(" in A").next().unwrap()]);
    }
    let kernel = change_of("kernel", "machine.json", |machine| machine["kernel"] = json!("Linux 99"));
    ends(&["compare", text(&a), text(&kernel)], 0, &["Differs: kernel: ", "Linux 99 in B"]);
    let build = change_of("build", "machine.json", |machine| machine["sources"]["this program"] = json!("x"));
    let parts = ["Changed: weir 1, floor 5. No unchanged target", "Differs: another build of this program: "];
    ends(&["compare", text(&a), text(&build)], 0, &parts);
    ends(&["compare", text(&a), text(&a)], 2, &["given twice"]);
    ends(&["history", text(&a), text(&a)], 2, &["given twice"]);
    ends(&["compare", text(&a), "/no/such/folder"], 1, &["/no/such/folder: no such file or directory"]);
    ends(&["compare", text(&a), text(directory.path())], 1, &["plan.json"]);
    ends(&["compare", text(&a)], 2, &["Usage: weir compare"]);
    ends(
        &["compare", text(&a), text(&kernel), "--changed", "apache"],
        2,
        &["--changed: unknown target `apache`", "floor, weir"],
    );
    let spoilt = store(&directory, "spoilt", &BEFORE);
    fs::write(spoilt.join("machine.json"), "{").unwrap();
    ends(&["compare", text(&a), text(&spoilt)], 1, &["machine.json: not a result of this program"]);
}

#[test]
fn a_history_learns_the_usual_values_from_ten_results() {
    let directory = tempfile::tempdir().unwrap();
    let nightly = |day: u64, cost: f64| {
        let targets = [("weir", "1", cost), ("floor", "5", 10.0)];
        store(&directory, &format!("day{day:02}"), &Stored { started: day * 86_400, targets })
    };
    let quiet = [20.0, 20.2, 20.0, 20.4, 20.2, 20.0, 20.4, 20.0, 20.2, 20.0];
    let mut nights: Vec<PathBuf> = (1..).zip(quiet).map(|(day, cost)| nightly(day, cost)).collect();
    nights.push(nightly(11, 22.0));
    // Given in another order, since the stored time determines the order.
    let newest_first: Vec<&str> = nights.iter().rev().map(|path| text(path)).collect();
    let with = |more: &[&'static str]| [&["history"][..], &newest_first, more].concat();
    let weir = ["--cell", "target=weir"];
    let said = ends(&with(&weir), 0, &["Q3 + 3 IQR of 9 past changes", "regression", "19700112-000000"]);
    assert!(said.contains('█') && !said.contains(".floor"), "{said}");
    assert!(said.lines().all(|line| line.chars().count() <= 100), "{said}");
    let failing = [&weir[..], &["--fail-on", "regression"]].concat();
    ends(&with(&failing), 4, &["regression: request.h1c-h1c.c2.b100.saturated.weir: CPU per request"]);
    ends(
        &with(&["--cell", "target=floor", "--fail-on", "regression"]),
        0,
        &["usual", "the minimum change reported"],
    );
    let rate = ["--cell", "target=weir", "--metric", "requests_per_second", "--fail-on", "regression"];
    ends(&with(&rate), 4, &["requests per second"]);

    let rows = csv(&ends(&with(&["--csv", "-"]), 0, &[]));
    assert_eq!(rows.len(), 22);
    let of_weir: Vec<_> = rows.iter().filter(|row| row["target"] == "weir").collect();
    assert_eq!((of_weir[0]["started"].as_str(), of_weir[0]["change"].as_str()), ("19700102-000000", ""));
    assert_eq!(of_weir[10]["verdict"], "regression");
    assert!((of_weir[10]["change"].parse::<f64>().unwrap() - 1.1).abs() < 0.01);

    let few = ["history", newest_first[0], newest_first[1], newest_first[2]];
    ends(&few, 0, &["the default: fewer than 9 past changes (1)", "usual"]);
    let strict = [&few[..], &["--threshold", "5", "--fail-on", "regression"]].concat();
    ends(&strict, 4, &["--threshold"]);
    ends(&with(&["--cell", "target=apache"]), 2, &["--cell"]);
    ends(&with(&["--cell", "colour=red"]), 2, &["--cell: unknown key `colour`", "expected one of target, "]);
    ends(&with(&["--metric", "speed"]), 2, &["speed", "cpu_us_per_request"]);
    ends(
        &with(&["--metric", "error_ratio"]),
        2,
        &["--metric: invalid value `error_ratio`", "cpu_us_per_request"],
    );
    ends(&with(&["--threshold=-3"]), 2, &["--threshold"]);
    ends(&["history"], 2, &["Usage: weir history"]);
    ends(&["history", "/no/such/folder"], 1, &["/no/such/folder: no such file or directory"]);
}
