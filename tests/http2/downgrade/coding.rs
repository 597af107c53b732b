//! The forms of HPACK: table entries, Huffman codes, and never-indexed literals.

use super::ADDED;
use crate::http2::fields::{block, literal, request};
use crate::http2::{Client, gateway, upstream};
use weir_http2::ErrorCode;
use weir_http2::frame::{Kind, flag};
use weir_http2::hpack::Encoder;

/// A verdict belongs to a table entry: a reference to a malformed field is as malformed as the literal.
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
