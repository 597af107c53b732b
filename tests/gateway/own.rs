//! Generated responses: they have their route's fields and keep the client's connection open if possible.

use super::{ask, held_back};
use crate::common::{Client, Peer, Switch, Upstream, Weir};
use std::net::TcpListener;
use weir_http::Method;

const HSTS: &str = "response_headers.set = { Strict-Transport-Security = 'max-age=1' }\n";

/// A gateway with routes to three services: one is unreachable, one sends invalid responses, one never responds.
fn gateway() -> (Weir, Upstream, Upstream) {
    // No other process can bind this port: it needs the same privilege.
    let gone = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let broken = Upstream::start(None, |peer: &mut Peer| {
        while peer.head().is_some() {
            peer.answer("HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n");
        }
    });
    let silent = Upstream::start(None, |peer: &mut Peer| while peer.request().is_some() {});
    let route = |path: &str, rest: &str| format!("[[route]]\npath = '{path}'\n{rest}\n{HSTS}");
    let config = format!(
        "workers = 1\n[listener.web]\nbind = '127.0.0.1:0'\n\
         [service.gone]\nservers = 'http://{gone}'\neject.failures = 0\n\
         [service.broken]\nservers = 'http://{}'\neject.failures = 0\n\
         [service.silent]\nservers = 'http://{}'\neject.failures = 0\n\
         {}{}{}{}{}{}{}",
        broken.address,
        silent.address,
        route("/gone", "service = 'gone'\nmax_body = 10"),
        route("/buffered", "service = 'gone'\nmax_body = 10\nrequest_buffer = '16KiB'"),
        route("/broken", "service = 'broken'"),
        route("/silent", "service = 'silent'\ntimeouts.response = '100ms'"),
        route("/rate", "respond.status = 200\nrate = { requests = 1, per = '1h' }"),
        route("/to", "redirect.to = 'https://{host}/'"),
        route("/own", "respond.status = 200"),
    );
    (Weir::configured(&config, 1), broken, silent)
}

/// Regression test: generated errors on a route lacked its fields, so a first visit during an outage lacked
/// Strict-Transport-Security.
#[test]
fn they_have_the_fields_of_their_route() {
    let (weir, _broken, _silent) = gateway();
    assert_eq!(ask(&weir, "GET /rate HTTP/1.1\r\nHost: h\r\n\r\n").status, 200);
    for (request, status) in [
        ("GET /own HTTP/1.1\r\nHost: h\r\n\r\n", 200),
        ("GET /to HTTP/1.1\r\nHost: h\r\n\r\n", 308),
        ("GET /to HTTP/1.0\r\n\r\n", 400),
        ("GET /rate HTTP/1.1\r\nHost: h\r\n\r\n", 429),
        ("GET /gone HTTP/1.1\r\nHost: h\r\n\r\n", 502),
        ("HEAD /gone HTTP/1.1\r\nHost: h\r\n\r\n", 502),
        ("GET /broken HTTP/1.1\r\nHost: h\r\n\r\n", 502),
        ("GET /silent HTTP/1.1\r\nHost: h\r\n\r\n", 504),
        ("TRACE /gone HTTP/1.1\r\nHost: h\r\n\r\n", 405),
        ("OPTIONS /gone HTTP/1.1\r\nHost: h\r\nMax-Forwards: 0\r\n\r\n", 204),
        ("OPTIONS /gone HTTP/1.1\r\nHost: h\r\nMax-Forwards: x\r\n\r\n", 400),
        ("POST /gone HTTP/1.1\r\nHost: h\r\nContent-Length: 11\r\n\r\n", 413),
        (
            "POST /buffered HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\nb\r\n01234567890\r\n0\r\n\r\n",
            413,
        ),
        ("POST /buffered HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n", 400),
        ("POST /buffered HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\nab", 502),
    ] {
        let answer = ask(&weir, request);
        assert_eq!(
            (answer.status, answer.fields("strict-transport-security")),
            (status, vec!["max-age=1"]),
            "{request}"
        );
    }
    // Without a route there are no fields to add.
    for (request, status) in
        [("GET /lost HTTP/1.1\r\nHost: h\r\n\r\n", 404), ("GET /gone HTTP/1.1\r\nHost: a/b\r\n\r\n", 400)]
    {
        let answer = ask(&weir, request);
        assert_eq!(
            (answer.status, answer.fields("strict-transport-security")),
            (status, vec![]),
            "{request}"
        );
    }
}

