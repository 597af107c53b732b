//! Parses frames, valid and invalid, and reads back what the writers produce.

use proptest::collection::vec;
use proptest::prelude::*;
use weir_http2::ErrorCode;
use weir_http2::frame::*;

const MAX: u32 = 16_384;

fn header(kind: Kind, flags: u8, stream: u32, length: u32) -> FrameHeader {
    FrameHeader { length, kind, flags, stream }
}

fn parse(kind: Kind, flags: u8, stream: u32, payload: &[u8]) -> Result<Frame<'_>, FrameError> {
    let header = header(kind, flags, stream, payload.len() as u32);
    header.check(MAX)?;
    Frame::parse(header, payload)
}

#[test]
fn headers_are_taken_apart() {
    let bytes = [0x01, 0x02, 0x03, 0x01, 0x25, 0x80, 0x00, 0x00, 0x07];
    let parsed = FrameHeader::parse(&bytes);
    assert_eq!(parsed, header(Kind::Headers, 0x25, 7, 0x010203));
    assert!(parsed.has(flag::END_HEADERS) && parsed.has(flag::PRIORITY) && !parsed.has(flag::PADDED));
}

#[test]
fn types_have_numbers() {
    for number in 0..=u8::MAX {
        assert_eq!(Kind::of(number).number(), number);
        assert_eq!(matches!(Kind::of(number), Kind::Unknown(_)), number > 9);
    }
}

#[test]
fn lengths_and_streams() {
    use FrameError::*;
    for (kind, flags, stream, length, expected) in [
        (Kind::Data, 0, 1, 0, Ok(())),
        (Kind::Data, 0, 1, MAX, Ok(())),
        (Kind::Data, 0, 1, MAX + 1, Err(TooLong)),
        (Kind::Data, 0, 0, 1, Err(StreamMissing)),
        (Kind::Data, flag::PADDED, 1, 0, Err(BadLength)),
        (Kind::Headers, 0, 0, 1, Err(StreamMissing)),
        (Kind::Headers, flag::PADDED | flag::PRIORITY, 1, 5, Err(BadLength)),
        (Kind::Headers, flag::PADDED | flag::PRIORITY, 1, 6, Ok(())),
        (Kind::Priority, 0, 0, 5, Err(StreamMissing)),
        (Kind::Priority, 0, 1, 4, Err(BadPriorityLength)),
        (Kind::RstStream, 0, 0, 4, Err(StreamMissing)),
        (Kind::RstStream, 0, 1, 3, Err(BadLength)),
        (Kind::RstStream, 0, 1, 5, Err(BadLength)),
        (Kind::Settings, 0, 0, 12, Ok(())),
        (Kind::Settings, 0, 1, 12, Err(StreamGiven)),
        (Kind::Settings, 0, 0, 7, Err(BadLength)),
        (Kind::Settings, flag::ACK, 0, 0, Ok(())),
        (Kind::Settings, flag::ACK, 0, 6, Err(BadLength)),
        (Kind::PushPromise, 0, 0, 4, Err(StreamMissing)),
        (Kind::PushPromise, 0, 1, 3, Err(BadLength)),
        (Kind::Ping, 0, 1, 8, Err(StreamGiven)),
        (Kind::Ping, 0, 0, 7, Err(BadLength)),
        (Kind::GoAway, 0, 1, 8, Err(StreamGiven)),
        (Kind::GoAway, 0, 0, 7, Err(BadLength)),
        (Kind::WindowUpdate, 0, 0, 4, Ok(())),
        (Kind::WindowUpdate, 0, 3, 3, Err(BadLength)),
        (Kind::Continuation, 0, 0, 1, Err(StreamMissing)),
        (Kind::Continuation, 0, 1, 0, Ok(())),
        (Kind::Unknown(0x10), 0xff, 0, 9, Ok(())),
        (Kind::Unknown(0x10), 0, 0, MAX + 1, Err(TooLong)),
    ] {
        let header = header(kind, flags, stream, length);
        assert_eq!(header.check(MAX), expected, "{header:?}");
    }
}

