//! `weir stacks`, run as a program with scripts as engines: list, build, run, report, and errors.

use crate::common::engine::{RUNNER, description};
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

const EXPERIMENT: &str = "name = 'fakes'
instrument = 'stacks'
question = 'Does it work?'
engines_directory = 'engines'
engines = ['good', 'broken']
blocks = 2
seed = 1
[constants]
window_ms = 1
[[scenarios]]
do = 'handshake'
version = ['1.2', '1.3']
";

/// An engine whose build copies its runner into the build directory.
fn engine() -> String {
    description("['sh', '{engine}/build.sh', '{target}']").replace("{engine}/run.sh", "{target}/run.sh")
}

/// A directory with an experiment and two engines, one of which fails to build.
fn bench() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    write("fakes.toml", EXPERIMENT);
    for (name, build) in [("good", "cp run.sh \"$1\""), ("broken", "echo no >&2; exit 1")] {
        write(&format!("engines/{name}/engine.toml"), &engine());
        write(&format!("engines/{name}/run.sh"), RUNNER);
        write(&format!("engines/{name}/build.sh"), build);
    }
    folder
}

fn weir(folder: &Path, args: &[&str]) -> Output {
    let mut weir = Command::new(env!("CARGO_BIN_EXE_weir"));
    weir.current_dir(folder).env("WEIR_ENGINES", folder.join("built"));
    weir.args(args).output().unwrap()
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Regression test: the engines of `[quick]` replaced those of the command line.
#[test]
fn the_command_lines_engines_come_before_those_of_quick() {
    let folder = bench();
    fs::write(folder.path().join("fakes.toml"), format!("{EXPERIMENT}[quick]\nengines = ['good']\n"))
        .unwrap();
    let planned = |set: &[&str]| {
        let words = ["stacks", "plan", "fakes.toml", "--quick"];
        said(&weir(folder.path(), &[&words[..], set].concat()))
    };
    for (set, has_broken) in [
        (&[][..], false),
        (&["--set", "engines=['good', 'broken']"], true),
        (&["--set", "engine=['good', 'broken']"], true),
        (&["--set", "window_ms=2"], false),
    ] {
        let plan = planned(set);
        assert!(plan.contains("good"), "{set:?}: {plan}");
        assert_eq!(plan.contains("broken"), has_broken, "{set:?}: {plan}");
    }
}

#[test]
fn engines_are_listed_built_and_run() {
    let folder = bench();
    let list = || said(&weir(folder.path(), &["stacks", "list", "--directory", "engines"]));
    assert!(list().lines().any(|line| line.starts_with("good ") && line.contains("not built")), "{}", list());
    let built = weir(folder.path(), &["stacks", "build", "--directory", "engines"]);
    assert_eq!(built.status.code(), Some(1));
    let text = said(&built);
    assert!(text.contains("good: built") && text.contains("broken: build failed: exit status: 1"), "{text}");
    assert!(list().lines().any(|line| line.starts_with("good ") && line.ends_with(" built")), "{}", list());

    let ran = weir(folder.path(), &["run", "fakes.toml", "--out", "results", "--strict"]);
    let text = said(&ran);
    assert!(ran.status.success(), "{text}{}", String::from_utf8_lossy(&ran.stderr));
    for part in [
        "broken: absent: build failed",
        "Not run: handshake.1.2.full.ecdsa-p256.tickets=0.good: version=1.2 is not",
        "server 1.0 us",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let page = || fs::read_to_string(folder.path().join("results/report.html")).unwrap();
    let before = page();
    assert!(weir(folder.path(), &["report", "results"]).status.success());
    assert_eq!(page(), before);
}

#[test]
fn a_change_in_further_sources_builds_an_engine_again() {
    let folder = bench();
    let shared = folder.path().join("shared/part.c");
    fs::create_dir_all(shared.parent().unwrap()).unwrap();
    fs::write(&shared, "1").unwrap();
    let description = format!("sources = ['../../shared']\n{}", engine());
    fs::write(folder.path().join("engines/good/engine.toml"), description).unwrap();
    let stacks = |command| said(&weir(folder.path(), &["stacks", command, "--directory", "engines"]));
    let is_built = || {
        let list = stacks("list");
        let row = list.lines().find(|line| line.starts_with("good ")).unwrap();
        row.ends_with(" built") && !row.ends_with("not built")
    };
    stacks("build");
    assert!(is_built());
    fs::write(&shared, "2").unwrap();
    assert!(!is_built());
    stacks("build");
    assert!(is_built());
}

/// Regression test: runners were started in the results' directory, so relative paths, such as those for Node and
/// Python, failed.
#[test]
fn a_runner_with_a_relative_path_runs_from_any_directory() {
    let folder = bench();
    let good = folder.path().join("engines/good");
    // Another process writes the program: a file that this process may still have open for writing cannot be executed.
    let program = "printf '#!/bin/sh\n' | cat - run.sh >run && chmod +x run";
    assert!(Command::new("sh").args(["-c", program]).current_dir(&good).status().unwrap().success());
    let elsewhere = folder.path().join("else/where");
    fs::create_dir_all(&elsewhere).unwrap();
    for runner in ["'sh', 'run.sh'", "'./run'"] {
        let named = engine().replace("'sh', '{target}/run.sh'", runner);
        fs::write(good.join("engine.toml"), named).unwrap();
        let ran = weir(&elsewhere, &["run", "../../fakes.toml", "--only", "engine=good", "--strict"]);
        let (text, errors) = (said(&ran), String::from_utf8_lossy(&ran.stderr));
        assert!(ran.status.success() && text.contains("server 1.0 us"), "{text}{errors}");
    }
}

/// After an interrupt, the lab does not repeat stored runs.
#[test]
fn an_interrupted_experiment_continues() {
    let folder = bench();
    let run = |args: &[&str]| weir(folder.path(), &[&["stacks", "run", "fakes.toml"], args].concat());
    assert!(run(&["--out", "results"]).status.success());
    let runs = folder.path().join("results/runs");
    let gone = fs::read_dir(&runs).unwrap().next().unwrap().unwrap().path();
    fs::remove_file(&gone).unwrap();
    let again = run(&["--continue", "results"]);
    let errors = String::from_utf8_lossy(&again.stderr).into_owned();
    assert!(again.status.success() && gone.exists(), "{errors}");
    assert_eq!(
        errors.lines().filter(|line| line.starts_with('b') && line.contains("handshake")).count(),
        1,
        "{errors}"
    );
    fs::write(folder.path().join("engines/good/run.sh"), RUNNER.replace("1000", "2000")).unwrap();
    let refused = run(&["--continue", "results"]);
    let errors = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(
        refused.status.code() == Some(2)
            && errors.contains("another build, description or content of `good`"),
        "{errors}"
    );
}

/// Two working engines, one of which takes twice the time, in five blocks.
fn race() -> tempfile::TempDir {
    let folder = bench();
    let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
    write(
        "fakes.toml",
        &EXPERIMENT.replace("'broken']", "'slow']\nbaseline = ['good']").replace("= 2", "= 5"),
    );
    fs::remove_dir_all(folder.path().join("engines/broken")).unwrap();
    fs::create_dir(folder.path().join("engines/slow")).unwrap();
    write("engines/slow/engine.toml", &engine());
    write("engines/slow/run.sh", &RUNNER.replace("1000", "2000"));
    write("engines/slow/build.sh", "cp run.sh \"$1\"");
    folder
}

#[test]
fn results_are_exported_and_a_slower_engine_is_a_regression() {
    let folder = race();
    let weir = |args: &[&str]| weir(folder.path(), args);
    assert!(weir(&["stacks", "run", "fakes.toml", "--out", "results"]).status.success());
    let files = ["--csv", "values.csv", "--markdown", "summary.md", "--junit", "junit.xml"];
    let failed = weir(&[&["report", "results", "--fail-on", "regression"][..], &files].concat());
    let errors = String::from_utf8_lossy(&failed.stderr).into_owned();
    assert_eq!(failed.status.code(), Some(4), "{errors}");
    let line = "regression: server's time per handshake, handshake.1.3.full.ecdsa-p256.tickets=2: slow vs good: 2.00";
    assert!(errors.contains(line), "{errors}");
    let read = |name: &str| fs::read_to_string(folder.path().join(name)).unwrap();
    assert!(read("junit.xml").contains("failures=\"2\""), "{}", read("junit.xml"));
    assert!(read("summary.md").contains("| slow / good | 2.00"), "{}", read("summary.md"));
    let csv = said(&weir(&["report", "results", "--csv", "-"]));
    assert_eq!(csv, read("values.csv"));
    let is_value = |line: &&str| line.starts_with("cell,") && line.contains(",slow,fake 1.0,");
    // Each side's time, the rate of both, and their CPU.
    assert_eq!(csv.lines().filter(is_value).count(), 4, "{csv}");
}

#[test]
fn an_upgrade_that_takes_longer_is_a_regression_between_two_results() {
    let folder = race();
    let weir = |args: &[&str]| weir(folder.path(), args);
    let run = |out: &str| assert!(weir(&["stacks", "run", "fakes.toml", "--out", out]).status.success());
    let write =
        |name: &str, text: &str| fs::write(folder.path().join("engines/good").join(name), text).unwrap();
    run("before");
    write("engine.toml", &engine().replace("1.0", "1.1"));
    write("run.sh", &RUNNER.replace("fake 1.0", "fake 1.1").replace("1000", "3000"));
    run("after");
    let compared = weir(&["compare", "before", "after", "--csv", "values.csv", "--fail-on", "regression"]);
    let text = said(&compared);
    for part in
        ["Changed: good fake 1.0 -> fake 1.1.", "the drift: slow fake 1.0.", "3.00 [3.00, 3.00] different"]
    {
        assert!(text.contains(part), "{part}: {text}");
    }
    let errors = String::from_utf8_lossy(&compared.stderr).into_owned();
    let line = "regression: handshake.1.3.full.ecdsa-p256.tickets=2.good: server's time per handshake 3.00";
    assert!(compared.status.code() == Some(4) && errors.contains(line), "{errors}");
    assert_eq!(fs::read_to_string(folder.path().join("values.csv")).unwrap().lines().count(), 1 + 2 * 2);
    let back = weir(&["compare", "after", "before", "--fail-on", "regression"]);
    assert_eq!(back.status.code(), Some(0), "{}", said(&back));

    let past = weir(&["history", "before", "after", "--cell", "engine=good", "--fail-on", "regression"]);
    let text = said(&past);
    assert!(text.contains("fake 1.1") && text.contains("last change +200.0 %"), "{text}");
    assert_eq!(past.status.code(), Some(4), "{text}");
    let unknown = weir(&["compare", "before", "after", "--changed", "go"]);
    let errors = String::from_utf8_lossy(&unknown.stderr).into_owned();
    assert!(unknown.status.code() == Some(2) && errors.contains("in both results: good, slow"), "{errors}");
}

/// Regression test: `--continue` used the default experiment, and built its engines before it rejected it.
#[test]
fn a_finished_result_takes_more_blocks() {
    let folder = bench();
    let run = |args: &[&str]| {
        let output = weir(folder.path(), &[&["stacks", "run"], args].concat());
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        said(&output)
    };
    run(&["fakes.toml", "--only", "engine=good", "--out", "out"]);
    let stored = || fs::read_dir(folder.path().join("out/runs")).unwrap().count();
    let before = stored();
    let text = run(&["--continue", "out", "--blocks", "4"]);
    assert_eq!(stored(), 2 * before, "two blocks and two more");
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("Extended once, from 2 to 4 blocks, after the result could be read"), "{text}");
    let other = weir(folder.path(), &["stacks", "run", "--continue", "engines"]);
    let error = String::from_utf8_lossy(&other.stderr).into_owned();
    assert_eq!(other.status.code(), Some(1));
    assert_eq!(error, "weir: engines: not a result of `weir run`: it has no plan.json\n");
}

#[test]
fn errors_name_the_expected_values() {
    let folder = bench();
    for (args, why) in [
        (
            &["stacks", "build", "none", "--directory", "engines"][..],
            "unknown name `none`, not in engines: expected one of broken, good",
        ),
        (&["stacks", "run", "fakes.toml", "--only", "engine=none"], "`none`: expected one of broken, good"),
        (
            &["stacks", "run", "fakes.toml", "--only", "colour=red"],
            "unknown key `colour`: expected one of engine, ",
        ),
        (&["stacks", "run", "fakes.toml", "--set", "window_ms=x"], "`x`: expected 1 to 600000"),
        (&["stacks", "run", "none.toml"], "none.toml: no such experiment: looked for none.toml, "),
    ] {
        let output = weir(folder.path(), args);
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && error.contains(why), "{args:?}: {error}");
    }
}
