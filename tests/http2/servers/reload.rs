//! Reloads and drains with requests in flight.

use super::{BOTH, Client, Connection, Content, Http1, Server, Version, ask, config};
use crate::common::{Switch, Upstream, Weir};
use std::path::Path;

/// An HTTP/2 server that responds to the first `count` requests of each connection once the test throws the switch.
fn holding(count: usize, switch: &Switch) -> Server {
    let switch = switch.clone();
    Server::start(move |connection: &mut Connection<'_>| {
        let held: Vec<_> = (0..count).map_while(|_| connection.request()).collect();
        switch.wait();
        for request in &held {
            connection.ok(request);
        }
        connection.serve(Connection::ok);
    })
}

fn reload(weir: &Weir, file: &Path, config: &str) {
    std::fs::write(file, config).unwrap();
    let reloaded = weir.ask_admin("POST /reload");
    assert_eq!(reloaded.status, 200, "{}", reloaded.text());
}

#[test]
fn http2_is_switched_off_and_on() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("weir.toml");
    // One server speaks HTTP/2, the other HTTP/1.1, on one address each.
    let switch = Switch::default();
    let http2 = holding(2, &switch);
    let http1 = Upstream::start(None, |peer| peer.serve("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\none"));
    let with = config(1, &[&http2], "", super::ADMIN);
    let without =
        with.replace("http2 = true\n", "").replace(&http2.address().to_string(), &http1.address.to_string());
    std::fs::write(&file, &with).unwrap();
    let weir = Weir::of_file(&file, 1);
    let (mut of_http1, mut of_http2) =
        (Http1::connect(weir.address(), None), Client::connect(weir.address()));
    of_http1.send("POST /held HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nhel");
    of_http2.post(1, "/held").data(1, b"hel", false).sync();
    http2.wait_for("both requests", |requests| requests.len() == 2);
    reload(&weir, &file, &without);
    for version in BOTH {
        assert_eq!(ask(&weir, version, "GET", "/", &[], Content::None).text(), "one", "{version:?}");
    }
    // Requests in flight stay with their server.
    of_http1.send("lo");
    of_http2.data(1, b"lo", true).get(3, "/").flush();
    assert_eq!(of_http2.response(3).text(), "one");
    http2.wait_for_complete(2);
    reload(&weir, &file, &with);
    switch.throw();
    assert_eq!(of_http1.answer(weir_http::Method::Post).text(), "ok");
    assert_eq!(of_http2.response(1).text(), "ok");
    assert!(http2.requests().iter().all(|request| request.text() == "hello"));
    // Its server left the configuration, so the connection closes.
    http2.wait_for_ending(0);
}

#[test]
fn the_same_server_with_and_without_http2() {
    // A server of both versions, as with prior knowledge: it distinguishes them by their first bytes.
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("weir.toml");
    let server = weir_origin();
    let with = format!(
        "workers = 1\n[listener.web]\nbind = '127.0.0.1:0'\n[service.app]\nservers = '{}'\nhttp2 = true\n\
         [[route]]\nservice = 'app'\n{}",
        server.urls[0],
        super::ADMIN
    );
    let without = with.replace("http2 = true\n", "");
    std::fs::write(&file, &with).unwrap();
    let weir = Weir::of_file(&file, 1);
    let requests = || super::metric(&weir, "weir_upstream_http2_requests_total");
    let mut expected = 0;
    for round in 0..4 {
        for version in BOTH {
            let reply = ask(&weir, version, "GET", "/", &[], Content::None);
            assert_eq!(reply.status, 200, "{version:?} {round}");
        }
        expected += if round % 2 == 0 { 2 } else { 0 };
        assert_eq!(requests(), expected, "{round}");
        reload(&weir, &file, if round % 2 == 0 { &without } else { &with });
    }
}

fn weir_origin() -> Weir {
    Weir::start(&["origin", "--listen", "http://127.0.0.1:0", "--workers", "1"])
}

#[test]
fn a_reload_that_changes_nothing_keeps_connections() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("weir.toml");
    let server = Server::ok();
    let same = config(1, &[&server], "", super::ADMIN);
    std::fs::write(&file, &same).unwrap();
    let weir = Weir::of_file(&file, 1);
    for _ in 0..3 {
        for version in BOTH {
            assert_eq!(ask(&weir, version, "GET", "/", &[], Content::None).text(), "ok");
        }
        reload(&weir, &file, &same);
    }
    assert_eq!(server.connections(), 1);
}

#[test]
fn a_drain_completes_requests() {
    let switch = Switch::default();
    let server = holding(2, &switch);
    let mut weir = super::gateway(&[&server], "", "");
    let (mut of_http1, mut of_http2) =
        (Http1::connect(weir.address(), None), Client::connect(weir.address()));
    of_http1.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n");
    of_http2.get(1, "/").flush();
    server.wait_for_complete(2);
    weir.terminate();
    of_http2.read_until(|client| !client.go_aways.is_empty());
    switch.throw();
    let answer = of_http1.answer(weir_http::Method::Get);
    assert_eq!((answer.text(), answer.says_close()), ("ok", true));
    assert_eq!(of_http2.response(1).text(), "ok");
    of_http2.end();
    of_http1.expect_end();
    assert_eq!(weir.exit_code(), Some(0));
    server.wait_for_ending(0);
    assert!(!weir.stderr().contains("panicked"), "{}", weir.stderr());
}

#[test]
fn idle_connections_do_not_hold_up_a_drain() {
    let server = Server::ok();
    let mut weir = super::gateway(&[&server], "", "");
    assert_eq!(ask(&weir, Version::Http2, "GET", "/", &[], Content::None).text(), "ok");
    weir.terminate();
    assert_eq!(weir.exit_code(), Some(0));
    server.wait_for_ending(0);
}
