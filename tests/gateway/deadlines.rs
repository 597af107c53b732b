//! Deadlines and retries of routes and services.

use super::{ask, gateway_to};
use crate::common::{Client, DEADLINE, Peer, Switch, Upstream, Weir, poll_until};
use std::net::TcpListener;
use weir_http::Method;

const GET: &str = "GET / HTTP/1.1\r\nHost: h\r\n\r\n";

#[test]
fn a_whole_exchange_has_a_deadline() {
    let switch = Switch::default();
    let never = switch.clone();
    // One response never begins; the other never ends although bytes keep arriving.
    let upstream = Upstream::start(None, move |peer: &mut Peer| {
        let Some(request) = peer.request() else { return };
        if request.head.contains(" /drip ") {
            peer.answer("HTTP/1.1 200 OK\r\nContent-Length: 100000000\r\n\r\n");
            while peer.answer(b"x") {
                std::thread::yield_now();
            }
        }
        never.wait();
    });
    let weir = gateway_to(&upstream, "timeouts.exchange = '300ms'");
    let late = ask(&weir, GET);
    assert!(
        late.status == 504 && !late.says_close() && late.text().contains("exchange_timeout"),
        "{}",
        late.text()
    );
    let mut client = Client::connect(weir.address(), None);
    client.send("GET /drip HTTP/1.1\r\nHost: h\r\n\r\n");
    let (bytes, _) = client.read_to_end();
    assert!(bytes.starts_with(b"HTTP/1.1 200") && bytes.len() < 100_000_000);
    poll_until(DEADLINE, "both are logged", || weir.stderr().matches("exchange_timeout").count() == 2);
    switch.throw();
}

#[test]
fn a_handshake_with_a_server_has_a_deadline_of_its_own() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let config = format!(
        "workers = 1\n[listener.web]\nbind = '127.0.0.1:0'\n[service.app]\nservers = 'https://{}'\ntls.insecure = true\n\
         [[route]]\nservice = 'app'\n[timeouts]\nupstream_handshake = '100ms'\nconnect = '1h'\n",
        silent.local_addr().unwrap()
    );
    let weir = Weir::configured(&config, 1);
    let answer = ask(&weir, GET);
    assert!(
        answer.status == 504 && answer.text().contains("upstream_handshake_timeout"),
        "{}",
        answer.text()
    );
}

/// An upstream that responds to the first request on a connection and closes on the second one.
fn closes_at_the_second() -> Upstream {
    Upstream::start(None, |peer: &mut Peer| {
        if peer.request().is_some() {
            peer.answer("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
            peer.request();
        }
    })
}

/// The statuses of sequential requests on one connection.
fn statuses(weir: &Weir, methods: &[&str]) -> Vec<u16> {
    let mut client = Client::connect(weir.address(), None);
    let mut status = |method: &&str| {
        client.send(format!("{method} / HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\nok"));
        client.answer(Method::Post).status
    };
    methods.iter().map(&mut status).collect()
}

#[test]
fn a_route_says_what_is_sent_again() {
    for (setting, put, post) in [
        ("", 200, 502),
        ("retry = 'idempotent'", 200, 502),
        ("retry = 'always'", 200, 200),
        ("retry = 'never'", 502, 502),
    ] {
        let upstream = closes_at_the_second();
        let weir = gateway_to(&upstream, setting);
        assert_eq!(statuses(&weir, &["PUT", "PUT"]), [200, put], "{setting}");
        let upstream = closes_at_the_second();
        let weir = gateway_to(&upstream, setting);
        assert_eq!(statuses(&weir, &["POST", "POST"]), [200, post], "{setting}");
        let bodies: Vec<_> = upstream.requests().iter().map(|request| request.body.clone()).collect();
        assert!(bodies.iter().all(|body| body == b"ok"));
        assert_eq!(bodies.len(), if post == 200 { 3 } else { 2 });
    }
}

#[test]
fn a_service_says_how_many_are_sent_again() {
    let upstream = closes_at_the_second();
    let config = format!(
        "workers = 1\n[listener.web]\nbind = '127.0.0.1:0'\n[service.app]\nservers = 'http://{}'\nretry_percent = 0\n[[route]]\nservice = 'app'\n",
        upstream.address
    );
    let weir = Weir::configured(&config, 1);
    assert_eq!(statuses(&weir, &["PUT", "PUT"]), [200, 502]);
    super::check::refused(
        &config.replace("percent = 0", "percent = 101"),
        "service.app.retry_percent: invalid value `101`: expected 0 to 100",
    );
}
