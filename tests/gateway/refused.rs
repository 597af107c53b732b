//! Log lines for rejected requests, with the received part of the request.

use super::held_back;
use crate::common::{Client, DEADLINE, Peer, Switch, Upstream, Weir, poll_until};
use serde_json::Value;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::process::{Command, Stdio};

/// A gateway with an access log, short timeouts, small limits, and a service that never responds.
fn config(upstream: &Upstream, log: &Path) -> String {
    format!(
        "workers = 1\n[listener.web]\nbind = '127.0.0.1:0'\n[service.app]\nservers = 'http://{}'\n[service.none]\n\
         servers = 'http://127.0.0.1:1'\n[[route]]\nservice = 'app'\nmax_body = '8'\n[[route]]\npath = '/none'\nservice = 'none'\n\
         [[route]]\npath = '/slow/*'\nservice = 'app'\nrequest_buffer = '64KiB'\ntimeouts.stall = '100ms'\n\
         [[route]]\nhost = 'late.example'\nservice = 'app'\ntimeouts.response = '100ms'\n\
         [timeouts]\nhead = '100ms'\n[limits]\nhead = '4KiB'\n[log]\naccess = '{}'\n",
        upstream.address,
        log.display()
    )
}

fn lines(file: &Path, count: usize) -> Vec<Value> {
    let read = || fs::read_to_string(file).unwrap_or_default();
    poll_until(DEADLINE, &format!("{count} lines"), || read().lines().count() >= count);
    read().lines().map(|line| serde_json::from_str(line).expect("an object")).collect()
}

/// Regression test: log lines of rejected requests lacked the time and the request, and reported no body bytes.
#[test]
fn refused_requests_have_all_that_is_known_of_them() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("access.log");
    let upstream = Upstream::start(None, |peer: &mut Peer| {
        peer.read_to_end();
    });
    let weir = Weir::configured(&config(&upstream, &file), 1);
    let long = "x".repeat(5000);
    let many = format!("GET /431 HTTP/1.1\r\nHost: h\r\nX: {long}\r\n\r\n");
    // The request; status and reason; method, host and target in the log; body bytes.
    let cases = [
        ("GET /400 HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400, "duplicate_host", ["GET", "a", "/400"], 0),
        ("GET /nohost HTTP/1.1\r\nA: b\r\n\r\n", 400, "missing_host", ["GET", "", "/nohost"], 0),
        ("PUT /lf HTTP/1.1\nHost: h\n\n", 400, "bare_lf", ["PUT", "h", "/lf"], 0),
        (
            "GET /bad HTTP/1.1\r\nHOST:  h.example \r\nnocolon\r\n\r\n",
            400,
            "missing_colon",
            ["GET", "h.example", "/bad"],
            0,
        ),
        ("GET /two words HTTP/1.1\r\nHost: h\r\n\r\n", 400, "", ["GET", "h", "/two words"], 0),
        ("GET /v HTTP/9.9\r\nHost: h\r\n\r\n", 505, "unsupported_version", ["GET", "h", "/v"], 0),
        (&many, 431, "", ["GET", "h", "/431"], 0),
        ("POST /408 HTTP/1.1\r\nHost: h\r\nUser-Ag", 408, "head_timeout", ["POST", "h", "/408"], 0),
        ("POST /40", 408, "head_timeout", ["POST", "", "/40"], 0),
        ("HEAD /none HTTP/1.1\r\nHost: h\r\n\r\n", 502, "upstream_connect", ["HEAD", "h", "/none"], 0),
        ("GET /none HTTP/1.1\r\nHost: h\r\n\r\n", 502, "upstream_connect", ["GET", "h", "/none"], 0),
        (
            "POST /413 HTTP/1.1\r\nHost: h\r\nContent-Length: 9\r\n\r\n",
            413,
            "body_too_large",
            ["POST", "h", "/413"],
            0,
        ),
        (
            "PUT /slow/b HTTP/1.1\r\nHost: h\r\nContent-Length: 9\r\n\r\nabc",
            408,
            "body_timeout",
            ["PUT", "h", "/slow/b"],
            3,
        ),
        (
            "GET / HTTP/1.1\r\nHost: late.example\r\n\r\n",
            504,
            "upstream_timeout",
            ["GET", "late.example", "/"],
            0,
        ),
        (
            "CONNECT h:1 HTTP/1.1\r\nHost: h:1\r\n\r\n",
            501,
            "connect_not_supported",
            ["CONNECT", "h:1", "h:1"],
            0,
        ),
        ("\u{16}\u{3}\u{1} GET /x HTTP/1.1\r\n\r\n", 400, "", ["", "", ""], 0),
    ];
    for (number, (request, status, reason, [method, host, target], received)) in cases.into_iter().enumerate()
    {
        let mut client = Client::connect(weir.address(), None);
        client.send(request);
        let asked = if method == "HEAD" { weir_http::Method::Head } else { weir_http::Method::Get };
        let answer = client.answer(asked);
        assert_eq!(answer.status, status, "{request:?}: {}", answer.text());
        let line = lines(&file, number + 1).pop().unwrap();
        let text = |name: &str| line[name].as_str().unwrap_or_default().to_owned();
        assert_eq!(
            (&line["status"], &line["listener"]),
            (&Value::from(status), &Value::from("web")),
            "{line}"
        );
        assert!(reason.is_empty() || text("reason") == reason, "{line}");
        assert_eq!(["method", "host", "target"].map(text), [method, host, target], "{line}");
        assert!(text("time").ends_with('Z') && text("time").len() == 24, "{line}");
        assert_eq!(
            (&line["received"], &line["sent"]),
            (&Value::from(received), &Value::from(answer.body.len())),
            "{line}"
        );
    }
    // Lines on stderr about a request contain the same facts.
    for parts in [
        &["weir: 400 duplicate_host client=127.0.0.1:", " request=\"GET /400\" host=\"a\"", " time=20"][..],
        &["weir: 408 head_timeout client=127.0.0.1:", " request=\"POST /408\" host=\"h\""],
        &["weir: 502 upstream_connect ", " request=\"GET /none\" host=\"h\" service=\"none\"", " route=1"],
        &[
            "weir: 504 upstream_timeout ",
            " host=\"late.example\" service=\"app\" server=\"127.0.0.1:",
            " route=3 ms=",
        ],
        &["weir: 413 body_too_large ", " request=\"POST /413\" host=\"h\""],
    ] {
        weir.wait_for_stderr(parts);
    }
}

