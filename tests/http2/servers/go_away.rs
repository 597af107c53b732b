//! GOAWAY: the gateway resends requests above the last stream, completes those below, and sends new ones elsewhere.

use super::{BOTH, Client, Content, Server, Version, ask, gateway};
use crate::common::{DEADLINE, Switch, Weir, poll_until};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use weir_http2::ErrorCode;

/// Sends this many requests with bodies as streams of one client.
fn posts(weir: &Weir, count: u32) -> Client {
    let mut client = Client::connect(weir.address());
    for n in 0..count {
        let stream = 1 + 2 * n;
        client.post(stream, &format!("/{n}")).data(stream, b"hello", true);
    }
    client.flush();
    client
}

#[test]
fn requests_above_the_last_stream_are_sent_again() {
    for last in [0, 1, 5, 7] {
        let server = Server::start(move |connection| {
            if connection.index > 0 {
                return connection.serve(super::Connection::ok);
            }
            let mut requests = Vec::new();
            while requests.len() < 4 {
                let Some(request) = connection.request() else { return };
                requests.push(request);
            }
            connection.go_away(last, ErrorCode::NO_ERROR).flush();
            for request in requests.iter().filter(|request| request.stream <= last) {
                connection.respond(request.stream, &[], b"first").flush();
            }
            connection.read_to_end();
        });
        let weir = gateway(&[&server], "", "");
        let mut client = posts(&weir, 4);
        for n in 0..4 {
            let received = client.response(1 + 2 * n);
            let expected = if 2 * n < last { "first" } else { "ok" };
            assert_eq!((received.status(), received.text()), (200, expected), "{last} {n}");
        }
        let requests = server.requests();
        let above =
            requests.iter().filter(|request| request.connection == 0 && request.stream > last).count();
        let again: Vec<_> = requests.iter().filter(|request| request.connection == 1).collect();
        assert_eq!(again.len(), above, "{last}: {requests:?}");
        assert!(again.iter().all(|request| request.text() == "hello" && request.ended), "{again:?}");
        // The connection closes, and further requests use another one.
        server.wait_for_ending(0);
        for version in BOTH {
            assert_eq!(ask(&weir, version, "GET", "/", &[], Content::None).text(), "ok");
        }
        assert_eq!(server.connections(), 2, "{last}");
    }
}

#[test]
fn go_away_in_two_steps() {
    // As RFC 9113 section 6.8 recommends, the first frame only stops new streams.
    let server = Server::start(move |connection| {
        if connection.index > 0 {
            return connection.serve(super::Connection::ok);
        }
        let first = connection.request().unwrap();
        connection.request().unwrap();
        connection.go_away(0x7fff_ffff, ErrorCode::NO_ERROR).sync();
        connection.respond(first.stream, &[], b"first");
        connection.go_away(first.stream, ErrorCode::NO_ERROR).flush();
        connection.read_to_end();
    });
    let weir = gateway(&[&server], "", "");
    let mut client = posts(&weir, 2);
    assert_eq!(client.response(1).text(), "first");
    assert_eq!(client.response(3).text(), "ok");
    let requests = server.requests();
    assert_eq!(
        requests.iter().map(|request| request.connection).collect::<Vec<_>>(),
        [0, 0, 1],
        "{requests:?}"
    );
    assert_eq!((requests[2].path(), requests[2].text()), (requests[1].path(), "hello"));
    server.wait_for_ending(0);
}

#[test]
fn new_requests_take_another_connection() {
    let switch = Switch::default();
    let held = switch.clone();
    let server = Server::start(move |connection| {
        if connection.index > 0 {
            return connection.serve(super::Connection::ok);
        }
        let first = connection.request().unwrap();
        connection.go_away(0x7fff_ffff, ErrorCode::NO_ERROR).sync();
        held.wait();
        connection.respond(first.stream, &[], b"first").flush();
        connection.serve(super::Connection::ok);
    });
    let weir = gateway(&[&server], "", "");
    let mut client = posts(&weir, 1);
    // The first connection does not respond to these, so a request on it waits for the switch.
    let mut others = 0;
    poll_until(DEADLINE, "a second connection", || {
        others += 1;
        client.get(1 + 2 * others, "/").flush();
        server.connections() == 2
    });
    let stream = 3 + 2 * others;
    assert_eq!(client.get(stream, "/").response(stream).text(), "ok");
    assert!(!client.get_stream(1).is_over());
    switch.throw();
    assert_eq!(client.response(1).text(), "first");
    server.wait_for_ending(0);
}

#[test]
fn go_away_at_once() {
    // Each connection accepts one request, but only the third one processes it.
    let server = Server::start(|connection| {
        let Some(request) = connection.request() else { return };
        match connection.index {
            0 | 1 => {
                connection.go_away(0, ErrorCode::NO_ERROR).flush();
            }
            _ => return connection.ok(&request),
        }
        connection.read_to_end();
    });
    for (index, version) in BOTH.into_iter().enumerate() {
        let weir = gateway(&[&server], "", "");
        let reply = ask(&weir, version, "POST", "/", &[], Content::Length(b"hello"));
        assert_eq!((reply.status, reply.text()), (200, "ok"), "{version:?}");
        if index == 0 {
            assert_eq!(server.requests().len(), 3);
        }
    }
}

#[test]
fn go_away_and_close_with_the_same_bytes() {
    let closes = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&closes);
    let server = Server::start(move |connection| {
        while let Some(request) = connection.request() {
            if counted.fetch_add(1, Ordering::SeqCst) == 0 {
                // No stream is processed, and FIN follows at once.
                connection.go_away(0, ErrorCode::NO_ERROR).flush();
                return;
            }
            connection.ok(&request);
        }
    });
    let weir = gateway(&[&server], "", "");
    let reply = ask(&weir, Version::Http1, "POST", "/", &[], Content::Length(b"hello"));
    assert_eq!((reply.status, reply.text()), (200, "ok"));
    assert_eq!(server.requests().len(), 2);
}

#[test]
fn go_away_with_an_error() {
    let server = Server::start(|connection| {
        if connection.index > 0 {
            return connection.serve(super::Connection::ok);
        }
        let first = connection.request().unwrap();
        connection.go_away(first.stream, ErrorCode::ENHANCE_YOUR_CALM).flush();
    });
    let weir = gateway(&[&server], "", "");
    // The server may have processed the request: POST is not sent again.
    let reply = ask(&weir, Version::Http2, "POST", "/", &[], Content::Length(b"hello"));
    assert_eq!(reply.status, 502, "{reply:?}");
    assert_eq!(server.requests().len(), 1);
    assert_eq!(ask(&weir, Version::Http2, "GET", "/", &[], Content::None).text(), "ok");
}
