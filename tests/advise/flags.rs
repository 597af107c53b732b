//! The valid flags, and the messages about invalid ones.

use super::services::Language::Go;
use super::services::Presents::Leaf;
use super::services::{Service, ids};
use crate::common::{Certificates, Weir, origin};
use serde_json::Value;
use std::fs;
use std::process::{Command, Stdio};

#[test]
fn weirs_own_origin_is_well_configured() {
    let certificates = Certificates::new();
    let server = origin(true, &certificates);
    let args = ["advise", &server.urls[0], "--cacert", certificates.ca.to_str().unwrap(), "-d", "300ms"];
    let ended = Weir::run(&args);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert!(ended.stdout.contains(": nothing worth changing, by "), "{}", ended.stdout);
    assert!(ended.stdout.contains("Without --pid"), "{}", ended.stdout);
}

#[test]
fn text_names_the_change_in_the_words_of_the_product_and_fits_the_terminal() {
    let Some(service) = Service::start(Go, "resumption-off", Leaf, None) else { return };
    let folder = tempfile::tempdir().unwrap();
    let json = folder.path().join("advice.json");
    let args = ["advise", &service.url, "-k", "-d", "300ms", "--product", "go", "--json"];
    let ended = Weir::run(&[&args[..], &[json.to_str().unwrap()]].concat());
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert!(ended.stdout.lines().all(|line| line.chars().count() <= 100), "{}", ended.stdout);
    for words in
        ["1. A full handshake leaves 0 sessions", "SessionTicketsDisabled: false", "gives up: ", "(probe)"]
    {
        assert!(ended.stdout.contains(words), "{words}: {}", ended.stdout);
    }
    let advice: Value = serde_json::from_str(&fs::read_to_string(json).unwrap()).unwrap();
    assert_eq!((advice["schema"].as_u64(), ids(&advice)), (Some(1), vec!["resumption-off"]));
    assert_eq!(advice["facts"]["resumption.sessions"]["source"], "probe");
    assert!(advice["probe"]["versions"].is_array(), "{advice}");
}

#[test]
fn a_configuration_alone_is_enough() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("nginx.conf");
    fs::write(&file, "http {\n  access_log off;\n  tcp_nodelay off;\n  keepalive_timeout 1s;\n}\n").unwrap();
    let ended = Weir::run(&["advise", "--config", file.to_str().unwrap()]);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    for words in ["(nginx): 2 findings", "nginx.conf:3", "nginx.conf:4", "`keepalive_timeout 75s;`"] {
        assert!(ended.stdout.contains(words), "{words}: {}", ended.stdout);
    }
}

#[test]
fn an_idle_process_alone_has_facts_and_a_next_step() {
    let mut idle = Command::new("sleep").arg("1000").stdout(Stdio::null()).spawn().unwrap();
    let ended = Weir::run(&["advise", "--pid", &idle.id().to_string()]);
    idle.kill().unwrap();
    idle.wait().unwrap();
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert!(ended.stdout.contains("is idle; put load on it"), "{}", ended.stdout);
}

#[test]
fn bad_input_names_the_flag_and_what_is_expected() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    let (broken, other) = (file("nginx.conf", "http {\n  a b\n}\n"), file("notes", "hello\n"));
    for (args, words) in [
        (vec![], vec!["missing URL, --pid or --config: expected at least one of them"]),
        (vec!["ftp://127.0.0.1:1/"], vec!["ftp://127.0.0.1:1/"]),
        (vec!["https://127.0.0.1:1/", "--prove"], vec!["--prove: expected a target or the directory"]),
        (vec!["https://127.0.0.1:1/", "--set", "users=2"], vec!["--set: expected the name of a target"]),
        (vec!["no-such-target"], vec!["no-such-target"]),
        (vec!["weir", "--pid", "1"], vec!["--pid and --config are of a running service"]),
        (vec!["--pid", "4294967295"], vec!["--pid: there is no process 4294967295"]),
        (vec!["--config", "/nothing/here"], vec!["--config: /nothing/here: No such file"]),
        (
            vec!["--config", &broken],
            vec!["--config: ", "nginx.conf:3: unexpected `}` after `a b`: expected `;`"],
        ),
        (vec!["--config", &other], vec!["--config: ", "expected a configuration of nginx"]),
        (vec!["--pid", "1", "--product", "iis"], vec!["--product", "expected one of weir, nginx, haproxy"]),
        (vec!["--pid", "1", "-d", "1ms"], vec!["1ms", "expected 100ms to 1h"]),
    ] {
        let ended = Weir::run(&[&["advise"], &args[..]].concat());
        assert_eq!(ended.code, Some(2), "{args:?}: {}", ended.stderr);
        assert!(words.iter().all(|word| ended.stderr.contains(word)), "{args:?}: {}", ended.stderr);
    }
}

#[test]
fn an_unreachable_server_is_an_error() {
    let ended = Weir::run(&["advise", "https://127.0.0.1:1/", "-k"]);
    assert_eq!(ended.code, Some(1), "{}", ended.stderr);
    assert!(ended.stderr.contains("cannot connect to 127.0.0.1"), "{}", ended.stderr);
}
