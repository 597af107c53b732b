//! The responses are those of HTTP/1.1.

use super::client::{Client, Response, large_windows};
use crate::server::Server;
use std::time::{Duration, Instant};
use weir_http2::{Config, ErrorCode, Settings};
use weir_origin::pattern;

const BYTES: &str = "application/octet-stream";

/// The content of `/bytes/N`.
pub(super) fn content(length: usize) -> Vec<u8> {
    let mut all = Vec::with_capacity(length);
    while all.len() < length {
        all.extend_from_slice(pattern::from(all.len() as u64, (length - all.len()) as u64));
    }
    all
}

/// The number of bytes that `Content-Length` announces.
fn announced(response: &Response) -> Option<usize> {
    response.fields.get("content-length").map(|length| length.parse().unwrap())
}

#[test]
fn every_resource_has_its_response() {
    let server = Server::start();
    let mut client = Client::new(&server);
    for (method, path, status, kind, length, body) in [
        ("GET", "/bytes/3", 200, BYTES, Some(3), "012"),
        ("GET", "/bytes/0", 200, BYTES, Some(0), ""),
        ("GET", "/bytes/4?chunked=1", 200, BYTES, None, "0123"),
        ("GET", "/bytes/0?chunked=1", 200, BYTES, None, ""),
        ("HEAD", "/bytes/9", 200, BYTES, Some(9), ""),
        ("HEAD", "/bytes/9?chunked=1", 200, BYTES, None, ""),
        ("GET", "/echo", 200, BYTES, Some(0), ""),
        ("HEAD", "/echo", 200, BYTES, Some(0), ""),
        ("GET", "/", 200, "text/plain", Some(47), "The Weir test server: /bytes/N, /echo, /stats.\n"),
        ("GET", "/?chunked=1", 200, "text/plain", None, "The Weir test server: /bytes/N, /echo, /stats.\n"),
        ("GET", "/nothing", 404, "text/plain", Some(11), "Not found.\n"),
        ("HEAD", "/nothing", 404, "text/plain", Some(11), ""),
        ("OPTIONS", "*", 404, "text/plain", Some(11), "Not found.\n"),
        ("GET", "/?delay_ms=x", 400, "text/plain", Some(30), "delay_ms: expected 0 to 60000\n"),
    ] {
        let no = client.request(method, path, &[], true);
        let response = client.response(no);
        assert_eq!((response.status, announced(&response)), (status, length), "{method} {path}");
        assert_eq!(String::from_utf8_lossy(&response.body), body, "{method} {path}");
        assert_eq!(response.fields["content-type"], kind, "{method} {path}");
        assert_eq!((response.fields["server"].as_str(), response.fields["date"].len()), ("weir-origin", 29));
    }
    drop(client);
    let totals = server.stop();
    assert_eq!((totals.requests, totals.answers, totals.refused, totals.failed), (14, 14, 0, 0));
    assert_eq!((totals.connections, totals.connections_http2), (1, 1));
}

#[test]
fn an_echo_is_the_body_with_its_framing() {
    let server = Server::start();
    let mut client = Client::new(&server);
    for length in [0, 1, 16_384, 1_000_000] {
        let body = content(length);
        let text = length.to_string();
        for fields in [&[][..], &[("content-length", text.as_str())]] {
            for path in ["/echo", "/echo?delay_ms=5", "/echo?chunked=1"] {
                let no = client.request("POST", path, fields, false);
                client.upload(no, &body);
                let response = client.response(no);
                assert_eq!(response.status, 200);
                assert_eq!(announced(&response), (!fields.is_empty()).then_some(length), "{path} {length}");
                assert!(response.body == body, "{path} {length}: {} bytes", response.body.len());
            }
        }
    }
    drop(client);
    let totals = server.stop();
    assert_eq!((totals.requests, totals.answers, totals.failed), (24, 24, 0));
    assert_eq!((totals.bytes_received, totals.bytes_sent), (6 * 1_016_385, 6 * 1_016_385));
}

