//! Outbound TLS of Node.js versions: each setting has the stated effect on the origin's counts of connections and
//! handshakes.

use crate::common::load::undisturbed;
use crate::common::{Experiment, Weir, all_count, peer, runs_in};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;
use weir_tls::issue::{Authority, KeyKind};

/// The versions that differ most: the study's, the first with its own TLS layer, and the newest.
const VERSIONS: [&str; 3] = ["node-0.10", "node-0.12", "node-26"];

/// The users of the load.
const USERS: f64 = 4.0;

fn targets() -> String {
    concat!(env!("CARGO_MANIFEST_DIR"), "/../../targets").to_owned()
}

fn weir(args: &[&str]) -> String {
    // An installation, or a whole experiment on a busy machine.
    let ended = Weir::run_within(Duration::from_secs(300), args);
    assert_eq!(ended.code, Some(0), "{args:?}: {}", ended.stderr);
    ended.stdout
}

/// Targets, as a TOML list, in a closed loop with short windows.
fn experiment(names: &str, settings: &str) -> String {
    format!(
        "name = 'outbound'
question = 'Does each setting mean what it says?'
targets_directory = '{}'
blocks = 1
seed = 1
[factors]
target = {names}
[constants]
mode = 'h1c-h1'
load_model = 'saturated'
origin = 'openssl'
upstream_connections = 'any'
users = {USERS}
bytes = 100
warmup_ms = 300
window_ms = 500
[constants.tls]
certificate = 'rsa-2048'
group = 'p256'
[constants.settings]
{settings}
",
        targets()
    )
}

/// Responses, and the origin's counts of connections and resumptions, by target.
fn counted(settings: &str) -> BTreeMap<String, [f64; 3]> {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    fs::write(file("experiment.toml"), experiment(&format!("{VERSIONS:?}"), settings)).unwrap();
    // On a busy machine a run may be too slow to be compared, but its counts are still valid.
    weir(&["run", &file("experiment.toml"), "--out", &file("out"), "--allow-invalid"]);
    let mut counted = BTreeMap::new();
    for entry in fs::read_dir(file("out/runs")).unwrap() {
        let run: Value = serde_json::from_str(&fs::read_to_string(entry.unwrap().path()).unwrap()).unwrap();
        assert!(run["observation"]["failure"].is_null(), "{}", run["observation"]);
        let number = |value: &Value| value.as_f64().unwrap();
        let (seen, answered) = (&run["observation"], number(&run["observation"]["load"]["answered_in_all"]));
        let resumed = number(&seen["upstream_handshakes"]["resumed"]);
        let of = [answered, number(&seen["upstream_connections"]), resumed];
        // Regression test: the server did not restrict the groups, and versions 0.10 to 0.12 chose P-521.
        for name in seen["upstream_handshakes"]["negotiated"].as_object().unwrap().keys() {
            let is_key_exchange = name.starts_with("TLSv1.3 ") || name.ends_with(" full");
            assert_eq!(name.contains(" P-256 "), is_key_exchange, "{name}");
            assert_eq!(name.ends_with(" rsa-2048 by rsa full"), name.ends_with(" full"), "{name}");
        }
        counted.insert(run["cell"]["subject"].as_str().unwrap().to_owned(), of);
    }
    assert_eq!(counted.len(), VERSIONS.len(), "{counted:?}");
    counted
}

/// Advice on a result, and the experiment for which it asks.
#[test]
fn missing_keep_alive_is_found_in_a_result_and_proved() {
    if [peer("npm"), peer("node"), peer("perf")].iter().any(Option::is_none) {
        return;
    }
    weir(&["targets", "install", "node-26", "--directory", &targets()]);
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    fs::write(file("experiment.toml"), experiment("['node-26']", "keep_alive = 'off'")).unwrap();
    weir(&["run", &file("experiment.toml"), "--out", &file("out"), "--allow-invalid", "--profile"]);
    let state = folder.path().join("state");
    let mut advice = Value::Null;
    undisturbed("a proof", || {
        // Removes the result of an earlier attempt.
        let _ = fs::remove_dir_all(file("out/proofs"));
        let proved = Command::new(env!("CARGO_BIN_EXE_weir"))
            .args(["advise", &file("out"), "--prove", "--blocks", "6", "--json", "-"])
            .env("XDG_STATE_HOME", &state)
            .output()
            .unwrap();
        assert!(proved.status.success(), "{}", String::from_utf8_lossy(&proved.stderr));
        advice = serde_json::from_slice(&proved.stdout).unwrap();
        let proof = advice["proofs"][0]["directory"].as_str().expect("a proof");
        all_count(&runs_in(&Path::new(proof).join("runs")))
    });
    let [finding, ..] = advice["targets"][0]["findings"].as_array().unwrap().as_slice() else {
        panic!("{advice}");
    };
    assert_eq!(finding["id"], "upstream-keep-alive", "{finding}");
    assert!(finding["gain"]["high"].as_f64().unwrap() > 0.5, "{finding}");
    let proof = &advice["proofs"][0];
    assert_eq!(
        (&proof["rule"], &proof["outcome"]),
        (&"upstream-keep-alive".into(), &"proved".into()),
        "{proof}"
    );
    assert!(state.join("weir/predictions.jsonl").exists());
    let report = fs::read_to_string(file("out/report.html")).unwrap();
    for words in ["What to change", "How the rules fared on this machine so far", ">proved<"] {
        assert!(report.contains(words), "{words}");
    }
}

