//! Truncated responses: clients can distinguish them from complete ones.

use super::{BOTH, Client, Content, Server, Version, ask, gateway, request};
use weir_http2::ErrorCode;
use weir_http2::frame::Kind;

/// The ways in which a server fails within a response.
#[derive(Clone, Copy, Debug)]
enum Cut {
    Reset(ErrorCode),
    /// GOAWAY with an error, followed by the end of the connection.
    GoAway,
    Close,
    /// A frame that is a connection error.
    BadFrame,
}

#[test]
fn cuts_within_a_body() {
    let rows = [
        (Cut::Reset(ErrorCode::INTERNAL_ERROR), "upstream_reset"),
        (Cut::Reset(ErrorCode::CANCEL), "upstream_reset"),
        (Cut::Reset(ErrorCode::NO_ERROR), "upstream_reset"),
        (Cut::Reset(ErrorCode::REFUSED_STREAM), "upstream_reset"),
        (Cut::GoAway, "upstream_truncated"),
        (Cut::Close, "upstream_truncated"),
        (Cut::BadFrame, "bad_upstream_http2"),
    ];
    for (cut, reason) in rows {
        for length in [None, Some("9")] {
            let server = Server::start(move |connection| {
                while let Some(request) = connection.head() {
                    let mut fields: Vec<(&str, &str)> = vec![(":status", "200")];
                    fields.extend(length.map(|length| ("content-length", length)));
                    connection.headers(request.stream, &fields, false).data(request.stream, b"part", false);
                    // The client has received the part before the cut.
                    connection.sync();
                    match cut {
                        Cut::Reset(code) => connection.reset(request.stream, code).flush(),
                        Cut::GoAway => {
                            connection.go_away(1, ErrorCode::INTERNAL_ERROR).flush();
                            return;
                        }
                        Cut::Close => return,
                        Cut::BadFrame => connection.frame(Kind::Data, 0, 0, b"x").flush(),
                    };
                }
            });
            let weir = gateway(&[&server], "", "");
            for version in BOTH {
                let reply = ask(&weir, version, "GET", "/", &[], Content::None);
                let about = format!("{version:?} {cut:?} {length:?}: {reply:?}");
                assert_eq!((reply.status, reply.text()), (200, "part"), "{about}");
                assert!(reply.is_cut(), "{about}");
                if version == Version::Http2 {
                    assert_eq!(reply.reset, Some(ErrorCode::INTERNAL_ERROR), "{about}");
                }
            }
            weir.wait_for_stderr(&[&format!(" {reason}")]);
        }
    }
}

#[test]
fn resets_before_a_response() {
    for code in [
        ErrorCode::INTERNAL_ERROR,
        ErrorCode::CANCEL,
        ErrorCode::PROTOCOL_ERROR,
        ErrorCode::ENHANCE_YOUR_CALM,
        ErrorCode(0x1234),
    ] {
        let server = Server::start(move |connection| {
            while let Some(request) = connection.head() {
                connection.reset(request.stream, code).flush();
            }
        });
        let weir = gateway(&[&server], "", "");
        for version in BOTH {
            let reply = ask(&weir, version, "GET", "/", &[], Content::None);
            assert_eq!((reply.status, reply.complete), (502, true), "{code:?} {version:?}");
        }
        // The server may have processed these requests, so they were not sent again; the connection persists.
        assert_eq!((server.requests().len(), server.connections()), (2, 1), "{code:?}");
        weir.wait_for_stderr(&["upstream_reset", code.name()]);
    }
}

#[test]
fn clients_that_leave_reset_their_stream_alone() {
    let server = Server::start(|connection| {
        while let Some(request) = connection.head() {
            match request.path() {
                "/held" => connection.headers(request.stream, &[(":status", "200")], false).flush(),
                _ => connection.respond(request.stream, &[], b"ok").flush(),
            };
        }
    });
    let weir = gateway(&[&server], "", "");
    let mut client = Client::connect(weir.address());
    client.get(1, "/held").read_until(|client| client.get_stream(1).status() == 200);
    client.reset(1, ErrorCode::CANCEL).flush();
    let requests = server.wait_for("a reset", |requests| requests[0].reset.is_some());
    assert_eq!(requests[0].reset, Some(ErrorCode::CANCEL));
    // The client closes its connection: its requests are canceled.
    client
        .headers(3, &request("POST", "/held"), false)
        .read_until(|client| client.get_stream(3).status() == 200);
    drop(client);
    server.wait_for("a reset", |requests| requests[1].reset.is_some());
    // So are the requests of an HTTP/1.1 client.
    let mut client = super::Http1::connect(weir.address(), None);
    client.send("GET /held HTTP/1.1\r\nHost: h\r\n\r\n");
    server.wait_for("a third request", |requests| requests.len() == 3);
    drop(client);
    server.wait_for("a reset", |requests| requests[2].reset.is_some());
    for version in BOTH {
        assert_eq!(ask(&weir, version, "GET", "/", &[], Content::None).text(), "ok");
    }
    assert_eq!(server.connections(), 1);
}

#[test]
fn requests_that_end_early() {
    let server = Server::start(|connection| {
        connection.read_to_end();
    });
    let weir = gateway(&[&server], "", "");
    let mut of_http2 = Client::connect(weir.address());
    of_http2.post(1, "/").data(1, b"part", false).flush();
    server.wait_for("a part", |requests| requests.first().is_some_and(|request| request.body == b"part"));
    of_http2.reset(1, ErrorCode::CANCEL).flush();
    let mut of_http1 = super::Http1::connect(weir.address(), None);
    of_http1.send("POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n4\r\npart\r\n");
    server.wait_for("a part", |requests| requests.get(1).is_some_and(|request| request.body == b"part"));
    drop(of_http1);
    // The server must not treat the parts as complete requests.
    let requests =
        server.wait_for("resets", |requests| requests.iter().all(|request| request.reset.is_some()));
    for request in &requests {
        assert_eq!((request.ended, request.reset), (false, Some(ErrorCode::CANCEL)), "{request:?}");
    }
    assert_eq!((requests.len(), server.connections()), (2, 1));
}
