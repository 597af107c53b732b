//! Request heads: those that the parser accepts, and the error for each rejected one.

use weir_http::{Method, Span};
use weir_http1::{Framing, HeadError, Limits, Parse, RequestError, RequestHead, TargetForm, Version};

fn parse(bytes: &[u8]) -> Result<RequestHead, RequestError> {
    let mut head = RequestHead::new();
    match head.parse(bytes, &Limits::default())? {
        Parse::Complete(length) => assert_eq!(length, bytes.len(), "{}", bytes.escape_ascii()),
        Parse::Partial => panic!("partial: {}", bytes.escape_ascii()),
    }
    Ok(head)
}

fn text(span: Span, bytes: &[u8]) -> String {
    String::from_utf8_lossy(span.of(bytes)).into_owned()
}

/// `GET / HTTP/1.1` with these lines after `Host`.
fn with(lines: &str) -> Vec<u8> {
    format!("GET / HTTP/1.1\r\nHost: a\r\n{lines}\r\n").into_bytes()
}

#[test]
fn a_head_is_taken_apart() {
    let bytes = b"POST /a?b=c HTTP/1.1\r\nHost:example.com:80\r\nX_a: \t v w\t \r\nEmpty:\r\n\r\n";
    let head = parse(bytes).unwrap();
    assert_eq!(head.method, Method::Post);
    assert_eq!(text(head.method_span, bytes), "POST");
    assert_eq!(text(head.target, bytes), "/a?b=c");
    assert_eq!(head.version, Version::Http11);
    assert_eq!(text(head.host.unwrap(), bytes), "example.com:80");
    let fields: Vec<_> = head
        .fields
        .iter()
        .map(|field| {
            (text(field.name, bytes), text(field.value, bytes), text(field.line, bytes), field.underscore)
        })
        .collect();
    let expected = [
        ("Host", "example.com:80", "Host:example.com:80\r\n", false),
        ("X_a", "v w", "X_a: \t v w\t \r\n", true),
        ("Empty", "", "Empty:\r\n", false),
    ];
    assert_eq!(fields, expected.map(|(name, value, line, u)| (name.into(), value.into(), line.into(), u)));
    assert_eq!(head.framing, Framing::None);
    assert!(head.persistent);
    assert!(!head.expect_continue);
}

#[test]
fn the_head_ends_where_the_body_starts() {
    let bytes = b"PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello";
    let mut head = RequestHead::new();
    assert_eq!(head.parse(bytes, &Limits::default()), Ok(Parse::Complete(bytes.len() - 5)));
    assert_eq!(head.framing, Framing::Length(5));
}

/// RFC 9112, section 2.2 asks recipients to skip at least one empty line before a request line; more than one
/// is rejected.
#[test]
fn one_empty_line_may_lead() {
    let bytes = b"\r\nGET /x HTTP/1.0\r\n\r\n";
    let head = parse(bytes).unwrap();
    assert_eq!(text(head.target, bytes), "/x");
    assert_eq!(parse(b"\r\n\r\nGET /x HTTP/1.0\r\n\r\n"), Err(RequestError::BadMethod));
}

#[test]
fn methods() {
    for (name, method) in [
        ("GET", Method::Get),
        ("HEAD", Method::Head),
        ("POST", Method::Post),
        ("PUT", Method::Put),
        ("DELETE", Method::Delete),
        ("OPTIONS", Method::Options),
        ("TRACE", Method::Trace),
        ("PATCH", Method::Patch),
        ("PROPFIND", Method::Other),
        ("get", Method::Other),
        ("M-SEARCH", Method::Other),
    ] {
        let head = parse(format!("{name} / HTTP/1.0\r\n\r\n").as_bytes()).unwrap();
        assert_eq!(head.method, method, "{name}");
    }
}

