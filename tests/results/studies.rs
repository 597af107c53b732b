//! `weir studies run`, with tiny experiments under the names of a study's experiments.

use crate::common::Ended;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

/// Study S4's experiments.
const EXPERIMENTS: [&str; 2] = ["outbound", "outbound-settings"];

const TINY: &str = r#"question = "Which of two?"
baseline = ["floor"]
blocks = 1
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
source = "S4"
says = "weir costs at most a thousand times as much as the floor"
cell = { target = "weir" }
against = { target = "floor" }
metric = "cpu_us_per_request"
expect = "<= 1000"
"#;

fn measure(folder: &Path) -> Ended {
    let mut weir = Command::new(env!("CARGO_BIN_EXE_weir"));
    weir.args(["studies", "run", "S4", "--no-install", "--out", "kept"]);
    let ended = weir.current_dir(folder).stdin(Stdio::null()).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    Ended { code: ended.status.code(), stdout: text(ended.stdout), stderr: text(ended.stderr) }
}

#[test]
fn each_experiment_of_a_study_has_a_directory_below_out() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    fs::create_dir(path("experiments")).unwrap();
    let targets = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../targets");
    for name in EXPERIMENTS {
        let text = format!("name = {name:?}\ntargets_directory = {targets:?}\n{TINY}");
        fs::write(path("experiments").join(name).with_extension("toml"), text).unwrap();
    }

    let Ended { code, stdout, stderr } = measure(folder.path());
    // A busy machine may invalidate windows of 30 ms.
    assert!(matches!(code, Some(0 | 3)), "{stdout}{stderr}");
    for name in EXPERIMENTS {
        assert!(stdout.contains(&format!("Report: kept/{name}/report.html")), "{stdout}{stderr}");
        assert!(path("kept").join(name).join("summary.json").is_file(), "{name}");
    }
    assert!(!path("out").exists(), "the default directory");

    // One existing directory is enough for an error, which comes before any measurement.
    fs::remove_dir_all(path("kept/outbound")).unwrap();
    let Ended { code, stdout, stderr } = measure(folder.path());
    assert_eq!((code, stdout.as_str()), (Some(1), ""), "{stderr}");
    let words = "kept/outbound-settings: cannot hold new results: the directory is not empty";
    assert!(stderr.contains(words), "{stderr}");
    assert!(!path("kept/outbound").exists());
}
