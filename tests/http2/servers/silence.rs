//! Servers that do not respond: request timeouts, and PING to test whether the connection is alive.

use super::{BOTH, Connection, Content, Server, Version, ask, gateway};
use crate::common::Ending;
use weir_http2::ErrorCode;

/// A server that does not respond to `/held` on its first connection; it acknowledges PING frames if `is_alive`.
fn silent(is_alive: bool) -> Server {
    Server::start(move |connection: &mut Connection<'_>| {
        connection.acknowledges = is_alive || connection.index > 0;
        while let Some(request) = connection.request() {
            if request.path() != "/held" || connection.index > 0 {
                connection.ok(&request);
            }
        }
    })
}

/// A short timeout for `/held`; other requests may take longer on a busy machine.
const SHORT: &str = "path = '/held'\ntimeouts.response = '50ms'\n[[route]]\nservice = 'app'\n\
                     [timeouts]\nconnect = '2s'\n";

#[test]
fn a_connection_that_is_alive_is_kept() {
    for version in BOTH {
        let server = silent(true);
        let weir = gateway(&[&server], "", SHORT);
        let reply = ask(&weir, version, "GET", "/held", &[], Content::None);
        assert_eq!(reply.status, 504, "{version:?}");
        weir.wait_for_stderr(&["upstream_timeout"]);
        let requests = server.wait_for("a reset", |requests| requests[0].reset.is_some());
        assert_eq!(requests[0].reset, Some(ErrorCode::CANCEL));
        // Meanwhile a request may use another connection; once the PING is acknowledged, all use the first one.
        crate::common::poll_until(crate::common::DEADLINE, "the first connection to be used again", || {
            assert_eq!(ask(&weir, version, "GET", "/", &[], Content::None).text(), "ok");
            server.requests().iter().filter(|request| request.connection == 0).count() >= 2
        });
        assert!(server.connections() <= 2);
    }
}

#[test]
fn a_dead_connection_is_replaced() {
    for version in BOTH {
        let server = silent(false);
        let weir = gateway(&[&server], "", SHORT);
        assert_eq!(ask(&weir, version, "GET", "/held", &[], Content::None).status, 504);
        for _ in 0..3 {
            assert_eq!(ask(&weir, version, "GET", "/", &[], Content::None).text(), "ok");
        }
        let requests = server.requests();
        assert_eq!(requests.iter().filter(|request| request.connection == 0).count(), 1, "{requests:?}");
        // The gateway closes the first one.
        server.wait_for_ending(0);
    }
}

#[test]
fn other_requests_on_a_dead_connection() {
    // One request has timed out. Another one on the same connection has a longer timeout, but the missing
    // acknowledgement ends it. The server may have processed it.
    let server = Server::start(move |connection: &mut Connection<'_>| {
        connection.acknowledges = connection.index > 0;
        while let Some(request) = connection.request() {
            if connection.index > 0 || request.path() == "/first" {
                connection.ok(&request);
            }
        }
    });
    let weir = gateway(&[&server], "", SHORT);
    let mut client = super::Client::connect(weir.address());
    assert_eq!(client.get(1, "/first").response(1).text(), "ok");
    client.get(3, "/other").get(5, "/held");
    assert_eq!(client.response(5).status(), 504);
    assert_eq!(client.response(3).text(), "504 Gateway Timeout: upstream_timeout\n");
    assert_eq!(client.get(7, "/other").response(7).text(), "ok");
    let others: Vec<_> = server.requests().into_iter().filter(|request| request.path() == "/other").collect();
    assert_eq!(others.iter().map(|request| request.connection).collect::<Vec<_>>(), [0, 1], "{others:?}");
}

#[test]
fn a_body_that_stalls() {
    let server = Server::start(|connection: &mut Connection<'_>| {
        while let Some(request) = connection.request() {
            match request.path() {
                "/stalls" => {
                    connection.headers(request.stream, &[(":status", "200")], false);
                    connection.data(request.stream, b"part", false).flush();
                }
                _ => connection.ok(&request),
            }
        }
    });
    let weir = gateway(&[&server], "", "[timeouts]\nstall = '100ms'\n");
    for version in BOTH {
        let reply = ask(&weir, version, "GET", "/stalls", &[], Content::None);
        assert_eq!((reply.status, reply.text()), (200, "part"), "{version:?}");
        assert!(reply.is_cut(), "{version:?} {reply:?}");
        weir.wait_for_stderr(&["upstream_stalled"]);
        assert_eq!(ask(&weir, version, "GET", "/", &[], Content::None).text(), "ok");
    }
    server.wait_for("resets", |requests| requests[0].reset.is_some());
}

#[test]
fn the_whole_exchange_times_out() {
    let server = silent(true);
    let weir = gateway(&[&server], "", "timeouts.exchange = '200ms'\n");
    for version in BOTH {
        assert_eq!(ask(&weir, version, "GET", "/held", &[], Content::None).status, 504, "{version:?}");
    }
    // A busy machine may not have sent both resets yet.
    server.wait_for("resets", |requests| requests.iter().all(|request| request.reset.is_some()));
    weir.wait_for_stderr(&["exchange_timeout"]);
}

#[test]
fn a_server_that_does_not_accept() {
    // The connection is established, but the server sends nothing on it.
    let upstream = crate::common::Upstream::start(None, |peer| {
        peer.read_to_end();
    });
    let config = format!(
        "workers = 1\n[listener.web]\nbind = '127.0.0.1:0'\n[service.app]\nservers = 'http://{}'\nhttp2 = true\n\
         [[route]]\nservice = 'app'\n{SHORT}",
        upstream.address
    );
    let weir = crate::common::Weir::configured(&config, 1);
    assert_eq!(ask(&weir, Version::Http2, "GET", "/held", &[], Content::None).status, 504);
    assert!(matches!(upstream.wait_for_ending(0), Ending::Clean | Ending::Reset));
}
