//! Killing the lab, a target or the load engine during an experiment: no process is left running, the stored results
//! are readable, and the experiment can continue.

use crate::common::{DEADLINE, Experiment, Weir, all_count, is_gone, pid_in, poll_until};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::fs;
use std::time::Duration;

/// Long enough to start three processes on a busy machine and kill one in the middle of a run.
const PATIENCE: Duration = Duration::from_secs(120);

fn experiment(window_ms: u32) -> Experiment {
    Experiment::of_repository(&["blocks=3", &format!("window_ms={window_ms}")])
}

/// On a busy machine, runs may be invalid, but only because of the disturbance.
#[track_caller]
fn disturbed_at_most(runs: &[Value]) {
    if let Err(validity) = all_count(runs) {
        println!("a busy machine: {validity}");
    }
}

/// The processes started by this lab with this subcommand.
fn children_of(lab: u32, word: &str) -> Vec<Pid> {
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse::<i32>().ok()) else {
            continue;
        };
        let stat = fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
        let parent = stat.rsplit(") ").next().and_then(|rest| rest.split(' ').nth(1)?.parse::<u32>().ok());
        let cmdline = fs::read(entry.path().join("cmdline")).unwrap_or_default();
        if parent == Some(lab) && String::from_utf8_lossy(&cmdline).split('\0').nth(1) == Some(word) {
            found.extend(Pid::from_raw(pid));
        }
    }
    found
}

/// Waits until all three processes of a run exist.
fn until_running(lab: &Weir) -> [Pid; 3] {
    let mut found = Vec::new();
    poll_until(PATIENCE, "a run's processes", || {
        found = ["origin", "relay", "load"].iter().flat_map(|word| children_of(lab.pid(), word)).collect();
        found.len() == 3
    });
    [found[0], found[1], found[2]]
}

#[test]
fn a_killed_lab_leaves_no_process_running_and_can_continue() {
    let small = experiment(2000);
    let lab = small.start("--out");
    // Kill the lab after the first run, so that there are stored results to continue from.
    poll_until(PATIENCE, "a stored run", || !small.runs().is_empty());
    let processes = until_running(&lab);
    let guards = children_of(lab.pid(), "guard");
    assert_eq!(guards.len(), 1);
    lab.signal(Signal::KILL);
    assert_eq!(lab.wait().code, None);
    for pid in processes.into_iter().chain(guards) {
        poll_until(DEADLINE, "a process is gone", || is_gone(pid));
    }
    let before = small.runs().len();
    assert!((1..3).contains(&before), "{before}");
    let ended = small.start("--continue").wait();
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let runs = small.runs();
    assert_eq!(runs.len(), 3);
    disturbed_at_most(&runs);
}

/// An interrupt from the terminal is similar but orderly: the lab prints how to continue.
#[test]
fn an_interrupted_lab_prints_how_to_continue() {
    let small = experiment(2000);
    let lab = small.start("--out");
    let processes = until_running(&lab);
    lab.signal(Signal::INT);
    let ended = lab.wait();
    assert_eq!(ended.code, Some(1));
    assert!(ended.stderr.contains("resume with --continue"), "{}", ended.stderr);
    assert!(processes.into_iter().all(is_gone), "the lab has ended them itself");
    assert_eq!(small.start("--continue").wait().code, Some(0));
    assert_eq!(small.runs().len(), 3);
}

#[test]
fn a_killed_target_or_load_engine_invalidates_only_its_run() {
    for (place, word) in [(1, "target"), (2, "load")] {
        let small = experiment(1500);
        let lab = small.start("--out");
        let processes = until_running(&lab);
        kill_process(processes[place], Signal::KILL).unwrap();
        let ended = lab.wait();
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
        assert!(processes.into_iter().all(is_gone));
        let runs = small.runs();
        assert_eq!(runs.len(), 3);
        let validity: Vec<&str> = runs.iter().map(|run| run["validity"].as_str().unwrap()).collect();
        assert!(validity[0].starts_with("invalid: "), "{word}: {validity:?}");
        disturbed_at_most(&runs[1..]);
        assert!(ended.stdout.contains("invalid"), "{}", ended.stdout);
    }
}

/// A check may take a minute, but an interrupted lab does not wait for it.
#[test]
fn an_interrupt_stops_a_targets_own_check() {
    let checking = "title = 'Checking'
about = 'Its check has no end.'
modes = ['h1c-h1c']
start = ['true']
ready = { connect = '127.0.0.1:{{listen_port}}', timeout_ms = 1000 }
check = { command = ['sh', '-c', 'echo $$ >FOLDER/pid; exec sleep 1000'] }
";
    let small = Experiment::of(&[("checking/target.toml", checking)], &["target=[\"checking\"]"]);
    let lab = small.start("--out");
    let mut check = None;
    poll_until(PATIENCE, "the check", || {
        check = pid_in(&small.text("pid"));
        check.is_some()
    });
    lab.signal(Signal::INT);
    assert_eq!(lab.wait().code, Some(1));
    assert!(check.is_none_or(is_gone));
}
