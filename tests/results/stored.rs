//! Results of one tiny experiment, and copies of them with other values.

use crate::common::{Ended, Weir};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use tempfile::TempDir;

const EXPERIMENT: &str = r#"name = "tiny"
question = "Which of two?"
baseline = ["floor"]
blocks = 6
seed = 1
[factors]
target = ["weir", "floor"]
[constants]
mode = "h1c-h1c"
load_model = "saturated"
connections = 2
bytes = 100
warmup_ms = 20
window_ms = 30
[[claims]]
id = "cheap"
source = "the test"
says = "weir costs at most twice as much as the floor"
cell = { target = "weir" }
against = { target = "floor" }
metric = "cpu_us_per_request"
expect = "<= 2"
"#;

/// The results of the tiny experiment.
fn tiny() -> &'static Path {
    static TINY: OnceLock<(TempDir, PathBuf)> = OnceLock::new();
    let (_, results) = TINY.get_or_init(|| {
        // A static is never dropped, so its folder stays: in the target directory, not the system's.
        let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let file = directory.path().join("tiny.toml");
        let targets = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../targets");
        fs::write(&file, format!("targets_directory = {targets:?}\n{EXPERIMENT}")).unwrap();
        let results = directory.path().join("tiny");
        let Ended { code, stderr, .. } =
            Weir::run(&["run", text(&file), "--out", text(&results), "--allow-invalid"]);
        assert_eq!(code, Some(0), "{stderr}");
        (directory, results)
    });
    results
}

pub(crate) fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// The values of a stored result.
pub(crate) struct Stored<'a> {
    pub(crate) started: u64,
    /// Versions and CPU microseconds of the targets.
    pub(crate) targets: [(&'a str, &'a str, f64); 2],
}

pub(crate) const BEFORE: Stored<'static> =
    Stored { started: 1_000_000, targets: [("weir", "1", 20.0), ("floor", "5", 10.0)] };

/// A copy of the tiny results with these values.
pub(crate) fn store(directory: &TempDir, name: &str, stored: &Stored<'_>) -> PathBuf {
    let results = directory.path().join(name);
    fs::create_dir_all(results.join("runs")).unwrap();
    fs::copy(tiny().join("plan.json"), results.join("plan.json")).unwrap();
    let mut runs: Vec<Value> = Vec::new();
    for entry in fs::read_dir(tiny().join("runs")).unwrap() {
        runs.push(read(&entry.unwrap().path()));
    }
    // A busy machine can invalidate a run, but hardly all six of a target.
    let load_of = |target: &str| {
        let of_target = runs.iter().filter(|run| run["cell"]["name"] == target);
        of_target.map(|run| &run["observation"]["load"]).find(|load| load.is_object()).unwrap().clone()
    };
    let loads: BTreeMap<&str, Value> =
        stored.targets.iter().map(|(target, ..)| (*target, load_of(target))).collect();
    for mut run in runs.clone() {
        let target = run["cell"]["name"].as_str().unwrap().to_owned();
        let (_, _, cost) = stored.targets.iter().find(|(name, ..)| *name == target).unwrap();
        let block = run["stage"]["block"].as_u64().unwrap();
        // One percent either way, in another order for each target.
        let wobble = 1.0 + 0.002 * ((block * (3 + cost.to_bits() % 5)) % 7) as f64;
        let mut load = loads[target.as_str()].clone();
        load["window_s"] = json!(run["window_ms"].as_f64().unwrap() / 1000.0);
        load["errors"] = json!({});
        load["validity"] = json!("valid");
        load["requests_per_second"] = json!(1e6 / (cost * wobble));
        for server in load["servers"].as_array_mut().unwrap() {
            if server["role"] == "gateway" {
                server["cpu_us_per_request"] = json!(cost * wobble);
                server["utilisation"] = json!(0.99);
            }
        }
        run["observation"]["load"] = load;
        run["observation"]["failure"] = Value::Null;
        run["observation"]["upstream_connections"] = json!(2);
        write(&results.join(format!("runs/{}.json", run["id"].as_str().unwrap())), &run);
    }
    let versions: BTreeMap<&str, &str> =
        stored.targets.iter().map(|(target, version, _)| (*target, *version)).collect();
    edit(&tiny().join("machine.json"), &results.join("machine.json"), |machine| {
        machine["started_unix"] = json!(stored.started);
        machine["versions"] = json!(versions);
    });
    results
}

fn read(path: &Path) -> Value {
    serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()
}

fn write(path: &Path, value: &Value) {
    fs::write(path, value.to_string()).unwrap();
}

pub(crate) fn edit(from: &Path, to: &Path, change: impl FnOnce(&mut Value)) {
    let mut value = read(from);
    change(&mut value);
    write(to, &value);
}
