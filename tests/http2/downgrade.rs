//! From HTTP/2 to HTTP/1.1: tables of requests, each with what the server receives and what the client gets.

use super::client::{Field, Received, block, literal, request};
use super::{Client, gateway, listening, upstream};
use crate::common::{DEADLINE, Upstream, Weir, poll_until};
use weir_http2::ErrorCode;
use weir_http2::frame::{Kind, flag};
use weir_http2::hpack::Encoder;

/// The outcome of a request.
enum Outcome {
    /// The server receives this request line and these fields, before those that the gateway adds, and this body with its
    /// framing.
    Passed(&'static str, &'static str),
    /// The stream is reset for this reason, and no byte reaches the server.
    Malformed(&'static str),
    /// As [`Malformed`], but the server may have received a part of the request, whose connection closes.
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

/// Sends a request, and then another on the same connection, which must be served whatever became of the first.
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

#[test]
fn a_value_is_one_line() {
    check_fields(&[
        ("text", &[(b"x-a", b"1 \t2")], Passed("GET /a HTTP/1.1\nHost: h\nx-a: 1 \t2\n", "")),
        ("no value", &[(b"x-a", b"")], Passed("GET /a HTTP/1.1\nHost: h\nx-a:\n", "")),
        ("obs-text", &[(b"x-a", "\u{e4}".as_bytes())], Passed("GET /a HTTP/1.1\nHost: h\nx-a: \u{e4}\n", "")),
        ("a colon", &[(b"x-a", b": b: c")], Passed("GET /a HTTP/1.1\nHost: h\nx-a: : b: c\n", "")),
        ("CRLF", &[(b"x-a", b"1\r\nx-b: 2")], Malformed(VALUE)),
        ("CR", &[(b"x-a", b"1\rx-b: 2")], Malformed(VALUE)),
        ("LF", &[(b"x-a", b"1\nx-b: 2")], Malformed(VALUE)),
        ("NUL", &[(b"x-a", b"1\0")], Malformed(VALUE)),
        ("another control character", &[(b"x-a", b"1\x0b")], Malformed(VALUE)),
        ("DEL", &[(b"x-a", b"1\x7f")], Malformed(VALUE)),
        ("a request", &[(b"x-a", b"\r\n\r\nGET /b HTTP/1.1\r\nHost: h\r\n\r\n")], Malformed(VALUE)),
        ("a space before", &[(b"x-a", b" 1")], Malformed(VALUE)),
        ("a tab behind", &[(b"x-a", b"1\t")], Malformed(VALUE)),
        ("LF in a cookie", &[(b"cookie", b"a=1\nx-b: 2")], Malformed(VALUE)),
        ("LF in a known field", &[(b"accept", b"1\nx-b: 2")], Malformed(VALUE)),
        ("LF in Host", &[(b"host", b"h\nx-b: 2")], Malformed(AUTHORITY)),
        ("LF in a dropped field", &[(b"x-forwarded-for", b"1\nx-b: 2")], Malformed(VALUE)),
    ]);
}

#[test]
fn a_name_is_a_lower_case_token() {
    check_fields(&[
        (
            "a token",
            &[(b"x!#$%&'*+-.^`|~1", b"1")],
            Passed("GET /a HTTP/1.1\nHost: h\nx!#$%&'*+-.^`|~1: 1\n", ""),
        ),
        ("upper case", &[(b"X-A", b"1")], Malformed(NAME)),
        ("a capital", &[(b"x-a-B", b"1")], Malformed(NAME)),
        ("a colon", &[(b"x-a: 1\r\nx-b", b"1")], Malformed(NAME)),
        ("a colon behind", &[(b"x-a:", b"1")], Malformed(NAME)),
        ("a colon within", &[(b"x:a", b"1")], Malformed(NAME)),
        ("a space behind", &[(b"content-length ", b"5")], Malformed(NAME)),
        ("a space before", &[(b" x-a", b"1")], Malformed(NAME)),
        ("a tab", &[(b"x\ta", b"1")], Malformed(NAME)),
        ("LF", &[(b"x-a\n", b"1")], Malformed(NAME)),
        ("NUL", &[(b"x\0a", b"1")], Malformed(NAME)),
        ("no name", &[(b"", b"1")], Malformed(NAME)),
        ("no name, a colon", &[(b":", b"1")], Malformed("an unknown pseudo-field")),
        ("obs-text", &[("\u{e4}".as_bytes(), b"1")], Malformed(NAME)),
        ("transfer-encoding in capitals", &[(b"Transfer-Encoding", b"chunked")], Malformed(NAME)),
    ]);
}

#[test]
fn fields_about_a_connection_or_framing_reach_no_server() {
    check_fields(&[
        ("connection", &[(b"connection", b"close")], Malformed(CONNECTION)),
        ("connection names a field", &[(b"connection", b"x-a"), (b"x-a", b"1")], Malformed(CONNECTION)),
        ("keep-alive", &[(b"keep-alive", b"1")], Malformed(CONNECTION)),
        ("proxy-connection", &[(b"proxy-connection", b"close")], Malformed(CONNECTION)),
        ("transfer-encoding", &[(b"transfer-encoding", b"chunked")], Malformed(CONNECTION)),
        ("transfer-encoding without a value", &[(b"transfer-encoding", b"")], Malformed(CONNECTION)),
        (
            "upgrade to h2c",
            &[(b"upgrade", b"h2c"), (b"http2-settings", b"AAMAAABkAAQAAP__")],
            Malformed(CONNECTION),
        ),
        ("upgrade to websocket", &[(b"upgrade", b"websocket")], Malformed(CONNECTION)),
        ("te: gzip", &[(b"te", b"gzip")], Malformed("TE is not trailers")),
        ("te: trailers and more", &[(b"te", b"trailers, deflate")], Malformed("TE is not trailers")),
        (
            "te: trailers",
            &[(b"te", b"trailers")],
            Passed("GET /a HTTP/1.1\nHost: h\nConnection: TE\nTE: trailers\n", ""),
        ),
        ("proxy-authorization", &[(b"proxy-authorization", b"a")], Passed("GET /a HTTP/1.1\nHost: h\n", "")),
        ("proxy", &[(b"proxy", b"a")], Passed("GET /a HTTP/1.1\nHost: h\n", "")),
        ("trailer without a body", &[(b"trailer", b"x-a")], Passed("GET /a HTTP/1.1\nHost: h\n", "")),
        (
            "what the gateway says of the client",
            &[
                (b"x-forwarded-for", b"1.2.3.4"),
                (b"x-forwarded-proto", b"https"),
                (b"x-forwarded-host", b"i"),
                (b"forwarded", b"for=1.2.3.4"),
            ],
            Passed("GET /a HTTP/1.1\nHost: h\n", ""),
        ),
        (
            "an underscore",
            &[(b"x_forwarded_for", b"1.2.3.4"), (b"x_a", b"1")],
            Passed("GET /a HTTP/1.1\nHost: h\n", ""),
        ),
        ("content_length", &[(b"content_length", b"5")], Passed("GET /a HTTP/1.1\nHost: h\n", "")),
    ]);
}

#[test]
fn a_request_has_one_authority() {
    let differ = "the authority and Host differ";
    let get = |authority: &[Field<'static>]| {
        let start: [Field<'static>; 3] = [(b":method", b"GET"), (b":scheme", b"http"), (b":path", b"/a")];
        [&start, authority].concat()
    };
    let upstream = upstream();
    let weir = gateway(&upstream, "", "");
    let rows: &[(&str, &[Field<'static>], Outcome)] = &[
        ("both", &[(b":authority", b"h"), (b"host", b"h")], Passed("GET /a HTTP/1.1\nHost: h\n", "")),
        (
            "in another case",
            &[(b":authority", b"h"), (b"host", b"H")],
            Passed("GET /a HTTP/1.1\nHost: h\n", ""),
        ),
        ("host alone", &[(b"host", b"h")], Passed("GET /a HTTP/1.1\nHost: h\n", "")),
        ("they differ", &[(b":authority", b"h"), (b"host", b"i")], Malformed(differ)),
        ("one has a port", &[(b":authority", b"h"), (b"host", b"h:80")], Malformed(differ)),
        (
            "host twice",
            &[(b":authority", b"h"), (b"host", b"h"), (b"host", b"h")],
            Malformed("Host appears twice"),
        ),
        ("neither", &[], Malformed("the authority is missing")),
        ("empty", &[(b":authority", b"")], Malformed(AUTHORITY)),
        ("empty, and host", &[(b":authority", b""), (b"host", b"h")], Malformed(AUTHORITY)),
        ("host is empty", &[(b":authority", b"h"), (b"host", b"")], Malformed(AUTHORITY)),
        ("userinfo", &[(b":authority", b"a@h")], Malformed(AUTHORITY)),
        ("a path", &[(b":authority", b"h/b")], Malformed(AUTHORITY)),
        ("a list", &[(b":authority", b"h, i")], Malformed(AUTHORITY)),
        ("a space", &[(b":authority", b"h ")], Malformed(AUTHORITY)),
        ("CRLF", &[(b":authority", b"h\r\nx-a: 1")], Malformed(AUTHORITY)),
        ("a port too large", &[(b":authority", b"h:65536")], Malformed(AUTHORITY)),
        ("a port that is a word", &[(b":authority", b"h:a")], Malformed(AUTHORITY)),
        ("a fragment", &[(b":authority", b"h#a")], Malformed(AUTHORITY)),
    ];
    for (label, authority, outcome) in rows {
        check((&weir, &upstream), label, &get(authority), Nothing, outcome);
    }
}

#[test]
fn pseudo_fields_come_once_and_first_and_become_one_request_line() {
    let upstream = upstream();
    let weir = gateway(&upstream, "", "");
    let (method, scheme, authority, path): (Field<'_>, Field<'_>, Field<'_>, Field<'_>) =
        ((b":method", b"GET"), (b":scheme", b"http"), (b":authority", b"h"), (b":path", b"/a"));
    let (twice, late, unknown) =
        ("a pseudo-field appears twice", "a pseudo-field after a field", "an unknown pseudo-field");
    let rows: &[(&str, &[Field<'_>], Outcome)] = &[
        ("in any order", &[path, authority, method, scheme], Passed("GET /a HTTP/1.1\nHost: h\n", "")),
        ("no method", &[scheme, authority, path], Malformed(FIT)),
        ("no scheme", &[method, authority, path], Malformed(FIT)),
        ("no path", &[method, scheme, authority], Malformed(FIT)),
        ("none", &[(b"x-a", b"1")], Malformed(FIT)),
        ("method twice", &[method, method, scheme, authority, path], Malformed(twice)),
        ("scheme twice", &[method, scheme, scheme, authority, path], Malformed(twice)),
        ("authority twice", &[method, scheme, authority, authority, path], Malformed(twice)),
        ("path twice", &[method, scheme, authority, path, (b":path", b"/b")], Malformed(twice)),
        ("path late", &[method, scheme, authority, (b"x-a", b"1"), path], Malformed(late)),
        ("path late, and early", &[method, scheme, authority, path, (b"x-a", b"1"), path], Malformed(late)),
        ("path behind a cookie", &[method, scheme, authority, (b"cookie", b"a=1"), path], Malformed(late)),
        ("unknown", &[method, scheme, authority, path, (b":a", b"1")], Malformed(unknown)),
        ("of a response", &[method, scheme, authority, path, (b":status", b"200")], Malformed(unknown)),
        ("in capitals", &[method, scheme, authority, (b":Path", b"/a")], Malformed(unknown)),
        (
            "protocol",
            &[method, scheme, authority, path, (b":protocol", b"websocket")],
            Malformed("an invalid or unexpected protocol"),
        ),
        (
            "extended CONNECT",
            &[(b":method", b"CONNECT"), scheme, authority, path, (b":protocol", b"websocket")],
            Malformed("an invalid or unexpected protocol"),
        ),
        (
            "CONNECT",
            &[(b":method", b"CONNECT"), (b":authority", b"h:443")],
            Local(501, "connect_not_supported"),
        ),
        ("CONNECT without a port", &[(b":method", b"CONNECT"), authority], Malformed(AUTHORITY)),
        (
            "CONNECT with a path",
            &[(b":method", b"CONNECT"), (b":authority", b"h:443"), path, scheme],
            Malformed(FIT),
        ),
        (
            "no method in the value",
            &[(b":method", b""), scheme, authority, path],
            Malformed("the method is not a token"),
        ),
        (
            "a method with a space",
            &[(b":method", b"GET /b HTTP/1.1\r\nHost: h\r\n\r\nGET"), scheme, authority, path],
            Malformed("the method is not a token"),
        ),
        (
            "a space behind the method",
            &[(b":method", b"GET "), scheme, authority, path],
            Malformed("the method is not a token"),
        ),
        (
            "a method in lower case is another one",
            &[(b":method", b"get"), scheme, authority, path],
            Passed("get /a HTTP/1.1\nHost: h\n", ""),
        ),
        (
            "another scheme",
            &[method, (b":scheme", b"ftp"), authority, path],
            Malformed("the scheme is neither http nor https"),
        ),
        (
            "a scheme with a URL",
            &[method, (b":scheme", b"http://i/b?"), authority, path],
            Malformed("the scheme is neither http nor https"),
        ),
        // The connection says what the scheme is.
        (
            "a scheme that the connection has not",
            &[method, (b":scheme", b"https"), authority, path],
            Passed("GET /a HTTP/1.1\nHost: h\n", ""),
        ),
    ];
    for (label, fields, outcome) in rows {
        check((&weir, &upstream), label, fields, Nothing, outcome);
    }
}

#[test]
fn a_path_is_in_origin_form() {
    let upstream = upstream();
    let weir = gateway(&upstream, "", "");
    let rows: &[(&str, &str, Outcome)] = &[
        ("GET", "/", Passed("GET / HTTP/1.1\nHost: h\n", "")),
        ("GET", "/a?b=c&d=%20", Passed("GET /a?b=c&d=%20 HTTP/1.1\nHost: h\n", "")),
        ("GET", "//i/b", Passed("GET //i/b HTTP/1.1\nHost: h\n", "")),
        ("GET", "", Malformed(PATH)),
        ("GET", "a", Malformed(PATH)),
        ("GET", "?a", Malformed(PATH)),
        ("GET", "http://i/b", Malformed(PATH)),
        ("GET", "i:80", Malformed(PATH)),
        ("GET", "*", Malformed(PATH)),
        ("GET", "/*", Passed("GET /* HTTP/1.1\nHost: h\n", "")),
        ("OPTIONS", "*", Passed("OPTIONS * HTTP/1.1\nHost: h\n", "")),
        ("GET", "/a b", Malformed(PATH)),
        ("GET", "/a HTTP/1.1\r\nHost: i\r\n\r\n", Malformed(PATH)),
        ("GET", "/a\tb", Malformed(PATH)),
        ("GET", "/a\0", Malformed(PATH)),
        ("GET", "/a#b", Malformed(PATH)),
        ("GET", "/a?b#c", Malformed(PATH)),
        ("GET", "/\u{e4}", Malformed(PATH)),
        ("GET", "/a\x7f", Malformed(PATH)),
        ("HEAD", "/a b", Malformed(PATH)),
    ];
    for (method, path, outcome) in rows {
        check((&weir, &upstream), path, &request(method, path), Nothing, outcome);
    }
}

#[test]
fn a_body_has_the_length_that_its_head_announces() {
    let (longer, shorter) =
        ("the body is longer than Content-Length", "the body is shorter than Content-Length");
    const X: &[Field<'static>] = &[(b"x-sum", b"7")];
    let rows: &[(&str, &str, &[Field<'_>], Rest, Outcome)] = &[
        (
            "equal",
            "POST",
            &[(b"content-length", b"5")],
            Body(b"hello"),
            Passed("POST /a HTTP/1.1\nHost: h\nContent-Length: 5\n", "hello"),
        ),
        (
            "repeated",
            "POST",
            &[(b"content-length", b"5"), (b"content-length", b"5")],
            Body(b"hello"),
            Passed("POST /a HTTP/1.1\nHost: h\nContent-Length: 5\n", "hello"),
        ),
        (
            "a list of one",
            "POST",
            &[(b"content-length", b"5, 5")],
            Body(b"hello"),
            Passed("POST /a HTTP/1.1\nHost: h\nContent-Length: 5\n", "hello"),
        ),
        (
            "unknown",
            "POST",
            &[],
            Body(b"hello"),
            Passed("POST /a HTTP/1.1\nHost: h\nTransfer-Encoding: chunked\n", "5\r\nhello\r\n0\r\n\r\n"),
        ),
        (
            "unknown and empty",
            "POST",
            &[],
            Body(b""),
            Passed("POST /a HTTP/1.1\nHost: h\nTransfer-Encoding: chunked\n", "0\r\n\r\n"),
        ),
        (
            "unknown, of GET",
            "GET",
            &[],
            Body(b"hello"),
            Passed("GET /a HTTP/1.1\nHost: h\nTransfer-Encoding: chunked\n", "5\r\nhello\r\n0\r\n\r\n"),
        ),
        ("none", "POST", &[], Nothing, Passed("POST /a HTTP/1.1\nHost: h\nContent-Length: 0\n", "")),
        ("none, of DELETE", "DELETE", &[], Nothing, Passed("DELETE /a HTTP/1.1\nHost: h\n", "")),
        (
            "zero",
            "POST",
            &[(b"content-length", b"0")],
            Nothing,
            Passed("POST /a HTTP/1.1\nHost: h\nContent-Length: 0\n", ""),
        ),
        (
            "zero and empty DATA",
            "POST",
            &[(b"content-length", b"0")],
            Body(b""),
            Passed("POST /a HTTP/1.1\nHost: h\nContent-Length: 0\n", ""),
        ),
        ("DATA is longer", "POST", &[(b"content-length", b"4")], Body(b"hello"), Broken(longer)),
        (
            "DATA has a request",
            "POST",
            &[(b"content-length", b"1")],
            Body(b"xGET /b HTTP/1.1\r\nHost: h\r\n\r\n"),
            Broken(longer),
        ),
        ("DATA is shorter", "POST", &[(b"content-length", b"6")], Body(b"hello"), Broken(shorter)),
        ("DATA is empty", "POST", &[(b"content-length", b"6")], Body(b""), Broken(shorter)),
        ("END_STREAM on HEADERS", "POST", &[(b"content-length", b"5")], Nothing, Malformed(shorter)),
        ("END_STREAM on HEADERS of GET", "GET", &[(b"content-length", b"5")], Nothing, Malformed(shorter)),
        (
            "with trailers",
            "POST",
            &[(b"content-length", b"5")],
            Trailers(b"hello", X),
            Passed("POST /a HTTP/1.1\nHost: h\nContent-Length: 5\n", "hello"),
        ),
        (
            "shorter, with trailers",
            "POST",
            &[(b"content-length", b"6")],
            Trailers(b"hello", X),
            Broken(shorter),
        ),
        (
            "longer, with trailers",
            "POST",
            &[(b"content-length", b"4")],
            Trailers(b"hello", X),
            Broken(longer),
        ),
        ("a sign", "POST", &[(b"content-length", b"+5")], Body(b"hello"), Malformed(LENGTH)),
        ("hexadecimal", "POST", &[(b"content-length", b"0x5")], Body(b"hello"), Malformed(LENGTH)),
        ("negative", "POST", &[(b"content-length", b"-1")], Body(b""), Malformed(LENGTH)),
        ("a fraction", "POST", &[(b"content-length", b"5.0")], Body(b"hello"), Malformed(LENGTH)),
        (
            "too large",
            "POST",
            &[(b"content-length", b"18446744073709551621")],
            Body(b"hello"),
            Malformed(LENGTH),
        ),
        ("no number", "POST", &[(b"content-length", b"")], Body(b"hello"), Malformed(LENGTH)),
        (
            "a list with an empty element",
            "POST",
            &[(b"content-length", b"5,")],
            Body(b"hello"),
            Malformed(LENGTH),
        ),
        (
            "two lengths",
            "POST",
            &[(b"content-length", b"5"), (b"content-length", b"6")],
            Body(b"hello"),
            Malformed("Content-Length values differ"),
        ),
        (
            "a list of two",
            "POST",
            &[(b"content-length", b"5, 6")],
            Body(b"hello"),
            Malformed("Content-Length values differ"),
        ),
    ];
    let upstream = upstream();
    let weir = gateway(&upstream, "", "");
    for (label, method, fields, rest, outcome) in rows {
        check((&weir, &upstream), label, &with(method, "/a", fields), *rest, outcome);
    }
}

#[test]
fn trailers_are_fields_alone_and_end_the_request() {
    const FIRST: &str = "POST /a HTTP/1.1\nHost: h\nTransfer-Encoding: chunked\n";
    const NONE: &str = "5\r\nhello\r\n0\r\n\r\n";
    let rows: &[(&str, Rest, Outcome)] = &[
        (
            "allowed",
            Trailers(b"hello", &[(b"x-sum", b"7")]),
            Passed(FIRST, "5\r\nhello\r\n0\r\nx-sum: 7\r\n\r\n"),
        ),
        ("allowed, without DATA", Trailers(b"", &[(b"x-sum", b"7")]), Passed(FIRST, "0\r\nx-sum: 7\r\n\r\n")),
        ("not allowed", Trailers(b"hello", &[(b"x-other", b"7")]), Passed(FIRST, NONE)),
        (
            "of framing",
            Trailers(b"hello", &[(b"content-length", b"9"), (b"host", b"i")]),
            Passed(FIRST, NONE),
        ),
        ("empty", Trailers(b"hello", &[]), Passed(FIRST, NONE)),
        ("not the end", Unended(b"hello", &[(b"x-sum", b"7")]), Broken("trailers do not end the stream")),
        ("a pseudo-field", Trailers(b"hello", &[(b":path", b"/b")]), Broken("an unknown pseudo-field")),
        ("a status", Trailers(b"hello", &[(b":status", b"200")]), Broken("an unknown pseudo-field")),
        ("CRLF", Trailers(b"hello", &[(b"x-sum", b"7\r\n\r\nGET /b HTTP/1.1")]), Broken(VALUE)),
        ("capitals", Trailers(b"hello", &[(b"X-Sum", b"7")]), Broken(NAME)),
        ("a name with CRLF", Trailers(b"hello", &[(b"x-sum: 7\r\n\r\nx", b"7")]), Broken(NAME)),
        ("transfer-encoding", Trailers(b"hello", &[(b"transfer-encoding", b"chunked")]), Broken(CONNECTION)),
    ];
    let upstream = upstream();
    let weir = gateway(&upstream, "request_trailers = 'X-Sum'", "");
    for (label, rest, outcome) in rows {
        check((&weir, &upstream), label, &request("POST", "/a"), *rest, outcome);
    }
}

#[test]
fn crumbs_become_one_cookie() {
    check_fields(&[
        ("one", &[(b"cookie", b"a=1; b=2")], Passed("GET /a HTTP/1.1\nHost: h\ncookie: a=1; b=2\n", "")),
        (
            "crumbs",
            &[(b"cookie", b"a=1"), (b"x-a", b"1"), (b"cookie", b"b=2"), (b"x-b", b"2"), (b"cookie", b"c=3")],
            Passed("GET /a HTTP/1.1\nHost: h\ncookie: a=1; b=2; c=3\nx-a: 1\nx-b: 2\n", ""),
        ),
        (
            "an empty crumb",
            &[(b"cookie", b""), (b"cookie", b"b=2")],
            Passed("GET /a HTTP/1.1\nHost: h\ncookie: ; b=2\n", ""),
        ),
        ("CRLF in the last", &[(b"cookie", b"a=1"), (b"cookie", b"b=2\r\nx-a: 1")], Malformed(VALUE)),
    ]);
}

#[test]
fn requests_that_the_gateway_responds_to_itself() {
    let upstream = upstream();
    let weir = gateway(&upstream, "trace = true", "");
    let (options, trace) = ("OPTIONS /a HTTP/1.1\nHost: h\n", "TRACE /a HTTP/1.1\nHost: h\n");
    let rows: &[(&str, &[Field<'_>], Outcome)] = &[
        ("OPTIONS", &[(b"max-forwards", b"0")], Local(204, "")),
        (
            "OPTIONS",
            &[(b"max-forwards", b"5")],
            Passed("OPTIONS /a HTTP/1.1\nHost: h\nMax-Forwards: 4\n", ""),
        ),
        ("OPTIONS", &[(b"max-forwards", b"a")], Local(400, "bad_max_forwards")),
        ("OPTIONS", &[], Passed(options, "")),
        (
            "TRACE",
            &[(b"max-forwards", b"0"), (b"cookie", b"a=1")],
            Local(200, "TRACE /a HTTP/2\r\nmax-forwards: 0\r\n\r\n"),
        ),
        ("TRACE", &[(b"max-forwards", b"1")], Passed("TRACE /a HTTP/1.1\nHost: h\nMax-Forwards: 0\n", "")),
        ("TRACE", &[], Passed(trace, "")),
        ("GET", &[(b"max-forwards", b"0")], Passed("GET /a HTTP/1.1\nHost: h\nmax-forwards: 0\n", "")),
    ];
    for (method, fields, outcome) in rows {
        check((&weir, &upstream), method, &with(method, "/a", fields), Nothing, outcome);
    }
    let strict = listening("underscores_in_headers = 'reject'", &upstream, "", "");
    let rows: &[(&str, &[Field<'_>], Outcome)] = &[
        ("GET", &[(b"x_a", b"1")], Local(400, "underscore_in_field_name")),
        ("TRACE", &[], Local(405, "trace_not_allowed")),
        ("HEAD", &[(b"x_a", b"1")], Local(400, "")),
    ];
    for (method, fields, outcome) in rows {
        check((&strict, &upstream), method, &with(method, "/a", fields), Nothing, outcome);
    }
}

/// A verdict belongs to an entry of the table: a reference to it is as malformed as the literal.
#[test]
fn entries_of_the_table_are_as_malformed_as_literals() {
    let upstream = upstream();
    let weir = gateway(&upstream, "", "");
    let mut client = Client::connect(weir.address());
    let start = block(&request("GET", "/a"));
    let mut inserting = start.clone();
    literal(0x40, b"x-a", b"1\r\nx-b: 2", &mut inserting);
    literal(0x40, b"X-C", b"3", &mut inserting);
    literal(0x40, b"x-d", b"4", &mut inserting);
    let (whole, ends) = (flag::END_HEADERS | flag::END_STREAM, ErrorCode::PROTOCOL_ERROR);
    // The newest entry has the index 62.
    let of = |index: u8| [&start[..], &[0x80 | index]].concat();
    let name_of = |index: u8| [&start[..], &[0x0f, index - 15, 1, b'5']].concat();
    let rows: [(&[u8], bool); 7] = [
        (&inserting, false),
        (&of(64), false),
        (&of(63), false),
        (&of(62), true),
        (&name_of(63), false),
        (&name_of(64), true),
        (&name_of(62), true),
    ];
    for (index, (block, is_valid)) in rows.into_iter().enumerate() {
        let stream = 1 + 2 * index as u32;
        client.frame(Kind::Headers, whole, stream, block);
        let received = client.response(stream);
        assert_eq!(
            (received.status() == 200, received.reset == Some(ends)),
            (is_valid, !is_valid),
            "{index}"
        );
    }
    let heads: Vec<_> = upstream.requests().iter().map(|request| request.head.clone()).collect();
    let expected =
        ["x-d: 4", "x-a: 5", "x-d: 5"].map(|line| format!("GET /a HTTP/1.1\r\nHost: h\r\n{line}\r\n{ADDED}"));
    assert_eq!(heads, expected);
}

#[test]
fn coded_and_never_indexed_strings_are_checked_and_passed_on() {
    let upstream = upstream();
    let weir = gateway(&upstream, "", "");
    let mut client = Client::connect(weir.address());
    let whole = flag::END_HEADERS | flag::END_STREAM;
    let mut coded = block(&request("GET", "/a"));
    let plain = coded.len();
    Encoder::new(&mut coded).field(b"x-a", b"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\r\nx-b: eeeeeeeeeeeeeee");
    assert!(!coded[plain..].contains(&b'\r'), "Huffman codes");
    client.frame(Kind::Headers, whole, 1, &coded);
    assert_eq!(client.response(1).reset, Some(ErrorCode::PROTOCOL_ERROR));
    let mut secret = block(&request("GET", "/a"));
    literal(0x10, b"authorization", b"Basic YQ==", &mut secret);
    literal(0x10, b"cookie", b"a=1", &mut secret);
    literal(0x10, b"cookie", b"b=2", &mut secret);
    client.frame(Kind::Headers, whole, 3, &secret);
    assert_eq!(client.response(3).text(), "ok");
    let fields = "authorization: Basic YQ==\r\ncookie: a=1; b=2\r\n";
    assert_eq!(upstream.requests()[0].head, format!("GET /a HTTP/1.1\r\nHost: h\r\n{fields}{ADDED}"));
}
