//! Responses that precede the end of the request.

use super::{BOTH, Client, Connection, Http1, Request, Server, Version, gateway};
use crate::common::pattern;
use crate::http2::client::Upload;
use weir_http::Method;
use weir_http2::ErrorCode;

/// A server that responds to heads at once, with this status, and resets the stream with NO_ERROR if `resets`.
fn early(status: &'static str, resets: bool) -> Server {
    Server::start(move |connection: &mut Connection<'_>| {
        while let Some(request) = connection.head() {
            let fields: [(&str, &str); 2] = [(":status", status), ("content-length", "5")];
            connection.headers(request.stream, &fields, false).data(request.stream, b"early", true);
            if resets {
                connection.reset(request.stream, ErrorCode::NO_ERROR);
            }
            connection.flush();
        }
    })
}

#[test]
fn responses_before_the_whole_request() {
    for status in ["200", "403"] {
        for resets in [false, true] {
            for version in BOTH {
                let server = early(status, resets);
                let weir = gateway(&[&server], "", "");
                let about = format!("{version:?} {status}, reset: {resets}");
                match version {
                    Version::Http1 => {
                        let mut client = Http1::connect(weir.address(), None);
                        client.send("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1000000\r\n\r\nbegin");
                        let answer = client.answer(Method::Post);
                        assert_eq!(
                            (answer.status.to_string().as_str(), answer.text()),
                            (status, "early"),
                            "{about}"
                        );
                        assert!(answer.complete, "{about}");
                    }
                    Version::Http2 => {
                        let mut client = Client::connect(weir.address());
                        let received = client.post(1, "/").data(1, b"begin", false).response(1);
                        assert_eq!(
                            (received.status().to_string().as_str(), received.text()),
                            (status, "early"),
                            "{about}"
                        );
                        client.read_until(|client| client.get_stream(1).reset.is_some());
                        assert_eq!(client.get_stream(1).reset, Some(ErrorCode::NO_ERROR), "{about}");
                        // The connection persists.
                        assert_eq!(client.get(3, "/").response(3).text(), "early", "{about}");
                    }
                }
                if !resets {
                    let requests = server.wait_for("a reset", |requests| requests[0].reset.is_some());
                    assert_eq!(requests[0].reset, Some(ErrorCode::CANCEL), "{about}");
                }
                assert_eq!(server.connections(), 1, "{about}");
            }
        }
    }
}

#[test]
fn a_body_goes_on_after_the_head_of_the_response() {
    // The server sends the response's head, reads the whole body, and only then sends the body of the response.
    let server = Server::start(|connection| {
        while let Some(Request { stream, .. }) = connection.head() {
            connection.headers(stream, &[(":status", "200")], false).flush();
            connection.read_until(|connection| connection.get(stream).ended);
            let length = connection.get(stream).body.len().to_string();
            connection.data(stream, length.as_bytes(), true).flush();
        }
    });
    let weir = gateway(&[&server], "", "");
    let body = pattern(500_000);
    let mut client = Client::connect(weir.address());
    client.post(1, "/").read_until(|client| client.get_stream(1).status() == 200);
    client.upload(1, &body, &mut Upload::default());
    assert_eq!(client.response(1).text(), "500000");
    let mut client = Http1::connect(weir.address(), None);
    client.send("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 500000\r\n\r\n");
    client.send(&body);
    assert_eq!(client.answer(Method::Post).text(), "500000");
    assert!(server.requests().iter().all(|request| request.body == body));
}

#[test]
fn a_stream_is_reset_with_no_error_before_its_response() {
    // NO_ERROR without a complete response is a reset like any other.
    let server = Server::start(|connection| {
        while let Some(request) = connection.head() {
            connection.reset(request.stream, ErrorCode::NO_ERROR).flush();
        }
    });
    let weir = gateway(&[&server], "", "");
    let mut client = Client::connect(weir.address());
    assert_eq!(client.get(1, "/").response(1).status(), 502);
    weir.wait_for_stderr(&["upstream_reset", "no_error"]);
}