#[test]
fn targets() {
    // Method, target, form, path, and the authority of a request with `Host: field`.
    let table = [
        ("GET", "/", TargetForm::Origin, "/", "field"),
        ("GET", "/a?b|c\"{}", TargetForm::Origin, "/a?b|c\"{}", "field"),
        ("GET", "//x/..", TargetForm::Origin, "//x/..", "field"),
        ("OPTIONS", "*", TargetForm::Asterisk, "*", "field"),
        ("OPTIONS", "/x", TargetForm::Origin, "/x", "field"),
        ("GET", "http://t/p?q", TargetForm::Absolute, "/p?q", "t"),
        ("GET", "HTTPS://t:444/", TargetForm::Absolute, "/", "t:444"),
        ("GET", "http://[::1]:80", TargetForm::Absolute, "", "[::1]:80"),
        ("GET", "http://t?q", TargetForm::Absolute, "?q", "t"),
        ("CONNECT", "t:443", TargetForm::Authority, "", "t:443"),
        ("CONNECT", "[::1]:443", TargetForm::Authority, "", "[::1]:443"),
    ];
    for (method, target, form, path, host) in table {
        let bytes = format!("{method} {target} HTTP/1.1\r\nHost: field\r\n\r\n").into_bytes();
        let head = parse(&bytes).unwrap();
        assert_eq!(head.target_form, form, "{target}");
        assert_eq!(text(head.target, &bytes), target);
        assert_eq!(text(head.path, &bytes), path, "{target}");
        assert_eq!(text(head.host.unwrap(), &bytes), host, "{target}");
    }
}

#[test]
fn framings() {
    let table = [
        ("", Framing::None),
        ("Content-Length: 0\r\n", Framing::Length(0)),
        ("content-length:007\r\n", Framing::Length(7)),
        ("Content-Length: 18446744073709551615\r\n", Framing::Length(u64::MAX)),
        ("Content-Length: 5, 5\r\n", Framing::Length(5)),
        ("Content-Length: 5\r\nX: y\r\nContent-Length: 05\r\n", Framing::Length(5)),
        ("Transfer-Encoding: chunked\r\n", Framing::Chunked),
        ("TRANSFER-ENCODING:\tCHUNKED \r\n", Framing::Chunked),
        ("Transfer-Encoding: , chunked\r\n", Framing::Chunked),
        ("Transfer-Encoding: chunked,\t,\r\n", Framing::Chunked),
    ];
    for (lines, framing) in table {
        assert_eq!(parse(&with(lines)).unwrap().framing, framing, "{lines}");
    }
}

#[test]
fn persistence() {
    let table = [
        ("1.1", "", true),
        ("1.1", "Connection: close\r\n", false),
        ("1.1", "Connection: keep-alive, CLOSE\r\n", false),
        ("1.1", "Connection: keep-alive\r\nConnection: ,close,\r\n", false),
        ("1.1", "Proxy-Connection: close\r\n", true),
        ("1.0", "", false),
        ("1.0", "Connection: Keep-Alive\r\n", true),
        ("1.0", "Connection: keep-alive, close\r\n", false),
    ];
    for (version, lines, persistent) in table {
        let bytes = format!("GET / HTTP/{version}\r\nHost: a\r\n{lines}\r\n").into_bytes();
        assert_eq!(parse(&bytes).unwrap().persistent, persistent, "{version} {lines}");
    }
}

#[test]
fn expectations() {
    let expects = |version: &str, value: &str| {
        let bytes = format!("PUT / HTTP/{version}\r\nHost: a\r\nExpect: {value}\r\n\r\n").into_bytes();
        parse(&bytes).unwrap().expect_continue
    };
    assert!(expects("1.1", "100-continue"));
    assert!(expects("1.1", "100-Continue"));
    assert!(expects("1.1", ", 100-continue"));
    assert!(!expects("1.1", "101-switch"));
    assert!(!expects("1.0", "100-continue"));
}

#[test]
fn hop_by_hop_fields() {
    let bytes = with(
        "Connection: x-one , , TE\r\nX-ONE: 1\r\nX-Two: 2\r\nTE: trailers\r\nKeep-Alive: timeout=5\r\n\
         Proxy-Connection: close\r\nUpgrade: h2c\r\nTrailer: x\r\n\
         X-One-More: 1\r\nX-Three: 3\r\nconnection: x-three\r\n",
    );
    let head = parse(&bytes).unwrap();
    let kept: Vec<_> =
        head.fields.iter().filter(|field| !field.hop_by_hop).map(|field| text(field.name, &bytes)).collect();
    assert_eq!(kept, ["Host", "X-Two", "X-One-More"]);
}

