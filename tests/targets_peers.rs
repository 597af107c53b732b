//! Other gateways as targets of the lab: each accepts its rendered configuration, and a small experiment with it has
//! valid runs with correct responses.

use crate::common::load::undisturbed;
use crate::common::{Experiment, all_count, peer};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::{Mutex, PoisonError};

/// Enough for all handshakes on a busy machine.
const WARMUP_MS: u32 = 1000;

/// The same for a JVM, which starts in interpreted mode.
const JVM_WARMUP_MS: u32 = 8000;

/// The modes of every gateway.
const HTTP1: [&str; 4] = ["h1-h1", "h1-h1c", "h1c-h1", "h1c-h1c"];

/// The further modes of a gateway that speaks HTTP/2 to clients.
const TO_CLIENTS: [&str; 3] = ["h2-h1", "h2-h1c", "h2c-h1c"];

/// The further modes of a gateway that also speaks HTTP/2 to servers.
const TO_SERVERS: [&str; 2] = ["h2-h2", "h2c-h2c"];

/// One test at a time: each target gets the same core, and a build uses all cores.
static CORE: Mutex<()> = Mutex::new(());

/// SHA-256 of the origin's response to `/bytes/1000`, which is `0123456789ab..` (`curl .. | sha256sum`).
const BYTES_1000: &str = "51b7afcd604d94ccdb168fefa73ed9287cfc466ede9a4d44fc401efe1e65f315";

/// SHA-256 of 2000 times `Weir `: more than one read of most gateways (`yes 'Weir ' | tr -d '\n' | head -c 10000 |
/// sha256sum`).
const BODY_10000: &str = "67ca52e5850000b074eb067135815405684334f3f2f7ab96ca4341b64e6166f6";

#[test]
fn nginx() {
    check_target("nginx", "nginx", &TO_CLIENTS, WARMUP_MS);
}

#[test]
fn haproxy() {
    check_target("haproxy", "haproxy", &[&TO_CLIENTS[..], &TO_SERVERS].concat(), WARMUP_MS);
}

#[test]
fn h2o() {
    check_target("h2o", "h2o", &TO_CLIENTS, WARMUP_MS);
}

/// Each target must route the experiment's requests, with checked responses, and keep its connections to the servers
/// alive.
#[test]
fn gateways_configured_by_an_operator() {
    if peer("nginx").is_none() || peer("haproxy").is_none() {
        return;
    }
    let _core = CORE.lock().unwrap_or_else(PoisonError::into_inner);
    let requests = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../experiments/gateway-real.jsonl");
    let requests = format!("load.requests={:?}", requests.canonicalize().unwrap());
    let targets = "target=[\"weir-real\", \"nginx-real\", \"haproxy-real\"]";
    let modes = "mode=[\"h1c-h1c\", \"h1-h1\"]";
    let warmup = format!("warmup_ms={WARMUP_MS}");
    let set = [targets, modes, "origin_servers=4", "upstream_connections=any", &requests, &warmup];
    let runs = Experiment::of_repository(&set).run_undisturbed();
    assert_eq!(runs.len(), 2 * 3);
    for run in runs {
        let opened = run["observation"]["upstream_connections"].as_u64().unwrap();
        let answered = run["observation"]["load"]["answered_in_all"].as_u64().unwrap();
        assert!(opened < answered / 4, "{}: {opened} connections for {answered} requests", run["id"]);
    }
}

/// A target that ignores the number gets invalid runs: otherwise three cells would be equal.
#[test]
fn nginx_sends_the_configured_number_of_tickets() {
    if peer("nginx").is_none() {
        return;
    }
    let _core = CORE.lock().unwrap_or_else(PoisonError::into_inner);
    let levels = ["tls.tickets=[0, 1, 4]", "load.new-connection=true"];
    let set = ["target=[\"nginx\", \"weir\"]", "mode=h1-h1c", levels[0], levels[1]];
    let runs = Experiment::of_repository(&set).run_undisturbed();
    assert_eq!(runs.len(), 2 * 3);
    for run in runs {
        let number = &run["cell"]["levels"]["tls.tickets"];
        let given = &run["observation"]["load"]["handshakes"]["tickets"]["full"];
        assert_eq!((&given["least"], &given["most"]), (number, number), "{}", run["id"]);
    }
}

/// The target's install script builds it in seconds.
#[test]
fn go() {
    check_target("go", "go", &[&TO_CLIENTS[..], &TO_SERVERS].concat(), WARMUP_MS);
}

