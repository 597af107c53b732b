//! Lengths and trailers.

use super::Outcome::{self, Broken, Malformed, Passed};
use super::Rest::{self, Body, Nothing, Trailers, Unended};
use super::{CONNECTION, LENGTH, NAME, VALUE, check, with};
use crate::http2::fields::{Field, request};
use crate::http2::{gateway, upstream};

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
