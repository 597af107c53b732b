//! Mirroring: the gateway copies requests to another service without delaying clients.

use super::{metric, named};
use crate::common::{Client, DEADLINE, Peer, Switch, Upstream, Weir, pattern, poll_until};
use std::net::SocketAddr;
use weir_http::Method;

fn gateway(app: &Upstream, shadow: SocketAddr, mirror: &str, rest: &str) -> Weir {
    let config = format!(
        "workers = 1
        [listener.web]
        bind = '127.0.0.1:0'
        [service.app]
        servers = 'http://{}'
        [service.shadow]
        servers = 'http://{shadow}'
        [[route]]
        service = 'app'
        request_headers.set = {{ X-Server = '{{upstream}}' }}
        mirror = {{ service = 'shadow', {mirror} }}
        [admin]
        bind = '127.0.0.1:0'
        {rest}",
        app.address
    );
    Weir::configured(&config, 1)
}

/// The number of copies with this fate.
fn fated(weir: &Weir, fate: &str) -> u64 {
    metric(weir, &format!("weir_mirrored_total{{fate=\"{fate}\"}}"))
}

fn wait_for(weir: &Weir, fate: &str, count: u64) {
    poll_until(DEADLINE, &format!("{count} copies are {fate}"), || fated(weir, fate) == count);
}

const GET: &str = "GET /a?b HTTP/1.1\r\nHost: h\r\n\r\n";

#[test]
fn copies_are_complete_and_their_answers_are_dropped() {
    let (app, shadow) = (named("app"), named("shadow"));
    let weir = gateway(&app, shadow.address, "max_body = '40KiB'", "");
    let mut client = Client::connect(weir.address(), None);
    assert_eq!(client.ask(GET).fields("x-server"), ["app"]);
    wait_for(&weir, "responded", 1);
    let body = pattern(30_000);
    client.send("POST /c HTTP/1.1\r\nHost: h\r\nContent-Length: 30000\r\nExpect: 100-continue\r\n\r\n");
    client.send(&body[..10]);
    client.send(&body[10..]);
    assert_eq!(client.answer(Method::Post).fields("x-server"), ["app"]);
    wait_for(&weir, "responded", 2);
    client.send(
        "PUT /d HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n",
    );
    assert_eq!(client.answer(Method::Put).fields("x-server"), ["app"]);
    wait_for(&weir, "responded", 3);
    let copies = shadow.requests().clone();
    let heads: Vec<_> = copies.iter().map(|copy| copy.head.lines().next().unwrap()).collect();
    assert_eq!(heads, ["GET /a?b HTTP/1.1", "POST /c HTTP/1.1", "PUT /d HTTP/1.1"]);
    let bodies: Vec<_> = copies.iter().map(|copy| &copy.body[..]).collect();
    assert_eq!(bodies, [b"", &body[..], b"abcde"]);
    let address = shadow.address.to_string();
    assert!(
        copies
            .iter()
            .all(|copy| copy.head.contains(&format!("X-Server: {address}\r\n"))
                && !copy.head.contains("Expect"))
    );
    assert_eq!(shadow.connections(), 1, "its connection is kept");
    // The copy is too large, either by Content-Length or only after chunks arrive.
    client.send("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 50000\r\n\r\n");
    client.send(pattern(50_000));
    assert_eq!(client.answer(Method::Post).status, 200);
    client.send("POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\nc350\r\n");
    client.send(pattern(50_000));
    client.send("\r\n0\r\n\r\n");
    assert_eq!(client.answer(Method::Post).status, 200);
    wait_for(&weir, "too_large", 2);
    assert_eq!(shadow.requests().len(), 3);
}

/// Regression test: the mirror skipped every request with `Upgrade`, and did not count it.
#[test]
fn a_request_is_copied_unless_its_server_may_switch_protocols() {
    let (app, shadow) = (named("app"), named("shadow"));
    let weir = gateway(&app, shadow.address, "", "");
    let (mut copied, mut skipped) = (0, 0);
    for (request, is_copied) in [
        ("GET / HTTP/1.1\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n", true),
        ("GET / HTTP/1.1\r\nConnection: Upgrade\r\nUpgrade: websocket, h2c\r\n", true),
        ("GET / HTTP/1.1\r\nUpgrade: websocket\r\n", true),
        ("GET / HTTP/1.0\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n", true),
        ("POST / HTTP/1.1\r\nContent-Length: 0\r\nConnection: Upgrade\r\nUpgrade: x\r\n", false),
        ("GET / HTTP/1.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n", false),
    ] {
        let answer = Client::connect(weir.address(), None).ask(format!("{request}Host: h\r\n\r\n"));
        assert_eq!(answer.status, 200, "{request}");
        *if is_copied { &mut copied } else { &mut skipped } += 1;
        wait_for(&weir, "responded", copied);
        assert_eq!(fated(&weir, "upgrade"), skipped, "{request}");
    }
    let copies = shadow.requests();
    assert!(copies.iter().all(|copy| !copy.head.contains("Upgrade")), "a copy switches nothing");
}

