//! From HTTP/2 to HTTP/1.1: tables of requests, each with what the server receives and what the client gets.

mod bodies;
mod coding;
mod heads;
mod lines;

use super::client::Received;
use super::fields::{Field, request};
use super::{Client, gateway, upstream};
use crate::common::{DEADLINE, Upstream, Weir, poll_until};
use weir_http2::ErrorCode;

/// The outcome of a request.
enum Outcome {
    /// The server receives this request line and these fields, before those that the gateway adds, and this body with
    /// its framing.
    Passed(&'static str, &'static str),
    /// The gateway resets the stream for this reason, and no byte reaches the server.
    Malformed(&'static str),
    /// As [`Malformed`], but the server may have received a part of the request, and the gateway closes that
    /// connection.
    Broken(&'static str),
    /// The gateway responds with this status, and its body contains this text. No byte reaches the server.
    Local(u16, &'static str),
}
use Outcome::{Broken, Local, Malformed, Passed};

/// The frames after the first HEADERS.
#[derive(Clone, Copy)]
enum Rest {
    /// None: END_STREAM is on HEADERS.
    Nothing,
    /// DATA with END_STREAM.
    Body(&'static [u8]),
    /// DATA, and HEADERS with these trailers.
    Trailers(&'static [u8], &'static [Field<'static>]),
    /// As [`Trailers`], without END_STREAM.
    Unended(&'static [u8], &'static [Field<'static>]),
}
use Rest::{Body, Nothing, Trailers, Unended};

const VALUE: &str = "a field value has a control character or surrounding white space";
const NAME: &str = "a field name is not a lower-case token";
const CONNECTION: &str = "a field that is specific to a connection";
const PATH: &str = "the path is malformed";
const AUTHORITY: &str = "the authority is not a host with an optional port";
const FIT: &str = "the set of pseudo-fields does not fit the method";
const LENGTH: &str = "Content-Length is not a number of bytes";

const ADDED: &str = "X-Forwarded-For: 127.0.0.1\r\nX-Forwarded-Proto: http\r\nX-Forwarded-Host: h\r\n\r\n";

/// Sends a request, and then another one on the same connection, which must be served regardless of the first one's
/// outcome.
fn check(
    (weir, upstream): (&Weir, &Upstream),
    label: &str,
    fields: &[Field<'_>],
    rest: Rest,
    expected: &Outcome,
) {
    upstream.requests().clear();
    let (before, lines) = (upstream.received_bytes(), weir.stderr().lines().count());
    let mut client = Client::connect(weir.address());
    client.headers(1, fields, matches!(rest, Nothing));
    match rest {
        Nothing => {}
        Body(body) => {
            client.data(1, body, true);
        }
        Trailers(body, trailers) => {
            client.data(1, body, false).headers(1, trailers, true);
        }
        Unended(body, trailers) => {
            client.data(1, body, false).headers(1, trailers, false);
        }
    }
    let received = client.response(1);
    let bytes = upstream.received_bytes() - before;
    let after = client.get(3, "/after").response(3);
    assert_eq!(after.text(), "ok", "{label}: the connection continues");
    let requests = upstream.requests();
    let (last, first) = requests.split_last().unwrap();
    assert!(last.head.starts_with("GET /after HTTP/1.1\r\n"), "{label}: {}", last.head);
    match expected {
        Passed(head, body) => {
            let [first] = first else { panic!("{label}: {received:?} {first:?}") };
            let (head, raw) = (head.replace('\n', "\r\n") + ADDED, String::from_utf8_lossy(&first.raw_body));
            assert_eq!((first.head.as_str(), &*raw), (head.as_str(), *body), "{label}");
            assert_eq!((received.status(), received.text()), (200, "ok"), "{label}");
        }
        Malformed(reason) | Broken(reason) => {
            assert!(first.is_empty(), "{label}: {first:?}");
            let reset = Received { reset: Some(ErrorCode::PROTOCOL_ERROR), ..Received::default() };
            assert_eq!(received, reset, "{label}");
            assert!(bytes == 0 || matches!(expected, Broken(_)), "{label}: {bytes}");
            let detail = format!("detail=\"{reason}\"");
            poll_until(DEADLINE, &format!("{label}: {detail} in {}", weir.stderr()), || {
                let stderr = weir.stderr();
                let mut lines = stderr.lines().skip(lines);
                lines.any(|line| line.contains(" bad_http2_stream ") && line.contains(&detail))
            });
        }
        Local(status, text) => {
            assert!(first.is_empty() && bytes == 0, "{label}: {first:?}");
            assert_eq!(received.status(), *status, "{label}: {received:?}");
            assert!(received.text().contains(text), "{label}: {received:?}");
        }
    }
}

/// Checks rows of fields that follow the pseudo-fields of `GET /a`.
fn check_fields(rows: &[(&str, &[Field<'_>], Outcome)]) {
    let upstream = upstream();
    let weir = gateway(&upstream, "", "");
    for (label, fields, outcome) in rows {
        check((&weir, &upstream), label, &with("GET", "/a", fields), Nothing, outcome);
    }
}

/// The pseudo-fields of a request to `h`, and further fields.
fn with<'a>(method: &'a str, path: &'a str, more: &[Field<'a>]) -> Vec<Field<'a>> {
    [&request(method, path), more].concat()
}
