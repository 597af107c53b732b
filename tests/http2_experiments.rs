//! Experiments in HTTP/2 modes: users share connections, and each side uses the mode's version.

use crate::common::{Experiment, Weir};
use serde_json::Value;

/// 8 users on 2 connections of 4 streams.
const SET: [&str; 2] = ["users=8", "streams=4"];

/// Runs the experiment with these settings in addition to [`SET`], and returns its valid runs by mode.
fn runs(set: &[&str]) -> Vec<(String, Value)> {
    let runs = Experiment::of_repository(&[&SET, set].concat()).run_undisturbed();
    let mode = |run: &Value| run["cell"]["levels"]["mode"].as_str().unwrap().to_owned();
    runs.into_iter().map(|run| (mode(&run), run)).collect()
}

#[test]
fn users_are_streams_of_fewer_connections() {
    let runs = runs(&["target=weir", "mode=[\"h2c-h1c\", \"h2-h1c\"]"]);
    assert_eq!(runs.len(), 2);
    for (mode, run) in runs {
        let (observation, load) = (&run["observation"], &run["observation"]["load"]);
        let asked = &load["asked"];
        assert_eq!(
            (&asked["http"], &asked["connections"], &asked["streams"]),
            (&"2".into(), &2.into(), &4.into())
        );
        assert_eq!(
            (&load["connections_opened"], &load["errors"]),
            (&2.into(), &serde_json::json!({})),
            "{mode}"
        );
        assert!(load["http2"]["settings"][0]["count"].as_u64() == Some(2), "{mode}: {}", load["http2"]);
        let alpn = &load["handshakes"]["negotiated"][0]["alpn"];
        assert_eq!(alpn.as_str(), mode.starts_with("h2-").then_some("h2"), "{mode}");
        // Towards the server each user needs a connection; a busy machine may use fewer at once.
        let upstream = observation["upstream_connections"].as_u64().unwrap();
        assert!((1..=16).contains(&upstream), "{mode}: {upstream}");
        assert!(
            run["id"].as_str().unwrap().ends_with(&format!("request.{mode}.c8.b10.saturated.streams=4.weir"))
        );
    }
}

#[test]
fn http2_reaches_the_server_where_the_mode_has_it_there() {
    for set in [["target=weir", "mode=[\"h2c-h2c\", \"h2-h2\"]"], ["target=floor", "mode=h2c-h2c"]] {
        for (mode, run) in runs(&set) {
            let observation = &run["observation"];
            assert_eq!(observation["upstream_http1"], 0, "{mode}");
            assert!(observation["load"]["requests"].as_u64() > Some(0), "{mode}");
        }
    }
}

/// The lab detects a gateway whose version towards the server differs from the mode's.
#[test]
fn another_version_to_the_server_invalidates_the_run() {
    let gateway = "title = 'Other'
about = 'Speaks HTTP/1.1 to the server.'
modes = ['h2c-h2c']
start = ['{{weir}}', 'serve', '--workers', '1', '--listen', 'http://{{listen_address}}:{{listen_port}}', \
'--to', 'http://{{upstream_address}}:{{upstream_port}}']
ready = { connect = '{{listen_address}}:{{listen_port}}', timeout_ms = 20000 }
";
    let set = ["target=[\"other\"]", "mode=h2c-h2c", "streams=2"];
    let runs = Experiment::of(&[("other/target.toml", gateway)], &set).run();
    let validity = runs[0]["validity"].as_str().unwrap();
    let end = "requests reached the origin by HTTP/1.1, expected HTTP/2";
    assert!(validity.starts_with("invalid: version: ") && validity.ends_with(end), "{validity}");
}

/// The plan names the modes of a target that lacks one.
#[test]
fn a_target_without_the_mode_is_left_out_with_the_modes_that_it_has() {
    let experiment = Experiment::of_repository(&[]);
    let file = experiment.file("experiment.toml");
    let set = ["target=[\"weir\", \"floor\"]", "mode=[\"h2c-h1c\", \"h1c-h1c\"]"];
    let ended = Weir::run(&["plan", file.to_str().unwrap(), "--set", set[0], "--set", set[1]]);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let flowing = ended.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    let words = "not run: floor in h2c-h1c: its modes are h1c-h1c, h1-h1c, h1c-h1, h1-h1, h2c-h2c";
    assert!(flowing.contains(words), "{}", ended.stdout);
}
