//! `weir profile`, run as a program with `perf`.

use crate::common::{Certificates, DEADLINE, Ended, Weir, copy_program, origin, peer, poll_until};
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// A child that is killed when dropped.
struct Busy(Child);

impl Busy {
    fn new(program: &str, args: &[&str]) -> Self {
        Self(Command::new(program).args(args).stdout(Stdio::null()).spawn().unwrap())
    }

    fn pid(&self) -> String {
        self.0.id().to_string()
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn share(profile: &Value, category: &str, which: &str) -> f64 {
    let all = profile["categories"].as_array().unwrap();
    let found = all.iter().find(|one| one["category"] == category);
    found.map_or(0.0, |one| one[which]["share"].as_f64().unwrap())
}

#[test]
fn handshakes_are_split_by_category_and_the_samples_can_be_read_again() {
    let Some(_) = peer("perf") else { return };
    let certificates = Certificates::new();
    let server = origin(true, &certificates);
    let (url, ca) = (server.urls[0].clone() + "/bytes/100", certificates.ca.display().to_string());
    let load = Weir::spawn(&["load", &url, "--cacert", &ca, "--new-connection", "-c", "4", "-d", "60s"]);
    let directory = tempfile::tempdir().unwrap();
    let file = |name: &str| directory.path().join(name).display().to_string();
    let (json, folded, html, svg) = (file("p.json"), file("p.txt"), file("p.html"), file("p.svg"));
    let args =
        ["profile", "--pid", &server.pid().to_string(), "-d", "2s", "--json", &json, "--folded", &folded];
    let ended = Weir::run(&[&args[..], &["--html", &html, "--svg", &svg]].concat());
    drop(load);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert!(ended.stdout.lines().all(|line| line.chars().count() <= 100), "{}", ended.stdout);
    let profile: Value = serde_json::from_str(&fs::read_to_string(&json).unwrap()).unwrap();
    let all = profile["categories"].as_array().unwrap();
    let sum: f64 = all.iter().map(|one| one["self"]["share"].as_f64().unwrap()).sum();
    assert!((sum - 1.0).abs() < 1e-9, "{sum}");
    for category in ["key-exchange", "signature", "kernel-tcp"] {
        assert!(share(&profile, category, "self") > 0.0, "{category}: {}", ended.stdout);
    }
    assert!(share(&profile, "tls", "inclusive") > share(&profile, "tls", "self"), "{}", ended.stdout);
    assert!(share(&profile, "unknown", "self") < 0.1, "{}", ended.stdout);
    assert!(fs::read_to_string(&html).unwrap().contains("<object class=\"flame\""));
    assert!(fs::read_to_string(&svg).unwrap().contains("</svg>"));

    let again = Weir::run(&["profile", "--data", &folded, "--against", &folded, "--json", "-"]);
    let again: Value = serde_json::from_str(&again.stdout).unwrap();
    assert_eq!(again["categories"], profile["categories"]);
    let changes = again["difference"]["changes"].as_array().unwrap();
    assert!(!changes.is_empty() && changes.iter().all(|one| one["change"] == 0.0), "{changes:?}");
}

#[test]
fn a_process_that_ends_is_sampled_until_then() {
    let Some(_) = peer("perf") else { return };
    let busy = Busy::new("sh", &["-c", "i=0; while [ $i -lt 1000000 ]; do i=$((i+1)); done"]);
    let ended = Weir::run(&["profile", "--pid", &busy.pid(), "-d", "1h"]);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert!(ended.stdout.contains(" samples\n"), "{}", ended.stdout);
    // Debian's shell contains no symbols.
    if ended.stdout.contains(" is unknown, ") {
        assert!(ended.stdout.contains("has no symbols: install its debug package"), "{}", ended.stdout);
    }
}

#[test]
fn an_interrupt_ends_sampling_early() {
    let Some(_) = peer("perf") else { return };
    let busy = Busy::new("sh", &["-c", "while :; do :; done"]);
    let profile = Weir::spawn(&["profile", "--pid", &busy.pid(), "-d", "1h"]);
    profile.wait_for_stderr(&["sampling sh"]);
    // Wait until perf runs, since it needs a sample.
    let children = format!("/proc/{0}/task/{0}/children", profile.pid());
    poll_until(DEADLINE, "perf runs", || {
        let child = fs::read_to_string(&children).unwrap_or_default();
        let child = child.split_whitespace().next().map(|pid| format!("/proc/{pid}/task/{pid}/children"));
        child.is_some_and(|sleep| fs::read_to_string(sleep).is_ok_and(|pids| !pids.trim().is_empty()))
    });
    let ticks = || {
        let stat = fs::read_to_string(format!("/proc/{}/stat", busy.pid())).unwrap();
        stat.rsplit_once(") ").unwrap().1.split(' ').nth(11).unwrap().parse::<u64>().unwrap()
    };
    let before = ticks();
    poll_until(DEADLINE, "the shell used CPU", || ticks() > before + 20);
    profile.signal(rustix::process::Signal::INT);
    let ended = profile.wait();
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert!(ended.stdout.contains(" samples\n"), "{}", ended.stdout);
}

#[test]
fn an_idle_process_has_no_samples() {
    let Some(_) = peer("perf") else { return };
    let idle = Busy::new("sleep", &["1000"]);
    let ended = Weir::run(&["profile", "--pid", &idle.pid(), "-d", "100ms"]);
    assert_eq!(ended.code, Some(3), "{}", ended.stdout);
    assert!(ended.stderr.contains("used no CPU in 0.1 s; put load on it"), "{}", ended.stderr);
}

/// Runs `weir` without privileges; `None` if this process has none to drop.
fn unprivileged(args: &[&str]) -> Option<Ended> {
    let setpriv = peer("setpriv").filter(|_| rustix::process::geteuid().is_root());
    let Some(setpriv) = setpriv else {
        println!("skipped: not root, or no setpriv");
        return None;
    };
    // Other users may lack access to the directory of the test program.
    let directory = tempfile::tempdir().unwrap();
    let weir = directory.path().join("weir");
    copy_program(env!("CARGO_BIN_EXE_weir"), &weir);
    open(directory.path());
    let output = Command::new(setpriv)
        .args(["--reuid=65534", "--regid=65534", "--clear-groups"])
        .arg(&weir)
        .args(args)
        .current_dir("/")
        .output()
        .unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Some(Ended { code: output.status.code(), stdout: text(&output.stdout), stderr: text(&output.stderr) })
}

fn open(directory: &Path) {
    use std::os::unix::fs::PermissionsExt as _;
    fs::set_permissions(directory, fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn a_process_of_another_user_is_refused_with_the_next_step() {
    let Some(_) = peer("perf") else { return };
    let busy = Busy::new("sh", &["-c", "while :; do :; done"]);
    let Some(ended) = unprivileged(&["profile", "--pid", &busy.pid(), "-d", "200ms"]) else { return };
    assert_eq!(ended.code, Some(1), "{}", ended.stdout);
    let why =
        format!("process {} belongs to another user; run `weir profile` as that user or as root", busy.pid());
    assert!(ended.stderr.contains(&why), "{}", ended.stderr);
}

#[test]
fn without_perf_the_message_says_how_to_get_it() {
    let busy = Busy::new("sleep", &["1000"]);
    let empty = tempfile::tempdir().unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_weir"))
        .args(["profile", "--pid", &busy.pid()])
        .env("PATH", empty.path())
        .output()
        .unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    assert!(stderr.contains("`perf` is not on the PATH; install "), "{stderr}");
}

#[test]
fn bad_input_names_the_flag_the_file_and_the_line() {
    let directory = tempfile::tempdir().unwrap();
    let file = |name: &str, bytes: &[u8]| {
        let path = directory.path().join(name);
        fs::write(&path, bytes).unwrap();
        path.display().to_string()
    };
    let (binary, empty) = (file("binary", b"\x7fELF\xff\xfe"), file("empty", b""));
    let line = file("line", b"main;f 1\nmain;g\n");
    for (args, words) in [
        (vec!["--pid", "4294967295"], vec!["--pid: there is no process 4294967295"]),
        (vec!["--data", &binary], vec!["--data: ", &binary, "expected a perf.data file or folded stacks"]),
        (vec!["--data", &empty], vec!["--data: ", &empty, "it has no samples"]),
        (vec!["--data", &line], vec!["--data: ", &line, ":2: expected `frame;frame;frame SAMPLES`"]),
        (vec!["--data", "/nothing/here"], vec!["--data: /nothing/here: No such file"]),
        (vec!["--data", &line, "--pid", "1"], vec!["--data", "--pid"]),
        (vec!["--pid", "1", "-d", "1ms"], vec!["1ms", "expected 100ms to 1h"]),
        (vec!["--pid", "1", "-F", "0"], vec!["--frequency", "1..=10000"]),
        (vec![], vec!["--pid"]),
    ] {
        let ended = Weir::run(&[&["profile"], &args[..]].concat());
        assert_eq!(ended.code, Some(2), "{args:?}: {}", ended.stderr);
        assert!(words.iter().all(|word| ended.stderr.contains(word)), "{args:?}: {}", ended.stderr);
    }
}
