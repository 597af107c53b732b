//! Metrics of HTTP/2 connections.

use super::fields::{block, request};
use super::windows::{self, BIG, INITIAL_WINDOW_SIZE, LARGEST};
use super::{Client, gateway, upstream};
use crate::common::{DEADLINE, Weir, pattern, poll_until};

const ADMIN: &str = "[admin]\nbind = '127.0.0.1:0'";

/// The value of one sample.
fn sample(weir: &Weir, name: &str) -> f64 {
    let page = weir.ask_admin("GET /metrics");
    let value = page.text().lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    value.unwrap_or_else(|| panic!("no {name}")).parse().unwrap()
}

fn field_bytes(weir: &Weir, with: &str, direction: &str, form: &str) -> usize {
    let labels = format!("{{with=\"{with}\",direction=\"{direction}\",form=\"{form}\"}}");
    sample(weir, &format!("weir_http2_field_bytes_total{labels}")) as usize
}

#[test]
fn responses_count_for_their_service_and_their_route() {
    let upstream = upstream();
    let weir = gateway(&upstream, "name = 'all'\nmax_body = 1", ADMIN);
    let mut client = Client::connect(weir.address());
    for stream in [1, 3] {
        assert_eq!(client.get(stream, "/").response(stream).status(), 200);
    }
    let large = [&request("POST", "/")[..], &[(&b"content-length"[..], &b"2"[..])]].concat();
    client.headers(5, &large, false);
    assert_eq!(client.response(5).status(), 413);
    for (of, name) in [("service", "app"), ("route", "all")] {
        for (class, count) in [("2xx", 2.0), ("4xx", 1.0)] {
            let labels = format!("{{{of}=\"{name}\",class=\"{class}\"}}");
            assert_eq!(
                sample(&weir, &format!("weir_{of}_response_seconds_count{labels}")),
                count,
                "{labels}"
            );
        }
    }
}

#[test]
fn heads_count_with_their_sizes() {
    let upstream = upstream();
    let weir = gateway(&upstream, "", ADMIN);
    let mut client = Client::connect(weir.address());
    let response = client.get(1, "/").response(1);
    let fields = request("GET", "/");
    let lines = fields.iter().map(|(name, value)| name.len() + value.len() + 4).sum::<usize>();
    assert_eq!(field_bytes(&weir, "client", "received", "encoded"), block(&fields).len());
    assert_eq!(field_bytes(&weir, "client", "received", "decoded"), lines);
    assert_eq!(field_bytes(&weir, "client", "sent", "decoded"), response.head.len());
    let encoded = field_bytes(&weir, "client", "sent", "encoded");
    assert!((1..response.head.len()).contains(&encoded), "{encoded}");
    for (direction, form) in [("received", "encoded"), ("sent", "decoded")] {
        assert_eq!(field_bytes(&weir, "server", direction, form), 0);
    }
    client.get(3, "/").response(3);
    assert_eq!(field_bytes(&weir, "client", "received", "decoded"), 2 * lines);
}

#[test]
fn waits_for_a_window_take_time() {
    const CLIENT: &str = "weir_http2_window_wait_seconds_total{with=\"client\"}";
    let upstream = windows::upstream();
    let weir = gateway(&upstream, "", ADMIN);
    let mut client = Client::with_settings(weir.address(), &[(INITIAL_WINDOW_SIZE, LARGEST)]);
    client.get(1, "/").response(1);
    assert_eq!(sample(&weir, CLIENT), 0.0);
    let mut client = Client::with_settings(weir.address(), &[(INITIAL_WINDOW_SIZE, 0)]);
    client.get(1, "/big");
    poll_until(DEADLINE, "a wait", || {
        client.sync();
        sample(&weir, CLIENT) > 0.0
    });
    client.window_update(1, LARGEST);
    assert_eq!(client.response(1).body, pattern(BIG));
    let waited = sample(&weir, CLIENT);
    client.sync().sync();
    assert_eq!(sample(&weir, CLIENT), waited, "no stream waits");
    assert_eq!(sample(&weir, "weir_http2_window_wait_seconds_total{with=\"server\"}"), 0.0);
}