#[test]
fn node() {
    check_target("node", "node", &[], WARMUP_MS);
}

/// The JVM target. Its install script builds it with Maven, which takes a minute or two the first time.
#[test]
fn wso2_transport() {
    check_target("wso2-transport", "mvn", &["h2-h1", "h2-h1c", "h2-h2"], JVM_WARMUP_MS);
}

/// All checks of a target, in the modes with HTTP/1.1 and in these; requires `program` on this machine. Installs a
/// target with an install script first.
#[track_caller]
fn check_target(name: &str, program: &str, http2: &[&str], warmup_ms: u32) {
    if peer(program).is_none() {
        return;
    }
    let _core = CORE.lock().unwrap_or_else(PoisonError::into_inner);
    let description = fs::read_to_string(Path::new(&targets()).join(name).join("target.toml")).unwrap();
    if description.contains("\n[install]\n") {
        weir(&["targets", "install", name, "--directory", &targets()]);
    }
    let checked = weir(&["targets", "check", name, "--directory", &targets()]);
    let modes = BTreeSet::from_iter([&HTTP1[..], http2].concat());
    assert_eq!(checked.matches("accepted").count(), modes.len(), "{checked}");
    runs_are_valid(name, &modes, warmup_ms);
}

/// One run in each mode: every response is as expected, and upstream connections are reused (more of them than clients
/// would make a run invalid).
#[track_caller]
fn runs_are_valid(name: &str, expected: &BTreeSet<&str>, warmup_ms: u32) {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    fs::write(file("requests"), requests()).unwrap();
    fs::write(file("experiment.toml"), experiment(name, expected, warmup_ms)).unwrap();
    let mut runs: Vec<Value> = Vec::new();
    undisturbed(name, || {
        // Removes the result of an earlier attempt.
        let _ = fs::remove_dir_all(file("out"));
        weir(&["run", &file("experiment.toml"), "--out", &file("out"), "--allow-invalid"]);
        let texts = fs::read_dir(file("out/runs")).unwrap().map(|entry| fs::read(entry.unwrap().path()));
        runs = texts.map(|text| serde_json::from_slice(&text.unwrap()).unwrap()).collect();
        all_count(&runs)
    });
    let mut modes = BTreeSet::new();
    for run in runs {
        let load = &run["observation"]["load"];
        assert!(load["requests"].as_u64() > Some(0) && load["errors"] == serde_json::json!({}), "{load}");
        modes.insert(run["cell"]["levels"]["mode"].as_str().unwrap().to_owned());
    }
    assert!(modes.iter().eq(expected), "{modes:?}");
}

/// Responses with Content-Length and in chunks, and bodies that must be echoed unchanged.
fn requests() -> String {
    let body = "Weir ".repeat(2000);
    format!(
        r#"
{{"path": "/bytes/1000", "expect": {{"status": 200, "sha256": "{BYTES_1000}"}}}}
{{"path": "/bytes/1000?chunked=1", "expect": {{"status": 200, "sha256": "{BYTES_1000}"}}}}
{{"path": "/echo", "body": "{body}", "expect": {{"status": 200, "sha256": "{BODY_10000}"}}}}
"#
    )
}

fn experiment(name: &str, modes: &BTreeSet<&str>, warmup_ms: u32) -> String {
    let modes = Vec::from_iter(modes);
    format!(
        "name = 'peer'
question = 'Does it work?'
targets_directory = '{}'
blocks = 1
seed = 1
[factors]
target = ['{name}']
mode = {modes:?}
streams = [1, 10]
[constants]
load_model = 'saturated'
connections = 100
bytes = 1000
warmup_ms = {warmup_ms}
window_ms = 500
load.requests = 'requests'
",
        targets()
    )
}

/// The targets of this repository.
fn targets() -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../targets");
    folder.canonicalize().unwrap().to_str().unwrap().to_owned()
}

/// Runs `weir ARGS`, which must succeed, and returns its output. Installed targets stay next to the tests' programs.
#[track_caller]
fn weir(args: &[&str]) -> String {
    let mut weir = Command::new(env!("CARGO_BIN_EXE_weir"));
    let place = Path::new(env!("CARGO_TARGET_TMPDIR")).join("targets");
    let ended = weir.args(args).env("WEIR_TARGETS", place).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (stdout, stderr) = (text(&ended.stdout), text(&ended.stderr));
    assert!(ended.status.success(), "weir {args:?}: {}\n{stdout}{stderr}", ended.status);
    stdout
}
