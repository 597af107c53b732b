//! `weir doctor`, run as a program.

use crate::common::Weir;
use serde_json::Value;
use std::collections::BTreeSet;

fn findings(text: &str) -> Vec<Value> {
    match serde_json::from_str(text) {
        Ok(Value::Array(findings)) => findings,
        other => panic!("{other:?}: {text}"),
    }
}

#[test]
fn a_table_of_100_columns_and_the_same_findings_as_json() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("doctor.json");
    let ended = Weir::run(&["doctor", "--json", file.to_str().unwrap()]);
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""), "bad findings are results");
    let findings = findings(&std::fs::read_to_string(&file).unwrap());
    let ids: BTreeSet<&str> = findings.iter().map(|finding| finding["id"].as_str().unwrap()).collect();
    assert_eq!(ids.len(), findings.len(), "each once");
    for id in ["others", "governor", "turbo", "smt", "steal", "cgroup", "huge-pages", "open-files", "ports"] {
        assert!(ids.contains(id), "{id} is not in {ids:?}");
    }
    for finding in &findings {
        let text = |name: &str| finding[name].as_str().unwrap_or_else(|| panic!("{name}: {finding}"));
        assert!(["good", "note", "bad"].contains(&text("level")), "{finding}");
        assert!(!text("value").is_empty() && text("why").ends_with('.'), "{finding}");
        assert_eq!(text("advice").is_empty(), text("level") == "good", "{finding}");
        let row = |line: &str| line.split_whitespace().nth(1) == Some(text("id"));
        assert!(ended.stdout.lines().any(row), "{finding} is not in {}", ended.stdout);
    }
    // Commands are not wrapped, so that they can be copied.
    let mut lines = ended.stdout.lines().filter(|line| !line.starts_with("  $ "));
    assert!(lines.all(|line| line.chars().count() <= 100), "{}", ended.stdout);
}

#[test]
fn the_exit_code_of_strict_follows_the_findings() {
    let ended = Weir::run(&["doctor", "--strict", "--json"]);
    let findings = findings(&ended.stdout);
    let bad: Vec<&str> =
        findings.iter().filter(|f| f["level"] == "bad").map(|f| f["id"].as_str().unwrap()).collect();
    if bad.is_empty() {
        assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""));
    } else {
        assert_eq!(ended.code, Some(4));
        assert_eq!(ended.stderr.trim(), format!("weir: --strict: bad: {}", bad.join(", ")));
    }
}

#[test]
fn invalid_flags() {
    let ended = Weir::run(&["doctor", "--apply"]);
    assert_eq!(ended.code, Some(2));
    assert!(ended.stderr.contains("--apply"), "{}", ended.stderr);
    let ended = Weir::run(&["doctor", "--json", "/nothing/here.json"]);
    assert_eq!(ended.code, Some(1));
    assert!(ended.stderr.contains("--json: cannot write /nothing/here.json"), "{}", ended.stderr);
}

#[test]
fn its_help_has_examples() {
    let ended = Weir::run(&["doctor", "--help"]);
    assert_eq!(ended.code, Some(0));
    assert!(ended.stdout.contains("Examples:\n  weir doctor\n"), "{}", ended.stdout);
}
