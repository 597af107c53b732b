//! Duets of two gateways, and the installation of a target before a run.

use crate::common::{Experiment, Weir};
use serde_json::Value;
use std::collections::BTreeSet;
use std::io::Write;
use std::process::{Command, Output, Stdio};

#[test]
fn two_gateways_share_a_core_and_a_window() {
    let set = [
        "target=[\"weir\",\"floor\"]",
        "baseline=[\"floor\"]",
        "layout=duet",
        "alone_blocks=1",
        "window_ms=400",
    ];
    let runs = Experiment::of_repository(&set).run();
    let of = |name: &str, is_beside: bool| {
        let is = |run: &&Value| run["cell"]["name"] == name && run["beside"].is_string() == is_beside;
        runs.iter().find(is).unwrap_or_else(|| panic!("no run of {name}"))
    };
    assert_eq!(runs.len(), 4, "one duet, and each alone");
    let duet = ["weir", "floor"].map(|name| of(name, true));
    assert_eq!((&duet[0]["beside"], &duet[1]["beside"]), (&duet[1]["cell"]["id"], &duet[0]["cell"]["id"]));
    let mut ports = BTreeSet::new();
    let mut windows = Vec::new();
    for run in duet {
        let seen = &run["observation"];
        assert!(seen["failure"].is_null(), "{seen}");
        assert!(seen["common_share"].as_f64().unwrap() > 0.5, "{}", seen["common_share"]);
        let load = &seen["load"];
        let from = load["window_boot_s"].as_f64().unwrap();
        windows.push((from, from + load["window_s"].as_f64().unwrap()));
        ports.insert(load["url"].as_str().unwrap().to_owned());
        let processes = seen["processes"].as_array().unwrap();
        assert!(
            processes.iter().all(|one| one["role"] != "target"
                || one["cores"] == duet[0]["observation"]["processes"][1]["cores"])
        );
    }
    assert_eq!(ports.len(), 2, "each engine has its own gateway");
    assert!(windows[0].0 < windows[1].1 && windows[1].0 < windows[0].1, "{windows:?}");
    for name in ["weir", "floor"] {
        assert!(of(name, false)["observation"]["common_share"].is_null());
    }
}

#[test]
fn an_invalid_start_stops_the_engine() {
    let origin = Weir::start(&["origin", "--listen", "http://127.0.0.1:0", "--workers", "1"]);
    for said in ["soon\n", ""] {
        let mut load = Command::new(env!("CARGO_BIN_EXE_weir"));
        load.args(["load", &origin.urls[0], "-c", "1", "-d", "50ms", "--rendezvous"]);
        load.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut load = load.spawn().unwrap();
        load.stdin.take().unwrap().write_all(said.as_bytes()).unwrap();
        let ended = load.wait_with_output().unwrap();
        let words = String::from_utf8(ended.stderr).unwrap();
        assert_eq!(ended.status.code(), Some(2), "{words}");
        let why = format!("--rendezvous: `{}` on standard input: expected the start", said.trim());
        assert!(words.starts_with("open\n") && words.contains(&why), "{words}");
    }
}

/// A target that a script installs: Weir's relay under another name.
fn made(script: &str) -> Experiment {
    let description = "title = 'Made'
about = 'A relay of this test.'
modes = ['h1c-h1c']
requires = '{{installed}}/made'
start = ['{{installed}}/made', 'relay', '--workers', '1', '--listen', 'http://{{listen_address}}:{{listen_port}}', \
'--to', 'http://{{upstream_address}}:{{upstream_port}}']
ready = { connect = '{{listen_address}}:{{listen_port}}', timeout_ms = 20000 }
[install]
script = 'install.sh'
takes = 'no time'
";
    let relay = description
        .replace("{{installed}}/made", "{{weir}}")
        .split("[install]")
        .next()
        .map(str::to_owned)
        .unwrap();
    let files =
        [("made/target.toml", description), ("made/install.sh", script), ("relay/target.toml", &relay)];
    Experiment::of(&files, &["target=[\"relay\",{name=\"made\",install=true}]", "baseline=[\"relay\"]"])
}

fn run(experiment: &Experiment, more: &[&str]) -> Output {
    let mut weir = Command::new(env!("CARGO_BIN_EXE_weir"));
    weir.args(experiment.words("--out")).arg("--allow-invalid").args(more);
    weir.env("WEIR_TARGETS", experiment.file("installed")).output().unwrap()
}

fn subjects(experiment: &Experiment) -> Vec<String> {
    experiment.runs().iter().map(|run| run["cell"]["subject"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn an_absent_target_is_installed_if_the_experiment_asks() {
    let script = format!("cp '{}' \"$WEIR_INSTALL/made\"", env!("CARGO_BIN_EXE_weir"));
    let target = made(&script);
    let ended = run(&target, &[]);
    let said = String::from_utf8(ended.stderr).unwrap();
    assert!(said.contains("made: installing into ") && said.contains("once (takes no time)"), "{said}");
    let mut subjects = subjects(&target);
    subjects.sort();
    assert_eq!(subjects, ["made", "relay"], "{said}");
}

#[test]
fn a_target_that_fails_to_install_is_left_out_and_reported() {
    let broken = made("echo no compiler; exit 3");
    let ended = run(&broken, &[]);
    let said = String::from_utf8(ended.stderr).unwrap();
    assert!(
        said.contains("no compiler") && said.contains("made: skipped; the others are measured"),
        "{said}"
    );
    assert_eq!(subjects(&broken), ["relay"], "{said}");
    let unasked = made("echo it ran");
    let ended = run(&unasked, &["--no-install"]);
    let said = String::from_utf8(ended.stderr).unwrap();
    assert!(
        !said.contains("it ran") && said.contains("install it with `weir targets install made`"),
        "{said}"
    );
    assert_eq!(subjects(&unasked), ["relay"], "{said}");
}
