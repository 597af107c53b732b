//! Responses of HTTP/1.1 servers, and of the gateway itself, to clients of HTTP/2.

use super::client::{Upload, block, request};
use super::{Client, gateway, listening};
use crate::common::{Certificates, Client as Http1, Peer, Stream, Switch, Upstream, Weir, pattern};
use std::fs;
use weir_http2::ErrorCode;
use weir_http2::frame::{Kind, flag};
use weir_tls::{Client as TlsClient, ClientSettings, Roots};

/// A server that responds to each path with these bytes, and closes if they have no framing.
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
    // As with HTTP/1.1.
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
    // Trailers wait for the body, which waits for the window.
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

/// Regression test: once a part of a body had waited for a window, its truncated response was taken for a whole one, and
/// the stream ended with the code of a client's own wish.
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

/// The client keeps a whole response, and learns that the rest of its request is not needed (RFC 9113 section 8.1).
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
    // A request, in fragments.
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

#[test]
fn the_gateways_own_responses() {
    let upstream = super::upstream();
    let weir = gateway(
        &upstream,
        "path = '/app'",
        "[[route]]\npath = '/hello'\nrespond = { status = 200, body = 'hello' }\n\
         [[route]]\npath = '/old/*'\nredirect.to = 'https://{host}{path}'\n",
    );
    let mut client = Client::connect(weir.address());
    let cases = [
        ("GET", "/hello", 200, "hello", ""),
        ("HEAD", "/hello", 200, "", ""),
        ("POST", "/hello", 200, "hello", ""),
        ("GET", "/old/a?b", 308, "", "https://h/old/a"),
        ("GET", "/none", 404, "404 Not Found", ""),
        ("GET", "/app", 200, "ok", ""),
    ];
    for (index, (method, path, status, text, location)) in cases.into_iter().enumerate() {
        let stream = 1 + 2 * index as u32;
        client.headers(stream, &request(method, path), method != "POST");
        let received = client.response(stream);
        assert_eq!(received.status(), status, "{path}: {received:?}");
        assert!(
            received.text().contains(text) && received.field("location").starts_with(location),
            "{received:?}"
        );
        assert_eq!(received.field("connection"), "");
        if method == "HEAD" {
            assert_eq!((received.field("content-length"), received.body.len()), ("5", 0));
        }
        if method == "POST" {
            // The body is not needed.
            client
                .data(stream, b"hello", true)
                .read_until(|client| client.get_stream(stream).reset.is_some());
            assert_eq!(client.get_stream(stream).reset, Some(ErrorCode::NO_ERROR));
        }
    }
}

#[test]
fn a_buffered_body_reaches_a_server_whole() {
    let upstream = Upstream::start(None, |peer: &mut Peer| {
        while let Some(request) = peer.request() {
            let body = request.body.len().to_string();
            peer.answer(format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len()));
        }
    });
    let weir = gateway(&upstream, "request_buffer = '64KiB'\nrequest_trailers = 'X-Sum'", "");
    let mut client = Client::connect(weir.address());
    let body = pattern(50_000);
    client.post(1, "/").data(1, &body[..40_000], false).sync();
    assert_eq!(upstream.connections(), 0);
    client.data(1, &body[40_000..], false).headers(1, &[(b"x-sum", b"7")], true);
    assert_eq!(client.response(1).text(), "50000");
    let first = upstream.requests()[0].clone();
    // The length of the body without trailers is known now.
    assert!(first.body == body && first.raw_body.ends_with(b"\r\n0\r\nx-sum: 7\r\n\r\n"), "{}", first.head);
    // The end alone.
    client.post(3, "/").data(3, &body[..10], false).sync();
    client.data(3, b"", true);
    assert_eq!(client.response(3).text(), "10");
    // Larger than the buffer, within the stream's window and beyond it.
    let large = pattern(300_000);
    client.post(5, "/").read_until(|client| client.updates.contains_key(&0));
    client.upload(5, &large, &mut Upload::default());
    assert_eq!(client.response(5).text(), "300000");
    assert_eq!(upstream.requests()[2].body, large);
    // A client that leaves within its body reaches no server.
    client.post(7, "/").data(7, &body[..10], false).reset(7, ErrorCode::CANCEL).sync();
    assert_eq!(upstream.requests().len(), 3);
    weir.wait_for_stderr(&[" client_reset "]);
}

