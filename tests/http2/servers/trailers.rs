//! Trailers, in both directions.

use super::{BOTH, Content, Server, Version, ask, gateway};

#[test]
fn trailers_of_requests() {
    for (setting, forwarded) in [("", ""), ("request_trailers = ['x-sum']", "x-sum: 7\r\n")] {
        let server = Server::ok();
        let weir = gateway(&[&server], "", setting);
        for (index, version) in BOTH.into_iter().enumerate() {
            for (more, body) in [&b"hello"[..], b""].into_iter().enumerate() {
                let content = Content::Trailers(body, "x-sum", "7");
                let fields: [(&str, &str); 1] = [("trailer", "x-sum")];
                assert_eq!(ask(&weir, version, "POST", "/", &fields, content).text(), "ok");
                let request = server.requests()[2 * index + more].clone();
                assert!(request.ended && request.body == body, "{request:?}");
                assert_eq!(request.trailers, forwarded, "{version:?} {setting}");
            }
        }
    }
}

#[test]
fn trailers_of_responses() {
    let server = Server::start(|connection| {
        connection.serve(|connection, request| {
            let (stream, body) = (request.stream, if request.path() == "/empty" { "" } else { "ok" });
            connection.headers(stream, &[(":status", "200"), ("trailer", "x-sum")], false);
            if !body.is_empty() {
                connection.data(stream, body.as_bytes(), false);
            }
            connection.headers(stream, &[("x-sum", "7"), ("grpc-status", "0")], true).flush();
        });
    });
    let weir = gateway(&[&server], "", "");
    for version in BOTH {
        for (path, body) in [("/", "ok"), ("/empty", "")] {
            // An HTTP/1.1 client must announce that it accepts trailers.
            let fields: &[(&str, &str)] = match version {
                Version::Http1 => &[("Connection", "TE"), ("TE", "trailers")],
                Version::Http2 => &[("te", "trailers")],
            };
            let reply = ask(&weir, version, "GET", path, fields, Content::None);
            let about = format!("{version:?} {path}: {reply:?}");
            assert_eq!((reply.status, reply.text(), reply.complete), (200, body, true), "{about}");
            assert_eq!(reply.trailers, "x-sum: 7\ngrpc-status: 0", "{about}");
        }
    }
    let plain = ask(&weir, Version::Http1, "GET", "/", &[], Content::None);
    assert_eq!((plain.text(), &*plain.trailers, plain.complete), ("ok", "", true), "{plain:?}");
}

#[test]
fn trailers_after_a_length() {
    let server = Server::start(|connection| {
        connection.serve(|connection, request| {
            let fields: [(&str, &str); 2] = [(":status", "200"), ("content-length", "2")];
            connection.headers(request.stream, &fields, false).data(request.stream, b"ok", false);
            connection.headers(request.stream, &[("x-sum", "7")], true).flush();
        });
    });
    let weir = gateway(&[&server], "", "");
    // HTTP/1.1 cannot carry these trailers.
    for (version, trailers) in [(Version::Http1, ""), (Version::Http2, "x-sum: 7")] {
        let fields: &[(&str, &str)] = match version {
            Version::Http1 => &[("Connection", "TE"), ("TE", "trailers")],
            Version::Http2 => &[("te", "trailers")],
        };
        let reply = ask(&weir, version, "GET", "/", fields, Content::None);
        assert_eq!(
            (reply.text(), &*reply.trailers, reply.complete),
            ("ok", trailers, true),
            "{version:?} {reply:?}"
        );
    }
}
