//! `weir run` over command lines: it reports commands that cost more, fail or are absent.

use crate::common::Weir;
use std::fs;
use std::path::Path;

/// A shell loop only uses CPU; twenty times the rounds cost more on any machine.
const TEXT: &str = r#"name = "loops"
question = "Does a longer loop cost more?"
instrument = "commands"
blocks = 5
seed = 1
baseline = ["short"]
aa = "short"

[factors]
command = ["short", "long"]
rounds = [2000]

[constants.commands]
short = ["sh", "-c", "i=0; while [ $i -lt {rounds} ]; do i=$((i+1)); done; pwd"]
long = ["sh", "-c", "i=0; while [ $i -lt {rounds}0 ]; do i=$((i+2)); i=$((i-1)); done"]
"#;

fn folder(text: &str) -> (tempfile::TempDir, String) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("loops.toml");
    fs::write(&file, text).unwrap();
    (folder, file.display().to_string())
}

#[test]
fn a_costlier_command_is_a_regression_and_its_results_can_be_reported_compared_and_continued() {
    let (folder, file) = folder(TEXT);
    let at = |name: &str| folder.path().join(name).display().to_string();
    let planned = Weir::run(&["plan", &file]).stdout;
    assert!(
        planned.contains("command long: sh -c") && planned.contains("rounds=2000.short-again"),
        "{planned}"
    );
    assert!(planned.ends_with("blocks: 5 of 3 runs; their duration is unknown in advance\n"), "{planned}");
    let ran = Weir::run(&["run", &file, "--out", &at("r"), "--fail-on", "regression"]);
    assert_eq!(ran.code, Some(4), "{}{}", ran.stdout, ran.stderr);
    assert!(ran.stdout.starts_with("With rounds 2000, short takes 0."), "{}", ran.stdout);
    let full = Weir::run(&["report", &at("r"), "--full"]).stdout;
    for part in ["\nrounds 2000\n", "  short-again: time ", "\nCPU time:\n  rounds 2000: long vs short: "] {
        assert!(full.contains(part), "{part}: {full}");
    }
    assert_eq!(Weir::run(&["run", "--continue", &at("r"), "--blocks", "6"]).code, Some(0));
    let runs = || fs::read_dir(Path::new(&at("r")).join("runs")).unwrap();
    assert_eq!(runs().count(), 6 * 3);
    for run in runs() {
        let run: serde_json::Value = serde_json::from_slice(&fs::read(run.unwrap().path()).unwrap()).unwrap();
        assert_eq!(run["validity"], "valid", "{run}");
        assert!(run["cpu_ms"].is_number() && run["wall_ms"].is_number(), "{run}");
    }
    let csv = Weir::run(&["report", &at("r"), "--csv", "-"]).stdout;
    assert!(csv.contains(",wall_ms,ms,") && csv.contains(",process_cpu_ms,ms,"), "{csv}");
    assert_eq!(Weir::run(&["run", &file, "--out", &at("b")]).code, Some(0));
    let compared = Weir::run(&["compare", &at("r"), &at("b")]);
    assert_eq!(compared.code, Some(0), "{}", compared.stderr);
    let changed = Weir::run(&["run", &file, "--continue", &at("b"), "--set", "commands.long=true"]);
    assert_eq!(changed.code, Some(2), "{}", changed.stderr);
}

#[test]
fn a_failing_or_absent_command_is_reported() {
    let broken = TEXT.replace("command = [", "command = [\"broken\", \"gone\", ")
        + "broken = [\"sh\", \"-c\", \"echo no such luck >&2; exit 3\"]\ngone = \"no-such-program-here\"\n";
    let (folder, file) = folder(&broken);
    let out = folder.path().join("r").display().to_string();
    let ended = Weir::run(&["run", &file, "--out", &out]);
    assert_eq!(ended.code, Some(1), "{}", ended.stderr);
    let expected = "weir: broken in rounds 2000: exit status: 3\n  | no such luck\n";
    assert!(ended.stderr.contains(expected), "{}", ended.stderr);
    let asked = Weir::run(&["run", &file, "--out", &format!("{out}1"), "--only", "command=gone"]);
    let expected =
        "--only leaves no cell of a present command; gone: program `no-such-program-here` not found";
    assert!(asked.code == Some(1) && asked.stderr.contains(expected), "{}", asked.stderr);
    let rest = Weir::run(&["run", &file, "--out", &format!("{out}2"), "--only", "command=short"]);
    assert_eq!(rest.code, Some(0), "{}", rest.stderr);
    assert!(
        rest.stdout.contains("gone: absent: program `no-such-program-here` not found."),
        "{}",
        rest.stdout
    );
}
