//! Fields, cookies and authorities.

use super::Outcome::{self, Malformed, Passed};
use super::Rest::Nothing;
use super::{AUTHORITY, CONNECTION, NAME, VALUE, check, check_fields};
use crate::http2::fields::Field;
use crate::http2::{gateway, upstream};

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
fn crumbs_become_one_cookie() {
    check_fields(&[
        ("one", &[(b"cookie", b"a=1; b=2")], Passed("GET /a HTTP/1.1\nHost: h\ncookie: a=1; b=2\n", "")),
        (
            "crumbs",
            &[(b"cookie", b"a=1"), (b"x-a", b"1"), (b"cookie", b"b=2"), (b"x-b", b"2"), (b"cookie", b"c=3")],
            Passed("GET /a HTTP/1.1\nHost: h\ncookie: a=1; b=2; c=3\nx-a: 1\nx-b: 2\n", ""),
        ),
        (
            "empty crumbs",
            &[(b"cookie", b""), (b"cookie", b"b=2"), (b"cookie", b"")],
            Passed("GET /a HTTP/1.1\nHost: h\ncookie: b=2\n", ""),
        ),
        ("CRLF in the last", &[(b"cookie", b"a=1"), (b"cookie", b"b=2\r\nx-a: 1")], Malformed(VALUE)),
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
