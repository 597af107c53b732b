//! Response heads: those that the parser accepts, and the error for each rejected one.

use weir_http::Method;
use weir_http1::{Framing, HeadError, Limits, Parse, ResponseError, ResponseHead, Version};

fn parse(bytes: &[u8]) -> Result<ResponseHead, ResponseError> {
    let mut head = ResponseHead::new();
    match head.parse(bytes, &Limits::default())? {
        Parse::Complete(length) => assert_eq!(length, bytes.len(), "{}", bytes.escape_ascii()),
        Parse::Partial => panic!("partial: {}", bytes.escape_ascii()),
    }
    Ok(head)
}

#[test]
fn status_lines() {
    let table: &[(&[u8], Version, u16, &[u8])] = &[
        (b"HTTP/1.1 200 OK\r\n\r\n", Version::Http11, 200, b"OK"),
        (b"HTTP/1.0 404 Not Found\r\n\r\n", Version::Http10, 404, b"Not Found"),
        (b"HTTP/1.1 200 \r\n\r\n", Version::Http11, 200, b""),
        // Servers without a reason phrase often omit the SP that RFC 9112, section 4 requires.
        (b"HTTP/1.1 204\r\n\r\n", Version::Http11, 204, b""),
        (b"HTTP/1.1 100 Continue\r\n\r\n", Version::Http11, 100, b"Continue"),
        (b"HTTP/1.1 999 a\tb \xff\r\n\r\n", Version::Http11, 999, b"a\tb \xff"),
    ];
    for (bytes, version, status, reason) in table {
        let head = parse(bytes).unwrap();
        assert_eq!((head.version, head.status, head.reason.of(bytes)), (*version, *status, *reason));
    }
}

#[test]
fn framings() {
    use Framing::{Chunked, Length, None, UntilClose};
    let table = [
        (Method::Get, 200, "", UntilClose),
        (Method::Get, 200, "Content-Length: 5\r\n", Length(5)),
        (Method::Get, 200, "Content-Length: 0\r\n", Length(0)),
        (Method::Get, 200, "Transfer-Encoding: chunked\r\n", Chunked),
        (Method::Post, 500, "Content-Length: 5\r\nContent-Length: 5\r\n", Length(5)),
        (Method::Head, 200, "", None),
        (Method::Head, 200, "Content-Length: 5\r\n", None),
        (Method::Head, 200, "Transfer-Encoding: chunked\r\n", None),
        (Method::Get, 100, "", None),
        (Method::Get, 101, "Content-Length: 5\r\n", None),
        (Method::Get, 103, "", None),
        (Method::Get, 204, "Content-Length: 5\r\n", None),
        (Method::Get, 304, "Content-Length: 5\r\n", None),
        (Method::Get, 304, "Transfer-Encoding: chunked\r\n", None),
        (Method::Get, 205, "", UntilClose),
        (Method::Connect, 200, "Content-Length: 5\r\n", None),
        (Method::Connect, 299, "", None),
        (Method::Connect, 407, "Content-Length: 5\r\n", Length(5)),
        (Method::Other, 999, "", UntilClose),
    ];
    for (method, status, lines, framing) in table {
        let head = parse(format!("HTTP/1.1 {status} \r\n{lines}\r\n").as_bytes()).unwrap();
        assert_eq!(head.framing(method), framing, "{method:?} {status} {lines}");
    }
}

#[test]
fn content_length_is_known_without_a_body() {
    assert_eq!(parse(b"HTTP/1.1 304 \r\nContent-Length: 7\r\n\r\n").unwrap().content_length(), Some(7));
    assert_eq!(parse(b"HTTP/1.1 200 \r\nTransfer-Encoding: chunked\r\n\r\n").unwrap().content_length(), None);
    assert_eq!(parse(b"HTTP/1.1 200 \r\n\r\n").unwrap().content_length(), None);
}