#[test]
fn refused() {
    let long_options = format!("Connection: {}\r\n", "a,".repeat(32));
    // The lines after `GET / HTTP/1.1\r\nHost: a\r\n`, status, reason.
    let fields: &[(&str, u16, &str)] = &[
        ("Content-Length: 5\r\nTransfer-Encoding: chunked\r\n", 400, "content_length_and_transfer_encoding"),
        ("Transfer-Encoding: chunked\r\nContent-Length: 5\r\n", 400, "content_length_and_transfer_encoding"),
        ("Content-Length: 5\r\nContent-Length: 6\r\n", 400, "differing_content_length"),
        ("Content-Length: 5, 6\r\n", 400, "differing_content_length"),
        ("Content-Length: 6, 5\r\n", 400, "differing_content_length"),
        ("Content-Length:\r\n", 400, "bad_content_length"),
        ("Content-Length: 5,\r\n", 400, "bad_content_length"),
        ("Content-Length: +5\r\n", 400, "bad_content_length"),
        ("Content-Length: -5\r\n", 400, "bad_content_length"),
        ("Content-Length: 0x5\r\n", 400, "bad_content_length"),
        ("Content-Length: 5 6\r\n", 400, "bad_content_length"),
        ("Content-Length: 18446744073709551616\r\n", 400, "bad_content_length"),
        ("Transfer-Encoding: gzip\r\n", 501, "unknown_transfer_coding"),
        ("Transfer-Encoding: gzip, chunked\r\n", 501, "unknown_transfer_coding"),
        ("Transfer-Encoding: identity\r\n", 501, "unknown_transfer_coding"),
        ("Transfer-Encoding: xchunked\r\n", 501, "unknown_transfer_coding"),
        ("Transfer-Encoding: chunked;q=1\r\n", 501, "unknown_transfer_coding"),
        ("Transfer-Encoding: chunked, gzip\r\n", 400, "chunked_not_final"),
        ("Transfer-Encoding: chunked, identity\r\n", 400, "chunked_not_final"),
        ("Transfer-Encoding: chunked, chunked\r\n", 400, "repeated_chunked"),
        ("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", 400, "repeated_chunked"),
        ("Transfer-Encoding:\r\n", 400, "bad_transfer_encoding"),
        ("Transfer-Encoding: , ,\r\n", 400, "bad_transfer_encoding"),
        ("Transfer-Encoding: chunked\r\nTransfer-Encoding:\r\n", 400, "bad_transfer_encoding"),
        ("Transfer-Encoding: chunked,,chunked\r\n", 400, "repeated_chunked"),
        ("Transfer-Encoding: ,gzip\r\n", 501, "unknown_transfer_coding"),
        ("Content-Length: 5\r\nTransfer-Encoding: ,chunked\r\n", 400, "content_length_and_transfer_encoding"),
        ("Transfer-Encoding: \"chunked\"\r\n", 400, "bad_transfer_encoding"),
        ("Transfer-Encoding: \x0bchunked\r\n", 400, "control_character"),
        ("Transfer-Encoding : chunked\r\n", 400, "whitespace_before_colon"),
        ("Transfer-Encoding\t: chunked\r\n", 400, "whitespace_before_colon"),
        ("Host: a\r\n", 400, "duplicate_host"),
        ("hOsT: b\r\n", 400, "duplicate_host"),
        ("X: a\r\n b\r\n", 400, "obs_fold"),
        ("X: a\r\n\tb\r\n", 400, "obs_fold"),
        ("X: a\n", 400, "bare_lf"),
        ("X\n", 400, "bare_lf"),
        ("\n", 400, "bare_lf"),
        ("X: a\rb\r\n", 400, "bare_cr"),
        ("X: a\r\r\n", 400, "bare_cr"),
        ("\rX: a\r\n", 400, "bare_cr"),
        ("X: a\0b\r\n", 400, "control_character"),
        ("X: a\x7f\r\n", 400, "control_character"),
        ("X: a\x1b[0m\r\n", 400, "control_character"),
        ("X\0: a\r\n", 400, "control_character"),
        (": a\r\n", 400, "bad_field_name"),
        ("X(: a\r\n", 400, "bad_field_name"),
        ("X\u{e4}: a\r\n", 400, "bad_field_name"),
        ("X\r\n", 400, "missing_colon"),
        ("X y\r\n", 400, "whitespace_before_colon"),
        ("Connection: host\r\n", 400, "connection_names_relied_on_field"),
        ("Connection: close, Content-Length\r\n", 400, "connection_names_relied_on_field"),
        ("Connection: transfer-encoding\r\n", 400, "connection_names_relied_on_field"),
        ("Connection: X-Forwarded-For\r\n", 400, "connection_names_relied_on_field"),
        ("Connection: a b\r\n", 400, "bad_connection_option"),
        ("Connection: \"close\"\r\n", 400, "bad_connection_option"),
        (&long_options, 400, "too_many_connection_options"),
    ];
    for (lines, status, reason) in fields {
        let error = parse(&with(lines)).unwrap_err();
        assert_eq!((error.status(), error.reason()), (*status, *reason), "{}", lines.escape_debug());
    }

    let heads: &[(&[u8], u16, &str)] = &[
        (b"\x16", 400, "tls_on_cleartext"),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 400, "tls_on_cleartext"),
        (b"\x16\x04", 400, "bad_method"),
        (b"\x80", 400, "bad_method"),
        (b" GET / HTTP/1.1\r\n", 400, "bad_method"),
        (b"G(T / HTTP/1.1\r\n", 400, "bad_method"),
        (b"GET\t/ HTTP/1.1\r\n", 400, "bad_method"),
        (b"GET\r\n", 400, "bad_method"),
        (b"\r\n\r\n", 400, "bad_method"),
        (b"\nGET / HTTP/1.1\r\n", 400, "bare_lf"),
        (b"\rGET / HTTP/1.1\r\n", 400, "bare_cr"),
        (b"GET\n", 400, "bare_lf"),
        (b"GET /\n", 400, "bare_lf"),
        (b"GET / HTTP/1.1\n", 400, "bare_lf"),
        (b"GET / HTTP/1.1\rX", 400, "bare_cr"),
        (b"GET /\r\n", 400, "bad_request_line"),
        (b"GET  / HTTP/1.1\r\n", 400, "bad_request_line"),
        (b"GET /  HTTP/1.1\r\n", 400, "bad_version"),
        (b"GET / HTTP/1.1 \r\n", 400, "bad_request_line"),
        (b"GET / HTTP/1.10\r\n", 400, "bad_request_line"),
        (b"GET /\t HTTP/1.1\r\n", 400, "control_character"),
        (b"GET /\0 HTTP/1.1\r\n", 400, "control_character"),
        (b"GET /\x7f HTTP/1.1\r\n", 400, "control_character"),
        (b"GET /\xc3\xa4 HTTP/1.1\r\n", 400, "bad_target_character"),
        (b"GET /#a HTTP/1.1\r\n", 400, "bad_target_character"),
        (b"GET a HTTP/1.1\r\n", 400, "bad_target_form"),
        (b"GET * HTTP/1.1\r\n", 400, "bad_target_form"),
        (b"OPTIONS ** HTTP/1.1\r\n", 400, "bad_target_form"),
        (b"GET a:80 HTTP/1.1\r\n", 400, "bad_target_form"),
        (b"GET ftp://a/ HTTP/1.1\r\n", 400, "bad_target_form"),
        (b"GET http:/a HTTP/1.1\r\n", 400, "bad_target_form"),
        (b"GET http:// HTTP/1.1\r\n", 400, "bad_target_form"),
        (b"GET http:///a HTTP/1.1\r\n", 400, "bad_target_form"),
        (b"GET http://u:p@a/ HTTP/1.1\r\n", 400, "bad_target_form"),
        (b"GET http://a:b/ HTTP/1.1\r\n", 400, "bad_target_form"),
        (b"CONNECT / HTTP/1.1\r\n", 400, "bad_target_form"),
        (b"CONNECT a HTTP/1.1\r\n", 400, "bad_target_form"),
        (b"CONNECT http://a:80/ HTTP/1.1\r\n", 400, "bad_target_form"),
        (b"GET / http/1.1\r\n", 400, "bad_version"),
        (b"GET / HTTX", 400, "bad_version"),
        (b"GET / HTTP/x", 400, "bad_version"),
        (b"GET / HTTP/1,1\r\n", 400, "bad_version"),
        (b"GET / HTTP/1.x\r\n", 400, "bad_version"),
        (b"GET / HTTP/1.2\r\n", 505, "unsupported_version"),
        (b"GET / HTTP/0.9\r\n", 505, "unsupported_version"),
        (b"GET / HTTP/2\r\n", 505, "unsupported_version"),
        (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505, "unsupported_version"),
        (b"GET / HTTP/1.1\r\n X: y\r\n", 400, "obs_fold"),
        (b"GET / HTTP/1.1\r\n\r\n", 400, "missing_host"),
        (b"GET http://a/ HTTP/1.1\r\n\r\n", 400, "missing_host"),
        (b"GET / HTTP/1.1\r\nHost:\r\n", 400, "bad_host"),
        (b"GET / HTTP/1.1\r\nHost: a/b\r\n", 400, "bad_host"),
        (b"GET / HTTP/1.1\r\nHost: u@a\r\n", 400, "bad_host"),
        (b"GET / HTTP/1.1\r\nHost: a, b\r\n", 400, "bad_host"),
        (b"GET / HTTP/1.0\r\nHost: a\r\nHost: a\r\n", 400, "duplicate_host"),
        (b"POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n", 400, "transfer_encoding_in_http10"),
    ];
    for (bytes, status, reason) in heads {
        // Each head ends with the invalid line: the parser rejects it without waiting for the whole head.
        let error = RequestHead::new().parse(bytes, &Limits::default()).unwrap_err();
        assert_eq!((error.status(), error.reason()), (*status, *reason), "{}", bytes.escape_ascii());
    }
}