#[test]
fn payloads_are_taken_apart() {
    let code = ErrorCode::CANCEL;
    let cases: [(Kind, u8, &[u8], Frame<'_>); 13] = [
        (Kind::Data, 0, b"abc", Frame::Data { data: 0..3 }),
        (Kind::Data, flag::PADDED, b"\x02abc\0\0", Frame::Data { data: 1..4 }),
        (Kind::Data, flag::PADDED, b"\x02\0\0", Frame::Data { data: 1..1 }),
        (Kind::Headers, 0, b"", Frame::Headers { fragment: 0..0 }),
        (Kind::Headers, flag::PRIORITY, b"\0\0\0\x03\x10x", Frame::Headers { fragment: 5..6 }),
        (
            Kind::Headers,
            flag::PADDED | flag::PRIORITY,
            b"\x01\0\0\0\x03\x10xy\0",
            Frame::Headers { fragment: 6..8 },
        ),
        (
            Kind::Priority,
            0,
            b"\x80\0\0\x03\xff",
            Frame::Priority(Priority { dependency: 3, exclusive: true, weight: 255 }),
        ),
        (Kind::RstStream, 0, b"\0\0\0\x08", Frame::RstStream(code)),
        (Kind::WindowUpdate, 0, b"\xff\xff\xff\xff", Frame::WindowUpdate((1 << 31) - 1)),
        (
            Kind::PushPromise,
            flag::PADDED,
            b"\x01\x80\0\0\x02ab\0",
            Frame::PushPromise { promised: 2, fragment: 5..7 },
        ),
        (Kind::Continuation, 0, b"ab", Frame::Continuation),
        (Kind::Unknown(77), 0xff, b"ab", Frame::Unknown),
        (Kind::Headers, flag::PADDED, b"\0x", Frame::Headers { fragment: 1..2 }),
    ];
    for (kind, flags, payload, expected) in cases {
        assert_eq!(parse(kind, flags, 1, payload), Ok(expected), "{kind:?} {}", payload.escape_ascii());
    }
    assert_eq!(
        parse(Kind::GoAway, 0, 0, b"\x80\0\0\x05\0\0\0\x08why"),
        Ok(Frame::GoAway { last: 5, code, debug: b"why" })
    );
    assert_eq!(parse(Kind::Ping, 0, 0, b"12345678"), Ok(Frame::Ping(*b"12345678")));
    assert_eq!(parse(Kind::Ping, flag::ACK, 0, b"12345678"), Ok(Frame::Pong(*b"12345678")));
    assert_eq!(parse(Kind::Settings, flag::ACK, 0, b""), Ok(Frame::SettingsAck));
    let parameters = b"\0\x03\0\0\0\x64\x12\x34\x80\0\0\0";
    assert_eq!(parse(Kind::Settings, 0, 0, parameters), Ok(Frame::Settings(parameters)));
    assert!(Frame::parameters(parameters).eq([(3, 100), (0x1234, 1 << 31)]));
}

/// Each error has the right code, and ends the stream or the connection.
#[test]
fn payloads_are_rejected() {
    type Case = (Kind, u8, &'static [u8], FrameError, ErrorCode, bool);
    let cases: [Case; 9] = [
        (Kind::Data, flag::PADDED, b"\x01", FrameError::BadPadding, ErrorCode::PROTOCOL_ERROR, false),
        (Kind::Data, flag::PADDED, b"\xffabc", FrameError::BadPadding, ErrorCode::PROTOCOL_ERROR, false),
        (Kind::Headers, flag::PADDED, b"\x02x", FrameError::BadPadding, ErrorCode::PROTOCOL_ERROR, false),
        (
            Kind::Headers,
            flag::PADDED | flag::PRIORITY,
            b"\x01\0\0\0\x03\x10",
            FrameError::BadPadding,
            ErrorCode::PROTOCOL_ERROR,
            false,
        ),
        (
            Kind::Headers,
            flag::PRIORITY,
            b"\x80\0\0\x01\x10",
            FrameError::DependsOnItself,
            ErrorCode::PROTOCOL_ERROR,
            true,
        ),
        (Kind::Priority, 0, b"\0\0\0\x01\x10", FrameError::DependsOnItself, ErrorCode::PROTOCOL_ERROR, true),
        (Kind::Priority, 0, b"\0\0\0\x01", FrameError::BadPriorityLength, ErrorCode::FRAME_SIZE_ERROR, true),
        (Kind::WindowUpdate, 0, b"\x80\0\0\0", FrameError::ZeroIncrement, ErrorCode::PROTOCOL_ERROR, true),
        (Kind::RstStream, 0, b"\0", FrameError::BadLength, ErrorCode::FRAME_SIZE_ERROR, false),
    ];
    for (kind, flags, payload, error, code, is_stream_error) in cases {
        assert_eq!(parse(kind, flags, 1, payload), Err(error), "{kind:?} {}", payload.escape_ascii());
        assert_eq!((error.code(), error.is_stream_error(1)), (code, is_stream_error), "{error:?}");
        assert!(!error.is_stream_error(0), "{error:?}");
    }
}

#[test]
fn written_frames_are_read_back() {
    let mut out = Vec::new();
    let priority = Priority { dependency: 5, exclusive: true, weight: 9 };
    write_data(1, b"abc", true, &mut out);
    write_priority(3, priority, &mut out);
    write_rst_stream(5, ErrorCode::REFUSED_STREAM, &mut out);
    write_settings([(4, 65_536)].into_iter(), &mut out);
    write_settings_ack(&mut out);
    write_ping(*b"abcdefgh", true, &mut out);
    write_go_away(7, ErrorCode::NO_ERROR, &mut out);
    write_window_update(0, 9, &mut out);
    let expected = [
        (1, flag::END_STREAM, Frame::Data { data: 0..3 }),
        (3, 0, Frame::Priority(priority)),
        (5, 0, Frame::RstStream(ErrorCode::REFUSED_STREAM)),
        (0, 0, Frame::Settings(b"\0\x04\0\x01\0\0")),
        (0, flag::ACK, Frame::SettingsAck),
        (0, flag::ACK, Frame::Pong(*b"abcdefgh")),
        (0, 0, Frame::GoAway { last: 7, code: ErrorCode::NO_ERROR, debug: b"" }),
        (0, 0, Frame::WindowUpdate(9)),
    ];
    let mut rest = &out[..];
    for (stream, flags, frame) in expected {
        let (head, behind) = rest.split_first_chunk().unwrap();
        let header = FrameHeader::parse(head);
        let (payload, behind) = behind.split_at(header.length as usize);
        assert_eq!(header.check(MAX), Ok(()));
        assert_eq!((header.stream, header.flags), (stream, flags));
        assert_eq!(Frame::parse(header, payload), Ok(frame));
        rest = behind;
    }
    assert!(rest.is_empty());
}

#[test]
#[should_panic = "a frame of 16777216 bytes"]
fn a_length_beyond_24_bits_is_not_written() {
    let _header = header_bytes(1 << 24, Kind::Data, 0, 1);
}

proptest! {
    /// The ranges of an accepted payload are within its bounds, and no input causes a panic.
    #[test]
    fn any_frame(kind in 0u8..12, flags: u8, stream in 0u32..3, payload in vec(any::<u8>(), 0..40)) {
        match parse(Kind::of(kind), flags, stream, &payload) {
            Ok(Frame::Data { data: part } | Frame::Headers { fragment: part } | Frame::PushPromise { fragment: part, .. }) => {
                prop_assert!(payload.get(part).is_some());
            }
            Ok(Frame::WindowUpdate(increment)) => prop_assert!(increment > 0 && increment < 1 << 31),
            Ok(_) => {}
            Err(error) => prop_assert!(!error.is_stream_error(0)),
        }
    }
}