/// Lines for the systemd journal carry a level, and no time, since systemd adds it.
#[test]
fn lines_for_the_journal_have_levels() {
    let folder = tempfile::tempdir().unwrap();
    let [file, journal, log] = ["weir.toml", "journal", "access.log"].map(|name| folder.path().join(name));
    let upstream = held_back(&Switch::default(), "");
    fs::write(&file, config(&upstream, &log)).unwrap();
    let stderr = fs::File::create(&journal).unwrap();
    let stream = stderr.metadata().unwrap();
    for (named, is_journal) in
        [(format!("{}:{}", stream.dev(), stream.ino()), true), ("1:1".to_owned(), false)]
    {
        let mut command = Command::new(env!("CARGO_BIN_EXE_weir"));
        command
            .args(["serve", "--config", file.to_str().unwrap()])
            .env("JOURNAL_STREAM", named)
            .stdin(Stdio::null());
        let before = fs::read_to_string(&journal).unwrap().len();
        let file = fs::OpenOptions::new().append(true).open(&journal).unwrap();
        let weir = Weir::of_command(command, Some(file.into()), 1);
        for request in ["GET /none HTTP/1.1\r\nHost: h\r\n\r\n", "GET / HTTP/1.1\r\n\r\n"] {
            Client::connect(weir.address(), None).ask(request);
        }
        weir.signal(rustix::process::Signal::USR1);
        for (level, begin) in [
            ("<3>", "weir: 502 upstream_connect "),
            ("<5>", "weir: 400 missing_host "),
            ("<6>", "weir: so far: "),
        ] {
            let line = if is_journal { format!("{level}{begin}") } else { begin.to_owned() };
            let mut found = None;
            poll_until(DEADLINE, &line, || {
                let written = fs::read_to_string(&journal).unwrap();
                let mut lines = written[before..].lines();
                found = lines.find(|written| written.starts_with(&line)).map(str::to_owned);
                found.is_some()
            });
            let found = found.unwrap();
            assert_eq!(found.contains(" time="), !is_journal && level != "<6>", "{found}");
        }
    }
}