/// Padding counts for the windows, and is given back.
#[test]
fn a_padded_body_arrives_without_its_padding() {
    let upstream = super::upstream();
    let weir = gateway(&upstream, "", "");
    let mut client = Client::connect(weir.address());
    let body = pattern(200_000);
    for (stream, padding) in [(1, 255), (3, 1)] {
        client.post(stream, "/").sync();
        client.upload(stream, &body, &mut Upload { padding, ..Upload::default() });
        assert_eq!(client.response(stream).text(), "ok");
    }
    // A frame of padding alone.
    client.post(5, "/").frame(Kind::Data, flag::PADDED, 5, &[3, 0, 0, 0]).data(5, b"hello", false);
    client.frame(Kind::Data, flag::PADDED | flag::END_STREAM, 5, &[0]);
    assert_eq!(client.response(5).text(), "ok");
    let bodies: Vec<_> = upstream.requests().iter().map(|request| request.body.clone()).collect();
    assert!(bodies == [&body[..], &body, b"hello"]);
}

/// What a server did not get of a request must not be taken from the next one.
#[test]
fn a_connection_with_half_a_request_is_not_used_again() {
    let upstream = Upstream::start(None, |peer: &mut Peer| {
        while peer.head().is_some() {
            peer.answer(super::OK);
            let mut body = Vec::new();
            while peer.index == 0 && body.len() < 100 {
                if peer.stream.receive(&mut body).is_some() {
                    return;
                }
            }
        }
    });
    let weir = gateway(&upstream, "", "");
    let mut client = Client::connect(weir.address());
    let announced = [&request("POST", "/")[..], &[(b"content-length", b"100")]].concat();
    client.headers(1, &announced, false).data(1, b"hello", false);
    assert_eq!(client.response(1).text(), "ok");
    assert_eq!(client.get(3, "/").response(3).text(), "ok");
    assert_eq!(upstream.connections(), 2);
    client.read_until(|client| client.get_stream(1).reset.is_some());
    assert_eq!(client.get_stream(1).reset, Some(ErrorCode::NO_ERROR));
    // The rest of the body was in transit.
    client.data(1, &[0; 95], true).get(5, "/");
    assert_eq!(client.response(5).text(), "ok");
}

#[test]
fn the_gateway_asks_for_a_body_that_it_buffers() {
    let upstream = super::upstream();
    let weir = gateway(&upstream, "request_buffer = '64KiB'", "");
    let mut client = Client::connect(weir.address());
    let waiting = [&request("POST", "/")[..], &[(b"content-length", b"5"), (b"expect", b"100-continue")]];
    client.headers(1, &waiting.concat(), false);
    client.read_until(|client| !client.get_stream(1).interim.is_empty());
    assert_eq!(
        (client.get_stream(1).interim, upstream.connections()),
        (vec![":status: 100\r\n".to_owned()], 0)
    );
    assert_eq!(client.data(1, b"hello", true).response(1).text(), "ok");
    assert!(!upstream.requests()[0].head.contains("xpect"));
}

#[test]
fn streams_beyond_the_limit_are_refused_and_may_be_repeated() {
    let switch = Switch::default();
    let held = switch.clone();
    let upstream = Upstream::start(None, move |peer: &mut Peer| {
        while peer.request().is_some() {
            held.wait();
            peer.answer(super::OK);
        }
    });
    let weir = gateway(&upstream, "", "");
    let mut client = Client::connect(weir.address());
    for stream in (1..=299).step_by(2) {
        client.post(stream, "/").data(stream, b"hello", true);
    }
    for stream in (201..=299).step_by(2) {
        assert_eq!(client.response(stream).reset, Some(ErrorCode::REFUSED_STREAM), "{stream}");
    }
    switch.throw();
    for stream in (1..=199).step_by(2) {
        assert_eq!(client.response(stream).text(), "ok", "{stream}");
    }
    assert_eq!(client.get(301, "/").response(301).text(), "ok");
    assert_eq!(upstream.requests().len(), 101);
}