#[test]
fn persistence() {
    let table: &[(&[u8], bool)] = &[
        (b"HTTP/1.1 200 OK\r\n\r\n", true),
        (b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n", false),
        (b"HTTP/1.0 200 OK\r\n\r\n", false),
        (b"HTTP/1.0 200 OK\r\nConnection: keep-alive\r\n\r\n", true),
    ];
    for (bytes, persistent) in table {
        assert_eq!(parse(bytes).unwrap().persistent, *persistent, "{}", bytes.escape_ascii());
    }
}

#[test]
fn hop_by_hop_fields() {
    let bytes =
        b"HTTP/1.1 200 OK\r\nX-Hop: 1\r\nConnection: x-hop\r\nKeep-Alive: timeout=5\r\nDate: x\r\n\r\n";
    let head = parse(bytes).unwrap();
    let hop_by_hop: Vec<_> = head.fields.iter().map(|field| field.hop_by_hop).collect();
    assert_eq!(hop_by_hop, [true, true, true, false]);
}

#[test]
fn refused() {
    let table: &[(&[u8], &str)] = &[
        (b"\r\nHTTP/1.1 200 OK\r\n", "bad_version"),
        (b"http/1.1 200 OK\r\n", "bad_version"),
        (b"ICY 200 OK\r\n", "bad_version"),
        (b"<html>", "bad_version"),
        (b"HTTP/2 200\r\n", "unsupported_version"),
        (b"HTTP/1.2 200 OK\r\n", "unsupported_version"),
        (b"HTTP/1.1\r\n", "bad_status_line"),
        (b"HTTP/1.1\t200 OK\r\n", "bad_status_line"),
        (b"HTTP/1.1  200 OK\r\n", "bad_status"),
        (b"HTTP/1.1 20 OK\r\n", "bad_status"),
        (b"HTTP/1.1 099 OK\r\n", "bad_status"),
        (b"HTTP/1.1 +20 OK\r\n", "bad_status"),
        (b"HTTP/1.1 2000 OK\r\n", "bad_status_line"),
        (b"HTTP/1.1 200\tOK\r\n", "bad_status_line"),
        (b"HTTP/1.1 200 OK\n", "bare_lf"),
        (b"HTTP/1.1 200\n", "bare_lf"),
        (b"HTTP/1.1 200 O\rK\r\n", "bare_cr"),
        (b"HTTP/1.1 200 O\0K\r\n", "control_character"),
        (b"HTTP/1.1 200 OK\r\n X: y\r\n", "obs_fold"),
        (b"HTTP/1.1 200 OK\r\nX : y\r\n", "whitespace_before_colon"),
        (b"HTTP/1.1 200 OK\r\nX: y\r\n z\r\n", "obs_fold"),
        (b"HTTP/1.1 200 OK\r\nX: y\n", "bare_lf"),
        (
            b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n",
            "content_length_and_transfer_encoding",
        ),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n", "differing_content_length"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n", "unknown_transfer_coding"),
        (b"HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n", "transfer_encoding_in_http10"),
        (b"HTTP/1.1 200 OK\r\nConnection: content-length\r\n", "connection_names_relied_on_field"),
    ];
    for (bytes, reason) in table {
        // Each head ends with the invalid line: the parser rejects it without waiting for the whole head.
        let error = ResponseHead::new().parse(bytes, &Limits::default()).unwrap_err();
        assert_eq!((error.status(), error.reason()), (502, *reason), "{}", bytes.escape_ascii());
    }
}

#[test]
fn limits() {
    let bytes = b"HTTP/1.1 200 OK\r\nX: y\r\n\r\n";
    let exact = Limits { head_bytes: bytes.len(), fields: 1, line_bytes: 17, extension_bytes: 0 };
    let table = [
        (exact, Ok(Parse::Complete(bytes.len()))),
        (Limits { line_bytes: 16, ..exact }, Err(ResponseError::StatusLineTooLong)),
        (Limits { fields: 0, ..exact }, Err(ResponseError::Head(HeadError::TooManyFields))),
        (Limits { head_bytes: bytes.len() - 1, ..exact }, Err(ResponseError::Head(HeadError::HeadTooLong))),
        (Limits { head_bytes: 16, ..exact }, Err(ResponseError::StatusLineTooLong)),
    ];
    for (limits, expected) in table {
        assert_eq!(ResponseHead::new().parse(bytes, &limits), expected, "{limits:?}");
    }
    let limits = Limits { line_bytes: 14, ..exact };
    assert_eq!(ResponseHead::new().parse(&bytes[..13], &limits), Ok(Parse::Partial));
    assert_eq!(ResponseHead::new().parse(&bytes[..14], &limits), Err(ResponseError::StatusLineTooLong));
}

#[test]
fn how_long_a_server_keeps_a_connection() {
    let table = [
        ("", None),
        ("Keep-Alive: timeout=5\r\n", Some(5)),
        ("keep-alive: TIMEOUT = 15 , max=100\r\n", Some(15)),
        ("Keep-Alive: max=100, timeout=7\r\n", Some(7)),
        ("Keep-Alive: timeout=99999999999\r\n", Some(u32::MAX)),
        ("Keep-Alive: timeout=5\r\nKeep-Alive: max=3\r\n", Some(5)),
        ("Keep-Alive: timeout=-5\r\n", None),
        ("Keep-Alive: timeout\r\n", None),
        ("Keep-Alive: 300\r\n", None),
        ("Keep-Alive: \r\n", None),
    ];
    for (lines, seconds) in table {
        let head = parse(format!("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n{lines}\r\n").as_bytes()).unwrap();
        assert_eq!(head.idle_timeout, seconds, "{lines}");
    }
}
