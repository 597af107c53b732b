//! Trailers: forwarded to recipients that accept them, never used for framing, routing or authentication.

use super::gateway_to;
use crate::common::{Client, Peer, Upstream};
use weir_http::Method;

const RESPONSE: &str = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n2\r\nok\r\n0\r\n\
    X-Sum: 7\r\nContent-Length: 9\r\nSet-Cookie: a=b\r\n\r\n";

#[test]
fn trailers_of_answers_go_to_clients_that_take_them() {
    let upstream = Upstream::start(None, |peer: &mut Peer| peer.serve(RESPONSE));
    let weir = gateway_to(&upstream, "");
    let mut client = Client::connect(weir.address(), None);
    for (version, te, expected) in [
        ("1.1", "TE: gzip;q=0.5, trailers\r\nConnection: TE\r\n", Some("2\r\nok\r\n0\r\nX-Sum: 7\r\n\r\n")),
        ("1.1", "", Some("2\r\nok\r\n0\r\n\r\n")),
        ("1.1", "TE: deflate\r\n", Some("2\r\nok\r\n0\r\n\r\n")),
        ("1.0", "TE: trailers\r\n", None),
    ] {
        client.send(format!("GET / HTTP/{version}\r\nHost: h\r\n{te}\r\n"));
        let answer = client.answer(Method::Get);
        let announces = expected.is_some_and(|raw| raw.contains("X-Sum"));
        assert_eq!(answer.fields("trailer"), if announces { &["X-Sum"][..] } else { &[] }, "{te}");
        match expected {
            Some(raw) => assert_eq!(
                answer.raw_body.escape_ascii().to_string(),
                raw.as_bytes().escape_ascii().to_string()
            ),
            None => assert_eq!(answer.raw_body, b"ok"),
        }
        let heads = upstream.requests();
        let asked = heads.last().unwrap().head.contains("TE: trailers\r\n");
        assert_eq!(asked, announces, "{te}");
        assert_eq!(heads.last().unwrap().head.contains("Connection: TE"), announces);
    }
}

#[test]
fn trailers_of_requests_go_along_by_name() {
    let upstream =
        Upstream::start(None, |peer: &mut Peer| peer.serve("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"));
    let request = "POST / HTTP/1.1\r\nHost: h\r\nTrailer: X-Sum\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\
        x-sum: 7\r\nX-Other: 1\r\n\r\n";
    for (setting, trailers) in [("", ""), ("request_trailers = 'X-Sum'", "x-sum: 7\r\n")] {
        let weir = gateway_to(&upstream, setting);
        assert_eq!(super::ask(&weir, request).status, 200);
        let heads = upstream.requests();
        let seen = heads.last().unwrap();
        assert_eq!(String::from_utf8_lossy(&seen.raw_body), format!("3\r\nabc\r\n0\r\n{trailers}\r\n"));
        assert_eq!(seen.head.contains("Trailer: X-Sum"), !trailers.is_empty());
    }
}

#[test]
fn trailers_that_frame_cannot_be_allowed() {
    super::check::refused(
        "[listener.web]\nbind = '127.0.0.1:0'\n[[route]]\nrespond.status = 200\nrequest_trailers = ['X-Sum', 'Content-Length']\n",
        "route.0.request_trailers.1: `Content-Length` cannot be a trailer",
    );
}

/// Regression test: a client's trailer replaced a field that the route sets for its servers.
#[test]
fn what_a_route_says_of_a_client_is_no_trailer() {
    let config = |route: &str| {
        format!(
            "[listener.web]\nbind = '127.0.0.1:0'\n[service.app]\nservers = 'http://127.0.0.1:9'\n[[route]]\nservice = 'app'\n{route}\n"
        )
    };
    for (route, why) in [
        (
            "request_trailers = 'X-User'\nrequest_headers.set.X-User = 'a'",
            "0: `X-User` is set, added or removed",
        ),
        (
            "request_trailers = 'x-user'\nrequest_headers.add.X-User = 'a'",
            "0: `x-user` is set, added or removed",
        ),
        (
            "request_trailers = 'X-User'\nrequest_headers.remove = 'X-User'",
            "0: `X-User` is set, added or removed",
        ),
        (
            "request_trailers = ['X-Sum', 'X.User']\nrequest_headers.set.X-User = 'a'",
            "1: `X.User` is set, added or removed",
        ),
        ("request_trailers = 'X.Forwarded.For'", "0: `X.Forwarded.For` identifies the client"),
        ("request_trailers = 'Client-Cert'", "0: `Client-Cert` identifies the client"),
        ("request_trailers = 'X-Id'\n[tracing]\nrequest_id = 'X-Id'", "0: `X-Id` is set, added or removed"),
        (
            "request_trailers = 'traceparent'\n[tracing]\ntraceparent = true",
            "0: `traceparent` is set, added or removed",
        ),
    ] {
        super::check::refused(&config(route), &format!("route.0.request_trailers.{why}"));
    }
}
