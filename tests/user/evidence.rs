//! Success requires evidence: `weir run` and the gates on its results exit with 0 only with evidence; otherwise they
//! report the missing evidence.

use crate::common::load::{ensure, undisturbed};
use crate::common::{DEADLINE, Ended, Experiment, Weir, poll_until};
use rustix::process::Signal;
use serde_json::Value;
use std::fs;
use std::time::Duration;

/// A target started by a shell. In the script, FOLDER is the experiment's directory, and RELAY a working relay.
fn target(script: &str) -> String {
    let relay = "{{weir}} relay --workers 1 --listen http://{{listen_address}}:{{listen_port}} \
                 --to http://{{upstream_address}}:{{upstream_port}}";
    format!(
        "title = 'Mine'
about = 'A target of this test.'
modes = ['h1c-h1c']
start = ['sh', '-c', '''{}''']
stop = {{ signal = 'TERM', timeout_ms = 100 }}
ready = {{ connect = '{{{{listen_address}}}}:{{{{listen_port}}}}', timeout_ms = 20000 }}
",
        script.replace("RELAY", relay)
    )
}

/// An experiment with such a target and a working relay.
fn experiment(script: &str, set: &[&str]) -> Experiment {
    experiment_of(script, "exec RELAY", set)
}

fn experiment_of(mine: &str, good: &str, set: &[&str]) -> Experiment {
    let files = [("mine/target.toml", target(mine)), ("good/target.toml", target(good))];
    let files = files.each_ref().map(|(name, text)| (*name, text.as_str()));
    let targets = ["target=[\"mine\",\"good\"]"];
    Experiment::of(&files, &[&targets[..], set].concat())
}

fn run(experiment: &Experiment, more: &[&str]) -> Ended {
    run_within(DEADLINE, experiment, more)
}

fn run_within(deadline: Duration, experiment: &Experiment, more: &[&str]) -> Ended {
    let words = experiment.words("--out");
    let words: Vec<_> = words.iter().map(String::as_str).chain(more.iter().copied()).collect();
    Weir::run_within(deadline, &words)
}

/// The program's last lines, without progress lines.
#[track_caller]
fn message(ended: &Ended, code: i32) -> &str {
    assert_eq!(ended.code, Some(code), "{}{}", ended.stdout, ended.stderr);
    assert!(!ended.stderr.contains("panicked"), "{}", ended.stderr);
    ended.stderr.rsplit_once("weir: ").map_or("", |(_, message)| message)
}

