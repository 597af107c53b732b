//! `weir load` with HTTP/1.1 and HTTP/2 clients in one run, against the test server.

use crate::common::Weir;
use crate::common::load::{load, load_well, valid_or_late};
use std::collections::BTreeMap;
use weir_load::result::{LoadResult, Second, VersionSecond};

/// Three of four connections speak HTTP/1.1; certificates are not verified.
const MIXED: [&str; 12] =
    ["--http", "1.1=3,2=1", "-c", "8", "-m", "4", "-d", "400ms", "--warmup", "50ms", "--timeout", "30s"];

fn origin(tls: bool, more: &[&str]) -> Weir {
    let listen = if tls { "https://127.0.0.1:0" } else { "http://127.0.0.1:0" };
    Weir::start(&[&["origin", "--listen", listen, "--workers", "1"], more].concat())
}

/// The arguments of a run against the test server; only an https URL gets `-k`.
fn words<'a>(url: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    let insecure: &[&str] = if url.starts_with("https") { &["-k"] } else { &[] };
    [&[url][..], &MIXED, insecure, more].concat()
}

#[track_caller]
fn assert_adds_up(result: &LoadResult, tls: bool) {
    assert_eq!(result.errors, BTreeMap::new(), "{:?}", result.error_examples);
    let both = result.by_version.as_ref().unwrap();
    let (http1, http2) = (&both.http1, &both.http2);
    assert_eq!((http1.connections, http2.connections, result.connections_opened), (6, 2, 8));
    assert_eq!((http1.workers, http2.workers, result.asked.workers), (1, 1, 2));
    assert!(http1.requests > 0 && http2.requests > 0, "{both:?}");
    assert_eq!(http1.requests + http2.requests, result.requests);
    assert_eq!(http1.response.count + http2.response.count, result.response.count);
    assert!(http1.errors.is_empty() && http2.errors.is_empty());
    let expected = |name: &str, count| if tls { [(name.to_string(), count)].into() } else { BTreeMap::new() };
    assert_eq!((&http1.alpn, &http2.alpn), (&expected("http/1.1", 6), &expected("h2", 2)));
    let settings: u64 = result.http2.as_ref().unwrap().settings.iter().map(|settings| settings.count).sum();
    assert_eq!(settings, 2, "connections with HTTP/2");
    let in_seconds = |of: fn(&Second) -> &VersionSecond| {
        result.seconds.iter().map(|second| of(second).requests).sum::<u64>()
    };
    assert_eq!(in_seconds(|second| &second.by_version.as_ref().unwrap().http1), http1.requests);
    assert_eq!(in_seconds(|second| &second.by_version.as_ref().unwrap().http2), http2.requests);
}

#[test]
fn a_closed_loop_has_the_figures_of_both() {
    for tls in [false, true] {
        let origin = origin(tls, &[]);
        let result = load_well(&words(&format!("{}/bytes/100", origin.urls[0]), &[]));
        assert_eq!(result.validity, "valid");
        assert_adds_up(&result, tls);
    }
}

/// 80 arrivals, divided equally among the connections.
#[test]
fn an_open_loop_divides_its_arrivals_by_connections() {
    for tls in [false, true] {
        let origin = origin(tls, &[]);
        let url = format!("{}/bytes/100", origin.urls[0]);
        let result = load_well(&words(&url, &["--rate", "200", "--allow-invalid"]));
        valid_or_late(&result);
        assert_adds_up(&result, tls);
        let both = result.by_version.as_ref().unwrap();
        assert_eq!((both.http1.planned, both.http2.planned), (60, 20));
        assert_eq!(result.pacer.as_ref().unwrap().planned, 80);
        assert_eq!(both.http1.unsent + both.http2.unsent, result.unsent.count);
    }
}

#[test]
fn conditions_table_and_csv_have_both() {
    let origin = origin(false, &[]);
    let url = format!("{}/bytes/100", origin.urls[0]);
    let folder = tempfile::tempdir().unwrap();
    let csv = folder.path().join("seconds.csv");
    let holds =
        "http1_requests>0,http2_requests_per_second>0,http1_errors==0,http2_error_ratio==0,http2_p50_us>0";
    let more = ["--assert", holds, "--csv", csv.to_str().unwrap()];
    let ended = Weir::run(&[&["load"], &words(&url, &more)[..]].concat());
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    for row in
        ["6 HTTP/1.1 and 2 HTTP/2 with 4 streams each", "\n  HTTP/1.1  ", "\n  HTTP/2  ", "\n    HTTP/2  "]
    {
        assert!(ended.stdout.contains(row), "{row}\n{}", ended.stdout);
    }
    let text = std::fs::read_to_string(csv).unwrap();
    let mut lines = text.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let (header, first) = (lines.next().unwrap(), lines.next().unwrap());
    let cell = |name: &str| first[header.iter().position(|column| *column == name).unwrap()];
    for name in ["http1_requests", "http2_requests"] {
        assert!(cell(name).parse::<u64>().unwrap() > 0, "{text}");
    }
    let failed = load(&words(&url, &["--assert", "http2_requests==0"]));
    assert_eq!(failed.code, Some(4), "{}", failed.stderr);
    let one = load(&[&url, "-d", "200ms", "--warmup", "0s", "--assert", "http2_requests>0"]);
    let expected = "http2_requests has no value: all connections speak one version of HTTP";
    assert!(one.code == Some(4) && one.stderr.contains(expected), "{}", one.stderr);
}

/// Each version uses its own trial connection.
#[test]
fn a_server_of_one_version_is_rejected() {
    for (http, why) in [
        ("1.1", "the server did not agree on h2 by ALPN; enable HTTP/2 on the server, or use --http 1.1"),
        ("2", "the server did not agree on http/1.1 by ALPN; enable HTTP/1.1 on the server, or use --http 2"),
    ] {
        let origin = origin(true, &["--http", http]);
        let ended = Weir::run(&[&["load"], &words(&origin.urls[0], &[])[..]].concat());
        assert_eq!(ended.code, Some(1), "{}", ended.stderr);
        assert!(ended.stderr.contains(why), "--http {http}: {}", ended.stderr);
    }
}
