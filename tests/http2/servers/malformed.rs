//! Malformed responses: the gateway resets the stream, and keeps the connection.

use super::{BOTH, Connection, Content, Server, Version, ask, gateway};
use weir_http2::ErrorCode;

/// Sends an invalid frame or field after the head of a request on stream 1.
type Breaks = for<'a, 'b> fn(&'a mut Connection<'b>) -> &'a mut Connection<'b>;

#[test]
fn stream_errors_before_the_response() {
    let rows: &[(&str, Breaks)] = &[
        ("no :status", |to| to.headers(1, &[("a", "b")], true)),
        ("an empty head", |to| to.headers(1, &[], true)),
        ("two :status", |to| to.headers(1, &[(":status", "200"), (":status", "200")], true)),
        ("a status of two digits", |to| to.headers(1, &[(":status", "20")], true)),
        ("a status of four digits", |to| to.headers(1, &[(":status", "2000")], true)),
        ("status 101", |to| to.headers(1, &[(":status", "101")], false)),
        ("a pseudo-field of requests", |to| to.headers(1, &[(":status", "200"), (":path", "/")], true)),
        ("a late pseudo-field", |to| to.headers(1, &[("a", "b"), (":status", "200")], true)),
        ("an upper-case name", |to| to.headers(1, &[(":status", "200"), ("X-A", "b")], true)),
        ("an empty name", |to| to.headers(1, &[(":status", "200"), ("", "b")], true)),
        ("a name with a space", |to| to.headers(1, &[(":status", "200"), ("a b", "b")], true)),
        ("a value with CR LF", |to| to.headers(1, &[(":status", "200"), ("a", "b\r\nc: d")], true)),
        ("a value with NUL", |to| to.headers(1, &[(":status", "200"), ("a", "b\0")], true)),
        ("connection", |to| to.headers(1, &[(":status", "200"), ("connection", "close")], true)),
        ("transfer-encoding", |to| {
            to.headers(1, &[(":status", "200"), ("transfer-encoding", "chunked")], true)
        }),
        ("keep-alive", |to| to.headers(1, &[(":status", "200"), ("keep-alive", "1")], true)),
        ("two lengths", |to| {
            to.headers(1, &[(":status", "200"), ("content-length", "1"), ("content-length", "2")], false)
        }),
        ("a length that is no number", |to| {
            to.headers(1, &[(":status", "200"), ("content-length", "+1")], false)
        }),
        ("a length without DATA", |to| to.headers(1, &[(":status", "200"), ("content-length", "1")], true)),
        ("an interim response that ends the stream", |to| to.headers(1, &[(":status", "103")], true)),
        ("DATA before the head", |to| to.data(1, b"x", false)),
    ];
    for (what, breaks) in rows {
        let breaks = *breaks;
        let server = Server::start(move |connection| {
            while let Some(request) = connection.head() {
                match request.stream {
                    1 => {
                        breaks(connection);
                        connection.flush();
                    }
                    _ => connection.ok(&request),
                }
            }
        });
        let weir = gateway(&[&server], "", "");
        let reply = ask(&weir, Version::Http1, "GET", "/", &[], Content::None);
        assert_eq!((reply.status, reply.complete), (502, true), "{what}: {reply:?}");
        weir.wait_for_stderr(&[" bad_upstream_http2 "]);
        // Only the stream is lost.
        for version in BOTH {
            assert_eq!(ask(&weir, version, "GET", "/", &[], Content::None).text(), "ok", "{what}");
        }
        assert_eq!(server.connections(), 1, "{what}");
    }
}

