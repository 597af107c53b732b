//! Request IDs, trace IDs, and error pages.

use super::{ask, get, named};
use crate::common::{Answer, DEADLINE, Weir, poll_until};
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::Path;

const TRACE: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

fn gateway(listener: &str, lines: &str, upstream: &str) -> Weir {
    let config = format!(
        "{lines}
        [listener.web]
        bind = '127.0.0.1:0'
        {listener}
        [service.app]
        servers = 'http://{upstream}'
        [[route]]
        path = '/app/*'
        service = 'app'"
    );
    Weir::configured(&config, 1)
}

/// The values of a field at the upstream.
fn got<'a>(answer: &'a Answer, name: &str) -> Vec<&'a str> {
    let fields = answer.text().lines().filter_map(|line| line.split_once(": "));
    fields.filter(|(field, _)| field.eq_ignore_ascii_case(name)).map(|(_, value)| value).collect()
}

#[test]
fn every_request_gets_an_id_that_is_in_the_access_log() {
    let upstream = named("a");
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("access.log");
    let lines = format!("tracing.request_id = 'X-Request-Id'\nlog.access = '{}'", log.display());
    let weir = gateway("", &lines, &upstream.address.to_string());
    let mut ids = BTreeSet::new();
    for _ in 0..3 {
        // An untrusted client cannot choose the ID.
        let answer = ask(&weir, "GET /app/ HTTP/1.1\r\nHost: h\r\nx-request-id: mine\r\n\r\n");
        let [id] = got(&answer, "x-request-id")[..] else { panic!("{}", answer.text()) };
        assert!(id.len() == 32 && id.bytes().all(|byte| byte.is_ascii_hexdigit()), "{id}");
        assert!(got(&answer, "traceparent").is_empty());
        ids.insert(id.to_owned());
    }
    assert_eq!(ids.len(), 3);
    let logged = || std::fs::read_to_string(&log).unwrap_or_default();
    poll_until(DEADLINE, "three lines", || logged().lines().count() == 3);
    let text = logged();
    let ids_of = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()["request_id"].clone());
    assert_eq!(ids_of.map(|id| id.as_str().unwrap().to_owned()).collect::<BTreeSet<_>>(), ids);
}

#[test]
fn the_id_of_a_trusted_proxy_is_kept() {
    let upstream = named("a");
    let lines = "tracing.request_id = 'X-Request-Id'";
    let weir = gateway("trusted_proxies = '127.0.0.1'", lines, &upstream.address.to_string());
    let answer = ask(&weir, "GET /app/ HTTP/1.1\r\nHost: h\r\nX-Request-ID: theirs\r\n\r\n");
    assert_eq!(got(&answer, "x-request-id"), ["theirs"]);
    assert_eq!(got(&get(&weir, "h", "/app/"), "x-request-id")[0].len(), 32);
}

#[test]
fn a_trace_is_passed_on_or_begun() {
    let upstream = named("a");
    let weir = gateway("", "tracing.traceparent = true", &upstream.address.to_string());
    let answer = ask(&weir, &format!("GET /app/ HTTP/1.1\r\nHost: h\r\nTraceparent: {TRACE}\r\n\r\n"));
    assert_eq!(got(&answer, "traceparent"), [TRACE]);
    let begun = ask(&weir, "GET /app/ HTTP/1.1\r\nHost: h\r\ntraceparent: rubbish\r\n\r\n");
    let [begun] = got(&begun, "traceparent")[..] else { panic!("{}", begun.text()) };
    assert!(begun.len() == 55 && begun.starts_with("00-") && begun.ends_with("-00"), "{begun}");
    let plain = gateway("", "", &upstream.address.to_string());
    assert!(got(&get(&plain, "h", "/app/"), "traceparent").is_empty(), "none unless it is set");
}

#[test]
fn errors_of_the_gateway_have_the_operators_pages() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    let pages = format!(
        "error_pages = {{ 404 = '{}', 5xx = '{}', 502 = '{}' }}",
        file("missing.html", "<h1>Nothing here</h1>"),
        file("sorry.txt", "Sorry."),
        file("gateway.json", "{}")
    );
    let weir = gateway("", &pages, "127.0.0.9:1");
    for (target, status, kind, body) in [
        ("/", 404, "text/html; charset=utf-8", "<h1>Nothing here</h1>"),
        ("/app/", 502, "application/json", "{}"),
    ] {
        let answer = get(&weir, "h", target);
        assert_eq!((answer.status, answer.text()), (status, body));
        assert_eq!(answer.fields("content-type"), [kind]);
    }
    let refused = ask(&weir, "CONNECT h:1 HTTP/1.1\r\nHost: h\r\n\r\n");
    assert_eq!((refused.status, refused.text()), (501, "Sorry."));
    assert!(ask(&weir, "GET / HTTP/1.1\r\n\r\n").text().starts_with("400 Bad Request"), "no page is set");
}

#[test]
fn what_is_no_page_or_no_field_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let large = folder.path().join("large.html");
    std::fs::write(&large, vec![b'x'; 65_537]).unwrap();
    for (lines, expected) in [
        (
            "error_pages = { 200 = '/x' }",
            "error_pages.200: invalid status `200`: expected a status of 400 to 599",
        ),
        ("error_pages = { 3xx = '/x' }", "error_pages.3xx: invalid status `3xx`"),
        ("error_pages = { 404 = '/no/such' }", "error_pages.404: cannot read /no/such: No such file"),
        (
            &format!("error_pages = {{ 404 = '{}' }}", large.display()),
            "has 65537 bytes: expected at most 65536",
        ),
        ("tracing.request_id = 'a b'", "tracing.request_id: invalid field name `a b`"),
        ("tracing.request_id = 'Connection'", "tracing.request_id: `Connection` frames the message"),
    ] {
        refused(&folder.path().join("weir.toml"), lines, expected);
    }
}

fn refused(file: &Path, lines: &str, expected: &str) {
    let rest = "[listener.web]\nbind = '127.0.0.1:0'\n[service.a]\nservers = 'http://127.0.0.1:1'\n[[route]]\nservice = 'a'\n";
    std::fs::write(file, format!("{lines}\n{rest}")).unwrap();
    let ended = Weir::run(&["check", "--config", file.to_str().unwrap()]);
    assert!(ended.code == Some(2) && ended.stderr.contains(expected), "{lines}: {}", ended.stderr);
}