/// The words of a text, independent of line breaks.
fn words(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn an_absent_target_is_detected_before_the_first_block() {
    let ghost = target("").replace("'sh'", "'no-such-gateway'");
    let good = target("exec RELAY");
    let files = [("mine/target.toml", ghost.as_str()), ("good/target.toml", good.as_str())];
    let both = Experiment::of(&files, &["target=[\"mine\",\"good\"]"]);
    let ended = run(&both, &[]);
    let why = "mine cannot run: no-such-gateway is not on the PATH; --set names it, so nothing was run\n";
    assert_eq!(message(&ended, 1), why);
    assert!(both.runs().is_empty());
    // If the file rather than the command line lists it, the others are measured, and it is reported as missing.
    let file = both.file("experiment.toml");
    let text = fs::read_to_string(&file).unwrap().replace("['floor']", "['mine', 'good']");
    fs::write(&file, text).unwrap();
    let out = both.file("listed");
    let ended =
        Weir::run(&["run", file.to_str().unwrap(), "--out", out.to_str().unwrap(), "--allow-invalid"]);
    assert_eq!(message(&ended, 0), "");
    assert!(ended.stdout.contains("mine: absent: no-such-gateway is not on the PATH."), "{}", ended.stdout);
}

#[test]
fn a_target_that_exits_at_once_stops_the_experiment_with_its_own_message() {
    let script = "echo reading the configuration >&2; echo no such flag: --fast >&2; exit 3";
    let broken = experiment(script, &["load_model=equal-rate", "calibration_ms=50"]);
    let ended = run(&broken, &[]);
    let message = message(&ended, 1);
    let first = "calibration: mine in h1c-h1c: target: it exited before it was ready (exit status: 3): \
                 no such flag: --fast\n";
    assert!(message.starts_with(first), "{message}");
    assert!(message.contains("\n  | reading the configuration\n  | no such flag: --fast\n"), "{message}");
    let logs = message.split_once("  logs: ").expect("the logs are named").1.lines().next().unwrap();
    let log = fs::read_to_string(std::path::Path::new(logs).join("target.err")).unwrap();
    assert_eq!(log, "reading the configuration\nno such flag: --fast\n");
}

/// Regression test: without an equal rate there is no calibration, and the lab ran all blocks with a dead target.
#[test]
fn without_calibration_two_blocks_show_that_a_target_does_not_work() {
    let broken = experiment("echo no such flag: --fast >&2; exit 3", &["blocks=9"]);
    let ended = run(&broken, &[]);
    let first =
        "mine in h1c-h1c: target: it exited before it was ready (exit status: 3): no such flag: --fast\n";
    assert!(message(&ended, 1).starts_with(first), "{}", ended.stderr);
    assert_eq!(broken.runs().len(), 4, "two blocks of two targets");
}

#[test]
fn a_signal_that_kills_a_target_is_named() {
    let broken = experiment("kill -KILL $$", &["load_model=equal-rate", "calibration_ms=50"]);
    let ended = run(&broken, &[]);
    assert!(message(&ended, 1).contains("it exited before it was ready (signal: 9)"), "{}", ended.stderr);
}

#[test]
fn a_cell_without_a_valid_run_is_no_success() {
    let broken = experiment("echo broken >&2; exit 3", &[]);
    let ended = run(&broken, &[]);
    let text = message(&ended, 3);
    assert!(text.starts_with("no evidence: no valid run for\n"), "{text}");
    let why = "invalid: target: it exited before it was ready (exit status: 3): broken; logs: ";
    assert!(text.contains(why) && text.contains(".mine: ") && text.contains("--allow-invalid"), "{text}");
    assert!(ended.stdout.contains("Report: "), "the measurements are still reported: {}", ended.stdout);
    let out = broken.file("allowed");
    let mut arguments = broken.words("--out");
    let place = arguments.iter().position(|word| word == "--out").unwrap() + 1;
    arguments[place] = out.to_str().unwrap().to_owned();
    arguments.push("--allow-invalid".into());
    let ended = Weir::run(&arguments.iter().map(String::as_str).collect::<Vec<_>>());
    assert_eq!(message(&ended, 0), "");
}

/// The new version relays through three gateways in a row, a difference that any machine detects, at a rate that does
/// not saturate the cores.
#[test]
fn an_upgrade_that_costs_more_fails_the_gate_of_its_own_experiment() {
    let dearer = "cat > FOLDER/behind.toml <<END
workers = 1
listener = { a.bind = 'unix:FOLDER/a', b.bind = 'unix:FOLDER/b', c.bind = 'unix:FOLDER/c' }
service.b.servers = 'unix:FOLDER/b'
service.c.servers = 'unix:FOLDER/c'
service.origin.servers = 'http://{{upstream_address}}:{{upstream_port}}'
route = [
  { listener = 'a', service = 'b' }, { listener = 'b', service = 'c' }, { service = 'origin' },
]
END
rm -f FOLDER/said; {{weir}} serve --config FOLDER/behind.toml > FOLDER/said &
until grep -qs listening FOLDER/said; do sleep 0.02; done
exec {{weir}} relay --workers 1 --listen http://{{listen_address}}:{{listen_port}} --to unix:FOLDER/a";
    // More blocks than a verdict needs, since a busy machine invalidates some.
    let set = ["blocks=8", "load_model=equal-rate", "rate=1000"];
    let upgrade = experiment_of(dearer, "exec RELAY", &set);
    let gate = ["--set", "baseline=[\"good\"]", "--fail-on", "regression", "--allow-invalid"];
    undisturbed("a regression", || {
        // Removes the result of an earlier attempt.
        let _ = fs::remove_dir_all(upgrade.file("out"));
        let ended = run_within(4 * DEADLINE, &upgrade, &gate);
        // If the machine is too busy for a verdict, there is none.
        ensure(ended.code != Some(0), || ended.stdout.clone())?;
        let text = message(&ended, 4);
        assert!(text.starts_with("regression: ") && text.contains("mine vs good: "), "{text}");
        assert!(
            ended.stderr.contains("regression: CPU per request, equal-rate, h1c-h1c, "),
            "{}",
            ended.stderr
        );
        Ok(())
    });
}

#[test]
fn a_target_that_exits_within_the_window_invalidates_its_run_with_the_reason() {
    // The target exits after a tenth of a second.
    let script = "RELAY &
until test $(cut -d ' ' -f 14 /proc/$!/stat) -ge 5 || test $(cut -d ' ' -f 15 /proc/$!/stat) -ge 5; do sleep 0.02; done
kill -KILL $!
echo out of luck >&2
exit 7";
    let ended = run(&experiment(script, &["window_ms=3000", "target=[\"mine\"]"]), &[]);
    let text = message(&ended, 3);
    assert!(text.contains("target: it exited early (exit status: 7): out of luck; logs: "), "{text}");
}

#[test]
fn a_target_that_ignores_the_signal_is_named() {
    let script = "trap '' TERM; RELAY & wait; wait";
    let ended = run(&experiment(script, &["target=[\"mine\"]"]), &["--allow-invalid"]);
    assert_eq!(message(&ended, 0), "");
    let label = "mine was killed because it did not exit within 100 ms of SIGTERM: in 1 of 1 run.";
    assert!(words(&ended.stdout).contains(label), "{}", ended.stdout);
}

#[test]
fn blocks_are_added_to_a_finished_result() {
    let small = experiment("exec RELAY", &["blocks=1"]);
    assert_eq!(message(&run(&small, &["--allow-invalid"]), 0), "");
    assert_eq!(small.runs().len(), 2);
    let before = small.runs();
    let out = small.file("out");
    let extend_to = |blocks: &str| {
        let out = out.to_str().unwrap();
        Weir::run(&["run", "--continue", out, "--blocks", blocks, "--allow-invalid"])
    };
    let ended = extend_to("3");
    assert_eq!(message(&ended, 0), "");
    assert_eq!(small.runs().len(), 6);
    assert!(before.iter().all(|run| small.runs().contains(run)), "the first block stays as it was");
    let label = "Extended once, from 1 to 3 blocks, after the result could be read. Repeated looks find \
                 more by chance: intervals and verdicts use an error rate of 0.025 instead of 0.05.";
    assert!(words(&ended.stdout).contains(label), "{}", ended.stdout);
    let plan: Value = serde_json::from_str(&small.text("out/plan.json")).unwrap();
    assert_eq!(plan["extended"], serde_json::json!([1]));
    let ended = extend_to("2");
    assert_eq!(
        message(&ended, 2),
        "--blocks: invalid value `2`: expected 3 or more: the result has 3 measured blocks\n"
    );
    // A finished result can be reported again.
    assert_eq!(message(&extend_to("3"), 0), "");
    assert_eq!(small.runs().len(), 6);
}

/// Regression test: the new number of blocks counted as an extension of blocks that had not run, or was ignored.
#[test]
fn an_interrupted_result_takes_another_number_of_blocks() {
    let small = experiment("exec RELAY", &["blocks=200"]);
    let weir = small.start("--out");
    poll_until(DEADLINE, "two runs are stored", || small.runs().len() >= 2);
    weir.signal(Signal::INT);
    assert_eq!(weir.wait().code, Some(1));
    let measured = small.runs().len().div_ceil(2);
    let (out, wanted) = (small.file("out"), (measured + 1).to_string());
    let ended =
        Weir::run(&["run", "--continue", out.to_str().unwrap(), "--blocks", &wanted, "--allow-invalid"]);
    assert_eq!(message(&ended, 0), "");
    assert_eq!(small.runs().len(), 2 * (measured + 1));
    assert!(!ended.stdout.contains("Extended"), "the result was never complete: {}", ended.stdout);
}

#[test]
fn options_that_change_an_experiment_need_its_file() {
    let ended = Weir::run(&["run", "--continue", "out/x", "--set", "blocks=3"]);
    assert_eq!(ended.code, Some(2));
    assert!(ended.stderr.contains("FILE"), "{}", ended.stderr);
    let ended = Weir::run(&["run"]);
    assert!(ended.code == Some(2) && ended.stderr.contains("FILE"), "{}", ended.stderr);
}

#[test]
fn a_directory_without_results_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().to_str().unwrap();
    for command in ["report", "history"] {
        let ended = Weir::run(&[command, path]);
        let why = format!("{path}: not a result of `weir run`: it has no plan.json\n");
        assert_eq!(message(&ended, 1), why, "{command}");
        let ended = Weir::run(&[command, "/no/such/folder"]);
        assert_eq!(message(&ended, 1), "/no/such/folder: no such file or directory\n", "{command}");
    }
}

