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

/// Regression test: a web page whose name resolves to the loopback interface could read everything, and change
/// everything that does not require `Origin`.
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

/// The rows of the table of paths in docs/gateway/monitoring.md: each path with its methods.
fn documented_paths() -> Vec<(&'static str, &'static str)> {
    let document = include_str!("../../docs/gateway/monitoring.md");
    let (_, table) = document.split_once("| path | methods | response |\n").unwrap();
    let rows = table.lines().map_while(|row| row.strip_prefix("| ")).skip(1);
    rows.map(|row| {
        let mut cells = row.split(" | ");
        (cells.next().unwrap().trim_matches('`'), cells.next().unwrap())
    })
    .collect()
}

#[test]
fn each_path_has_the_documented_methods_and_a_405_names_them() {
    let paths = documented_paths();
    let weir = gateway("");
    let index = weir.ask_admin("GET /");
    let lines: Vec<_> = index
        .text()
        .lines()
        .filter_map(|line| line.split_once(' '))
        .map(|(path, methods)| (path, methods.trim()))
        .collect();
    assert_eq!(lines, paths);
    let expected = paths.iter().map(|(path, _)| *path).collect::<Vec<_>>().join(", ");
    for (path, methods) in paths {
        let allowed: Vec<_> = methods.split(", ").collect();
        assert_eq!(allowed.contains(&"GET"), allowed.contains(&"HEAD"), "{path}");
        let path = path.replace("NAME", "app").replace("SERVER", "127.0.0.1:1");
        for name in ["GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "get"] {
            // The others would change something.
            if allowed.contains(&name) && !["GET", "HEAD"].contains(&name) {
                continue;
            }
            let mut client = Client::connect(weir.admin(), None);
            client.send(format!("{name} {path} HTTP/1.1\r\nHost: localhost\r\n\r\n"));
            let answer = client.answer(if name == "HEAD" { Method::Head } else { Method::Get });
            match allowed.contains(&name) {
                true => assert_ne!(answer.status, 405, "{name} {path}"),
                false => {
                    assert_eq!(
                        (answer.status, answer.fields("allow")),
                        (405, vec![methods]),
                        "{name} {path}"
                    );
                }
            }
        }
        for method in ["GET", "DELETE"] {
            let answer = weir.ask_admin(&format!("{method} {path}x/y"));
            let is_server = path.ends_with("127.0.0.1:1");
            assert_eq!(answer.status, 404, "{method} {path}x/y");
            assert!(
                is_server || answer.text() == format!("expected one of {expected}\n"),
                "{}",
                answer.text()
            );
            assert!(answer.fields("allow").is_empty(), "{}", answer.head);
        }
    }
    // A query is for POST, even if it is sent by GET.
    for path in ["/services/app/servers/127.0.0.1:1?state=drain", "/services/x/servers/x?"] {
        let answer = weir.ask_admin(&format!("GET {path}"));
        assert_eq!((answer.status, answer.fields("allow")), (405, vec!["POST"]), "{}", answer.text());
    }
    assert_eq!(weir.ask_admin("GET /services?state=drain").status, 400);
}
