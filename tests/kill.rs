//! An experiment that loses the lab, its target or its load engine half-way: nothing is left running, what is stored can
//! be read, and the experiment can go on.

mod common;

use common::{DEADLINE, Ended, Weir, poll_until};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Long enough for a busy machine to start three processes and to be killed in the middle.
const PATIENCE: Duration = Duration::from_secs(120);

struct Folder(tempfile::TempDir);

impl Folder {
    fn new(window_ms: u32) -> Self {
        let folder = Self(tempfile::tempdir().unwrap());
        let targets = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../targets");
        let text = format!(
            "name = 'kill'
question = 'Does it go on?'
targets_directory = '{}'
blocks = 3
seed = 1
[factors]
target = ['floor']
[constants]
mode = 'h1c-h1c'
load_model = 'saturated'
connections = 4
bytes = 10
warmup_ms = 100
window_ms = {window_ms}
",
            targets.canonicalize().unwrap().display()
        );
        fs::write(folder.file("experiment.toml"), text).unwrap();
        folder
    }

    fn file(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn words(&self, name: &str) -> String {
        self.file(name).to_str().unwrap().to_owned()
    }

    fn start(&self) -> Weir {
        Weir::spawn(&["run", &self.words("experiment.toml"), "--out", &self.words("out")])
    }

    fn go_on(&self, window_ms: u32) -> Ended {
        let text = fs::read_to_string(self.file("experiment.toml")).unwrap();
        assert!(text.contains(&format!("window_ms = {window_ms}\n")));
        Weir::run(&["run", &self.words("experiment.toml"), "--continue", &self.words("out")])
    }

    /// The runs that are stored, by their names.
    fn runs(&self) -> Vec<Value> {
        let mut paths: Vec<PathBuf> =
            fs::read_dir(self.file("out/runs")).unwrap().map(|entry| entry.unwrap().path()).collect();
        paths.sort();
        paths.iter().map(|path| serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()).collect()
    }

    /// The processes that this experiment's lab has started, by what they were told.
    fn children_of(&self, lab: u32, word: &str) -> Vec<Pid> {
        let mut found = Vec::new();
        for entry in fs::read_dir("/proc").unwrap().flatten() {
            let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse::<i32>().ok()) else {
                continue;
            };
            let stat = fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
            let parent =
                stat.rsplit(") ").next().and_then(|rest| rest.split(' ').nth(1)?.parse::<u32>().ok());
            let told = fs::read(entry.path().join("cmdline")).unwrap_or_default();
            if parent == Some(lab) && String::from_utf8_lossy(&told).split('\0').nth(1) == Some(word) {
                found.extend(Pid::from_raw(pid));
            }
        }
        found
    }
}

fn is_gone(pid: Pid) -> bool {
    let stat = fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero())).unwrap_or_default();
    stat.is_empty() || stat.contains(") Z ")
}

/// Waits until the lab has the three processes of a run.
fn until_running(folder: &Folder, lab: &Weir) -> [Pid; 3] {
    let mut found = Vec::new();
    poll_until(PATIENCE, "a run's processes", || {
        found =
            ["origin", "relay", "load"].iter().flat_map(|word| folder.children_of(lab.pid(), word)).collect();
        found.len() == 3
    });
    [found[0], found[1], found[2]]
}

#[test]
fn a_killed_lab_leaves_nothing_running_and_can_go_on() {
    let folder = Folder::new(2000);
    let lab = folder.start();
    // Not in the first run, so that there is something stored to go on from.
    poll_until(PATIENCE, "a stored run", || folder.file("out/runs").exists() && !folder.runs().is_empty());
    let processes = until_running(&folder, &lab);
    let guards = folder.children_of(lab.pid(), "guard");
    assert_eq!(guards.len(), 1);
    kill_process(Pid::from_raw(lab.pid() as i32).unwrap(), Signal::KILL).unwrap();
    assert_eq!(lab.wait().code, None);
    for pid in processes.into_iter().chain(guards) {
        poll_until(DEADLINE, "a process is gone", || is_gone(pid));
    }
    let before = folder.runs().len();
    assert!((1..3).contains(&before), "{before}");
    let ended = folder.go_on(2000);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let runs = folder.runs();
    assert_eq!(runs.len(), 3);
    assert!(runs.iter().all(|run| run["validity"] == "valid"), "{runs:?}");
}

/// An interrupt by the terminal is the same, but orderly: the lab says how to go on.
#[test]
fn an_interrupted_lab_says_how_to_go_on() {
    let folder = Folder::new(2000);
    let lab = folder.start();
    let processes = until_running(&folder, &lab);
    kill_process(Pid::from_raw(lab.pid() as i32).unwrap(), Signal::INT).unwrap();
    let ended = lab.wait();
    assert_eq!(ended.code, Some(1));
    assert!(ended.stderr.contains("continue with --continue"), "{}", ended.stderr);
    assert!(processes.into_iter().all(is_gone), "the lab has ended them itself");
    assert_eq!(folder.go_on(2000).code, Some(0));
    assert_eq!(folder.runs().len(), 3);
}

#[test]
fn a_killed_target_or_load_engine_spoils_its_run_alone() {
    for (place, word) in [(1, "target"), (2, "load")] {
        let folder = Folder::new(1500);
        let lab = folder.start();
        let processes = until_running(&folder, &lab);
        kill_process(processes[place], Signal::KILL).unwrap();
        let ended = lab.wait();
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
        assert!(processes.into_iter().all(is_gone));
        let runs = folder.runs();
        assert_eq!(runs.len(), 3);
        let validity: Vec<&str> = runs.iter().map(|run| run["validity"].as_str().unwrap()).collect();
        assert!(validity[0].starts_with("invalid: "), "{word}: {validity:?}");
        assert_eq!(&validity[1..], ["valid", "valid"], "{word}");
        assert!(ended.stdout.contains("invalid"), "{}", ended.stdout);
    }
}
