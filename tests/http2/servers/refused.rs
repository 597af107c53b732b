//! Refused streams: the server has not processed the request, so the gateway sends it again.

use super::{BOTH, Client, Connection, Content, Server, Version, ask, gateway, metric};
use crate::common::pattern;
use crate::http2::client::Upload;
use weir_http2::ErrorCode;

/// A server that refuses the first `count` streams, each after `body` bytes of its body, and responds to the others.
fn refusing(count: u32, body: usize) -> Server {
    Server::start(move |connection: &mut Connection<'_>| {
        while let Some(request) = connection.head() {
            let stream = request.stream;
            if stream < 2 * count {
                connection.read_until(|connection| connection.get(stream).body.len() >= body);
                connection.reset(stream, ErrorCode::REFUSED_STREAM).flush();
                continue;
            }
            connection.read_until(|connection| connection.get(stream).ended);
            let length = connection.get(stream).body.len().to_string();
            connection.respond(stream, &[], length.as_bytes()).flush();
        }
    })
}

#[test]
fn any_method_is_sent_again() {
    let rows: [(&str, Content<'_>); 6] = [
        ("GET", Content::None),
        ("POST", Content::None),
        ("POST", Content::Length(b"hello")),
        ("PATCH", Content::Unknown(b"hello")),
        ("POST", Content::Unknown(b"")),
        ("LOCK", Content::Trailers(b"hello", "x-sum", "7")),
    ];
    for version in BOTH {
        for refusals in [1, 2] {
            for (method, content) in rows {
                let server = refusing(refusals, 0);
                let weir = gateway(&[&server], "", &format!("request_trailers = 'x-sum'\n{}", super::ADMIN));
                let reply = ask(&weir, version, method, "/a", &[("x-a", "1")], content);
                let about = format!("{version:?} {refusals} {method} {content:?}: {reply:?}");
                let body: &[u8] = match content {
                    Content::None => b"",
                    Content::Length(body) | Content::Unknown(body) | Content::Trailers(body, ..) => body,
                };
                assert_eq!((reply.status, reply.text()), (200, body.len().to_string().as_str()), "{about}");
                let requests = server.requests();
                assert_eq!(requests.len(), 1 + refusals as usize, "{about}");
                let (first, last) = (&requests[0], &requests[refusals as usize]);
                // The same request, once more.
                assert_eq!((&first.head, &*last.body), (&last.head, body), "{about}");
                if let Content::Trailers(..) = content {
                    assert_eq!(last.trailers, "x-sum: 7\r\n", "{about}");
                }
                let counts = [
                    "weir_retries_unprocessed_total",
                    "weir_retries_total",
                    "weir_retries_by_rule_total{rule=\"refused_stream\"}",
                ]
                .map(|name| metric(&weir, name));
                assert_eq!(counts, [u64::from(refusals); 3], "{about}");
                assert_eq!(server.connections(), 1, "{about}");
            }
        }
    }
}

#[test]
fn bodies_that_are_sent_partly() {
    // The server refuses the stream with a part of the body, and the client sends the rest afterwards.
    let server = refusing(1, 5000);
    let weir = gateway(&[&server], "", "");
    let body = pattern(12_000);
    let mut client = Client::connect(weir.address());
    client.post(1, "/").data(1, &body[..5000], false).flush();
    server.wait_for("a second attempt", |requests| requests.len() == 2);
    client.data(1, &body[5000..], true);
    assert_eq!(client.response(1).text(), "12000");
    assert!(server.requests()[1].body == body);

    let server = refusing(1, 5000);
    let weir = gateway(&[&server], "", "");
    let mut client = super::Http1::connect(weir.address(), None);
    client.send("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 12000\r\n\r\n");
    client.send(&body[..5000]);
    server.wait_for("a second attempt", |requests| requests.len() == 2);
    client.send(&body[5000..]);
    assert_eq!(client.answer(weir_http::Method::Post).text(), "12000");
    assert!(server.requests()[1].body == body);
}

#[test]
fn bodies_that_are_too_long_to_keep() {
    // The gateway keeps at most 16 KiB of a body, so it cannot resend a longer one.
    let server = refusing(1, 40_000);
    let weir = gateway(&[&server], "", "");
    let body = pattern(100_000);
    let mut client = Client::connect(weir.address());
    client.post(1, "/").upload_some(1, &body, &mut Upload::default());
    let received = client.response(1);
    assert_eq!(received.status(), 502, "{received:?}");
    weir.wait_for_stderr(&["upstream_reset", "refused_stream"]);
    // The connection persists.
    assert_eq!(client.get(3, "/").response(3).text(), "0");
    assert_eq!((server.requests().len(), server.connections()), (2, 1));
}

#[test]
fn a_server_that_always_refuses() {
    for version in BOTH {
        let server = refusing(u32::MAX / 2, 0);
        let weir = gateway(&[&server], "", "");
        let reply = ask(&weir, version, "GET", "/", &[], Content::None);
        assert_eq!((reply.status, reply.complete), (502, true), "{version:?} {reply:?}");
        weir.wait_for_stderr(&["upstream_reset", "refused_stream"]);
        assert_eq!(server.requests().len(), 11, "the request, and ten further attempts");
    }
}

#[test]
fn refused_after_interim_responses() {
    // The server has begun to respond, so the gateway does not resend the request.
    let server = Server::start(|connection| {
        while let Some(request) = connection.head() {
            connection.headers(request.stream, &[(":status", "103")], false);
            connection.reset(request.stream, ErrorCode::REFUSED_STREAM).flush();
        }
    });
    let weir = gateway(&[&server], "", "");
    let reply = ask(&weir, Version::Http2, "GET", "/", &[], Content::None);
    assert_eq!((reply.status, server.requests().len()), (502, 1), "{reply:?}");
}

#[test]
fn refusals_are_no_failures() {
    // Each request is refused twice, and the server stays in rotation.
    let server = Server::start(|connection: &mut Connection<'_>| {
        let mut heads = 0;
        while let Some(request) = connection.head() {
            heads += 1;
            match heads % 3 {
                0 => connection.ok(&request),
                _ => {
                    connection.reset(request.stream, ErrorCode::REFUSED_STREAM).flush();
                }
            }
        }
    });
    let other = Server::ok();
    let weir = gateway(&[&server, &other], "eject.failures = 1\n", "");
    let mut client = Client::connect(weir.address());
    for n in 0..20 {
        let received = client.get(1 + 2 * n, "/").response(1 + 2 * n);
        assert_eq!((received.status(), received.text()), (200, "ok"), "{n}");
    }
    assert!(server.requests().len() > 3 && !weir.stderr().contains("keeps failing"), "{}", weir.stderr());
}

