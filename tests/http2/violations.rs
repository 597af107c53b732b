//! Protocol violations that close the connection (RFC 9113 sections 4 to 6).

use super::floods::ended;
use super::{Client, gateway, upstream};
use weir_http2::ErrorCode;
use weir_http2::frame::{Kind, flag};

/// Violations that end the connection (RFC 9113 sections 4 to 6).
#[test]
fn violations_of_the_connection() {
    let upstream = upstream();
    let weir = gateway(&upstream, "", "");
    let (protocol, size, flow) =
        (ErrorCode::PROTOCOL_ERROR, ErrorCode::FRAME_SIZE_ERROR, ErrorCode::FLOW_CONTROL_ERROR);
    type Violation = fn(&mut Client) -> &mut Client;
    let rows: &[(&str, ErrorCode, Violation)] = &[
        ("a frame on an idle stream", protocol, |client| client.data(1, b"a", true)),
        ("a frame on an idle stream", protocol, |client| client.reset(1, ErrorCode::CANCEL)),
        ("a frame on an idle stream", protocol, |client| client.window_update(1, 1)),
        ("a stream that the peer may not open", protocol, |client| client.get(2, "/")),
        ("a frame on a closed stream", ErrorCode::STREAM_CLOSED, |client| client.get(5, "/").get(3, "/")),
        ("a field block is interrupted, or continued without a start", protocol, |client| {
            client.frame(Kind::Headers, 0, 1, b"").ping([0; 8])
        }),
        ("a field block is interrupted, or continued without a start", protocol, |client| {
            client.frame(Kind::Headers, 0, 1, b"").frame(Kind::Continuation, 0, 3, b"")
        }),
        ("a field block is interrupted, or continued without a start", protocol, |client| {
            client.frame(Kind::Continuation, flag::END_HEADERS, 1, b"")
        }),
        ("server push is not enabled", protocol, |client| {
            client.frame(Kind::PushPromise, flag::END_HEADERS, 1, &[0; 8])
        }),
        ("a frame of a stream on stream 0", protocol, |client| client.data(0, b"a", true)),
        ("a frame of a stream on stream 0", protocol, |client| client.get(0, "/")),
        ("a frame of the connection on a stream", protocol, |client| client.frame(Kind::Ping, 0, 1, &[0; 8])),
        ("a frame of the connection on a stream", protocol, |client| client.frame(Kind::Settings, 0, 1, &[])),
        ("the frame is larger than SETTINGS_MAX_FRAME_SIZE", size, |client| {
            client.frame(Kind::Data, 0, 1, &[0; 16_385])
        }),
        ("the frame's length does not fit its type", size, |client| client.frame(Kind::Ping, 0, 0, &[0; 7])),
        ("the frame's length does not fit its type", size, |client| {
            client.frame(Kind::Settings, 0, 0, &[0; 5])
        }),
        ("the frame's length does not fit its type", size, |client| {
            client.frame(Kind::Settings, flag::ACK, 0, &[0; 6])
        }),
        ("the frame's length does not fit its type", size, |client| {
            client.frame(Kind::WindowUpdate, 0, 0, &[0; 3])
        }),
        ("the frame's length does not fit its type", size, |client| {
            client.frame(Kind::GoAway, 0, 0, &[0; 7])
        }),
        ("the padding is longer than the frame", protocol, |client| {
            client.post(1, "/").frame(Kind::Data, flag::PADDED, 1, &[9, 0])
        }),
        ("a window increment of 0", protocol, |client| client.frame(Kind::WindowUpdate, 0, 0, &[0; 4])),
        ("a flow-control window exceeds 2^31-1", flow, |client| client.window_update(0, u32::MAX >> 1)),
        ("SETTINGS_ENABLE_PUSH is neither 0 nor 1", protocol, |client| {
            client.frame(Kind::Settings, 0, 0, &[0, 2, 0, 0, 0, 2])
        }),
        ("SETTINGS_INITIAL_WINDOW_SIZE exceeds 2^31-1", flow, |client| {
            client.frame(Kind::Settings, 0, 0, &[0, 4, 128, 0, 0, 0])
        }),
        ("SETTINGS_MAX_FRAME_SIZE is outside 2^14 to 2^24-1", protocol, |client| {
            client.frame(Kind::Settings, 0, 0, &[0, 5, 0, 0, 0, 1])
        }),
        ("an index without an entry", ErrorCode::COMPRESSION_ERROR, |client| {
            client.frame(Kind::Headers, flag::END_HEADERS, 1, &[0xc0])
        }),
        ("an index without an entry", ErrorCode::COMPRESSION_ERROR, |client| {
            client.frame(Kind::Headers, flag::END_HEADERS, 1, &[0x80])
        }),
        ("a field block ends within a field", ErrorCode::COMPRESSION_ERROR, |client| {
            client.frame(Kind::Headers, flag::END_HEADERS, 1, &[0, 5, b'a'])
        }),
        ("the dynamic table exceeds SETTINGS_HEADER_TABLE_SIZE", ErrorCode::COMPRESSION_ERROR, |client| {
            client.frame(Kind::Headers, flag::END_HEADERS, 1, &[0x3f, 0xe2, 0x1f])
        }),
    ];
    for (index, (detail, code, violate)) in rows.iter().enumerate() {
        println!("{index}: {detail}");
        let mut client = Client::connect(weir.address());
        violate(&mut client);
        ended(&weir, client, *code, "bad_http2", detail);
    }
}

#[test]
fn a_late_frame_is_ignored_only_as_long_as_the_client_may_not_know() {
    let upstream = upstream();
    let weir = gateway(&upstream, "max_body = '1KiB'", "");
    let mut client = Client::connect(weir.address());
    // The gateway responds early and resets the stream.
    client.post(1, "/").data(1, &[0; 2000], false);
    let refused = client.response(1);
    assert_eq!(refused.status(), 413);
    // Bytes that the client sent before it knew count for the connection's window, and the gateway returns them.
    for _ in 0..200 {
        client.data(1, &[0; 16_000], false);
    }
    client.headers(1, &[(b"x-sum", b"7")], true);
    assert_eq!(client.get(3, "/").response(3).text(), "ok");
    // The client knows of its own reset, so DATA afterwards is a violation.
    client.post(5, "/").reset(5, ErrorCode::CANCEL).data(5, b"a", false);
    assert_eq!(client.end().map(|(_, code)| code), Some(ErrorCode::STREAM_CLOSED));
    weir.wait_for_stderr(&[" bad_http2 ", "a frame on a closed stream"]);
}
