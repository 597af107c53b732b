//! Connections in the client's role.

use super::peer::*;
use crate::heads::block;
use weir_http2::frame::{Kind, flag};
use weir_http2::*;

/// Opens a stream, sends a GET on it, and checks the frame. With `is_head`, the client expects a response without a
/// body.
fn request(client: &mut Tested, is_head: bool) -> StreamNo {
    let stream = client.connection.open(is_head).unwrap();
    let mut out = Vec::new();
    let head = |to: &mut hpack::Encoder<'_>| to.request(b"GET", Scheme::Https, b"a", b"/");
    client.connection.head(stream, Part::Head { end: true }, head, &mut out).unwrap();
    let lines = ":method: GET;:scheme: https;:authority: a;:path: /;";
    assert_eq!(client.written(&out), [format!("headers {} end: {lines}", stream.get())]);
    stream
}

#[test]
fn the_preface_forbids_push() {
    let mut connection = Connection::new(Role::Client, Config::default());
    let mut out = Vec::new();
    connection.settle(&mut out);
    assert!(out.starts_with(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"));
    assert_eq!(Tested::client().written(&out)[0], "settings 2=0 3=100 4=65536 6=36864 9=1");
    let push = Tested::client().feed(&settings(&[(2, 1)]));
    assert_eq!(push, Err(ConnectionError::Push));
    let promise = frame(Kind::PushPromise, 0, 1, b"\0\0\0\x02");
    assert_eq!(Tested::client().feed(&promise), Err(ConnectionError::Push));
}

#[test]
fn responses() {
    let mut client = Tested::client();
    request(&mut client, false);
    request(&mut client, false);
    let input = [
        headers(1, 0, ":status: 103\nlink: a\n"),
        headers(1, 0, ":status: 100\n"),
        headers(3, 0, ":status: 200\ncontent-length: 5\n"),
        data(3, b"he"),
        headers(1, flag::END_STREAM, ":status: 404\n"),
        data_end(3, b"llo"),
    ];
    let expected = [
        "head 1: 103",
        "head 1: 100",
        "head 3: 200",
        "data 3 'he' 2",
        "head 1 end: 404",
        "data 3 'llo' 3 end",
    ];
    assert_eq!(client.events(&input.concat()), expected);
}

/// `content-length` in a response to HEAD or with status 304 is the length of the omitted body (RFC 9110, section 8.6).
#[test]
fn responses_without_a_body() {
    for (is_head, lines) in [
        (true, ":status: 200\ncontent-length: 5\n"),
        (false, ":status: 304\ncontent-length: 5\n"),
        (false, ":status: 204\ncontent-length: 5\n"),
    ] {
        let mut client = Tested::client();
        request(&mut client, is_head);
        assert!(client.events(&headers(1, flag::END_STREAM, lines))[0].starts_with("head 1 end"));
        request(&mut client, is_head);
        let events = client.events(&[headers(3, 0, lines), data(3, b"x")].concat());
        assert_eq!(events[1], "failed 3 BodyForbidden");
    }
}

#[test]
fn malformed_responses() {
    for (input, event) in [
        (headers(1, flag::END_STREAM, ":status: 100\n"), "failed 1 InterimEnds"),
        (headers(1, 0, ":status: 101\n"), "failed 1 Head(BadStatus)"),
        (headers(1, 0, "a: b\n"), "failed 1 Head(PseudoFields)"),
        (headers(1, flag::END_STREAM, ":status: 200\ncontent-length: 1\n"), "failed 1 BodyTooShort"),
        (data(1, b"x"), "failed 1 DataBeforeHead"),
    ] {
        let mut client = Tested::client();
        request(&mut client, false);
        assert_eq!(client.events(&input), [event]);
        assert_eq!(client.settle(), ["rst 1 protocol_error"]);
    }
    for (input, error) in [
        (headers(1, 0, ":status: 200\n"), ConnectionError::BadStream),
        (headers(2, 0, ":status: 200\n"), ConnectionError::BadStream),
        (data(1, b"x"), ConnectionError::IdleStream),
    ] {
        assert_eq!(Tested::client().feed(&input), Err(error));
    }
}

/// Fields that are encoded once can be sent in many requests.
#[test]
fn encoded_fields_are_sent_again() {
    let mut fields = Vec::new();
    let mut encoder = hpack::Encoder::new(&mut fields);
    encoder.request(b"GET", Scheme::Https, b"a", b"/");
    encoder.field(b"X-A", b"b");
    let mut client = Tested::client();
    for number in [1, 3] {
        let stream = client.connection.open(false).unwrap();
        let mut out = Vec::new();
        let head = |to: &mut hpack::Encoder<'_>| to.encoded(&fields);
        client.connection.head(stream, Part::Head { end: true }, head, &mut out).unwrap();
        let lines = ":method: GET;:scheme: https;:authority: a;:path: /;x-a: b;";
        assert_eq!(client.written(&out), [format!("headers {number} end: {lines}")]);
    }
}

/// The count includes frame headers and CONTINUATION frames, but no DATA.
#[test]
fn the_bytes_of_heads_are_counted() {
    let mut client = Tested::client();
    request(&mut client, false);
    request(&mut client, false);
    let whole = headers(1, flag::END_STREAM, ":status: 200\n");
    let block = crate::heads::block(":status: 404\n");
    let first = frame(Kind::Headers, 0, 3, &block[..1]);
    let rest = frame(Kind::Continuation, flag::END_HEADERS, 3, &block[1..]);
    let bytes = [&whole, &first, &rest].map(|frame| frame.len() as u64);
    assert_eq!(client.connection.block_bytes(), 0);
    client.events(&[whole, first, rest, data_end(3, b"body")].concat());
    assert_eq!(client.connection.block_bytes(), bytes.iter().sum::<u64>());
}

/// The sizes include pseudo-fields and each cookie crumb, but no frame headers and no padding.
#[test]
fn the_sizes_of_field_blocks_are_counted() {
    let mut client = Tested::client();
    assert_eq!(client.connection.take_field_bytes(), Default::default());
    let stream = client.connection.open(false).unwrap();
    let mut out = Vec::new();
    let head = |to: &mut hpack::Encoder<'_>| {
        to.request(b"GET", Scheme::Https, b"a", b"/");
        to.field(b"X-A", b"b");
        to.field(b"Accept", b"");
        to.field(b"Cookie", b"a=b");
    };
    client.connection.head(stream, Part::Head { end: true }, head, &mut out).unwrap();
    let lines = ":method: GET;;:scheme: https;;:authority: a;;:path: /;;x-a: b;;accept: ;;cookie: a=b;;";
    let sent = FieldBytes { encoded: out.len() as u64 - 9, decoded: lines.len() as u64 };
    assert_eq!(client.connection.take_field_bytes(), (FieldBytes::default(), sent));
    let lines = ":status: 200\na: \nset-cookie: b\ncookie: c\ncookie: d\n";
    let padded = [&[3][..], &block(lines), &[0; 3]].concat();
    client.events(&frame(Kind::Headers, flag::END_HEADERS | flag::PADDED, 1, &padded));
    let decoded = (lines.len() + lines.lines().count()) as u64;
    let received = FieldBytes { encoded: block(lines).len() as u64, decoded };
    assert_eq!(client.connection.take_field_bytes(), (received, FieldBytes::default()));
    assert_eq!(client.connection.take_field_bytes(), Default::default());
}

/// RFC 9113, section 5.1.2. The peer may lower its limit below the number of open streams.
#[test]
fn the_peer_limits_streams() {
    let mut client = Tested::client();
    let unlimited = Settings { max_concurrent_streams: None, ..Settings::default() };
    let mut early = Connection::new(Role::Client, Config { settings: unlimited, ..Config::default() });
    assert_eq!((0..200).filter_map(|_| early.open(false)).count(), 100);
    let first = request(&mut client, false);
    let second = request(&mut client, false);
    assert_eq!(client.events(&settings(&[(3, 1)])), ["settings"]);
    client.connection.release(first);
    assert!(!client.connection.has_slot());
    assert_eq!(client.connection.open(false), None);
    client.connection.release(second);
    assert!(client.connection.has_slot());
    assert!(client.connection.open(false).is_some());
    assert_eq!(client.settle(), ["settings ack", "rst 1 cancel", "rst 3 cancel"]);
}

/// RFC 9113, sections 6.8 and 8.7: requests above the last stream were not processed.
#[test]
fn goaway() {
    let mut client = Tested::client();
    let first = request(&mut client, false);
    let second = request(&mut client, false);
    let goaway = frame(Kind::GoAway, 0, 0, b"\0\0\0\x01\0\0\0\0bye");
    let input = [goaway, headers(1, flag::END_STREAM, ":status: 200\n"), headers(3, 0, ":status: 200\n")];
    assert_eq!(client.events(&input.concat()), ["goaway 1 no_error", "head 1 end: 200"]);
    assert_eq!(client.connection.open(false), None);
    client.connection.release(first);
    client.connection.release(second);
    assert!(client.settle().is_empty());
    client.connection.go_away();
    assert_eq!(client.settle(), ["goaway 0 no_error"]);
    assert!(client.connection.is_drained());
}

#[test]
fn refused_requests() {
    let mut client = Tested::client();
    request(&mut client, false);
    assert_eq!(client.events(&rst(1, ErrorCode::REFUSED_STREAM)), ["reset 1 refused_stream"]);
}

/// A stream without HEADERS is idle for the server, and RST_STREAM on an idle stream is a connection error.
#[test]
fn an_opened_stream_without_a_request_is_not_reset() {
    let mut client = Tested::client();
    let stream = client.connection.open(false).unwrap();
    client.connection.release(stream);
    assert!(client.settle().is_empty());
    request(&mut client, false);
}
