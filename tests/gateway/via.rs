//! `Via`: off by default, and set for each direction separately.

use super::{ask, check::refused};
use crate::common::{Peer, Upstream, Weir};

const ANSWER: &str = "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 200 OK\r\nVia: 1.1 server\r\nContent-Length: 2\r\n\r\nok";

fn upstream() -> Upstream {
    Upstream::start(None, |peer: &mut Peer| peer.serve(ANSWER))
}

fn gateway(upstream: &Upstream, settings: &str, route: &str) -> Weir {
    let config = format!(
        "workers = 1\n{settings}\n[listener.web]\nbind = '127.0.0.1:0'\n[service.app]\nservers = 'http://{}'\n\
         [[route]]\nservice = 'app'\n{route}",
        upstream.address
    );
    Weir::configured(&config, 1)
}

/// Regression test: nginx servers do not compress responses to a request with `Via`, and no setting removed the field.
#[test]
fn via_goes_each_way_that_is_set() {
    for (settings, route, line, to_server, to_client) in [
        ("", "", "HTTP/1.1", vec![], vec!["1.1 server"]),
        ("via.requests = 'weir'", "", "HTTP/1.1", vec!["1.1 weir"], vec!["1.1 server"]),
        ("via.requests = 'weir'", "", "HTTP/1.0", vec!["1.0 weir"], vec!["1.1 server"]),
        ("via.responses = 'edge:8443'", "", "HTTP/1.1", vec![], vec!["1.1 server", "1.1 edge:8443"]),
        (
            "via = { requests = 'a', responses = 'b' }",
            "",
            "HTTP/1.1",
            vec!["1.1 a"],
            vec!["1.1 server", "1.1 b"],
        ),
        // A route's own edit replaces or removes the field.
        (
            "via = { requests = 'a', responses = 'b' }",
            "request_headers.remove = 'Via'\nresponse_headers.remove = 'via'",
            "HTTP/1.1",
            vec![],
            vec![],
        ),
        (
            "via = { requests = 'a', responses = 'b' }",
            "request_headers.set.Via = '1.1 c'\nresponse_headers.set.Via = '1.1 d'",
            "HTTP/1.1",
            vec!["1.1 c"],
            vec!["1.1 d"],
        ),
    ] {
        let what = format!("{settings} {route} {line}");
        let upstream = upstream();
        let weir = gateway(&upstream, settings, route);
        let mut client = crate::common::Client::connect(weir.address(), None);
        client.send(format!("GET / {line}\r\nHost: h\r\n\r\n"));
        let mut answer = client.answer(weir_http::Method::Get);
        if line == "HTTP/1.1" {
            // The interim response has only the gateway's entry.
            let own: Vec<_> = to_client.iter().copied().filter(|via| *via != "1.1 server").collect();
            let own = if route.contains("set") { Vec::new() } else { own };
            assert_eq!((answer.status, answer.fields("via")), (103, own), "{what}");
            answer = client.answer(weir_http::Method::Get);
        }
        assert_eq!((answer.status, answer.fields("via")), (200, to_client), "{what}");
        assert_eq!(upstream.requests()[0].fields("via"), to_server, "{what}");
    }
}

/// Entries of earlier proxies stay.
#[test]
fn via_of_others_is_passed_on() {
    let upstream = upstream();
    let weir = gateway(&upstream, "via.requests = 'weir'", "");
    ask(&weir, "GET / HTTP/1.0\r\nVia: 1.0 first\r\nVia: 1.1 second\r\nHost: h\r\n\r\n");
    assert_eq!(upstream.requests()[0].fields("via"), ["1.0 first", "1.1 second", "1.0 weir"]);
}

#[test]
fn a_name_in_via_is_a_token_or_a_host() {
    for (written, shown) in [
        ("", "\"\""),
        ("a b", "\"a b\""),
        ("a,b", "\"a,b\""),
        ("a\\r\\nX: y", "\"a\\r\\nX: y\""),
        ("a:b", "\"a:b\""),
    ] {
        refused(
            &format!(
                "via.requests = \"{written}\"\n[listener.web]\nbind = '127.0.0.1:0'\n[[route]]\nrespond.status = 200\n"
            ),
            &format!("via.requests: invalid value {shown}: expected a name, or a host with its port"),
        );
    }
}
