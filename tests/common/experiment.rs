//! A small experiment: its file, targets and results in a temporary directory.

use super::Weir;
use super::load::undisturbed;
use rustix::process::Pid;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};

/// The experiment's fixed settings.
const TEXT: &str = "name = 'small'
question = 'Does it work?'
blocks = 1
seed = 1
[factors]
target = ['floor']
[constants]
mode = 'h1c-h1c'
load_model = 'saturated'
connections = 4
bytes = 10
warmup_ms = 100
window_ms = 200
";

pub struct Experiment {
    folder: tempfile::TempDir,
    set: Vec<String>,
}

impl Experiment {
    /// An experiment with this repository's targets; each of `set` is a `KEY=VALUE`.
    pub fn of_repository(set: &[&str]) -> Self {
        let targets = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../targets");
        Self::new(&targets.canonicalize().unwrap(), tempfile::tempdir().unwrap(), set)
    }

    /// An experiment with its own targets; `files` are paths in the targets' directory with their contents, in which
    /// `FOLDER` stands for the experiment's directory.
    pub fn of(files: &[(&str, &str)], set: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let targets = folder.path().join("targets");
        for (name, text) in files {
            let path = targets.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text.replace("FOLDER", folder.path().to_str().unwrap())).unwrap();
        }
        Self::new(&targets, folder, set)
    }

    fn new(targets: &Path, folder: tempfile::TempDir, set: &[&str]) -> Self {
        let text = format!("targets_directory = {targets:?}\n{TEXT}");
        fs::write(folder.path().join("experiment.toml"), text).unwrap();
        Self { folder, set: set.iter().map(|pair| (*pair).to_owned()).collect() }
    }

    pub fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The text of a file; empty if it does not exist.
    pub fn text(&self, name: &str) -> String {
        fs::read_to_string(self.file(name)).unwrap_or_default()
    }

    /// The arguments that run the experiment; `results` is `--out` or `--continue`.
    pub fn words(&self, results: &str) -> Vec<String> {
        let path = |name| self.file(name).to_str().unwrap().to_owned();
        let set = self.set.iter().flat_map(|pair| ["--set".to_owned(), pair.clone()]);
        ["run".into(), path("experiment.toml"), results.into(), path("out")].into_iter().chain(set).collect()
    }

    /// Starts the experiment, or continues it with `--continue`.
    pub fn start(&self, results: &str) -> Weir {
        let words = self.words(results);
        Weir::spawn(&words.iter().map(String::as_str).collect::<Vec<_>>())
    }

    /// Runs the experiment to completion, and again if the machine disturbed it; returns the runs of the valid attempt.
    pub fn run_undisturbed(&self) -> Vec<Value> {
        let mut runs = Vec::new();
        undisturbed("experiment", || {
            // The previous attempt's results.
            let _ = fs::remove_dir_all(self.file("out"));
            runs = self.run();
            all_count(&runs)
        });
        runs
    }

    /// Runs the experiment to completion and returns its runs.
    #[track_caller]
    pub fn run(&self) -> Vec<Value> {
        // A busy machine may disturb a run; each test checks its own runs.
        let words = [self.words("--out"), vec!["--allow-invalid".into()]].concat();
        let ended = Weir::run(&words.iter().map(String::as_str).collect::<Vec<_>>());
        assert_eq!(ended.code, Some(0), "{}{}", ended.stdout, ended.stderr);
        self.runs()
    }

    /// The stored runs, by name.
    pub fn runs(&self) -> Vec<Value> {
        runs_in(&self.file("out/runs"))
    }
}

/// The runs stored in a directory, by name; none if it does not exist.
pub fn runs_in(directory: &Path) -> Vec<Value> {
    let Ok(entries) = fs::read_dir(directory) else { return Vec::new() };
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    // Skip a file that is being written.
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "json"));
    paths.sort();
    paths.iter().map(|path| serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()).collect()
}

/// Causes of invalid runs on a machine that shares its cores.
const DISTURBED: [&str; 7] = [
    "invalid: load: timed out",
    "invalid: window: ",
    "invalid: warm-up: ",
    "invalid: duet: ",
    "invalid: pacer: ",
    "invalid: load engine: pacer",
    "invalid: no response was received",
];

/// Fails if the machine disturbed a run.
///
/// # Errors
/// The validity of such a run.
///
/// # Panics
/// If a run is invalid for any other reason.
pub fn all_count(runs: &[Value]) -> Result<(), String> {
    let mut disturbed = Ok(());
    for run in runs.iter().filter(|run| run["validity"] != "valid") {
        let validity = run["validity"].as_str().unwrap();
        assert!(DISTURBED.iter().any(|start| validity.starts_with(start)), "{}: {validity}", run["id"]);
        disturbed = Err(validity.to_owned());
    }
    disturbed
}

/// Whether a process has exited, reaped or not.
pub fn is_gone(pid: Pid) -> bool {
    let stat = fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero())).unwrap_or_default();
    stat.is_empty() || stat.contains(") Z ")
}

/// Parses the process ID in a file's text; `None` while the line is incomplete.
pub fn pid_in(text: &str) -> Option<Pid> {
    Pid::from_raw(text.strip_suffix('\n')?.parse().ok()?)
}