#[test]
fn refused_requests_wait_in_the_queue() {
    // The only stream of the only connection is taken by another request when this one is refused.
    let server = Server::start(|connection: &mut Connection<'_>| {
        let Some(first) = connection.head() else { return };
        connection.read_until(|connection| connection.get(first.stream).body.len() == 5);
        // MAX_CONCURRENT_STREAMS
        connection.settings(&[(3, 0)]).reset(first.stream, ErrorCode::REFUSED_STREAM);
        connection.read_until(|connection| connection.acknowledged == 2);
        connection.sync();
        connection.settings(&[(3, 1)]).flush();
        connection.serve(|connection, request| {
            let length = request.body.len().to_string();
            connection.respond(request.stream, &[], length.as_bytes()).flush();
        });
    });
    for version in BOTH {
        let weir = gateway(&[&server], "max_connections = 1\n", super::ADMIN);
        let before = server.requests().len();
        match version {
            Version::Http1 => {
                let mut client = super::Http1::connect(weir.address(), None);
                client.send("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 10\r\n\r\nhello");
                server.wait_for("another attempt", |requests| requests.len() == before + 2);
                client.send("world");
                assert_eq!(client.answer(weir_http::Method::Post).text(), "10");
            }
            Version::Http2 => {
                let mut client = Client::connect(weir.address());
                client.post(1, "/").data(1, b"hello", false).flush();
                server.wait_for("another attempt", |requests| requests.len() == before + 2);
                assert_eq!(client.data(1, b"world", true).response(1).text(), "10");
            }
        }
        assert_eq!(server.requests()[before + 1].text(), "helloworld", "{version:?}");
        let of = |name: &str| metric(&weir, &format!("weir_{name}_total"));
        let counts = [of("requests"), of("upstream_http2_requests"), of("retries_unprocessed")];
        assert_eq!(counts, [1, 1, 1], "{version:?}");
    }
}
