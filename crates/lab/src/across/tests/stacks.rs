//! The same for TLS stacks.

use super::*;
use crate::entry;
use crate::instrument::stacks::Stacks;
use crate::instrument::stacks::synthetic::{Made, results};
use crate::store::Store;

const UPGRADED: Made<'_> = Made { version: "1.1", seed: 2, ..Made::NOTHING };

fn pair(after: &Made<'_>) -> (Across, [Results<Stacks>; 2]) {
    let [a, b] = [&Made::NOTHING, after].map(results);
    (of(&a, &b, &[]).expect("are of one plan"), [a, b])
}

fn of_fast(across: &Across) -> &Change {
    change(across, "fast", Metric::ServerUsPerHandshake)
}

#[test]
fn an_upgrade_that_takes_longer_is_a_regression() {
    let (across, _) = pair(&Made { effect: 1.2, ..UPGRADED });
    let server = of_fast(&across);
    assert_eq!(
        (server.ratio.verdict, server.ratio.weight, server.unchanged),
        (Verdict::Different, Weight::Verdict, false)
    );
    assert!(server.ratio.value.is_some_and(|ratio| (ratio / 1.2 - 1.0).abs() < 0.03), "{server:?}");
    let control = change(&across, "slow", Metric::ServerUsPerHandshake);
    assert!(control.unchanged && control.ratio.verdict != Verdict::Different, "{control:?}");
    let worse: Vec<_> = across
        .changes
        .iter()
        .filter(|one| one.is_regression())
        .map(|one| (one.cell.as_str(), one.metric))
        .collect();
    let expected = ["ecdsa-p256", "rsa-2048"].map(|key| format!("handshake.1.3.full.{key}.tickets=2.fast"));
    assert_eq!(worse, expected.each_ref().map(|cell| (cell.as_str(), Metric::ServerUsPerHandshake)));
    let text = across.text();
    let label = "Changed: fast fake 1.0 -> fake 1.1. Unchanged, showing the drift: slow fake 7.";
    for part in
        [label, "\nserver's time per handshake, B/A:\n  handshake.1.3.full.", "\nmemory per session, B/A:"]
    {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(text.lines().all(|line| line.chars().count() <= weir_report::text::WIDTH), "{text}");
    let compared = Compared(&across);
    assert!(
        compared.junit(true).contains("failures=\"2\"") && compared.junit(false).contains("failures=\"0\"")
    );
    assert!(compared.markdown().contains("## Unchanged engines: the drift"), "{}", compared.markdown());
    let csv = compared.csv();
    let row = "handshake.1.3.full.rsa-2048.tickets=2.fast,fast,,,";
    assert!(csv.lines().any(|line| line.starts_with(row) && line.contains(",fake 1.0,fake 1.1,")), "{csv}");
    let json = serde_json::to_value(server).expect("serialises");
    assert_eq!((json["scenario"]["do"].as_str(), json.get("mode")), (Some("handshake"), None));
    assert_eq!(pair(&Made { effect: 0.8, ..UPGRADED }).0.regressions().shown.len(), 0, "less is none");
}

#[test]
fn an_upgrade_is_undecided_when_the_unchanged_engines_moved_as_well() {
    let (across, _) = pair(&Made { effect: 1.2, drift: 1.3, ..UPGRADED });
    let server = of_fast(&across);
    let note = server.ratio.note.as_deref().unwrap_or_default();
    assert_eq!(server.ratio.verdict, Verdict::Undecided);
    assert!(
        note.starts_with(
            "the unchanged engines moved as well (slow full handshake, TLS 1.3, ECDSA P-256 1.3"
        ),
        "{note}"
    );
    assert_eq!(across.regressions().shown.len(), 0);
}

/// A description does not cover a system library: the version that it reports at run time shows the change.
#[test]
fn a_library_has_changed_if_its_runs_report_other_facts() {
    let (_, [a, mut b]) = pair(&UPGRADED);
    b.machine = a.machine.clone();
    let across = of(&a, &b, &[]).expect("are of one plan");
    assert!(!of_fast(&across).unchanged && change(&across, "slow", Metric::ServerUsPerHandshake).unchanged);
    assert_eq!(
        (of_fast(&across).version_a.as_str(), of_fast(&across).version_b.as_str()),
        ("fake 1.0", "fake 1.1")
    );
    let label = "Differs: fast: TLS: fake 1.0 in A, fake 1.1 in B.";
    assert!(across.labels.iter().any(|one| one == label), "{:?}", across.labels);

    let mut other_crypto = results(&Made { seed: 2, ..Made::NOTHING });
    for record in other_crypto.runs.iter_mut().filter(|record| record.run.cell.subject == "fast") {
        record.seen.seen.facts.as_mut().expect("are reported").crypto = "ring".into();
    }
    let across = of(&a, &other_crypto, &[]).expect("are of one plan");
    assert!(!of_fast(&across).unchanged);
    let label = "Differs: fast: crypto: none in A, ring in B.";
    assert!(across.labels.iter().any(|one| one == label), "{:?}", across.labels);
}

#[test]
fn without_a_difference_all_count_as_changed_unless_one_is_named() {
    let (across, [a, mut b]) = pair(&Made { seed: 2, ..Made::NOTHING });
    assert!(across.changes.iter().all(|one| !one.unchanged));
    let label = "No engine is known to differ, so each counts as changed; name the changed one with --changed ENGINE.";
    assert!(across.labels[1].starts_with(label), "{:?}", across.labels);
    let named = of(&a, &b, &["slow".to_owned()]).expect("are of one plan");
    assert!(of_fast(&named).unchanged && !change(&named, "slow", Metric::ServerUsPerHandshake).unchanged);
    let error = of(&a, &b, &["go".to_owned()]).expect_err("is refused").to_string();
    assert_eq!(error, "--changed: unknown engine `go`: expected one of those in both results: fast, slow");
    b.machine.sources.insert("fast".into(), "another hash".into());
    let across = of(&a, &b, &[]).expect("are of one plan");
    assert!(!of_fast(&across).unchanged && change(&across, "slow", Metric::ServerUsPerHandshake).unchanged);
    let label = "Differs: another build, description or template of fast.";
    assert!(across.labels.iter().any(|one| one == label), "{:?}", across.labels);
}

#[test]
fn an_engine_that_broke_is_a_failure() {
    let (_, [a, mut b]) = pair(&UPGRADED);
    for record in b.runs.iter_mut().filter(|record| record.run.cell.name == "fast") {
        record.validity = Validity::Invalid("runner: no `facts`".into());
    }
    let across = of(&a, &b, &[]).expect("are of one plan");
    let words = "broken: 12 valid runs in A, none of 12 in B (invalid: runner: no `facts`)";
    assert_eq!(of_fast(&across).verdict_text(across.margin), words);
    assert_eq!(across.regressions().shown.len(), 5, "both sides of two handshakes, and memory");
}

#[test]
fn another_experiment_scenario_or_kind_is_rejected_with_the_difference() {
    let a = results(&Made::NOTHING);
    let refused = |b: &Results<Stacks>| of(&a, b, &[]).expect_err("is refused").message;
    let longer = results(&Made { window_ms: 20, ..Made::NOTHING });
    assert_eq!(refused(&longer), "window_ms: `10` in A, `20` in B; expected one plan");
    let mut other = a.clone();
    other.plan.experiment.name = "other".into();
    assert_eq!(refused(&other), "experiment: `made-up` in A, `other` in B; expected one plan");

    let gateways = Synthetic::new(shape(5, &BEFORE), 1);
    let directory = tempfile::tempdir().expect("a directory");
    Store::open(directory.path()).write_json("plan.json", &a.plan).expect("is written");
    for (a, b) in
        [(directory.path(), gateways.path().as_path()), (gateways.path().as_path(), directory.path())]
    {
        let error = entry::compare(a, b, &[]).expect_err("is refused").to_string();
        let parts = ["results of stacks", "results of gateway", "do not compare with", "expected one plan"];
        assert!(parts.iter().all(|part| error.contains(part)), "{error}");
    }
}
