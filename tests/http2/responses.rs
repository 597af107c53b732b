//! Responses of HTTP/1.1 servers to HTTP/2 clients.

use super::fields::{block, request};
use super::{Client, gateway};
use crate::common::{Client as Http1, Peer, Switch, Upstream};
use weir_http2::ErrorCode;
use weir_http2::frame::{Kind, flag};

/// A server that sends these bytes for each path, and closes the connection after those without framing.
fn scripted(responses: &'static [(&'static str, &'static str)]) -> Upstream {
    Upstream::start(None, move |peer: &mut Peer| {
        while let Some(request) = peer.request() {
            let path = request.head.split(' ').nth(1).unwrap();
            let (_, response) = responses.iter().find(|(known, _)| *known == path).unwrap();
            peer.answer(response);
            if response.contains("Connection: close") {
                return;
            }
        }
    })
}

#[test]
fn responses_of_servers() {
    let rows: &[(&str, &str, &str)] = &[
        (
            "/length",
            "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nX-Upper: Value\r\n\r\nok",
            "content-length: 2\r\nx-upper: Value",
        ),
        (
            "/chunked",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\no\r\n1\r\nk\r\n0\r\n\r\n",
            "",
        ),
        ("/close", "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nok", ""),
        (
            "/hop",
            "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: X-A, keep-alive\r\nX-A: 1\r\nKeep-Alive: timeout=60\r\nUpgrade: h2c\r\n\
             Proxy-Connection: close\r\nTrailer: X-Sum\r\n\r\nok",
            "content-length: 2",
        ),
    ];
    let responses: &'static [_] =
        rows.iter().map(|(path, response, _)| (*path, *response)).collect::<Vec<_>>().leak();
    let upstream = scripted(responses);
    let weir = gateway(&upstream, "", "");
    let mut client = Client::connect(weir.address());
    for (index, (path, _, fields)) in rows.iter().enumerate() {
        let stream = 1 + 2 * index as u32;
        let received = client.get(stream, path).response(stream);
        assert_eq!((received.status(), received.text(), received.reset), (200, "ok", None), "{path}");
        let mut lines: Vec<_> = received.head.lines().filter(|line| !line.starts_with("date: ")).collect();
        assert_eq!(received.head.lines().count(), lines.len() + 1, "{path}");
        lines.remove(0);
        lines.sort_unstable();
        assert_eq!(lines.join("\r\n"), *fields, "{path}");
    }
}

