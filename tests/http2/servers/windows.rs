//! Flow control with servers: tiny windows of servers, and the gateway's own windows.

use super::{BOTH, Client, Content, Server, Version, ask, gateway};
use crate::common::pattern;
use crate::http2::client::Upload;
use weir_http2::ErrorCode;

/// SETTINGS_INITIAL_WINDOW_SIZE
const WINDOW: u16 = 4;

#[test]
fn tiny_windows_of_servers() {
    for window in [0, 1, 7, 1000] {
        let server = Server::with_settings(&[(WINDOW, window)], move |connection| {
            connection.credits = false;
            while let Some(request) = connection.head() {
                let stream = request.stream;
                // Until the settings are acknowledged, the gateway may use the initial window.
                connection.read_until(|connection| connection.acknowledged == 1);
                let mut allowed = connection.get(stream).body.len().max(window as usize);
                while !connection.get(stream).ended && connection.ending.is_none() {
                    let received = connection.get(stream).body.len();
                    assert!(received <= allowed, "{received} bytes of {allowed}");
                    connection.window_update(stream, 501).window_update(0, 501);
                    allowed += 501;
                    connection.sync();
                }
                let length = connection.get(stream).body.len().to_string();
                connection.respond(stream, &[], length.as_bytes()).flush();
            }
        });
        let weir = gateway(&[&server], "", "");
        let body = pattern(9000);
        for version in BOTH {
            for content in [Content::Length(&body), Content::Unknown(&body), Content::Unknown(b"")] {
                let reply = ask(&weir, version, "POST", "/", &[], content);
                let length = if let Content::Unknown(b"") = content { "0" } else { "9000" };
                assert_eq!((reply.status, reply.text()), (200, length), "{version:?} {window}");
            }
        }
        assert!(server.requests().iter().all(|request| request.body.is_empty() || request.body == body));
    }
}

#[test]
fn trailers_of_requests_wait_for_the_body() {
    let server = Server::with_settings(&[(WINDOW, 0)], |connection| {
        connection.read_until(|connection| connection.acknowledged == 1);
        while let Some(request) = connection.head() {
            connection.sync();
            assert!(request.stream == 1 || !connection.get(request.stream).ended);
            connection.window_update(request.stream, 5);
            connection.read_until(|connection| connection.get(request.stream).ended);
            connection.ok(&request);
        }
    });
    let weir = gateway(&[&server], "", "request_trailers = 'x-sum'\n");
    assert_eq!(ask(&weir, Version::Http2, "GET", "/", &[], Content::None).text(), "ok");
    for version in BOTH {
        let reply = ask(&weir, version, "POST", "/", &[], Content::Trailers(b"hello", "x-sum", "7"));
        assert_eq!(reply.text(), "ok");
        let request = server.requests().pop().unwrap();
        assert_eq!((request.text(), &*request.trailers), ("hello", "x-sum: 7\r\n"), "{version:?}");
    }
}

#[test]
fn a_window_that_becomes_negative() {
    let server = Server::start(|connection| {
        connection.credits = false;
        let Some(request) = connection.head() else { return };
        connection.read_until(|connection| connection.get(1).body.len() == 65_535);
        // The window is now -60000.
        connection.settings(&[(WINDOW, 5535)]).window_update(0, 1 << 20);
        connection.read_until(|connection| connection.acknowledged == 2);
        connection.window_update(1, 60_000).sync();
        assert_eq!(connection.get(1).body.len(), 65_535);
        connection.window_update(1, 1 << 20);
        connection.read_until(|connection| connection.get(1).ended);
        connection.ok(&request);
        connection.read_to_end();
    });
    let weir = gateway(&[&server], "", "");
    let body = pattern(100_000);
    let reply = ask(&weir, Version::Http2, "POST", "/", &[], Content::Length(&body));
    assert_eq!((reply.status, reply.text()), (200, "ok"));
    assert!(server.only().body == body);
}

#[test]
fn a_window_that_overflows() {
    for (stream, code) in [(1, "stream"), (0, "connection")] {
        let server = Server::start(move |connection| {
            let Some(_) = connection.head() else { return };
            connection.window_update(stream, 0x7fff_ffff).flush();
            connection.read_to_end();
        });
        let weir = gateway(&[&server], "", "");
        let reply = ask(&weir, Version::Http2, "GET", "/", &[], Content::None);
        assert_eq!(reply.status, 502, "{code}");
        weir.wait_for_stderr(&["bad_upstream_http2"]);
        match stream {
            0 => assert_eq!(server.wait_for_go_away(0), ErrorCode::FLOW_CONTROL_ERROR),
            _ => {
                let requests = server.wait_for("a reset", |requests| requests[0].reset.is_some());
                assert_eq!(requests[0].reset, Some(ErrorCode::FLOW_CONTROL_ERROR));
            }
        }
    }
}