#[test]
fn stream_errors_within_the_response() {
    let rows: &[(&str, Breaks)] = &[
        ("more than its length", |to| {
            to.headers(1, &[(":status", "200"), ("content-length", "4")], false);
            to.data(1, b"part", false).sync().data(1, b"more", true)
        }),
        ("less than its length", |to| {
            to.headers(1, &[(":status", "200"), ("content-length", "5")], false);
            to.data(1, b"part", false).sync().data(1, b"", true)
        }),
        ("less than its length, and trailers", |to| {
            to.headers(1, &[(":status", "200"), ("content-length", "5")], false);
            to.data(1, b"part", false).sync().headers(1, &[("a", "b")], true)
        }),
        ("trailers that do not end the stream", |to| {
            to.headers(1, &[(":status", "200")], false);
            to.data(1, b"part", false).sync().headers(1, &[("a", "b")], false)
        }),
        ("a pseudo-field in trailers", |to| {
            to.headers(1, &[(":status", "200")], false);
            to.data(1, b"part", false).sync().headers(1, &[(":status", "200")], true)
        }),
        ("an upper-case name in trailers", |to| {
            to.headers(1, &[(":status", "200")], false);
            to.data(1, b"part", false).sync().headers(1, &[("X-A", "b")], true)
        }),
    ];
    for (what, breaks) in rows {
        for version in BOTH {
            let breaks = *breaks;
            let server = Server::start(move |connection| {
                while let Some(request) = connection.head() {
                    match request.stream {
                        1 => {
                            breaks(connection);
                            connection.flush();
                        }
                        _ => connection.ok(&request),
                    }
                }
            });
            let weir = gateway(&[&server], "", "");
            let reply = ask(&weir, version, "GET", "/", &[], Content::None);
            assert_eq!((reply.status, reply.text()), (200, "part"), "{version:?} {what}: {reply:?}");
            // For an HTTP/1.1 client, the response is complete once its length is reached.
            let is_whole = version == Version::Http1 && *what == "more than its length";
            assert_eq!(reply.is_cut(), !is_whole, "{version:?} {what}: {reply:?}");
            if !is_whole {
                weir.wait_for_stderr(&[" bad_upstream_http2 "]);
            }
            server.wait_for("a reset", |requests| requests[0].reset.is_some());
            assert_eq!(ask(&weir, version, "GET", "/", &[], Content::None).text(), "ok", "{what}");
            assert_eq!(server.connections(), 1, "{what}");
        }
    }
}

#[test]
fn data_after_the_end() {
    // A frame on an ended stream is late, or an error of only that stream; other streams continue.
    let server = Server::start(|connection| {
        while let Some(request) = connection.head() {
            connection.respond(request.stream, &[], b"ok").flush();
            if request.stream == 1 {
                connection.sync();
                connection.reset(1, ErrorCode::NO_ERROR).flush();
            }
        }
    });
    let weir = gateway(&[&server], "", "");
    for version in BOTH {
        for _ in 0..2 {
            assert_eq!(ask(&weir, version, "GET", "/", &[], Content::None).text(), "ok");
        }
    }
    assert_eq!(server.connections(), 1);
}

#[test]
fn large_heads_of_responses() {
    let server = Server::start(|connection| {
        while let Some(request) = connection.head() {
            let value = "v".repeat(15_000);
            let fields: Vec<(&str, &str)> = vec![(":status", "200"), ("x-long", &value)];
            connection.headers(request.stream, &fields, true).flush();
        }
    });
    let weir = gateway(&[&server], "limits.head = '8KiB'\n", "");
    for version in BOTH {
        let reply = ask(&weir, version, "GET", "/", &[], Content::None);
        assert_eq!(reply.status, 502, "{version:?} {reply:?}");
    }
    assert_eq!(server.connections(), 1);
}

#[test]
fn bodies_where_none_may_be() {
    const HIDDEN: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil";
    for (method, status) in [("HEAD", "200"), ("GET", "204"), ("GET", "304")] {
        let server = Server::start(move |connection| {
            while let Some(request) = connection.head() {
                let stream = request.stream;
                connection.headers(stream, &[(":status", status)], false);
                connection.data(stream, HIDDEN, true).flush();
            }
        });
        let weir = gateway(&[&server], "", "");
        let mut client = super::Http1::connect(weir.address(), None);
        // The head completes the response, and the gateway discards what follows.
        for _ in 0..2 {
            client.send(format!("{method} / HTTP/1.1\r\nHost: h\r\n\r\n"));
            let answer = client.answer(weir_http::Method::of(method.as_bytes()));
            assert_eq!(
                (answer.status.to_string(), answer.text()),
                (status.to_owned(), ""),
                "{method} {status}"
            );
        }
        let reply = ask(&weir, Version::Http2, method, "/", &[], Content::None);
        assert_eq!(reply.body, b"", "{method} {status}: {reply:?}");
        weir.wait_for_stderr(&[" bad_upstream_http2 ", "a body where none is allowed"]);
        assert_eq!(server.connections(), 1);
    }
}
