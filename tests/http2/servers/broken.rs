//! Servers that violate a rule of the connection, which the gateway then closes.

use super::{Connection, Content, Server, Version, ask, gateway};
use weir_http2::ErrorCode;
use weir_http2::frame::{Kind, flag};

/// Sends an invalid frame after the head of a request on stream 1.
type Breaks = for<'a, 'b> fn(&'a mut Connection<'b>) -> &'a mut Connection<'b>;

#[test]
fn connection_errors() {
    let rows: &[(&str, Breaks, ErrorCode)] = &[
        ("DATA on stream 0", |to| to.frame(Kind::Data, 0, 0, b"x"), ErrorCode::PROTOCOL_ERROR),
        ("DATA on an idle stream", |to| to.frame(Kind::Data, 0, 99, b"x"), ErrorCode::PROTOCOL_ERROR),
        ("DATA on a stream of the server", |to| to.frame(Kind::Data, 0, 2, b"x"), ErrorCode::PROTOCOL_ERROR),
        (
            "HEADERS on an idle stream",
            |to| to.headers(99, &[(":status", "200")], true),
            ErrorCode::PROTOCOL_ERROR,
        ),
        (
            "HEADERS on a stream of the server",
            |to| to.headers(2, &[(":status", "200")], true),
            ErrorCode::PROTOCOL_ERROR,
        ),
        ("RST_STREAM on an idle stream", |to| to.reset(99, ErrorCode::CANCEL), ErrorCode::PROTOCOL_ERROR),
        ("WINDOW_UPDATE on an idle stream", |to| to.window_update(99, 1), ErrorCode::PROTOCOL_ERROR),
        ("a window of 0 more", |to| to.window_update(0, 0), ErrorCode::PROTOCOL_ERROR),
        (
            "PUSH_PROMISE",
            |to| {
                let promised = [&[0, 0, 0, 2], &super::super::fields::block(&super::request("GET", "/"))[..]];
                to.frame(Kind::PushPromise, flag::END_HEADERS, 1, &promised.concat())
            },
            ErrorCode::PROTOCOL_ERROR,
        ),
        (
            "an index outside the table",
            |to| to.frame(Kind::Headers, flag::END_HEADERS | flag::END_STREAM, 1, &[0xff, 0x7f]),
            ErrorCode::COMPRESSION_ERROR,
        ),
        (
            "a block that ends within a field",
            |to| to.frame(Kind::Headers, flag::END_HEADERS, 1, &[0x40, 5, b'a']),
            ErrorCode::COMPRESSION_ERROR,
        ),
        (
            "a large table",
            |to| to.frame(Kind::Headers, flag::END_HEADERS, 1, &[0x3f, 0xe2, 0x1f]),
            ErrorCode::COMPRESSION_ERROR,
        ),
        (
            "CONTINUATION alone",
            |to| to.frame(Kind::Continuation, flag::END_HEADERS, 1, b""),
            ErrorCode::PROTOCOL_ERROR,
        ),
        (
            "a frame within a block",
            |to| to.frame(Kind::Headers, 0, 1, &[0x88]).frame(Kind::Ping, 0, 0, b"12345678"),
            ErrorCode::PROTOCOL_ERROR,
        ),
        ("a short PING", |to| to.frame(Kind::Ping, 0, 0, b"1234567"), ErrorCode::FRAME_SIZE_ERROR),
        ("SETTINGS on a stream", |to| to.frame(Kind::Settings, 0, 1, b""), ErrorCode::PROTOCOL_ERROR),
        ("SETTINGS of 5 bytes", |to| to.frame(Kind::Settings, 0, 0, b"12345"), ErrorCode::FRAME_SIZE_ERROR),
        ("a small MAX_FRAME_SIZE", |to| to.settings(&[(5, 100)]), ErrorCode::PROTOCOL_ERROR),
        ("a large INITIAL_WINDOW_SIZE", |to| to.settings(&[(4, 1 << 31)]), ErrorCode::FLOW_CONTROL_ERROR),
        ("ENABLE_PUSH of a server", |to| to.settings(&[(2, 1)]), ErrorCode::PROTOCOL_ERROR),
        ("a large frame", |to| to.frame(Kind::Data, 0, 1, &[0; 16_385]), ErrorCode::FRAME_SIZE_ERROR),
        (
            "padding beyond the frame",
            |to| to.frame(Kind::Data, flag::PADDED, 1, &[9, 0]),
            ErrorCode::PROTOCOL_ERROR,
        ),
        ("GOAWAY on a stream", |to| to.frame(Kind::GoAway, 0, 1, &[0; 8]), ErrorCode::PROTOCOL_ERROR),
    ];
    for (what, breaks, code) in rows {
        let breaks = *breaks;
        let server = Server::start(move |connection| {
            if connection.head().is_some() {
                breaks(connection);
                connection.flush().read_to_end();
            }
        });
        let weir = gateway(&[&server], "", "");
        let reply = ask(&weir, Version::Http2, "POST", "/", &[], Content::Length(b"hello"));
        assert_eq!((reply.status, reply.complete), (502, true), "{what}: {reply:?}");
        assert_eq!(server.wait_for_go_away(0), *code, "{what}");
        server.wait_for_ending(0);
        weir.wait_for_stderr(&[" bad_upstream_http2 "]);
        assert_eq!(server.requests().len(), 1, "{what}");
    }
}

