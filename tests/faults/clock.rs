//! Jumps of the clock.

use super::GET;
use crate::common::sessions::{connect, connector, is_resumed};
use crate::common::{Certificates, DEADLINE, Weir, peer, poll_until};
use crate::gateway::metric;
use rustix::time::{ClockId, clock_gettime, clock_settime};
use std::fs;
use std::path::Path;
use weir_tls::Connector;

fn config(certificates: &Certificates, log: &Path) -> String {
    format!(
        "workers = 2
        [listener.web]
        bind = '127.0.0.1:0'
        tls = {{}}
        [[certificate]]
        chain = '{}'
        key = '{}'
        [[route]]
        respond.status = 200
        [log]
        access = '{}'
        [admin]
        bind = '127.0.0.1:0'",
        certificates.cert.display(),
        certificates.key.display(),
        log.display()
    )
}

/// Sends a request on a new connection; returns whether it resumed a session, and the year in the response's `Date`.
fn ask(weir: &Weir, connector: &Connector) -> (bool, String) {
    let mut client = connect(weir.address(), connector).unwrap();
    let answer = client.ask(GET);
    assert_eq!(answer.status, 200);
    (is_resumed(&mut client), answer.fields("date")[0].split(' ').nth(3).unwrap().to_owned())
}

/// Only the gateway sees the other time, through a preloaded library.
#[test]
fn requests_handshakes_and_the_drain_survive_a_jump_by_years() {
    if peer("faketime").is_none() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let certificates = Certificates::new();
    let [file, log, offset] = ["weir.toml", "access.log", "offset"].map(|name| folder.path().join(name));
    fs::write(&file, config(&certificates, &log)).unwrap();
    fs::write(&offset, "+0").unwrap();
    let library = "/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1";
    let weir = Weir::of_file_with(
        &file,
        1,
        &[
            ("LD_PRELOAD", library),
            ("FAKETIME_TIMESTAMP_FILE", offset.to_str().unwrap()),
            ("FAKETIME_NO_CACHE", "1"),
            ("DONT_FAKE_MONOTONIC", "1"),
        ],
    );
    let connector = connector(&certificates.ca, &[]);
    let (_, now) = ask(&weir, &connector);
    assert!(ask(&weir, &connector).0);
    let year: i32 = now.parse().unwrap();
    for (nth, (jump, direction, seconds)) in
        [(3, "forward", 94_608_000.0), (-3, "back", 189_216_000.0), (0, "forward", 94_608_000.0)]
            .iter()
            .enumerate()
    {
        fs::write(&offset, format!("{jump:+}y")).unwrap();
        // This may take until the next second, and happens in each worker.
        poll_until(DEADLINE, "the other time", || {
            (0..8).all(|_| (ask(&weir, &connector).1.parse::<i32>().unwrap() - year - jump).abs() <= 1)
        });
        // A key of the new period issues and accepts tickets.
        poll_until(DEADLINE, "sessions are resumed", || ask(&weir, &connector).0);
        if set_the_clock() {
            let said = || weir.stderr().lines().filter_map(step).collect::<Vec<_>>();
            poll_until(DEADLINE, "it is said", || said().len() > nth);
            let said = said().swap_remove(nth);
            // The scheduler may interrupt a thread between its readings of both clocks.
            assert!(said.0 == *direction && (said.1 - seconds).abs() < 60.0, "{said:?}");
        }
    }
    let ended = weir.stop();
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert!(ended.stderr.lines().all(|line| line.starts_with("weir: the clock was set")), "{}", ended.stderr);
    let lines = fs::read_to_string(&log).unwrap();
    for year in [year + 3, year - 3] {
        assert!(lines.contains(&format!("\"time\":\"{year}-")), "{lines}");
    }
}

#[test]
fn a_clock_that_is_set_is_counted() {
    let folder = tempfile::tempdir().unwrap();
    let weir = Weir::configured(&config(&Certificates::new(), &folder.path().join("log")), 1);
    for _ in 0..2 {
        let before = metric(&weir, "weir_clock_steps_total");
        if !set_the_clock() {
            println!("skipped: it takes root and WEIR_REQUIRE_PEERS=1 to set the clock");
            return;
        }
        poll_until(DEADLINE, "it is counted", || metric(&weir, "weir_clock_steps_total") > before);
    }
}

/// Parses a log line about a clock step: its direction and seconds.
fn step(line: &str) -> Option<(String, f64)> {
    let (direction, rest) = line.strip_prefix("weir: the clock was set ")?.split_once(" by ")?;
    Some((direction.to_owned(), rest.split_once(" s;")?.0.parse().ok()?))
}

/// Sets the clock to the current time, which notifies all processes that watch for clock steps. It needs a privilege,
/// and a machine for tests only.
fn set_the_clock() -> bool {
    std::env::var_os("WEIR_REQUIRE_PEERS").is_some()
        && clock_settime(ClockId::Realtime, clock_gettime(ClockId::Realtime)).is_ok()
}