/// A head at a limit is accepted, one beyond it is rejected, whether it is complete or not.
#[test]
fn limits() {
    let bytes = b"GET /23456789 HTTP/1.1\r\nHost: a.example.com\r\nX: y\r\n\r\n";
    let (line, fields, length) = (24, 2, bytes.len());
    let exact = Limits { head_bytes: length, fields, line_bytes: line, extension_bytes: 0 };
    let table = [
        (exact, Ok(Parse::Complete(length))),
        (Limits { line_bytes: line - 1, ..exact }, Err(RequestError::RequestLineTooLong)),
        (Limits { fields: fields - 1, ..exact }, Err(RequestError::Head(HeadError::TooManyFields))),
        (Limits { head_bytes: length - 1, ..exact }, Err(RequestError::Head(HeadError::HeadTooLong))),
        (Limits { head_bytes: line - 1, ..exact }, Err(RequestError::RequestLineTooLong)),
        (Limits { head_bytes: 0, ..exact }, Err(RequestError::RequestLineTooLong)),
    ];
    for (limits, expected) in table {
        assert_eq!(RequestHead::new().parse(bytes, &limits), expected, "{limits:?}");
    }

    let long = b"GET / HTTP/1.1\r\nHost: a.example.com\r\n\r\n";
    let limits = Limits { line_bytes: 20, ..Limits::default() };
    let error = Err(RequestError::Head(HeadError::FieldLineTooLong));
    assert_eq!(RequestHead::new().parse(long, &limits), error);
    assert_eq!(RequestHead::new().parse(&long[..16 + 19], &limits), Ok(Parse::Partial));
    assert_eq!(RequestHead::new().parse(&long[..16 + 20], &limits), error);

    let endless = [b'a'; 64];
    let limits = Limits { line_bytes: 64, ..Limits::default() };
    assert_eq!(RequestHead::new().parse(&endless[..63], &limits), Ok(Parse::Partial));
    let error = RequestHead::new().parse(&endless, &limits).unwrap_err();
    assert_eq!((error.status(), error.reason()), (414, "request_line_too_long"));
    assert_eq!(RequestError::Head(HeadError::TooManyFields).status(), 431);
}

#[test]
fn a_head_that_is_parsed_into_again_keeps_nothing() {
    let mut used = RequestHead::new();
    let first =
        b"PUT http://t/ HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nTransfer-Encoding: chunked\r\n\r\n";
    used.parse(first, &Limits::default()).unwrap();
    let second = b"GET / HTTP/1.0\r\n\r\n";
    used.parse(second, &Limits::default()).unwrap();
    assert_eq!(used, parse(second).unwrap());
}