#[test]
fn an_echo_ends_with_the_requests_trailers() {
    let server = Server::start();
    // The trailers follow a body that waits for the window, too.
    for window in [1, 65_535] {
        let settings = Settings { initial_window_size: window, ..Config::default().settings };
        let mut client = Client::with(&server, Config { settings, ..Config::default() });
        for (path, trailers) in [("/echo", 1), ("/echo?delay_ms=5", 1), ("/bytes/4", 0)] {
            for body in [&b"0123"[..], b""] {
                let no = client.request("POST", path, &[], false);
                assert_eq!(client.data(no, body, false), body.len());
                client.trailers(no, "x-sum", "17");
                let response = client.response(no);
                let expected = if trailers == 0 { b"0123" } else { body };
                assert_eq!((response.status, response.body.as_slice()), (200, expected));
                assert_eq!(response.trailers.len(), trailers, "{path}");
                assert!(response.trailers.get("x-sum").is_none_or(|sum| sum == "17"));
            }
        }
    }
    let totals = server.stop();
    assert_eq!((totals.requests, totals.answers, totals.refused), (12, 12, 0));
}

#[test]
fn other_resources_discard_the_body() {
    let server = Server::start();
    let mut client = Client::new(&server);
    for (path, status) in [("/bytes/2", 200), ("/bytes/2?delay_ms=5", 200), ("/nothing", 404)] {
        let no = client.request("PUT", path, &[], false);
        client.upload(no, &content(300_000));
        assert_eq!(client.response(no).status, status, "{path}");
    }
    drop(client);
    let totals = server.stop();
    assert_eq!((totals.requests, totals.answers, totals.bytes_received), (3, 3, 900_000));
}

#[test]
fn a_client_that_expects_100_gets_it_before_it_sends_the_body() {
    let server = Server::start();
    let mut client = Client::new(&server);
    for path in ["/echo", "/bytes/3"] {
        let no = client.request("POST", path, &[("expect", "100-continue")], false);
        client.send();
        client.until(|client| client.responses[&no].interim == [100]);
        client.upload(no, b"012");
        let response = client.response(no);
        assert_eq!((response.status, response.body.as_slice()), (200, &b"012"[..]));
    }
    drop(client);
    server.stop();
}

/// CONNECT has neither scheme nor path, which the protocol's client does not write.
#[test]
fn connect_gets_501_and_the_end_of_its_stream() {
    let server = Server::start();
    let mut client = Client::new(&server);
    // Literals without indexing: `:method` (static entry 2) and `:authority` (static entry 1).
    let block = b"\x02\x07CONNECT\x01\x03a:1";
    let no = client.opened_elsewhere(|no| {
        let mut frame = vec![0, 0, block.len() as u8, 1, 4];
        frame.extend_from_slice(&no.to_be_bytes());
        frame.extend_from_slice(block);
        frame
    });
    client.until(|client| client.responses[&no].reset.is_some());
    let response = &client.responses[&no];
    assert_eq!((response.status, response.reset), (501, Some(ErrorCode::NO_ERROR)));
    assert_eq!(response.body, b"CONNECT: the test server opens no tunnels\n");
    drop(client);
    server.stop();
}

#[test]
fn many_streams_share_a_connection() {
    let server = Server::start();
    let mut client = Client::with(&server, large_windows());
    let sizes: Vec<usize> = (0..200).map(|at| at * at * 25).collect();
    let all: Vec<_> = sizes.iter().map(|size| client.get(&format!("/bytes/{size}"))).collect();
    client.send();
    for (no, size) in all.into_iter().zip(sizes) {
        let response = client.response(no);
        assert_eq!(response.status, 200);
        assert!(response.body == content(size), "{size}");
    }
    drop(client);
    let totals = server.stop();
    assert_eq!((totals.connections, totals.requests, totals.answers, totals.failed), (1, 200, 200, 0));
}

#[test]
fn delays_are_never_shorter_and_do_not_delay_others() {
    let server = Server::start();
    let mut client = Client::new(&server);
    let started = Instant::now();
    let slow: Vec<_> = [40, 20, 30, 20].map(|ms| (ms, client.get(&format!("/bytes/1?delay_ms={ms}")))).into();
    let never = client.get("/bytes/1?delay_ms=60000");
    let fast = client.get("/bytes/1");
    client.response(fast);
    for (ms, no) in slow {
        assert_eq!(client.response(no).body, b"0");
        assert!(started.elapsed() >= Duration::from_millis(ms));
    }
    client.reset(never, ErrorCode::CANCEL);
    client.barrier();
    drop(client);
    let totals = server.stop();
    assert_eq!((totals.requests, totals.answers, totals.reset, totals.failed), (6, 5, 1, 0));
}