/// Regression test: `--set tls.version=1.2` was accepted and changed nothing.
#[test]
fn a_setting_that_the_far_server_ignores_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("experiment.toml");
    fs::write(&file, experiment("['node-26']", "keep_alive = 'off'")).unwrap();
    let plan = |set: &str| Weir::run(&["plan", file.to_str().unwrap(), "--set", set]);
    for (set, ignored) in [
        ("tls.version=1.2", true),
        ("tls.suite=aes256-gcm-sha384", true),
        ("tls.tickets=0", true),
        ("tls.group=x25519", false),
        ("tls.certificate=ecdsa-p256", false),
    ] {
        let ended = plan(set);
        let is_refused = ended.stderr.contains("has no effect: the origin `openssl` accepts any client");
        assert_eq!((ended.code == Some(2), is_refused), (ignored, ignored), "{set}: {}", ended.stderr);
    }
    let ended = plan("cores.origin=[0, 1]");
    let why = "--set cores.origin=[0, 1]: `0,1`: the origin `openssl` has one thread: expected one core";
    assert!(ended.code == Some(2) && ended.stderr.contains(why), "{}", ended.stderr);
}

/// A continued result keeps its certificates: here, certificates from another kind of CA replace them.
#[test]
fn another_chain_at_the_far_server_invalidates_the_run() {
    if peer("node").is_none() {
        return;
    }
    let tls = ["tls.group=p256", "tls.certificate=rsa-2048"];
    let set = ["target=[\"weir\"]", "mode=h1c-h1", "origin=openssl", tls[0], tls[1]];
    let small = Experiment::of_repository(&set);
    let names = |run: &Value| -> Vec<String> {
        let negotiated = run["observation"]["upstream_handshakes"]["negotiated"].as_object().unwrap();
        negotiated.keys().filter(|name| name.ends_with(" full")).cloned().collect()
    };
    let runs = small.run_undisturbed();
    assert_eq!(names(&runs[0]), ["TLSv1.3 TLS_AES_128_GCM_SHA256 P-256 rsa-2048 by rsa full"]);
    let other = Authority::with_keys(KeyKind::EcdsaP256).unwrap();
    let other = other.issue(&["localhost", "127.0.0.1"], KeyKind::Rsa2048).unwrap();
    other.write_to(&small.file("out/tls/rsa-2048")).unwrap();
    weir(&["run", "--continue", small.file("out").to_str().unwrap(), "--blocks", "2", "--allow-invalid"]);
    let runs = small.runs();
    let found = "TLSv1.3 TLS_AES_128_GCM_SHA256 P-256 rsa-2048 by ecdsa full";
    assert_eq!(names(&runs[1]), [found]);
    let validity = runs[1]["validity"].as_str().unwrap();
    assert!(validity.starts_with("invalid: far server: "), "{validity}");
    assert!(validity.ends_with(&format!("`{found}`, expected P-256 and rsa-2048 by rsa")), "{validity}");
}

#[test]
fn each_setting_means_what_it_says() {
    if peer("npm").is_none() || peer("node").is_none() {
        return;
    }
    for version in VERSIONS {
        weir(&["targets", "install", version, "--directory", &targets()]);
    }
    // On a busy machine there are few requests. For each user, one side may have counted one request more.
    for (version, [answered, connections, resumed]) in counted("resumption = 'off'") {
        assert!(connections + USERS > 0.95 * answered, "{version}: {connections} of {answered}");
        assert_eq!(resumed, 0.0, "{version}");
    }
    for (version, [answered, connections, resumed]) in counted("resumption = 'wrapper'") {
        assert!(connections + USERS > 0.95 * answered, "{version}: {connections} of {answered}");
        // The first connections of each user have no session yet.
        assert!(resumed + USERS > 0.5 * answered, "{version}: {resumed} of {answered}");
    }
    for (version, [answered, connections, _]) in counted("keep_alive = 'own'") {
        // Version 0.10 keeps a connection only while a request waits for it.
        let is_kept = connections < 0.2 * answered + USERS;
        assert_eq!(is_kept, version != "node-0.10", "{version}: {connections} of {answered}");
    }
}
