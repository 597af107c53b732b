//! The lab gives all targets of an experiment the same conditions, and records them.

use crate::common::load::undisturbed;
use crate::common::{Experiment, Weir, all_count};
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Command, Stdio};

/// A relay started by a shell, after `script`.
fn relay_after(script: &str, more: &str) -> String {
    format!(
        "title = 'Relay'
about = 'A relay of this test.'
modes = ['h1c-h1c']
start = ['sh', '-c', '''{script}
exec {{{{weir}}}} relay --workers 1 --listen http://{{{{listen_address}}}}:{{{{listen_port}}}} \
--to http://{{{{upstream_address}}}}:{{{{upstream_port}}}}''']
ready = {{ connect = '{{{{listen_address}}}}:{{{{listen_port}}}}', timeout_ms = 20000 }}
{more}"
    )
}

/// Regression test: Weir raises its own limit, but another target with the shell's usual 1024 files ran out of them at
/// 500 users.
#[test]
fn every_target_may_open_as_many_files_as_weir() {
    let relay = relay_after("ulimit -Sn >FOLDER/limit", "");
    let small = Experiment::of(&[("relay/target.toml", &relay)], &["target=[\"relay\"]"]);
    let mut limited = Command::new("sh");
    limited.args(["-c", "ulimit -Sn 256; exec \"$@\"", "sh", env!("CARGO_BIN_EXE_weir")]);
    limited.args(small.words("--out")).arg("--allow-invalid").stdout(Stdio::null()).stderr(Stdio::null());
    undisturbed("limits", || {
        let _ = std::fs::remove_dir_all(small.file("out"));
        assert!(limited.status().unwrap().success());
        all_count(&small.runs())
    });
    let hard = Command::new("sh").args(["-c", "ulimit -Hn"]).output().unwrap();
    assert_eq!(small.text("limit"), String::from_utf8(hard.stdout).unwrap());
}

/// A check that was killed, for example on a busy machine, proves nothing about the configuration: the next run repeats
/// it.
#[test]
fn a_killed_check_invalidates_its_run_and_a_rejection_all_runs() {
    let check = |script: &str, counted: usize| {
        let script = format!("check = {{ command = ['sh', '-c', 'echo once >>FOLDER/checks; {script}'] }}");
        let relay = relay_after("", &script);
        let mut found = (Vec::new(), 0);
        undisturbed("checks", || {
            let small = Experiment::of(&[("relay/target.toml", &relay)], &["target=[\"relay\"]", "blocks=3"]);
            let runs = small.run();
            let validity = runs.iter().map(|run| run["validity"].as_str().unwrap().to_owned());
            found = (validity.collect::<Vec<_>>(), small.text("checks").lines().count());
            all_count(&runs[runs.len() - counted..])
        });
        found
    };
    let (killed, asked) = check("test -e FOLDER/again || { : >FOLDER/again; kill -KILL $$; }", 2);
    assert!(killed[0].starts_with("invalid: target: its own check: sh: signal: 9"), "{killed:?}");
    assert_eq!((&killed[1..], asked), (&["valid".to_owned(), "valid".to_owned()][..], 2));
    let (refused, asked) = check("echo no such key; exit 1", 0);
    let why = "invalid: target: its own check rejects its configuration: no such key";
    assert_eq!((refused, asked), (vec![why.to_owned(); 3], 1));
}

/// A unix socket's path has at most 107 bytes, and a run's directory is as deep as the user likes.
#[test]
fn a_run_has_an_empty_directory_with_a_short_path_until_it_ends() {
    let script =
        "ls -A {{short_dir}} >>FOLDER/content; echo {{short_dir}} >>FOLDER/short; : >{{short_dir}}/socket";
    let relay = relay_after(script, "check = { command = ['test', '-d', '{{short_dir}}'] }");
    let small = Experiment::of(&[("relay/target.toml", &relay)], &["target=[\"relay\"]", "blocks=2"]);
    for run in small.run() {
        assert!(run["observation"]["failure"].is_null(), "{}", run["observation"]);
    }
    let (short, content) = (small.text("short"), small.text("content"));
    let directories: BTreeSet<&Path> = short.lines().map(Path::new).collect();
    assert_eq!((directories.len(), content.as_str()), (2, ""), "{short}");
    for directory in directories {
        assert_eq!(directory.parent(), Some(std::env::temp_dir().as_path()));
        assert!(!directory.exists(), "{} is left", directory.display());
    }
}

