//! The connections to a server: their number, lifetime and number of requests.

use super::{BOTH, Client, Connection, Content, Server, Version, ask, gateway};
use crate::common::{DEADLINE, Ending, Switch, poll_until};
use weir_http2::ErrorCode;

/// A server that responds to the first `count` requests once the test throws the switch.
fn holding(count: usize, switch: &Switch) -> Server {
    let switch = switch.clone();
    Server::start(move |connection| {
        let held: Vec<_> = (0..count).map_while(|_| connection.request()).collect();
        switch.wait();
        for request in &held {
            connection.ok(request);
        }
        connection.serve(Connection::ok);
    })
}

#[test]
fn max_requests() {
    let server = Server::ok();
    let weir = gateway(&[&server], "pool.max_requests = 1\n", "");
    for version in BOTH {
        for _ in 0..3 {
            assert_eq!(ask(&weir, version, "GET", "/", &[], Content::None).text(), "ok");
        }
    }
    assert_eq!(server.connections(), 6);
    for connection in 0..6 {
        assert_eq!(server.wait_for_ending(connection), Ending::Clean);
        assert_eq!(server.wait_for_go_away(connection), ErrorCode::NO_ERROR);
    }
}

#[test]
fn max_age() {
    let server = Server::ok();
    let weir = gateway(&[&server], "pool.max_age = '1ms'\n", "");
    // A connection may serve several requests within its first millisecond.
    poll_until(DEADLINE, "a third connection", || {
        for version in BOTH {
            assert_eq!(ask(&weir, version, "GET", "/", &[], Content::None).text(), "ok");
        }
        server.connections() > 2
    });
}

/// Regression test: an idle connection beyond its maximum age accepted no request, but occupied the place of the next
/// connection.
#[test]
fn max_age_with_one_connection() {
    let server = Server::ok();
    let rest = "[timeouts]\nqueue = '2s'\n";
    let weir = gateway(&[&server], "max_connections = 1\npool.max_age = '50ms'\n", rest);
    poll_until(DEADLINE, "a third connection", || {
        for version in BOTH {
            let reply = ask(&weir, version, "GET", "/", &[], Content::None);
            assert_eq!((reply.status, reply.text()), (200, "ok"), "{version:?}");
        }
        server.connections() > 2
    });
}

#[test]
fn no_idle_connections() {
    let switch = Switch::default();
    let server = holding(2, &switch);
    let weir = gateway(&[&server], "pool.max_idle = 0\n", "");
    let mut client = Client::connect(weir.address());
    client.get(1, "/").get(3, "/").flush();
    server.wait_for_complete(2);
    switch.throw();
    for stream in [1, 3] {
        assert_eq!(client.response(stream).text(), "ok");
    }
    // Both shared one connection, which closes after the last response.
    assert_eq!(server.connections(), 1);
    assert_eq!(server.wait_for_ending(0), Ending::Clean);
    assert_eq!(server.wait_for_go_away(0), ErrorCode::NO_ERROR);
}

#[test]
fn idle_connections_close_after_their_timeout() {
    let server = Server::ok();
    let weir = gateway(&[&server], "", "[timeouts]\npooled = '50ms'\n");
    for connection in 0..2 {
        assert_eq!(ask(&weir, Version::Http1, "GET", "/", &[], Content::None).text(), "ok");
        assert_eq!(server.wait_for_ending(connection), Ending::Clean);
        assert_eq!(server.wait_for_go_away(connection), ErrorCode::NO_ERROR);
    }
}

#[test]
fn max_connections_with_a_queue() {
    let switch = Switch::default();
    let server = holding(2, &switch);
    let weir = gateway(&[&server], "max_connections = 1\npool.max_streams = 2\n", "");
    let mut client = Client::connect(weir.address());
    for n in 0..7 {
        client.post(1 + 2 * n, "/").data(1 + 2 * n, b"hello", true);
    }
    client.sync();
    let mut http1 = super::Http1::connect(weir.address(), None);
    http1.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n");
    server.wait_for_complete(2);
    assert_eq!(server.requests().len(), 2, "the others wait");
    switch.throw();
    for n in 0..7 {
        assert_eq!(client.response(1 + 2 * n).text(), "ok");
    }
    assert_eq!(http1.answer(weir_http::Method::Get).text(), "ok");
    assert_eq!((server.requests().len(), server.connections()), (8, 1));
    let posts = server.requests().into_iter().filter(|request| request.field(":method") == "POST");
    assert!(posts.into_iter().all(|request| request.text() == "hello"));
}