#[test]
fn streams_wait_for_a_connection_with_their_bodies() {
    let switch = Switch::default();
    let held = switch.clone();
    let upstream = Upstream::start(None, move |peer: &mut Peer| {
        while let Some(request) = peer.request() {
            held.wait();
            let body = request.body.len().to_string();
            peer.answer(format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len()));
        }
    });
    let config = format!(
        "workers = 1\n[listener.web]\nbind = '127.0.0.1:0'\n[service.app]\nservers = 'http://{}'\nmax_connections = 1\n\
         max_waiting = 8\n[[route]]\nservice = 'app'\n",
        upstream.address
    );
    let weir = Weir::configured(&config, 1);
    let mut client = Client::connect(weir.address());
    let body = pattern(60_000);
    for stream in (1..=17).step_by(2) {
        client.post(stream, "/").data(stream, &body[..stream as usize * 1000], true);
    }
    // The queue is full.
    let refused = client.get(19, "/").response(19);
    assert!(refused.status() == 503 && refused.text().contains("queue_full"), "{refused:?}");
    // One of those that wait leaves.
    client.reset(5, ErrorCode::CANCEL).flush();
    weir.wait_for_stderr(&[" client_reset "]);
    switch.throw();
    for stream in (1..=17).step_by(2).filter(|stream| *stream != 5) {
        assert_eq!(client.response(stream).text(), (stream * 1000).to_string());
    }
    assert_eq!((upstream.connections(), upstream.requests().len()), (1, 8));
    let sizes: Vec<_> = upstream.requests().iter().map(|request| request.body.len()).collect();
    assert!(upstream.requests().iter().all(|request| body.starts_with(&request.body)), "{sizes:?}");
}

/// A pooled connection closes under a request, and the request with its body goes to a new one.
#[test]
fn requests_on_stale_connections_are_repeated_with_their_bodies() {
    let upstream = Upstream::start(None, |peer: &mut Peer| {
        peer.request();
        peer.answer(super::OK);
        if peer.index > 0 {
            peer.serve(super::OK);
        }
        // The next request arrives, and the connection closes without a response.
        peer.request();
    });
    let weir = gateway(&upstream, "request_trailers = 'X-Sum'", "");
    let mut client = Client::connect(weir.address());
    assert_eq!(client.get(1, "/").response(1).text(), "ok");
    let body = pattern(5000);
    client.headers(3, &request("PUT", "/a"), false).data(3, &body, false).headers(
        3,
        &[(b"x-sum", b"7")],
        true,
    );
    assert_eq!(client.response(3).text(), "ok");
    let requests = upstream.requests();
    assert_eq!(requests.len(), 3);
    assert_eq!((requests[1].connection, requests[2].connection), (0, 1));
    assert_eq!(
        (&requests[1].body, &requests[1].raw_body, &requests[1].head),
        (&body, &requests[2].raw_body, &requests[2].head)
    );
    assert!(requests[2].raw_body.ends_with(b"x-sum: 7\r\n\r\n"));
}

#[test]
fn a_retry_on_another_server_has_the_body() {
    let failing = Upstream::start(None, |peer: &mut Peer| {
        peer.serve("HTTP/1.1 503 Busy\r\nContent-Length: 4\r\n\r\nbusy");
    });
    let working = super::upstream();
    let config = format!(
        "workers = 1\n[listener.web]\nbind = '127.0.0.1:0'\n[service.app]\nservers = ['http://{}', 'http://{}']\n\
         [[route]]\nservice = 'app'\nretry.on = [503]\n",
        failing.address, working.address
    );
    let weir = Weir::configured(&config, 1);
    let mut client = Client::connect(weir.address());
    let body = pattern(5000);
    for stream in (1..20).step_by(2) {
        client.headers(stream, &request("PUT", "/"), false).data(stream, &body, true);
        assert_eq!(client.response(stream).text(), "ok");
    }
    assert_eq!(working.requests().len(), 10);
    assert!(!failing.requests().is_empty() && working.requests().iter().all(|request| request.body == body));
}

#[test]
fn lines_of_the_access_log() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("access.log");
    let upstream = super::upstream();
    let weir = gateway(&upstream, "max_body = 10", &format!("[log]\naccess = '{}'\n", file.display()));
    let mut client = Client::connect(weir.address());
    let agent =
        [&request("GET", "/a?b")[..], &[(b"user-agent", b"test"), (b"referer", b"http://h/")]].concat();
    assert_eq!(client.headers(1, &agent, true).response(1).text(), "ok");
    assert_eq!(client.post(3, "/p").data(3, b"hello", true).response(3).text(), "ok");
    let refused = client.post(5, "/q").data(5, b"hello world", true).response(5);
    client.post(7, "/r").data(7, b"hello", false).reset(7, ErrorCode::CANCEL).sync();
    weir.stop();
    let log = fs::read_to_string(&file).unwrap();
    let lines: Vec<serde_json::Value> = log.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let of = |key: &str| lines.iter().map(|line| line[key].clone()).collect::<Vec<_>>();
    assert_eq!(of("method"), ["GET", "POST", "POST", "POST"], "{log}");
    assert_eq!(of("target"), ["/a?b", "/p", "/q", "/r"]);
    assert_eq!(of("status"), [200, 200, 413, 0]);
    assert_eq!(of("received"), [0, 5, 11, 5]);
    assert_eq!(of("sent"), [2, 2, refused.body.len(), 0]);
    assert_eq!(of("reason")[2..], ["body_too_large", "client_reset"]);
    assert!(of("protocol").iter().all(|protocol| protocol == "HTTP/2.0"), "{log}");
    assert!(of("host").iter().all(|host| host == "h"), "{log}");
    assert_eq!((&lines[0]["user_agent"], &lines[0]["referer"]), (&"test".into(), &"http://h/".into()));
}