/// The report shows the settings with 2 and with 4 connections separately.
#[test]
fn settings_that_differ_are_each_kept_and_shown() {
    let relay = relay_after("", "files = ['pool.conf']");
    let files = [("relay/target.toml", relay.as_str()), ("relay/pool.conf", "keep {{connections}}\n")];
    let small = Experiment::of(&files, &["target=[\"relay\"]", "connections=[2,4]", "bytes=[10,20]"]);
    assert_eq!(small.run().len(), 4);
    let report = small.text("out/report.html");
    for connections in [2, 4] {
        let name = format!("relay.h1c-h1c.c{connections}");
        let kept = small.text(&format!("out/settings/{name}.txt"));
        assert!(kept.contains(&format!("# ---- pool.conf ----\nkeep {connections}\n")), "{name}: {kept}");
        assert!(report.contains(&format!("<code>{name}</code>")), "{name}");
    }
}

/// The experiment's settings apply to both sides of every target, whatever its own defaults.
#[test]
fn the_experiments_tls_settings_also_apply_upstream() {
    for (version, suite, group) in
        [("1.3", "chacha20-poly1305-sha256", "p256"), ("1.2", "ecdhe-ecdsa-aes256-gcm-sha384", "x25519")]
    {
        let tls = [("version", version), ("suite", suite), ("group", group)];
        let set = tls.map(|(key, value)| format!("tls.{key}={value}"));
        let set = ["mode=h1-h1", "target=[\"weir\",\"floor\"]", &set[0], &set[1], &set[2]];
        let runs = Experiment::of_repository(&set).run_undisturbed();
        assert_eq!(runs.len(), 2);
        let words = format!("--tls {version} --suite {suite} --group {group}");
        for run in runs {
            let processes = run["observation"]["processes"].as_array().unwrap();
            for process in processes {
                let command = process["command"].as_array().unwrap().iter();
                let command = command.map(|word| word.as_str().unwrap()).collect::<Vec<_>>().join(" ");
                assert!(command.contains(&words), "{}: {command}", process["role"]);
            }
        }
    }
}

/// A client that offers everything gets the test server's configured settings; one that offers only others is rejected.
#[test]
fn the_test_server_accepts_only_its_configured_settings() {
    let words = ["--tls", "1.2", "--suite", "ecdhe-ecdsa-chacha20-poly1305", "--group", "p256"];
    let origin =
        Weir::start(&[&["origin", "--listen", "https://127.0.0.1:0", "--workers", "1"][..], &words].concat());
    let load = |more: &[&str]| {
        let all = ["load", &origin.urls[0], "-k", "-c", "1", "-d", "50ms", "--json", "-"];
        Weir::run(&[&all[..], more].concat())
    };
    let result: Value = serde_json::from_str(&load(&[]).stdout).unwrap();
    let negotiated = &result["handshakes"]["negotiated"][0];
    let facts = [&negotiated["version"], &negotiated["suite"], &negotiated["group"]];
    assert_eq!(facts, ["1.2", "ecdhe-ecdsa-chacha20-poly1305", "p256"]);
    assert_eq!(load(&["--tls", "1.3"]).code, Some(1));
}

/// Regression test: connections before the run, and those of the ready checks, were counted as the run's.
#[test]
fn only_the_runs_own_connections_to_the_origin_count() {
    let runs = Experiment::of_repository(&["served_ms=50"]).run_undisturbed();
    // One for each of the 4 clients, and one for the load engine's trial connection.
    assert_eq!(runs[0]["observation"]["upstream_connections"], 5);
}