#[test]
fn connection_errors_end_all_requests() {
    let server = Server::start(|connection| {
        if connection.index > 0 {
            return connection.serve(Connection::ok);
        }
        for _ in 0..3 {
            connection.head();
        }
        connection.headers(1, &[(":status", "200")], false).data(1, b"part", false).sync();
        connection.frame(Kind::Data, 0, 0, b"x").flush().read_to_end();
    });
    let weir = gateway(&[&server], "", "");
    let mut client = super::Client::connect(weir.address());
    client.get(1, "/").flush();
    server.wait_for("a request", |requests| requests.len() == 1);
    client.get(3, "/").get(5, "/");
    assert_eq!(client.response(1).reset, Some(ErrorCode::INTERNAL_ERROR));
    assert_eq!([3, 5].map(|stream| client.response(stream).status()), [502, 502]);
    // The client's connection persists, and its next request uses another server connection.
    assert_eq!(client.get(7, "/").response(7).text(), "ok");
    assert_eq!(server.wait_for_go_away(0), ErrorCode::PROTOCOL_ERROR);
}

#[test]
fn connection_errors_without_requests() {
    let server = Server::start(|connection| {
        let Some(request) = connection.request() else { return };
        connection.ok(&request);
        if connection.index == 0 {
            connection.sync().frame(Kind::Data, 0, 0, b"x").flush();
        }
        connection.serve(Connection::ok);
    });
    let weir = gateway(&[&server], "", "");
    assert_eq!(ask(&weir, Version::Http1, "GET", "/", &[], Content::None).text(), "ok");
    assert_eq!(server.wait_for_go_away(0), ErrorCode::PROTOCOL_ERROR);
    weir.wait_for_stderr(&["bad_upstream_http2"]);
    assert_eq!(ask(&weir, Version::Http1, "POST", "/", &[], Content::None).text(), "ok");
    assert_eq!(server.connections(), 2);
}

#[test]
fn floods_of_servers() {
    let rows: &[(&str, Breaks)] =
        &[("PING", |to| to.frame(Kind::Ping, 0, 0, b"12345678")), ("SETTINGS", |to| to.settings(&[]))];
    for (what, breaks) in rows {
        let breaks = *breaks;
        let server = Server::start(move |connection| {
            connection.acknowledges = false;
            if connection.index > 0 {
                return connection.serve(Connection::ok);
            }
            if connection.head().is_none() {
                return;
            }
            connection.headers(1, &[(":status", "200")], false).flush();
            // Far beyond every budget; the gateway closes the connection before the end.
            for _ in 0..100_000 {
                breaks(connection);
            }
            connection.flush().read_to_end();
        });
        let weir = gateway(&[&server], "", "");
        let reply = ask(&weir, Version::Http2, "GET", "/", &[], Content::None);
        assert_eq!(reply.reset, Some(ErrorCode::INTERNAL_ERROR), "{what}: {reply:?}");
        weir.wait_for_stderr(&[" bad_upstream_http2 "]);
        assert_eq!(ask(&weir, Version::Http1, "GET", "/", &[], Content::None).text(), "ok", "{what}");
    }
}
