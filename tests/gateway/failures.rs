//! Servers that respond with errors: ejection, and retries at other servers.

use super::check::refused;
use super::services::refusing;
use super::{ask, get, named};
use crate::common::{Client, Peer, Upstream, Weir};
use std::net::SocketAddr;

/// An upstream that responds to each request with this status.
fn failing(status: u16) -> Upstream {
    Upstream::start(None, move |peer: &mut Peer| {
        while peer.request().is_some() {
            peer.answer(format!("HTTP/1.1 {status} Fine\r\nX-Server: bad\r\nContent-Length: 2\r\n\r\nno"));
        }
    })
}

fn gateway(servers: &[SocketAddr], service: &str, route: &str) -> Weir {
    let servers: Vec<_> = servers.iter().map(|address| format!("'http://{address}'")).collect();
    let servers = servers.join(", ");
    Weir::configured(
        &format!(
            "workers = 1\n[listener.web]\nbind = '127.0.0.1:0'\n[[route]]\nservice = 'app'\n{route}\n\
             [service.app]\nservers = [{servers}]\n{service}"
        ),
        1,
    )
}

fn statuses(weir: &Weir, request: &str, count: usize) -> Vec<u16> {
    (0..count).map(|_| ask(weir, request).status).collect()
}

const GET: &str = "GET / HTTP/1.1\r\nHost: h\r\n\r\n";

/// Regression test: a server that responds 503 at once was the least busy one and got most requests.
#[test]
fn a_server_that_answers_with_errors_is_ejected_where_they_count() {
    let good = named("good");
    for (status, eject, expected) in [
        (503, "", 20),
        (503, "on = ['connect', 'timeout', 'invalid']", 20),
        (503, "on = ['5xx']", 5),
        (503, "on = ['502-504'], failures = 3", 3),
        (429, "on = ['connect', '429'], failures = 1", 1),
        (503, "on = ['502', '504'], failures = 1", 20),
        (404, "on = ['5xx'], failures = 1", 20),
        (500, "on = ['5xx'], failures = 0, percent = 50, min_requests = 12", 12),
        (200, "on = ['4xx', '5xx'], failures = 1, percent = 1, min_requests = 1", 20),
    ] {
        let bad = failing(status);
        let service = format!("eject = {{ for = '1h'{}{eject} }}", if eject.is_empty() { "" } else { ", " });
        let weir = gateway(&[bad.address, good.address], &service, "");
        let got = statuses(&weir, GET, 40);
        assert_eq!(bad.requests().len(), expected, "{status} {eject}");
        assert_eq!(
            got.iter().filter(|found| **found == 200).count(),
            if status == 200 { 40 } else { 40 - expected }
        );
        if expected < 20 {
            weir.wait_for_stderr(&[
                "weir: app: http://127.0.0.1:",
                "keeps failing; it gets no requests for 3600 s",
            ]);
        }
    }
}

#[test]
fn when_all_servers_answer_with_errors_all_go_on() {
    let [one, other] = [503, 500].map(failing);
    let weir =
        gateway(&[one.address, other.address], "eject = { on = ['5xx'], failures = 1, for = '1h' }", "");
    let got = statuses(&weir, GET, 20);
    assert!(got.iter().all(|status| [500, 503].contains(status)), "{got:?}");
    assert_eq!(one.requests().len() + other.requests().len(), 20);
    assert!(one.requests().len() > 5 && other.requests().len() > 5);
}

#[test]
fn requests_that_may_be_repeated_go_to_another_server_on_stated_statuses() {
    let body = "x".repeat(3_000);
    let long = "x".repeat(40_000);
    let put = format!("PUT / HTTP/1.1\r\nHost: h\r\nContent-Length: 3000\r\n\r\n{body}");
    let long = format!("PUT / HTTP/1.1\r\nHost: h\r\nContent-Length: 40000\r\n\r\n{long}");
    let post = "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\nab";
    for (retry, service, request, status, repeated) in [
        ("retry = { on = [502, 503] }", "", GET, 503, true),
        ("retry = { on = ['5xx'] }", "", put.as_str(), 500, true),
        ("retry = { on = [503] }", "", "DELETE / HTTP/1.1\r\nHost: h\r\n\r\n", 503, true),
        ("retry = { on = [429] }", "", GET, 429, true),
        ("retry = { on = [503], requests = 'always' }", "", post, 503, true),
        ("retry = { on = [503] }", "", post, 503, false),
        ("retry = { on = [502] }", "", GET, 503, false),
        ("retry = { on = [503] }", "", long.as_str(), 503, false),
        ("retry = { on = [503] }", "retry_percent = 0", GET, 503, false),
        ("retry = 'always'", "", GET, 503, false),
        ("retry = { on = [503] }\nrequest_headers.set = { X-To = '{upstream}' }", "", GET, 503, true),
    ] {
        let (good, bad) = (named("good"), failing(status));
        let weir = gateway(&[bad.address, good.address], service, retry);
        let got = statuses(&weir, request, 8);
        let failed = got.iter().filter(|found| **found == status).count();
        assert_eq!(failed, if repeated { 0 } else { 4 }, "{retry} {service}: {got:?}");
        if request.starts_with("PUT") && repeated {
            let requests = good.requests();
            assert!(requests.len() == 8 && requests.iter().all(|request| request.body == body.as_bytes()));
        }
        // `X-To` of the second attempt must name its own server, not that of the first attempt.
        let to_itself = format!("X-To: {}", good.address);
        assert!(!retry.contains("X-To") || good.requests().iter().all(|one| one.head.contains(&to_itself)));
        let ended = weir.stop();
        assert_eq!(ended.stdout.contains("retries: 4;"), repeated, "{retry}: {}", ended.stdout);
        assert_eq!(ended.stdout.contains("retries:"), repeated, "{retry}: {}", ended.stdout);
    }
}