#[test]
fn increments_of_zero() {
    let server = Server::start(move |connection| {
        while let Some(request) = connection.head() {
            connection.window_update(request.stream, 0).flush();
        }
    });
    let weir = gateway(&[&server], "", "");
    assert_eq!(ask(&weir, Version::Http2, "GET", "/", &[], Content::None).status, 502);
    let requests = server.wait_for("a reset", |requests| requests[0].reset.is_some());
    assert_eq!(requests[0].reset, Some(ErrorCode::PROTOCOL_ERROR));
    assert_eq!(server.connections(), 1);
}

#[test]
fn a_stalled_client_stops_its_stream_alone() {
    const LENGTH: usize = 4 << 20;
    let server = Server::start(|connection| {
        let (body, mut sent) = (pattern(LENGTH), Vec::new());
        // Sends all bodies as far as the windows of their streams allow.
        loop {
            while connection.head_count() > 0 {
                let Some(request) = connection.head() else { return };
                if request.path() == "/big" {
                    connection.headers(request.stream, &[(":status", "200")], false).flush();
                    sent.push((request.stream, 0));
                } else {
                    connection.ok(&request);
                }
            }
            for (stream, sent) in &mut sent {
                if connection.get(*stream).reset.is_none() {
                    connection.send_some(*stream, &body, sent, true);
                }
            }
            let before = (connection.updates.clone(), connection.head_count());
            connection.read_until(|connection| {
                (&connection.updates, connection.head_count()) != (&before.0, before.1)
            });
            if connection.ending.is_some() {
                return;
            }
        }
    });
    let weir = gateway(&[&server], "", "");
    // These clients read nothing: one has no window, and the other's socket fills up.
    let mut without_window = Client::with_settings(weir.address(), &[(WINDOW, 0)]);
    without_window.get(1, "/big").read_until(|client| client.get_stream(1).status() == 200);
    let mut unread = super::Http1::connect(weir.address(), None);
    unread.send("GET /big HTTP/1.1\r\nHost: h\r\n\r\n");
    server.wait_for("both requests", |requests| requests.len() == 2);
    for version in BOTH {
        for _ in 0..3 {
            assert_eq!(ask(&weir, version, "GET", "/", &[], Content::None).text(), "ok", "{version:?}");
            let reply = ask(&weir, version, "GET", "/big", &[], Content::None);
            assert!(reply.complete && reply.body.len() == LENGTH, "{version:?}");
        }
    }
    assert_eq!(server.connections(), 1);
    // They continue once they read.
    assert_eq!(unread.answer(weir_http::Method::Get).body.len(), LENGTH);
    let body = without_window.window_update(1, 8 << 20).window_update(0, 8 << 20).response(1).body;
    assert!(body == pattern(LENGTH));
}

#[test]
fn a_stalled_server_stops_its_stream_alone() {
    // For `/held`, the server withholds only the stream's credit.
    let server = Server::start(|connection| {
        connection.credits = false;
        loop {
            connection.read_until(|connection| connection.head_count() > 0 || connection.ending.is_some());
            let Some(request) = connection.head() else { return };
            if request.path() == "/held" {
                continue;
            }
            let stream = request.stream;
            while !connection.get(stream).ended && connection.ending.is_none() {
                let received = connection.get(stream).body.len();
                connection.read_until(|connection| {
                    let now = connection.get(stream);
                    now.ended || now.body.len() > received
                });
                let more = (connection.get(stream).body.len() - received) as u32;
                if more > 0 {
                    connection.window_update(stream, more).window_update(0, more).flush();
                }
            }
            connection.ok(&request);
        }
    });
    let weir = gateway(&[&server], "", "");
    let body = pattern(300_000);
    let mut held = Client::connect(weir.address());
    // Half of the connection's initial window.
    held.post(1, "/held").upload_some(1, &body[..30_000], &mut Upload::default());
    held.sync();
    server
        .wait_for("a part", |requests| requests.first().is_some_and(|request| request.body.len() == 30_000));
    for version in BOTH {
        let reply = ask(&weir, version, "POST", "/", &[], Content::Length(&body));
        assert_eq!(reply.text(), "ok", "{version:?}");
    }
    assert_eq!(server.connections(), 1);
    assert!(!held.get_stream(1).is_over());
}