#[test]
fn targets_without_a_baseline_get_advice_to_name_one() {
    let small = experiment("exec RELAY", &["target=[\"mine\",\"good\"]"]);
    let file = small.file("experiment.toml");
    let text = fs::read_to_string(&file).unwrap();
    fs::write(&file, text.replace("blocks = 1\n", "blocks = 1\nbaseline = ['floor']\n")).unwrap();
    let ended = run(&small, &[]);
    let why = "--set target=[\"mine\",\"good\"]: excludes every baseline of the file (floor); choose the target to \
               compare the others with, such as --set 'baseline=[\"good\"]'\n";
    assert_eq!(message(&ended, 2), why);
    let named = ["--set", "baseline=[\"good\"]", "--allow-invalid"];
    assert_eq!(message(&run(&small, &named), 0), "");
}

#[test]
fn a_plan_names_the_skipped_cells_and_the_reason() {
    let tls = target("exec RELAY").replace("['h1c-h1c']", "['h1c-h1c', 'h1-h1c']");
    let ghost = target("").replace("'sh'", "'no-such-gateway'");
    let good = target("exec RELAY");
    let files = [("tls/target.toml", &tls), ("good/target.toml", &good), ("ghost/target.toml", &ghost)];
    let files = files.map(|(name, text)| (name, text.as_str()));
    let set = ["target=[\"tls\",\"good\",\"ghost\"]", "mode=[\"h1c-h1c\",\"h1-h1c\"]", "connections=[2,4]"];
    let small = Experiment::of(&files, &set);
    let all = small.words("--out");
    // Like `run` without a results directory.
    let mut arguments: Vec<&str> = vec!["plan", &all[1]];
    arguments.extend(all[4..].iter().map(String::as_str));
    let ended = Weir::run(&[&arguments[..], &["--only", "connections=4"]].concat());
    assert_eq!(message(&ended, 0), "");
    for line in [
        "target ghost: absent, so its cells are skipped: no-such-gateway is not on the PATH\n",
        "not run: good in h1-h1c: its modes are h1c-h1c\n",
        "not run: 3 cells left out by --only\n",
    ] {
        assert!(ended.stdout.contains(line), "{line}{}", ended.stdout);
    }
}
