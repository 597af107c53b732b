//! Settings of servers: the limit of streams and its changes, and late SETTINGS.

use super::{BOTH, Client, Connection, Content, Server, Version, ask, gateway};
use weir_http2::ErrorCode;
use weir_http2::frame::{Kind, flag};

/// SETTINGS_MAX_CONCURRENT_STREAMS
const STREAMS: u16 = 3;

/// A server that allows this many streams, and panics if the gateway opens more once it knows the limit.
fn bounded(most: usize) -> Server {
    Server::with_settings(&[(STREAMS, most as u32)], move |connection| {
        connection.read_until(|connection| connection.acknowledged == 1);
        // The streams that were opened before the gateway knew the limit.
        let early = connection.head_count();
        for n in 0..early {
            let Some(request) = connection.head() else { return };
            match n < most {
                true => connection.ok(&request),
                false => {
                    connection.reset(request.stream, ErrorCode::REFUSED_STREAM).flush();
                }
            }
        }
        while let Some(request) = connection.head() {
            // Once the PING is acknowledged, everything that the gateway sends without a response has arrived.
            connection.sync();
            let more = connection.head_count();
            assert!(more < most, "{} streams, of {most}", more + 1);
            connection.ok(&request);
            for _ in 0..more {
                let request = connection.head().unwrap();
                connection.ok(&request);
            }
        }
    })
}

#[test]
fn few_streams() {
    for most in [1, 2, 5] {
        let server = bounded(most);
        let weir = gateway(&[&server], "max_connections = 1\n", "");
        let mut client = Client::connect(weir.address());
        // Its response follows the server's settings.
        assert_eq!(client.get(1, "/").response(1).text(), "ok");
        for n in 1..40 {
            client.get(1 + 2 * n, "/");
        }
        for n in 1..40 {
            assert_eq!(client.response(1 + 2 * n).text(), "ok", "{most} {n}");
        }
        assert_eq!((server.connections(), server.requests().len()), (1, 40), "{most}");
    }
}

/// Regression test: of a burst to a server with a limit not yet known, most requests failed, since they moved to
/// connections with an equally unknown limit.
#[test]
fn a_burst_to_a_new_server() {
    for limit in ["", "max_connections = 2\n"] {
        let server = bounded(1);
        let weir = gateway(&[&server], limit, "");
        let mut client = Client::connect(weir.address());
        for n in 0..20 {
            client.get(1 + 2 * n, "/");
        }
        for n in 0..20 {
            assert_eq!(client.response(1 + 2 * n).text(), "ok", "{limit} {n}");
        }
    }
}

/// Regression test: of a burst of long bodies to a server with a limit not yet known, some failed: a part of the body
/// had been sent before the server refused the stream, so the gateway could not resend it.
#[test]
fn a_burst_of_long_bodies_to_a_new_server() {
    let part = crate::common::pattern(20_000);
    let streams = [1, 3, 5];
    for (most, limit) in [(1, ""), (1, "max_connections = 1\n"), (2, "max_connections = 2\n")] {
        let server = Server::silent(None, move |connection| {
            if connection.index > 0 {
                return connection.settings(&[(STREAMS, most)]).serve(Connection::ok);
            }
            (connection.acknowledges, connection.credits) = (false, false);
            if connection.head().is_none() {
                return;
            }
            connection.read_until(|connection| connection.get(1).body.len() > 20_000);
            (connection.acknowledges, connection.credits) = (true, true);
            connection.settings(&[(STREAMS, most)]).frame(Kind::Settings, flag::ACK, 0, b"").flush();
            for _ in 0..connection.head_count() {
                let Some(request) = connection.head() else { return };
                connection.reset(request.stream, ErrorCode::REFUSED_STREAM).flush();
            }
            connection.serve(Connection::ok);
        });
        let weir = gateway(&[&server], limit, "");
        let mut client = Client::connect(weir.address());
        for stream in streams {
            client.post(stream, "/").data(stream, &part, false);
        }
        // The gateway has all parts when the server gets the next byte, after which the server sends SETTINGS.
        client.sync();
        client.data(1, b"1", false).flush();
        server
            .wait_for("its first request", |requests| requests.iter().any(|first| first.body.len() > 20_000));
        for stream in streams {
            client.data(stream, b"end", true);
        }
        for stream in streams {
            let received = client.response(stream);
            assert_eq!((received.status(), received.text()), (200, "ok"), "{most} {limit} {stream}");
        }
    }
}

#[test]
fn the_services_own_limit_of_streams() {
    // The server allows any number; the service two, on one connection.
    let server = Server::start(|connection| {
        while let Some(request) = connection.head() {
            connection.sync();
            let more = connection.head_count();
            assert!(more < 2, "{} streams, of 2", more + 1);
            connection.ok(&request);
        }
    });
    let weir = gateway(&[&server], "max_connections = 1\npool.max_streams = 2\n", "");
    let mut client = Client::connect(weir.address());
    for n in 0..20 {
        client.get(1 + 2 * n, "/");
    }
    for n in 0..20 {
        assert_eq!(client.response(1 + 2 * n).text(), "ok");
    }
    assert_eq!(server.connections(), 1);
}

