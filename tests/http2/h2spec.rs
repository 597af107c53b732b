//! h2spec's cases in strict mode, against each HTTP/2 server.

use crate::common::{Certificates, Weir, installed_peer};
use std::path::Path;
use std::process::Command;

/// A server under test.
struct Subject {
    name: &'static str,
    /// `http://HOST:PORT` or `https://HOST:PORT`; h2spec requests `/`.
    url: String,
    /// The only cases that fail: section, and title.
    failing: &'static [(&'static str, &'static str)],
}

/// A server that also speaks HTTP/1.1 responds to an invalid preface in HTTP/1.1, and closes.
const OTHER_PROTOCOL: (&str, &str) = ("http2/3.5", "Sends invalid connection preface");

/// The number of all cases, including the strict one.
const CASES: usize = 146;

#[test]
fn the_origin() {
    let certificates = Certificates::new();
    let [cert, key] = [&certificates.cert, &certificates.key].map(|path| path.to_str().unwrap());
    let listen = ["--listen", "http://127.0.0.1:0", "--listen", "https://127.0.0.1:0"];
    let flags = ["--cert", cert, "--key", key, "--workers", "1"];
    let both = Weir::start(&[&["origin"], &listen[..], &flags].concat());
    let only = Weir::start(&["origin", "--listen", "http://127.0.0.1:0", "--workers", "1", "--http", "2"]);
    check(&[
        Subject { name: "origin, cleartext", url: both.urls[0].clone(), failing: &[OTHER_PROTOCOL] },
        Subject { name: "origin, TLS", url: both.urls[1].clone(), failing: &[] },
        Subject { name: "origin, HTTP/2 alone", url: only.urls[0].clone(), failing: &[] },
    ]);
    for weir in [both, only] {
        let ended = weir.stop();
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
        assert!(!ended.stderr.contains("panicked"), "{}", ended.stderr);
    }
}

#[test]
fn the_gateway() {
    let certificates = Certificates::new();
    let [cert, key] = [&certificates.cert, &certificates.key].map(|path| path.to_str().unwrap());
    let origin =
        Weir::start(&["origin", "--listen", "http://127.0.0.1:0", "--workers", "1", "--http", "1.1"]);
    let listen = ["--listen", "http://127.0.0.1:0", "--listen", "https://127.0.0.1:0", "--workers", "1"];
    let flags = ["--cert", cert, "--key", key, "--to", &origin.urls[0]];
    let weir = Weir::start(&[&["serve"], &listen[..], &flags].concat());
    check(&[
        Subject { name: "gateway, cleartext", url: weir.urls[0].clone(), failing: &[OTHER_PROTOCOL] },
        Subject { name: "gateway, TLS", url: weir.urls[1].clone(), failing: &[] },
    ]);
    let ended = weir.stop();
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert!(!ended.stderr.contains("panicked"), "{}", ended.stderr);
}

/// Runs all cases against all subjects.
fn check(subjects: &[Subject]) {
    let Some(program) = installed_peer("h2spec") else { return };
    for Subject { name, url, failing } in subjects {
        let (cases, failed) = run(&program, url);
        assert_eq!(cases, CASES, "{name}");
        let expected = failing.iter().map(|(section, title)| (section.to_string(), title.to_string()));
        assert_eq!(failed, expected.collect::<Vec<_>>(), "{name}");
        println!("{name}: {} of {cases} cases passed", cases - failed.len());
    }
}

/// The number of cases, and those that failed.
fn run(program: &Path, url: &str) -> (usize, Vec<(String, String)>) {
    let folder = tempfile::tempdir().unwrap();
    let report = folder.path().join("report.xml");
    let (scheme, authority) = url.split_once("://").unwrap();
    let (host, port) = authority.rsplit_once(':').unwrap();
    let mut command = Command::new(program);
    command
        .args(["--strict", "--timeout", "10", "--host", host, "--port", port, "--junit-report"])
        .arg(&report);
    if scheme == "https" {
        command.args(["--tls", "--insecure"]);
    }
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    let report = std::fs::read_to_string(&report)
        .unwrap_or_else(|error| panic!("{error}: {said}{}", String::from_utf8_lossy(&output.stderr)));
    let cases: Vec<&str> = report.split("<testcase ").skip(1).collect();
    let value = |case: &str, name: &str| {
        let value = case.split_once(&format!("{name}=\"")).and_then(|(_, rest)| rest.split_once('"'));
        value.unwrap_or_else(|| panic!("no {name} in {case}")).0.to_owned()
    };
    // A skipped case has not passed, either.
    let is_other = |case: &&&str| ["<failure", "<error", "<skipped"].iter().any(|mark| case.contains(mark));
    let failed = cases.iter().filter(is_other);
    let failed = failed.map(|case| (value(case, "package"), value(case, "classname"))).collect();
    println!("{said}");
    (cases.len(), failed)
}