#[test]
fn when_no_other_server_does_better_its_answer_is_the_answer() {
    let [one, other] = [503, 503].map(failing);
    let weir = gateway(&[one.address, other.address], "", "retry = { on = [503] }");
    let answer = get(&weir, "h", "/");
    assert_eq!((answer.status, answer.text()), (503, "no"));
    // The gateway tries at most two others.
    let count = one.requests().len() + other.requests().len();
    assert!((2..=3).contains(&count), "{count}");
    let alone = gateway(&[one.address], "", "retry = { on = [503] }");
    assert_eq!(get(&alone, "h", "/").status, 503);
}

/// Regression test: of three servers, one request went to the first twice and to the third never.
#[test]
fn no_server_is_asked_twice_for_the_same_request() {
    let all = [503, 502, 504].map(failing);
    let addresses = [&all[0], &all[1], &all[2]].map(|server| server.address);
    for service in ["", "balance = 'round-robin'", "balance = 'two-choices'", "balance = 'hash'"] {
        let before = all.each_ref().map(|server| server.requests().len());
        let weir = gateway(&addresses, service, "retry = { on = ['5xx'] }");
        statuses(&weir, GET, 5);
        for (server, before) in all.iter().zip(before) {
            assert_eq!(server.requests().len() - before, 5, "{service}");
        }
    }
}

/// Regression test: a request that failed without a response counted twice, so the failure percentage never
/// exceeded one half.
#[test]
fn a_share_counts_each_request_once() {
    let good = named("good");
    for (answer, eject) in
        [("", "percent = 100"), ("HTTP/1.1 200 Fine\r\nContent-Length: 2\r\n\r\n", "percent = 90")]
    {
        let bad = Upstream::start(None, move |peer: &mut Peer| {
            peer.request();
            peer.answer(answer);
        });
        let service = format!("eject = {{ for = '1h', failures = 0, min_requests = 4, {eject} }}");
        let weir = gateway(&[bad.address, good.address], &service, "");
        for _ in 0..20 {
            let mut client = Client::connect(weir.address(), None);
            client.send("GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
            client.read_to_end();
        }
        assert_eq!(bad.requests().len(), 4, "{answer:?}");
    }
}

/// Regression test: a failed request counted as two failures of its server if no other server was available.
#[test]
fn a_request_is_one_failure() {
    for (failures, ejections) in [(2, ""), (1, "ejections: 1;")] {
        let busy = Upstream::start(None, |peer: &mut Peer| while peer.request().is_some() {});
        let dead = refusing(9);
        let service = format!("balance = 'round-robin'\nmax_connections = 1\neject.failures = {failures}");
        let weir = gateway(&[busy.address, dead], &service, "");
        let mut first = Client::connect(weir.address(), None);
        first.send(GET);
        busy.wait_for_requests(1);
        // The only server with free capacity refuses the connection, and the other has none.
        assert_eq!(statuses(&weir, GET, 1), [502]);
        drop(first);
        let ended = weir.stop();
        assert!(ended.stdout.contains(ejections), "{failures}: {}", ended.stdout);
        assert_eq!(ended.stdout.contains("ejections"), !ejections.is_empty(), "{failures}: {}", ended.stdout);
    }
}

#[test]
fn what_would_not_be_obeyed_is_refused() {
    for (service, route, why) in [
        ("eject.percent = 0", "", "service.app.eject.percent: invalid value `0`"),
        ("eject.percent = 101", "", "service.app.eject.percent: invalid value `101`"),
        ("eject.window = '1s'", "", "service.app.eject.window: no effect without `percent`"),
        ("eject.min_requests = 5", "", "service.app.eject.min_requests: no effect without `percent`"),
        (
            "eject = { percent = 5, min_requests = 0 }",
            "",
            "service.app.eject.min_requests: invalid value `0`",
        ),
        (
            "eject = { on = ['5xx'], failures = 0 }",
            "",
            "service.app.eject.on: no effect beside `failures = 0`",
        ),
        ("eject.on = 'http'", "", "invalid failure `http`: expected `connect`"),
        ("", "retry = { on = [503], requests = 'never' }", "route.0.retry.requests: invalid value `never`"),
        ("", "retry = { on = [200] }", "invalid status `200`"),
        ("", "retry = { of = [503] }", "of"),
    ] {
        let servers = "servers = ['http://127.0.0.1:1', 'http://127.0.0.1:2']";
        refused(
            &format!(
                "[listener.web]\nbind = '127.0.0.1:0'\n[service.app]\n{servers}\n{service}\n[[route]]\nservice = 'app'\n{route}\n"
            ),
            why,
        );
    }
}