#[test]
fn a_listener_without_http2() {
    let upstream = super::upstream();
    let weir = listening("http2 = false", &upstream, "", "");
    let mut client = Http1::connect(weir.address(), None);
    let refused = client.ask("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
    assert_eq!(refused.status, 505, "{}", refused.text());
    client.expect_end();
    assert_eq!(upstream.connections(), 0);
}

#[test]
fn tls_clients_choose_by_alpn() {
    let certificates = Certificates::new();
    let upstream = super::upstream();
    let certificate = format!(
        "[[certificate]]\nchain = '{}'\nkey = '{}'\n",
        certificates.cert.display(),
        certificates.key.display()
    );
    for (setting, offers, chosen) in [
        ("", &["h2", "http/1.1"][..], Some("h2")),
        ("", &["http/1.1", "h2"], Some("h2")),
        ("", &["h2"], Some("h2")),
        ("", &["http/1.1"], Some("http/1.1")),
        ("", &[], None),
        ("http2 = false", &["h2", "http/1.1"], Some("http/1.1")),
    ] {
        let weir = listening(&format!("{setting}\n[listener.web.tls]"), &upstream, "", &certificate);
        let settings = ClientSettings {
            roots: Roots::File(certificates.ca.clone()),
            alpn: offers.iter().map(|offer| offer.as_bytes().to_vec()).collect(),
            ..ClientSettings::default()
        };
        let connect = || {
            let session = TlsClient::new(&settings).unwrap().core().connect(&"127.0.0.1".parse().unwrap());
            Stream::connect(weir.address(), Some(session)).unwrap()
        };
        let stream = connect();
        let alpn = stream.session().unwrap().facts().and_then(|facts| facts.alpn.clone());
        assert_eq!(alpn.as_deref(), chosen.map(str::as_bytes), "{setting} {offers:?}");
        if chosen == Some("h2") {
            let mut client = Client::begun(stream);
            assert_eq!(client.get(1, "/").response(1).text(), "ok");
            assert!(upstream.requests().last().unwrap().head.contains("X-Forwarded-Proto: https\r\n"));
            // A request of HTTP/1.1 is no preface.
            let mut client = Client::silent(connect());
            client.out.extend_from_slice(b"GET / HTTP/1.1\r\nHost: h\r\n\r\n");
            assert_eq!(client.end(), Some((0, ErrorCode::PROTOCOL_ERROR)));
            weir.wait_for_stderr(&[" bad_http2 ", "the connection preface is not that of HTTP/2"]);
        } else {
            let mut client = Http1 { stream };
            assert_eq!(client.ask("GET / HTTP/1.1\r\nHost: h\r\n\r\n").text(), "ok");
            // The client did not agree on HTTP/2.
            let mut client = Http1 { stream: connect() };
            assert_eq!(client.ask("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").status, 505);
            client.expect_end();
        }
    }
}

#[test]
fn the_preface_is_the_first_request_or_none() {
    let upstream = super::upstream();
    let weir = gateway(&upstream, "", "");
    let mut client = Http1::connect(weir.address(), None);
    assert_eq!(client.ask("GET / HTTP/1.1\r\nHost: h\r\n\r\n").text(), "ok");
    assert_eq!(client.ask("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").status, 505);
    client.expect_end();
    // Byte by byte.
    let mut client = Client::connect(weir.address());
    client.get(1, "/");
    for byte in std::mem::take(&mut client.out) {
        client.stream.send(&[byte]).unwrap();
    }
    assert_eq!(client.response(1).text(), "ok");
    // Almost a preface.
    let mut client = Http1::connect(weir.address(), None);
    assert_eq!(client.ask("PRI * HTTP/2.0\r\n\r\nSM\r\n\n").status, 505);
}