#[test]
fn shrinking_numbers_of_streams() {
    // The server has three streams when it lowers its limit to one. All three must survive.
    let server = Server::start(|connection| {
        if connection.index > 0 {
            return connection.serve(Connection::ok);
        }
        let requests: Vec<_> = (0..3).map_while(|_| connection.request()).collect();
        connection.settings(&[(STREAMS, 1)]);
        connection.read_until(|connection| connection.acknowledged == 2);
        for request in &requests {
            connection.ok(request);
        }
        // From now on, the gateway opens one stream at a time.
        while let Some(request) = connection.head() {
            connection.sync();
            assert_eq!(connection.head_count(), 0, "a second stream");
            connection.ok(&request);
        }
    });
    let weir = gateway(&[&server], "", "");
    let mut client = Client::connect(weir.address());
    client.get(1, "/").get(3, "/").get(5, "/");
    for stream in [1, 3, 5] {
        assert_eq!(client.response(stream).text(), "ok");
    }
    for n in 3..12 {
        client.get(1 + 2 * n, "/");
    }
    for n in 3..12 {
        assert_eq!(client.response(1 + 2 * n).text(), "ok");
    }
}

#[test]
fn no_streams_for_a_while() {
    // The only connection allows no stream: the request waits for it.
    let server = Server::with_settings(&[(STREAMS, 0)], |connection| {
        connection.read_until(|connection| connection.acknowledged == 1);
        // The server refuses the request that preceded the settings, and the request waits.
        while let Some(request) = connection.head() {
            if request.stream == 1 {
                connection.reset(1, ErrorCode::REFUSED_STREAM).sync();
                connection.settings(&[(STREAMS, 10)]).flush();
                continue;
            }
            connection.read_until(|connection| connection.get(request.stream).ended);
            connection.ok(&request);
        }
    });
    for version in BOTH {
        let weir = gateway(&[&server], "max_connections = 1\n", "");
        let before = server.connections();
        let reply = ask(&weir, version, "POST", "/", &[], Content::Length(b"hello"));
        assert_eq!((reply.status, reply.text()), (200, "ok"), "{version:?} {reply:?}");
        assert_eq!(server.connections(), before + 1);
    }
}

#[test]
fn no_streams_at_all() {
    let server = Server::with_settings(&[(STREAMS, 0)], |connection| {
        while let Some(request) = connection.head() {
            connection.reset(request.stream, ErrorCode::REFUSED_STREAM).flush();
        }
    });
    for version in BOTH {
        // Without a connection limit, the gateway sends the request again ten times, on new connections.
        let (weir, before) = (gateway(&[&server], "", ""), server.requests().len());
        let reply = ask(&weir, version, "GET", "/", &[], Content::None);
        assert_eq!(reply.status, 502, "{version:?} {reply:?}");
        assert_eq!(server.requests().len() - before, 11);
        // With a connection limit, it waits in the queue.
        let rest = "[timeouts]\nqueue = '300ms'\n";
        let (weir, before) = (gateway(&[&server], "max_connections = 1\n", rest), server.requests().len());
        let reply = ask(&weir, version, "GET", "/", &[], Content::None);
        assert_eq!(reply.status, 503, "{version:?} {reply:?}");
        weir.wait_for_stderr(&["queue_timeout"]);
        assert_eq!(server.requests().len() - before, 1);
    }
}

#[test]
fn late_settings() {
    // The server sends SETTINGS only after the whole request, and a part of the request needs the window of 64 KiB.
    let server = Server::silent(None, |connection| {
        connection.acknowledges = false;
        connection.credits = false;
        let Some(request) = connection.head() else { return };
        connection.read_until(|connection| connection.get(1).body.len() >= 65_535);
        assert_eq!(connection.get(1).body.len(), 65_535);
        connection.acknowledges = true;
        // INITIAL_WINDOW_SIZE
        connection
            .settings(&[(4, 1 << 20)])
            .frame(Kind::Settings, flag::ACK, 0, b"")
            .window_update(0, 1 << 20);
        connection.read_until(|connection| connection.get(1).ended);
        connection.ok(&request);
        connection.read_to_end();
    });
    for version in BOTH {
        let weir = gateway(&[&server], "", "");
        let body = crate::common::pattern(200_000);
        let reply = ask(&weir, version, "POST", "/", &[], Content::Length(&body));
        assert_eq!((reply.status, reply.text()), (200, "ok"), "{version:?}");
        assert!(server.requests().last().unwrap().body == body);
    }
}

#[test]
fn a_first_frame_that_is_not_settings() {
    let server = Server::silent(None, |connection| {
        connection.frame(Kind::Ping, 0, 0, b"12345678").flush();
        connection.read_to_end();
    });
    let weir = gateway(&[&server], "", "");
    assert_eq!(ask(&weir, Version::Http2, "GET", "/", &[], Content::None).status, 502);
    assert_eq!(server.wait_for_go_away(0), ErrorCode::PROTOCOL_ERROR);
    weir.wait_for_stderr(&["upstream_not_http2"]);
}

#[test]
fn many_streams_at_once() {
    // All before the server's settings: the gateway opens as many streams as it may without these, and loses none.
    let server = Server::silent(None, |connection| {
        connection.acknowledges = false;
        let first = connection.head();
        if first.is_none() {
            return;
        }
        connection.acknowledges = true;
        connection.settings(&[(STREAMS, 10)]).frame(Kind::Settings, flag::ACK, 0, b"").sync();
        let mut taken = 0;
        let mut next = first;
        while let Some(request) = next {
            match taken < 10 {
                true => connection.ok(&request),
                false => {
                    connection.reset(request.stream, ErrorCode::REFUSED_STREAM).flush();
                }
            }
            taken += 1;
            if connection.head_count() == 0 {
                taken = 0;
            }
            next = connection.head();
        }
    });
    let weir = gateway(&[&server], "", "");
    let mut client = Client::connect(weir.address());
    for n in 0..60 {
        client.get(1 + 2 * n, "/");
    }
    client.flush();
    let mut statuses = Vec::new();
    for n in 0..60 {
        statuses.push(client.response(1 + 2 * n).status());
    }
    assert!(statuses.iter().all(|status| *status == 200), "{statuses:?}");
}