#[test]
fn responses_without_a_body() {
    let upstream = scripted(&[
        ("/204", "HTTP/1.1 204 No Content\r\n\r\n"),
        ("/304", "HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\nETag: \"a\"\r\n\r\n"),
        ("/head", "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n"),
        ("/head-chunked", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"),
        ("/empty", "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"),
        ("/empty-chunked", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
    ]);
    let weir = gateway(&upstream, "", "");
    let mut client = Client::connect(weir.address());
    for (index, (method, path, status, length)) in [
        ("GET", "/204", 204, ""),
        ("GET", "/304", 304, "9"),
        ("HEAD", "/head", 200, "9"),
        ("HEAD", "/head-chunked", 200, ""),
        ("GET", "/empty", 200, "0"),
        ("GET", "/empty-chunked", 200, ""),
    ]
    .into_iter()
    .enumerate()
    {
        let stream = 1 + 2 * index as u32;
        client.headers(stream, &request(method, path), true);
        let received = client.response(stream);
        assert!(
            received.ended && received.reset.is_none() && received.body.is_empty(),
            "{path}: {received:?}"
        );
        assert_eq!((received.status(), received.field("content-length")), (status, length), "{path}");
    }
    // The same as with HTTP/1.1.
    let connections = upstream.connections();
    let mut client = Http1::connect(weir.address(), None);
    for path in
        ["GET /204", "GET /304", "HEAD /head", "HEAD /head-chunked", "GET /empty", "GET /empty-chunked"]
    {
        client.ask(format!("{path} HTTP/1.1\r\nHost: h\r\n\r\n"));
    }
    // The first one used a pooled connection.
    assert_eq!(upstream.connections() - connections, connections - 1);
}

#[test]
fn interim_responses_precede_the_final_one() {
    let upstream = Upstream::start(None, |peer: &mut Peer| {
        while let Some((head, _)) = peer.head() {
            if head.contains("xpect: 100-continue") {
                peer.answer("HTTP/1.1 100 Continue\r\n\r\n");
            }
            peer.answer(
                "HTTP/1.1 103 Early Hints\r\nLink: </a>; rel=preload\r\nConnection: X-A\r\nX-A: 1\r\n\r\n",
            );
            let mut body = Vec::new();
            while head.contains("POST") && body.len() < 5 {
                peer.stream.receive(&mut body);
            }
            peer.answer(super::OK);
        }
    });
    let weir = gateway(&upstream, "", "");
    let mut client = Client::connect(weir.address());
    let hints = ":status: 103\r\nlink: </a>; rel=preload\r\n";
    let received = client.get(1, "/").response(1);
    assert_eq!((received.interim, &*received.body), (vec![hints.to_owned()], &b"ok"[..]));
    let waiting =
        [&request("POST", "/")[..], &[(b"content-length", b"5"), (b"expect", b"100-continue")]].concat();
    client.headers(3, &waiting, false);
    client.read_until(|client| !client.get_stream(3).interim.is_empty());
    assert_eq!(client.get_stream(3).interim[0], ":status: 100\r\n");
    let received = client.data(3, b"hello", true).response(3);
    assert_eq!((received.interim.len(), received.text()), (2, "ok"));
}

#[test]
fn trailers_of_servers() {
    let upstream = scripted(&[
        (
            "/all",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: grpc-status\r\n\r\n2\r\nok\r\n0\r\nGrpc-Status: 0\r\nContent-Length: 9\r\n\r\n",
        ),
        ("/empty", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nGrpc-Status: 7\r\n\r\n"),
        (
            "/framing",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n",
        ),
    ]);
    let weir = gateway(&upstream, "", "");
    let mut client = Client::connect(weir.address());
    client.get(1, "/all").get(3, "/empty").get(5, "/framing");
    for (stream, body, trailers) in
        [(1, "ok", "grpc-status: 0\r\n"), (3, "", "grpc-status: 7\r\n"), (5, "ok", "")]
    {
        let received = client.response(stream);
        assert_eq!(
            (received.text(), &*received.trailers, received.ended),
            (body, trailers, true),
            "{stream}"
        );
    }
    // Trailers wait for the body, and the body waits for the window.
    let mut narrow = Client::with_settings(weir.address(), &[(4, 0)]);
    narrow.get(1, "/all").read_until(|client| client.get_stream(1).status() == 200).sync();
    assert!(!narrow.get_stream(1).is_over());
    let received = narrow.window_update(1, 2).response(1);
    assert_eq!((received.text(), &*received.trailers), ("ok", "grpc-status: 0\r\n"));
}

#[test]
fn servers_that_fail() {
    let upstream = scripted(&[
        ("/ok", super::OK),
        ("/short", "HTTP/1.1 200 OK\r\nContent-Length: 9\r\nConnection: close\r\n\r\nok"),
        ("/chunk", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n2\r\nok\r\n"),
        ("/none", "Connection: close"),
        ("/bad", "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok"),
        ("/switch", "HTTP/1.1 101 Switching Protocols\r\nUpgrade: a\r\nConnection: close, Upgrade\r\n\r\n"),
    ]);
    let weir = gateway(&upstream, "", "");
    let mut client = Client::connect(weir.address());
    for (index, (path, status, reason)) in [
        ("/short", 200, "upstream_truncated"),
        ("/chunk", 200, "upstream_truncated"),
        ("/none", 502, "bad_response"),
        ("/bad", 502, "bad_response"),
        ("/switch", 502, "upstream_switched_protocols"),
    ]
    .into_iter()
    .enumerate()
    {
        let stream = 1 + 4 * index as u32;
        let received = client.get(stream, path).response(stream);
        assert_eq!(received.status(), status, "{path}");
        match status {
            200 => assert_eq!(
                (received.ended, received.reset),
                (false, Some(ErrorCode::INTERNAL_ERROR)),
                "{path}"
            ),
            _ => assert!(received.ended && received.text().contains(reason), "{path}: {received:?}"),
        }
        weir.wait_for_stderr(&[&format!(" {reason} "), &format!("GET {path}")]);
        assert_eq!(client.get(stream + 2, "/ok").response(stream + 2).text(), "ok", "{path}");
    }
}

/// Regression test: if a part of the body had waited for a window, the gateway counted the truncated response as
/// complete, and reset the stream with the wrong code.
#[test]
fn a_server_that_fails_after_a_wait_for_a_window() {
    let switch = Switch::default();
    let held = switch.clone();
    let upstream = Upstream::start(None, move |peer: &mut Peer| {
        peer.request();
        peer.answer("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nok");
        held.wait();
    });
    let weir = gateway(&upstream, "", "");
    let mut client = Client::with_settings(weir.address(), &[(4, 0)]);
    client.get(1, "/").read_until(|client| client.get_stream(1).status() == 200);
    client.sync().window_update(1, 9).read_until(|client| client.get_stream(1).text() == "ok");
    switch.throw();
    let received = client.response(1);
    assert_eq!((received.ended, received.reset), (false, Some(ErrorCode::INTERNAL_ERROR)));
    weir.wait_for_stderr(&[" upstream_truncated "]);
}

/// The client gets the whole response, then a reset without an error, since the rest of its request is not needed (RFC
/// 9113 section 8.1).
#[test]
fn a_response_that_precedes_the_end_of_its_request() {
    let upstream = Upstream::start(None, |peer: &mut Peer| {
        while peer.head().is_some() {
            peer.answer("HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\nConnection: close\r\n\r\nno");
            peer.read_to_end();
        }
    });
    let weir = gateway(&upstream, "", "[[route]]\npath = '/small'\nservice = 'app'\nmax_body = 10\n");
    let mut client = Client::connect(weir.address());
    let announced = [&request("POST", "/small")[..], &[(b"content-length", b"11")]].concat();
    client.post(1, "/").data(1, b"hello", false).post(3, "/small").data(3, b"hello world", false);
    client.headers(5, &announced, false);
    for (stream, status, text) in [(1, 403, "no"), (3, 413, "body_too_large"), (5, 413, "body_too_large")] {
        let received = client.response(stream);
        assert!(received.status() == status && received.text().contains(text), "{stream}: {received:?}");
        client.read_until(|client| client.get_stream(stream).reset.is_some());
        let received = client.get_stream(stream);
        assert_eq!((received.ended, received.reset), (true, Some(ErrorCode::NO_ERROR)), "{stream}");
    }
}

#[test]
fn heads_larger_than_a_frame() {
    let cookies = (0..3).map(|n| format!("Set-Cookie: c{n}={}\r\n", "#".repeat(9000))).collect::<String>();
    let response = format!("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n{cookies}\r\nok");
    let upstream = Upstream::start(None, move |peer: &mut Peer| peer.serve(&response));
    let weir = gateway(&upstream, "", "");
    let received = Client::connect(weir.address()).get(1, "/").response(1);
    assert_eq!((received.text(), received.head.matches("set-cookie: c").count()), ("ok", 3));
    // A request in fragments.
    let mut client = Client::connect(weir.address());
    let value = "#".repeat(20_000);
    let fields = [&request("GET", "/")[..], &[(b"x-a", value.as_bytes())]].concat();
    let whole = block(&fields);
    let (first, rest) = whole.split_at(10_000);
    client.frame(Kind::Headers, flag::END_STREAM, 1, first);
    client.frame(Kind::Continuation, 0, 1, &rest[..10_000]);
    client.frame(Kind::Continuation, flag::END_HEADERS, 1, &rest[10_000..]);
    assert_eq!(client.response(1).text(), "ok");
    assert!(upstream.requests()[1].head.contains(&format!("x-a: {value}\r\n")));
}