#[test]
fn the_queue_is_bounded() {
    let switch = Switch::default();
    let server = holding(1, &switch);
    let service = "max_connections = 1\npool.max_streams = 1\nmax_waiting = 1\n";
    let weir = gateway(&[&server], service, "");
    let mut client = Client::connect(weir.address());
    client.get(1, "/").get(3, "/").get(5, "/").flush();
    let refused = client.response(5);
    assert_eq!(refused.status(), 503, "{refused:?}");
    weir.wait_for_stderr(&["queue_full"]);
    switch.throw();
    for stream in [1, 3] {
        assert_eq!(client.response(stream).text(), "ok");
    }
}

#[test]
fn clients_that_leave_free_their_stream() {
    let switch = Switch::default();
    let server = Server::start({
        let switch = switch.clone();
        move |connection: &mut Connection<'_>| {
            while let Some(request) = connection.request() {
                if request.path() == "/held" {
                    continue;
                }
                switch.wait();
                connection.ok(&request);
            }
        }
    });
    let weir = gateway(&[&server], "max_connections = 1\npool.max_streams = 1\n", "");
    let mut client = Client::connect(weir.address());
    client.get(1, "/held").get(3, "/").sync();
    server.wait_for_complete(1);
    switch.throw();
    client.reset(1, ErrorCode::CANCEL);
    assert_eq!(client.response(3).text(), "ok");
    let requests = server.requests();
    assert_eq!((requests[0].reset, requests.len()), (Some(ErrorCode::CANCEL), 2));
    assert_eq!(server.connections(), 1);
}

/// The ways in which a server ends a connection without GOAWAY.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Close {
    /// After a complete response, at once.
    Idle,
    /// After it has received a request, without a response.
    Unanswered,
}

#[test]
fn connections_that_close_without_go_away() {
    for close in [Close::Idle, Close::Unanswered] {
        for (method, is_idempotent) in [("GET", true), ("PUT", true), ("POST", false), ("PATCH", false)] {
            for version in BOTH {
                let server = Server::start(move |connection| {
                    while let Some(request) = connection.request() {
                        if close == Close::Unanswered && connection.index == 0 && request.stream == 3 {
                            return;
                        }
                        connection.ok(&request);
                        if close == Close::Idle && connection.index == 0 {
                            return;
                        }
                    }
                });
                let weir = gateway(&[&server], "", "");
                assert_eq!(ask(&weir, version, "GET", "/", &[], Content::None).text(), "ok");
                if close == Close::Idle {
                    // The gateway has noticed the end once it has closed its side.
                    server.wait_for("the end", |_| server.connections() == 1);
                }
                let reply = ask(&weir, version, method, "/", &[], Content::Length(b"hello"));
                let about = format!("{version:?} {close:?} {method}: {reply:?}");
                match close {
                    Close::Unanswered if !is_idempotent => {
                        assert_eq!(reply.status, 502, "{about}");
                        weir.wait_for_stderr(&["upstream_closed"]);
                    }
                    // The request may have crossed the close, and then the server has not received it.
                    Close::Idle if !is_idempotent => {
                        assert!([200, 502].contains(&reply.status), "{about}");
                    }
                    _ => {
                        assert_eq!((reply.status, reply.text()), (200, "ok"), "{about}");
                        let requests = server.requests();
                        let last = requests.last().unwrap();
                        assert_eq!((last.connection, last.text()), (1, "hello"), "{about}");
                    }
                }
            }
        }
    }
}

#[test]
fn workers_take_turns_with_one_connection() {
    // Two workers share a limit of one connection: the worker without it waits until the other releases it.
    let server = Server::ok();
    let config = super::config(2, &[&server], "max_connections = 1\n", "");
    let weir = crate::common::Weir::configured(&config, 1);
    for n in 0..40 {
        let reply = ask(&weir, BOTH[n % 2], "POST", "/", &[], Content::Length(b"hello"));
        assert_eq!((reply.status, reply.text()), (200, "ok"), "{n}");
    }
    assert!(server.requests().iter().all(|request| request.text() == "hello" && request.ended));
}
