//! Paths that servers interpret differently from routes.

use super::{ask, get, named};
use crate::common::Weir;
use crate::servers::Server;
use std::net::SocketAddr;

/// A gateway that denies all paths below `/admin` and forwards all others.
fn closed(server: SocketAddr, more: &str) -> Weir {
    let config = format!(
        "workers = 1
        [listener.web]
        bind = '127.0.0.1:0'
        [service.app]
        servers = 'http://{server}'
        [[route]]
        path = '/admin/*'
        respond.status = 403
        [[route]]
        path = '/pub/*'
        service = 'app'
        strip_prefix = '/pub'
        {more}
        [[route]]
        service = 'app'
        {more}"
    );
    Weir::configured(&config, 1)
}

/// Regression test: `/admin%2fsecret` and `/x/..%2fadmin/secret` passed the denial of `/admin/*` and reached it on most
/// servers.
#[test]
fn no_spelling_leads_around_a_route() {
    let upstream = named("a");
    let weir = closed(upstream.address, "");
    for (target, status) in [
        ("/admin/secret", 403),
        ("/x/../admin", 403),
        ("//admin/x", 403),
        ("/%61dmin/%2e/x", 403),
        ("/admin%2fsecret", 400),
        ("/x/..%2Fadmin/secret", 400),
        ("/pub/..%2fx", 400),
        ("/pub/..%2f", 400),
        ("/admin/../x", 400),
        ("//x/admin", 400),
        ("/x/..%5cadmin", 400),
        ("/admin;x/y", 400),
        ("/admin%00x", 400),
        ("/@scope%2fname", 200),
        ("/projects/a%2Fb?x=/..%2fadmin", 200),
        ("/a//b/../c;v=1", 200),
        ("/admin%252fx", 200),
        ("/%0d%0aX:%201%00", 200),
    ] {
        let answer = get(&weir, "h", target);
        assert_eq!(answer.status, status, "{target}");
        let sent = format!("GET {target} HTTP/1.1\r\n");
        assert_eq!(answer.text().contains(&sent), status == 200, "{target}: {}", answer.text());
        assert_eq!(answer.text().contains("ambiguous_path"), status == 400, "{target}: {}", answer.text());
    }
    assert!(get(&weir, "h", "/pub/a%2fb").text().contains("GET /a%2Fb HTTP/1.1\r\n"));
    weir.wait_for_stderr(&["400 ambiguous_path", "ambiguous_paths = 'pass'"]);
}

#[test]
fn a_route_may_pass_ambiguous_paths_or_refuse_unusual_ones() {
    let upstream = named("a");
    for (setting, target, status) in [
        ("pass", "/admin%2fsecret", 200),
        ("pass", "/admin/../x", 200),
        ("pass", "/admin%00x", 200),
        ("strict", "/x%00", 400),
        ("pass", "/admin/x", 403),
        ("strict", "/x%2fy", 400),
        ("strict", "/x;y", 400),
        ("strict", "/x\\y", 400),
        ("strict", "/x//y", 400),
        ("strict", "/x/../y", 400),
        ("strict", "/x%252fy", 400),
        ("strict", "/x%20y/%C3%A9.z?a;b//c", 200),
    ] {
        let weir = closed(upstream.address, &format!("ambiguous_paths = '{setting}'"));
        assert_eq!(get(&weir, "h", target).status, status, "{setting} {target}");
    }
    super::check::refused(
        "[listener.web]\nbind = '127.0.0.1:0'\n[[route]]\nrespond.status = 200\nambiguous_paths = 'pass'\n",
        "route.0.ambiguous_paths: no effect beside `respond`",
    );
}

/// No server interprets a forwarded path as a denied one.
#[test]
fn servers_never_read_a_denied_path() {
    const PIECES: [&str; 10] = ["/", "%2f", "\\", "%5C", "..", "%2e%2e", "admin", "x", "pub", ";"];
    let servers =
        [(Server::go(None), &["clean"][..]), (Server::node(None), &["raw", "decoded", "resolved", "url"])];
    for (server, readings) in servers {
        let Some(server) = server else { continue };
        let weir = closed(server.address(false), "");
        let mut passed = 0;
        for number in 0..600_usize {
            // Combine six of ten pieces, well mixed.
            let mixed = (number as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 24;
            let pieces = (0..6).map(|digit| PIECES[(mixed / 10_u64.pow(digit) % 10) as usize]);
            let target = format!("/{}/secret", pieces.collect::<String>());
            let reading = readings[number % readings.len()];
            let request = format!("GET {target} HTTP/1.1\r\nHost: h\r\nX-Read-Path: {reading}\r\n\r\n");
            let answer = ask(&weir, &request);
            if answer.status == 200 {
                passed += 1;
                let mut read = answer.text().split('/').filter(|segment| !segment.is_empty());
                assert_ne!(read.next(), Some("admin"), "{target} is {} by {reading}", answer.text());
            }
        }
        assert!(passed > 50, "{passed}");
    }
}