#[test]
fn a_share_is_copied() {
    let (app, shadow) = (named("app"), named("shadow"));
    let weir = gateway(&app, shadow.address, "percent = 25", "");
    let mut client = Client::connect(weir.address(), None);
    for _ in 0..400 {
        assert_eq!(client.ask(GET).status, 200);
    }
    poll_until(DEADLINE, "all copies are answered", || {
        fated(&weir, "responded") == shadow.requests().len() as u64
    });
    let copies = fated(&weir, "responded");
    assert!((60..140).contains(&copies), "{copies}");
    let none = gateway(&app, shadow.address, "percent = 0", "");
    assert_eq!(Client::connect(none.address(), None).ask(GET).status, 200);
    assert_eq!(metric(&none, "weir_mirrored_total"), 0);
}

#[test]
fn a_mirror_that_is_slow_or_gone_delays_nobody() {
    let switch = Switch::default();
    let hold = switch.clone();
    let slow = Upstream::start(None, move |peer: &mut Peer| {
        peer.request();
        hold.wait();
    });
    let app = named("app");
    let weir = gateway(&app, slow.address, "max_in_flight = 2", "[timeouts]\nresponse = '400ms'");
    let mut client = Client::connect(weir.address(), None);
    for _ in 0..5 {
        assert_eq!(client.ask(GET).fields("x-server"), ["app"]);
    }
    assert_eq!(fated(&weir, "busy"), 3);
    wait_for(&weir, "late", 2);
    switch.throw();
    let gone = gateway(&app, "127.0.0.9:1".parse().unwrap(), "", "");
    assert_eq!(Client::connect(gone.address(), None).ask(GET).status, 200);
    wait_for(&gone, "failed", 1);
    // A drain does not wait for copies.
    let switch = Switch::default();
    let hold = switch.clone();
    let slow = Upstream::start(None, move |peer: &mut Peer| {
        peer.request();
        hold.wait();
    });
    let weir = gateway(&app, slow.address, "", "");
    assert_eq!(Client::connect(weir.address(), None).ask(GET).status, 200);
    slow.wait_for_requests(1);
    assert_eq!(weir.stop().code, Some(0));
    switch.throw();
}

#[test]
fn bad_answers_to_copies_are_no_answers() {
    let app = named("app");
    for answer in
        ["rubbish\r\n\r\n", "HTTP/1.1 101 Now\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nab"]
    {
        let shadow = Upstream::start(None, move |peer: &mut Peer| {
            peer.request();
            peer.answer(answer);
        });
        let weir = gateway(&app, shadow.address, "", "");
        assert_eq!(Client::connect(weir.address(), None).ask(GET).fields("x-server"), ["app"]);
        wait_for(&weir, "failed", 1);
    }
}

#[test]
fn a_request_that_breaks_off_has_no_copy() {
    let (app, shadow) = (named("app"), named("shadow"));
    let weir = gateway(&app, shadow.address, "", "");
    let mut client = Client::connect(weir.address(), None);
    client.send("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nab");
    client.stream.finish_tcp();
    wait_for(&weir, "incomplete", 1);
    assert_eq!(shadow.connections(), 0);
}

#[test]
fn mirrors_that_cannot_be_are_refused() {
    for (route, expected) in [
        ("respond.status = 200\nmirror = { service = 'a' }", "route.0.mirror: no effect beside `respond`"),
        (
            "service = 'a'\nmirror = { service = 'b' }",
            "route.0.mirror.service: unknown service `b`: expected one of `a`",
        ),
        (
            "service = 'a'\nmirror = { service = 'a', percent = 101 }",
            "route.0.mirror.percent: invalid value `101`",
        ),
        (
            "service = 'a'\nmirror = { service = 'a', max_in_flight = 0 }",
            "route.0.mirror.max_in_flight: invalid value `0`",
        ),
        (
            "service = 'a'\nmirror = { service = 'a', max_body = '1GiB' }",
            "route.0.mirror.max_body: invalid value",
        ),
    ] {
        super::check::refused(
            &format!(
                "[listener.web]\nbind = '127.0.0.1:0'\n[service.a]\nservers = 'http://127.0.0.1:1'\n[[route]]\n{route}\n"
            ),
            expected,
        );
    }
}
