//! Experiments whose processes have their own network namespaces. They have the same requirements as `network.rs`, and
//! are skipped without them.

use crate::common::namespaces::{namespaces_of, possible};
use crate::common::{DEADLINE, Experiment, peer, poll_until};
use rustix::process::Signal;
use std::time::Duration;

/// Enough to create and join three namespaces on a busy machine.
const PATIENCE: Duration = Duration::from_secs(120);

const VETH: &str = "net.kind=veth";

/// Regression test: nginx binds its listener when it checks its configuration, and the gateway's address exists only in
/// the gateway's namespace, so no run of it could be valid.
#[test]
fn a_targets_own_check_may_bind_the_targets_listener() {
    if !possible() || peer("nginx").is_none() {
        return;
    }
    Experiment::of_repository(&[VETH, "target=[\"nginx\"]"]).run_undisturbed();
}

/// A connection closed by the gateway leaves no trace in the origin's namespace, only in the origin's own count.
#[test]
fn a_gateway_that_dials_for_each_request_is_detected_in_its_own_namespace() {
    if !possible() {
        return;
    }
    let dialling = "title = 'Dialling'
about = 'Keeps no upstream connection for longer than a moment.'
modes = ['h1c-h1c']
start = [
    '{{weir}}', 'serve', '--workers', '1', '--pool-timeout', '0.001',
    '--listen', 'http://{{listen_address}}:{{listen_port}}', '--to', 'http://{{upstream_address}}:{{upstream_port}}',
]
ready = { connect = '{{listen_address}}:{{listen_port}}', timeout_ms = 20000 }
";
    let set = [VETH, "target=[\"dialling\"]", "load.think=20ms", "window_ms=1000"];
    let runs = Experiment::of(&[("dialling/target.toml", dialling)], &set).run();
    let opened = runs[0]["observation"]["upstream_connections"].as_u64().unwrap();
    assert!(opened > 20, "{opened}");
    let why = format!("invalid: upstream connections: {opened} to the origin for 4 of the clients");
    assert_eq!(runs[0]["validity"], why);
}

/// Regression test: the guard wakes up when the lab's pipe closes, while the lab is still in the process table. Here it
/// stays there until it is reaped.
#[test]
fn the_guard_removes_a_killed_labs_namespaces() {
    if !possible() {
        return;
    }
    let small = Experiment::of_repository(&[VETH, "window_ms=60000"]);
    let lab = small.start("--out");
    poll_until(PATIENCE, "namespaces", || namespaces_of(lab.pid()).len() == 3);
    lab.signal(Signal::KILL);
    poll_until(DEADLINE, "the namespaces are gone", || namespaces_of(lab.pid()).is_empty());
    assert_eq!(lab.wait().code, None);
}

/// Two concurrent gateways use one address, each in its own namespaces.
#[test]
fn each_side_of_a_duet_has_its_own_network() {
    if !possible() {
        return;
    }
    let set = [VETH, "target=[\"weir\",\"floor\"]", "baseline=[\"floor\"]", "layout=duet", "window_ms=400"];
    let runs = Experiment::of_repository(&set).run();
    assert_eq!(runs.len(), 2);
    for run in runs {
        let seen = &run["observation"];
        assert!(seen["failure"].is_null() && !seen["net"].is_null(), "{seen}");
        assert!(seen["common_share"].as_f64().unwrap() > 0.5, "{}", seen["common_share"]);
    }
}
