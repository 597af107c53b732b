//! Access to the admin address, and its timeouts.

use super::check::refused;
use super::named;
use crate::common::{Client, DEADLINE, Weir, poll_until};
use std::io::Write as _;
use std::net::TcpStream;
use weir_http::Method;

fn gateway(admin: &str) -> Weir {
    let upstream = named("a");
    Weir::configured(&super::config_to(&upstream, &format!("[admin]\nbind = '127.0.0.1:0'\n{admin}")), 1)
}

/// Regression test: a web page whose name resolves to the loopback interface could read everything, and change what
/// needs no `Origin`.
#[test]
fn requests_for_other_hosts_and_of_web_pages_are_refused() {
    let weir = gateway("hosts = ['weir.internal', 'Admin.Example.org']");
    let own = weir.admin().to_string();
    for (host, status) in [
        (own.as_str(), 200),
        ("127.0.0.1", 200),
        ("localhost:9901", 200),
        ("LocalHost.", 200),
        ("[::1]:9901", 200),
        ("192.0.2.7:9901", 200),
        ("weir.internal:9901", 200),
        ("admin.example.org", 200),
        ("evil.example", 421),
        ("evil.example:9901", 421),
        ("localhost.evil.example", 421),
        ("127.0.0.1.evil.example", 421),
        ("x.weir.internal", 421),
        ("a", 421),
    ] {
        for request in ["GET /metrics", "GET /config", "GET /health"] {
            let answer = Client::connect(weir.admin(), None)
                .ask(format!("{request} HTTP/1.1\r\nHost: {host}\r\n\r\n"));
            assert_eq!(answer.status, status, "{request} {host}: {}", answer.text());
            assert_eq!(answer.text().contains("unknown host"), status == 421);
        }
    }
    for (field, status) in [
        ("X: y", 200),
        ("Sec-Fetch-Site: none", 200),
        ("Sec-Fetch-Site: cross-site", 403),
        ("sec-fetch-site: Same-Site", 403),
        ("Sec-Fetch-Site: same-origin", 403),
        ("Sec-Fetch-Site: none\r\nSec-Fetch-Site: cross-site", 403),
        ("Origin: http://localhost", 403),
        ("Origin: null", 403),
    ] {
        let answer = Client::connect(weir.admin(), None)
            .ask(format!("POST /reload HTTP/1.1\r\nHost: localhost\r\n{field}\r\n\r\n"));
        assert_eq!(answer.status, status, "{field}: {}", answer.text());
    }
    for (hosts, why) in [
        ("hosts = '*.example.org'", "admin.hosts.0: invalid host `*.example.org`"),
        ("hosts = ['a', 'b:1']", "admin.hosts.1: invalid host `b:1`"),
        ("hosts = 'a'\nbind = 'unix:/tmp/weir-admin.sock'", "admin.hosts: requests on a Unix socket"),
    ] {
        refused(
            &format!(
                "[listener.web]\nbind = '127.0.0.1:0'\n[[route]]\nrespond.status = 200\n[admin]\n{hosts}\n"
            ),
            why,
        );
    }
}

/// Regression test: 32 connections that sent a byte from time to time locked all other clients out.
#[test]
fn those_who_trickle_make_room() {
    let weir = gateway("");
    let mut slow: Vec<_> = (0..40).map(|_| TcpStream::connect(weir.admin()).unwrap()).collect();
    for client in &mut slow {
        client.write_all(b"GET /hea").unwrap();
    }
    for _ in 0..40 {
        assert_eq!(weir.ask_admin("GET /ready").status, 200);
    }
    let mut last = slow.pop().unwrap();
    poll_until(DEADLINE, "its time for a head is over, though each byte came in time", || {
        last.write_all(b"x").is_err()
    });
    drop(slow);
    assert_eq!(weir.ask_admin("GET /ready").status, 200);
    let mut persistent = Client::connect(weir.admin(), None);
    for _ in 0..3 {
        persistent.send("GET /ready HTTP/1.1\r\nHost: localhost\r\n\r\n");
        assert_eq!(persistent.answer(Method::Get).status, 200);
    }
}
