//! `weir load` compared with wrk and h2load, alternating against one origin: they must report about the same rate and
//! the same number of bytes. The bounds are wide, because the build is not fully optimised and the machine does other
//! work. So the test detects a generator that counts differently, not one that is slightly slower.

use crate::common::load::{ensure, load_well, undisturbed};
use crate::common::{Certificates, origin, peer};
use std::path::Path;
use std::process::{Command, Stdio};

/// A generator's report of one run.
#[derive(Clone, Copy, Debug, Default)]
struct Run {
    requests: f64,
    bytes: f64,
    seconds: f64,
}

const CONNECTIONS: &str = "16";

/// The number of runs per generator.
const TURNS: usize = 3;

#[test]
fn wrk_agrees_in_cleartext() {
    agrees("wrk", wrk, false);
}

#[test]
fn wrk_agrees_over_tls() {
    agrees("wrk", wrk, true);
}

#[test]
fn h2load_agrees_in_cleartext() {
    agrees("h2load", h2load, false);
}

#[test]
fn h2load_agrees_over_tls() {
    agrees("h2load", h2load, true);
}

fn agrees(name: &str, other: fn(&Path, &str) -> Run, tls: bool) {
    let Some(program) = peer(name) else { return };
    let certificates = Certificates::new();
    let origin = origin(tls, &certificates);
    let url = format!("{}/bytes/500", origin.urls[0]);
    undisturbed(name, || {
        let (mut ours, mut theirs) = (Run::default(), Run::default());
        for _ in 0..TURNS {
            ours.add(weir(&certificates, &url));
            theirs.add(other(&program, &url));
        }
        let (each, of_theirs) = (ours.bytes / ours.requests, theirs.bytes / theirs.requests);
        assert!((500.0..700.0).contains(&each), "{each} bytes for each request of 500 and a head");
        // Runs begin and end within responses.
        let ratio = each / of_theirs;
        assert!((0.98..=1.02).contains(&ratio), "bytes for each request: {each}, {of_theirs} of {name}");
        let rates = (ours.requests / ours.seconds, theirs.requests / theirs.seconds);
        println!("requests per second: {:.0} of weir load, {:.0} of {name}", rates.0, rates.1);
        let ratio = rates.0 / rates.1;
        ensure((0.5..=2.5).contains(&ratio), || format!("{ratio} times the rate of {name}"))
    });
}

fn weir(certificates: &Certificates, url: &str) -> Run {
    let mut args = vec![url, "-c", CONNECTIONS, "-d", "1s", "--warmup", "100ms"];
    if url.starts_with("https") {
        args.extend(["--cacert", certificates.ca.to_str().unwrap()]);
    }
    let result = load_well(&args);
    assert_eq!(result.validity, "valid", "{:?}", result.error_examples);
    Run { requests: result.requests as f64, bytes: result.bytes_received as f64, seconds: result.window_s }
}

/// wrk does not verify certificates. Its own table rounds, so a script prints its counts.
fn wrk(program: &Path, url: &str) -> Run {
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("counts.lua");
    let counts = r#"done = function(summary)
        io.write(string.format("\ncounts %d %d %d\n", summary.requests, summary.bytes, summary.duration))
    end"#;
    std::fs::write(&script, counts).unwrap();
    let script = script.to_str().unwrap();
    let said = said(program, &["-t", "1", "-c", CONNECTIONS, "-d", "1s", "-s", script, url]);
    assert!(!said.contains("Non-2xx") && !said.contains("Socket errors"), "{said}");
    let line = said.lines().find_map(|line| line.strip_prefix("counts ")).unwrap_or_else(|| panic!("{said}"));
    let counts: Vec<f64> = line.split(' ').map(|count| count.parse().unwrap()).collect();
    Run { requests: counts[0], bytes: counts[1], seconds: counts[2] / 1e6 }
}

/// h2load does not verify certificates either.
fn h2load(program: &Path, url: &str) -> Run {
    let said = said(program, &["--h1", "-t", "1", "-c", CONNECTIONS, "-D", "1", url]);
    let line =
        |start: &str| said.lines().find(|line| line.starts_with(start)).unwrap_or_else(|| panic!("{said}"));
    let before = |line: &str, word: &str| -> f64 {
        let text = line.split([' ', ',', ':']).collect::<Vec<_>>();
        let at = text.iter().position(|each| *each == word).unwrap_or_else(|| panic!("{said}"));
        text[at - 1].parse().unwrap_or_else(|_| panic!("{said}"))
    };
    let requests = line("requests: ");
    assert_eq!((before(requests, "failed"), before(requests, "errored")), (0.0, 0.0), "{said}");
    // 1.23MB (1234567) total, ..
    let total = line("traffic: ").split(['(', ')']).nth(1).unwrap().parse().unwrap();
    Run { requests: before(requests, "succeeded"), bytes: total, seconds: 1.0 }
}

fn said(program: &Path, args: &[&str]) -> String {
    let output = Command::new(program).args(args).stdin(Stdio::null()).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{args:?}: {said}{}", String::from_utf8_lossy(&output.stderr));
    said
}

impl Run {
    fn add(&mut self, other: Self) {
        self.requests += other.requests;
        self.bytes += other.bytes;
        self.seconds += other.seconds;
    }
}
