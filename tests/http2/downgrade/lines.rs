//! Pseudo-fields, which become the request line.

use super::Outcome::{self, Local, Malformed, Passed};
use super::Rest::Nothing;
use super::{AUTHORITY, FIT, PATH, check, with};
use crate::http2::fields::{Field, request};
use crate::http2::{gateway, listening, upstream};

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
            "extended CONNECT without a path",
            &[(b":method", b"CONNECT"), scheme, authority, (b":protocol", b"websocket")],
            Malformed(FIT),
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
        // The scheme is that of the connection.
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
