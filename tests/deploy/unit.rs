//! The systemd units.

use super::{allowed, file};
use crate::common::peer;
use std::fs;
use std::process::Command;

/// The values of a setting, in order.
fn values(unit: &str, name: &str) -> Vec<String> {
    let lines = unit.lines().filter_map(|line| line.strip_prefix(name)?.strip_prefix('='));
    lines.map(str::to_owned).collect()
}

fn unit() -> String {
    fs::read_to_string(file("weir.service")).unwrap()
}

/// The group of system calls that an upgrade in place needs, and the individual calls.
pub(super) fn calls() -> (String, Vec<String>) {
    let filters = values(&unit(), "SystemCallFilter");
    let mut names = filters.last().unwrap().split(' ').map(str::to_owned);
    (names.next().unwrap(), names.collect())
}

#[test]
fn systemd_takes_the_units_and_finds_little_exposed() {
    let Some(analyze) = peer("systemd-analyze") else { return };
    let folder = tempfile::tempdir().unwrap();
    let [service, socket] = ["weir.service", "weir.socket"].map(|name| folder.path().join(name));
    fs::write(&service, unit().replace("/usr/bin/weir", env!("CARGO_BIN_EXE_weir"))).unwrap();
    fs::copy(file("weir.socket"), &socket).unwrap();
    let verified = Command::new(&analyze).arg("verify").args([&service, &socket]).output().unwrap();
    let words = String::from_utf8_lossy(&verified.stderr).into_owned();
    // It may also complain about other units of this machine.
    let ours = words.lines().find(|line| line.contains("weir.service") || line.contains("weir.socket"));
    assert_eq!(ours, None);
    // In tenths: 0 is a service without any privilege, 100 one with all.
    let mut judge = Command::new(&analyze);
    judge.args(["security", "--offline=yes", "--no-pager", "--threshold=20"]).arg(&service);
    let judged = judge.output().unwrap();
    let words = String::from_utf8_lossy(&judged.stderr);
    if words.contains("unrecognized option") {
        println!("skipped: this systemd-analyze does not judge files");
        return;
    }
    assert!(judged.status.success(), "{}{words}", String::from_utf8_lossy(&judged.stdout));
}

/// A system call that one of the two lacks would otherwise be found by an operator.
#[test]
fn unit_and_container_allow_the_same_calls_but_for_an_upgrade_in_place() {
    let filters = values(&unit(), "SystemCallFilter");
    let (upgrade, calls) = filters.split_last().unwrap();
    let mut calls: Vec<_> = calls.iter().flat_map(|line| line.split(' ')).collect();
    calls.sort_unstable();
    assert_eq!(calls, allowed());
    assert!(upgrade.starts_with("@process "), "{upgrade}");
}

#[test]
fn the_unit_has_no_more_than_the_least_rights() {
    let unit = unit();
    for (name, value) in [
        ("Type", "notify"),
        ("NotifyAccess", "all"),
        ("User", "weir"),
        ("NoNewPrivileges", "yes"),
        ("ProtectSystem", "strict"),
        ("PrivateTmp", "yes"),
        ("PrivateDevices", "yes"),
        ("MemoryDenyWriteExecute", "yes"),
        ("CapabilityBoundingSet", "CAP_NET_BIND_SERVICE"),
        ("AmbientCapabilities", "CAP_NET_BIND_SERVICE"),
        ("RestrictAddressFamilies", "AF_INET AF_INET6 AF_UNIX"),
        ("ReadWritePaths", ""),
    ] {
        let expected: &[&str] = if value.is_empty() { &[] } else { &[value] };
        assert_eq!(values(&unit, name), expected, "{name}");
    }
}
