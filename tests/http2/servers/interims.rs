//! Interim responses, and requests that wait for 100 (Continue).

use super::{BOTH, Client, Content, Http1, Server, Version, ask, gateway, request};
use weir_http::Method;

#[test]
fn interim_responses_are_forwarded() {
    let server = Server::start(|connection| {
        connection.serve(|connection, request| {
            for status in ["103", "102", "103"] {
                let fields: [(&str, &str); 2] = [(":status", status), ("link", "</a>; rel=preload")];
                connection.headers(request.stream, &fields, false);
            }
            connection.ok(request);
        });
    });
    let weir = gateway(&[&server], "", "");
    for version in BOTH {
        let reply = ask(&weir, version, "GET", "/", &[], Content::None);
        assert_eq!((reply.interim, &*reply.body), (vec![103, 102, 103], &b"ok"[..]), "{version:?}");
    }
    // An HTTP/1.0 client does not understand interim responses.
    let answer = Http1::connect(weir.address(), None).ask("GET / HTTP/1.0\r\nHost: h\r\n\r\n");
    assert_eq!((answer.status, answer.text()), (200, "ok"));
}

/// A server that sends 100 (Continue) to each head, and `ok` to the whole request.
fn continuing() -> Server {
    Server::start(|connection| {
        while let Some(request) = connection.head() {
            assert_eq!(request.field("expect"), "100-continue", "{}", request.head);
            assert!(!request.ended && request.body.is_empty(), "{request:?}");
            connection.headers(request.stream, &[(":status", "100")], false).flush();
            connection.read_until(|connection| connection.get(request.stream).ended);
            connection.ok(&request);
        }
    })
}

#[test]
fn clients_wait_for_100() {
    let server = continuing();
    let weir = gateway(&[&server], "", "");
    let mut http1 = Http1::connect(weir.address(), None);
    http1.send("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n");
    assert_eq!(http1.answer(Method::Post).status, 100);
    http1.send("hello");
    assert_eq!(http1.answer(Method::Post).text(), "ok");
    let mut http2 = Client::connect(weir.address());
    let waiting =
        [&request("POST", "/")[..], &[(b"content-length", b"5"), (b"expect", b"100-continue")]].concat();
    http2.headers(1, &waiting, false);
    http2.read_until(|client| !client.get_stream(1).interim.is_empty());
    assert_eq!(http2.data(1, b"hello", true).response(1).text(), "ok");
    for request in server.requests() {
        assert_eq!((request.text(), request.ended), ("hello", true));
    }
}

#[test]
fn a_final_response_instead_of_100() {
    let server = Server::start(|connection| {
        while let Some(request) = connection.head() {
            connection.headers(request.stream, &[(":status", "417")], true);
            connection.reset(request.stream, weir_http2::ErrorCode::NO_ERROR).flush();
        }
    });
    let weir = gateway(&[&server], "", "");
    let mut http1 = Http1::connect(weir.address(), None);
    http1.send("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n");
    let answer = http1.answer(Method::Post);
    assert_eq!((answer.status, answer.says_close()), (417, true), "{}", answer.head);
    let mut http2 = Client::connect(weir.address());
    let waiting =
        [&request("POST", "/")[..], &[(b"content-length", b"5"), (b"expect", b"100-continue")]].concat();
    assert_eq!(http2.headers(1, &waiting, false).response(1).status(), 417);
    // The connections continue.
    assert_eq!(http2.headers(3, &waiting, false).response(3).status(), 417);
    assert_eq!(server.connections(), 1);
}

#[test]
fn too_many_interim_responses() {
    let server = Server::start(|connection| {
        connection.serve(|connection, request| {
            for _ in 0..2000 {
                connection.headers(request.stream, &[(":status", "103")], false);
            }
            connection.flush();
        });
    });
    let weir = gateway(&[&server], "", "");
    let reply = ask(&weir, Version::Http2, "GET", "/", &[], Content::None);
    assert_eq!(reply.status, 502, "{reply:?}");
    weir.wait_for_stderr(&["upstream_interim_responses"]);
    server.wait_for("the stream's reset", |requests| requests[0].reset.is_some());
    assert_eq!(server.connections(), 1);
}