#[test]
fn a_servers_failure_leaves_the_clients_connection() {
    let (weir, _broken, _silent) = gateway();
    let own = "GET /own HTTP/1.1\r\nHost: h\r\n\r\n";
    for (request, status) in [
        ("GET /gone HTTP/1.1\r\nHost: h\r\n\r\n", 502),
        ("HEAD /gone HTTP/1.1\r\nHost: h\r\n\r\n", 502),
        ("GET /gone HTTP/1.0\r\nHost: h\r\nConnection: keep-alive\r\n\r\n", 502),
        ("GET /broken HTTP/1.1\r\nHost: h\r\n\r\n", 502),
        ("GET /silent HTTP/1.1\r\nHost: h\r\n\r\n", 504),
        ("POST /broken HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\nab", 502),
        ("POST /silent HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\n", 504),
    ] {
        // The pipelined request gets its response too.
        let mut client = Client::connect(weir.address(), None);
        client.send(format!("{request}{own}"));
        let method = if request.starts_with("HEAD") { Method::Head } else { Method::Get };
        let failed = client.answer(method);
        assert_eq!((failed.status, failed.says_close()), (status, false), "{request}");
        assert_eq!(client.answer(Method::Get).status, 200, "{request}");
        let failed = client.ask(request);
        assert_eq!((failed.status, failed.says_close()), (status, false), "{request}");
    }
    // Unread body bytes, or those of another protocol, must not become a request.
    for (request, status) in [
        ("GET /gone HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n", 502),
        ("GET /gone HTTP/1.0\r\nHost: h\r\n\r\n", 502),
        ("POST /broken HTTP/1.1\r\nHost: h\r\nContent-Length: 100\r\nExpect: 100-continue\r\n\r\n", 502),
        ("POST /broken HTTP/1.1\r\nHost: h\r\nContent-Length: 100\r\n\r\nab", 502),
        ("GET /broken HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: chat\r\n\r\n", 502),
        ("GET /broken HTTP/1.1\r\nHost: h\r\nAuthorization: NTLM x\r\n\r\n", 502),
    ] {
        let mut client = Client::connect(weir.address(), None);
        let failed = client.ask(request);
        assert_eq!((failed.status, failed.says_close()), (status, true), "{request}");
        client.expect_end();
    }
}

/// A full queue is temporary, and closing the connection would cost a new handshake.
#[test]
fn a_full_queue_leaves_the_clients_connection() {
    let switch = Switch::default();
    let upstream = held_back(&switch, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
    let config = format!(
        "workers = 1\n[listener.web]\nbind = '127.0.0.1:0'\n[service.app]\nservers = 'http://{}'\nmax_connections = 1\nmax_waiting = 0\n\
         [[route]]\nservice = 'app'\n{HSTS}",
        upstream.address
    );
    let weir = Weir::configured(&config, 1);
    let mut first = Client::connect(weir.address(), None);
    first.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n");
    upstream.wait_for_requests(1);
    let mut second = Client::connect(weir.address(), None);
    let full = second.ask("GET / HTTP/1.1\r\nHost: h\r\n\r\n");
    assert!(full.text().contains("queue_full"), "{}", full.text());
    assert_eq!((full.status, full.says_close()), (503, false));
    assert_eq!(full.fields("strict-transport-security"), ["max-age=1"]);
    switch.throw();
    assert_eq!(first.answer(Method::Get).status, 200);
    assert_eq!(second.ask("GET / HTTP/1.1\r\nHost: h\r\n\r\n").status, 200);
}
