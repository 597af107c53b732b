//! Connections in the server's role.

use super::peer::*;
use weir_http2::frame::{Kind, flag};
use weir_http2::*;

/// Opens a stream with a POST request; returns its number.
pub(super) fn stream(tested: &mut Tested, id: u32) -> StreamNo {
    let mut input = post(id);
    let step = tested.connection.feed(&mut input, &mut tested.head).unwrap();
    match step.event {
        Some(Event::Head { stream, .. }) => stream,
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_preface_is_settings_and_an_open_window() {
    let mut server = Tested::fresh(Role::Server, Config::default());
    assert_eq!(server.settle(), ["settings 3=100 4=65536 6=36864 9=1", "window 0 +2147418112"]);
    assert!(!server.connection.is_acknowledged());
    for (input, error) in [
        (&b"GET / HTTP/1.1\r\n"[..], ConnectionError::BadPreface),
        (b"PRI * HTTP/1", ConnectionError::BadPreface),
        (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\x08\x06\0\0\0\0\0", ConnectionError::SettingsMissing),
        (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\x01\0\0\0\0", ConnectionError::SettingsMissing),
    ] {
        let mut server = Tested::fresh(Role::Server, Config::default());
        assert_eq!(server.feed(input), Err(error), "{}", input.escape_ascii());
    }
    assert!(Tested::server().connection.is_acknowledged());
}

#[test]
fn requests() {
    let mut server = Tested::server();
    let input = [
        get(1),
        post(3),
        data(3, b"hello"),
        frame(Kind::Data, flag::PADDED | flag::END_STREAM, 3, b"\x03 world\0\0\0"),
        post(5),
        data(5, b""),
        headers(5, flag::END_STREAM, "a: b\n"),
    ];
    let expected = [
        "head 1 end: GET /a",
        "head 3: POST /p",
        "data 3 'hello' 5",
        "data 3 ' world' 10 end",
        "head 5: POST /p",
        "trailers 5: a: b",
    ];
    assert_eq!(server.events(&input.concat()), expected);
    assert!(server.settle().is_empty());
    assert_eq!((server.connection.streams(), server.connection.held()), (3, 15));
}

/// The connection forwards each piece of a body at once, but parses heads and control frames only when they are
/// complete.
#[test]
fn pieces() {
    let mut server = Tested::server();
    let padded = frame(Kind::Data, flag::PADDED | flag::END_STREAM, 1, b"\x02abc\0\0");
    let whole = [post(1), data(1, b"xyz"), padded, get(3)].concat();
    let (mut held, mut events) = (Vec::new(), Vec::new());
    for byte in &whole {
        held.push(*byte);
        loop {
            let step = server.connection.feed(&mut held, &mut server.head).unwrap();
            if let Some(Event::Data { range, flow, end, .. }) = &step.event {
                events.push(format!("{} {flow} {end}", held[range.clone()].escape_ascii()));
            }
            held.drain(..step.consumed);
            if step.event.is_none() {
                break;
            }
        }
        assert!(held.len() < server.connection.most_held());
    }
    assert!(held.is_empty());
    let expected = ["x 1 false", "y 1 false", "z 1 false", "a 1 false", "b 1 false", "c 4 true"];
    assert_eq!(events, expected);
    assert_eq!(server.connection.streams(), 2);
}

/// RFC 9113, section 6.10. Padding and a priority may surround the first fragment.
#[test]
fn fragments_are_joined() {
    let block = crate::heads::block(GET);
    let (first, rest) = block.split_at(7);
    let (second, third) = rest.split_at(11);
    let start = [&b"\x04\0\0\0\0\x10"[..], first, &[0; 4]].concat();
    let input = [
        frame(Kind::Headers, flag::PADDED | flag::PRIORITY | flag::END_STREAM, 1, &start),
        frame(Kind::Continuation, 0, 1, second),
        frame(Kind::Continuation, 0, 1, b""),
        frame(Kind::Continuation, flag::END_HEADERS, 1, third),
    ]
    .concat();
    let mut server = Tested::server();
    for length in 0..input.len() {
        assert_eq!(server.events(&input[..length]), [""; 0]);
    }
    assert_eq!(server.events(&[input, get(3)].concat()), ["head 1 end: GET /a", "head 3 end: GET /a"]);
}

#[test]
fn connection_errors() {
    use ConnectionError as E;
    use frame::FrameError::*;
    let half = |stream| frame(Kind::Headers, 0, stream, b"\x82");
    for (input, error, code) in [
        (data(0, b"x"), E::Frame(StreamMissing), ErrorCode::PROTOCOL_ERROR),
        (frame(Kind::Ping, 0, 0, b"1234567"), E::Frame(BadLength), ErrorCode::FRAME_SIZE_ERROR),
        (data(1, &[0; 16_385]), E::Frame(TooLong), ErrorCode::FRAME_SIZE_ERROR),
        (window(0, 0), E::Frame(ZeroIncrement), ErrorCode::PROTOCOL_ERROR),
        (frame(Kind::Priority, 0, 1, b"1234"), E::Frame(BadPriorityLength), ErrorCode::FRAME_SIZE_ERROR),
        (window(0, (1 << 31) - 1), E::WindowOverflow, ErrorCode::FLOW_CONTROL_ERROR),
        (data(1, b"x"), E::IdleStream, ErrorCode::PROTOCOL_ERROR),
        (rst(1, ErrorCode::CANCEL), E::IdleStream, ErrorCode::PROTOCOL_ERROR),
        (window(1, 1), E::IdleStream, ErrorCode::PROTOCOL_ERROR),
        (window(2, 1), E::IdleStream, ErrorCode::PROTOCOL_ERROR),
        (get(2), E::BadStream, ErrorCode::PROTOCOL_ERROR),
        ([get(3), get(1)].concat(), E::StreamClosed, ErrorCode::STREAM_CLOSED),
        ([get(3), data(1, b"")].concat(), E::StreamClosed, ErrorCode::STREAM_CLOSED),
        (
            [get(1), rst(1, ErrorCode::CANCEL), data(1, b"")].concat(),
            E::StreamClosed,
            ErrorCode::STREAM_CLOSED,
        ),
        (frame(Kind::PushPromise, 0, 1, b"\0\0\0\x02"), E::Push, ErrorCode::PROTOCOL_ERROR),
        (frame(Kind::Continuation, 0, 1, b""), E::Continuation, ErrorCode::PROTOCOL_ERROR),
        ([half(1), data(1, b"")].concat(), E::Continuation, ErrorCode::PROTOCOL_ERROR),
        (
            [half(1), frame(Kind::Continuation, flag::END_HEADERS, 3, b"")].concat(),
            E::Continuation,
            ErrorCode::PROTOCOL_ERROR,
        ),
        (
            frame(Kind::Headers, flag::END_HEADERS, 1, b"\x80"),
            E::Hpack(hpack::HpackError::BadIndex),
            ErrorCode::COMPRESSION_ERROR,
        ),
        (
            settings(&[(4, 1 << 31)]),
            E::Settings(SettingsError::InitialWindowSize),
            ErrorCode::FLOW_CONTROL_ERROR,
        ),
        (
            [post(1), window(1, (1 << 31) - 1 - 65_535), settings(&[(4, 65_536)])].concat(),
            E::WindowOverflow,
            ErrorCode::FLOW_CONTROL_ERROR,
        ),
    ] {
        let mut server = Tested::server();
        assert_eq!(server.feed(&input), Err(error), "{}", input.escape_ascii());
        server.connection.fail(error);
        let end = server.settle().pop().unwrap();
        assert!(end.starts_with("goaway") && end.ends_with(code.name()), "{error:?}: {end}");
    }
}

/// A stream error ends only the stream. Later frames on it are ignored, and their DATA is credited to the connection's
/// window.
#[test]
fn stream_errors() {
    for (input, event, frame) in [
        (vec![get(1), data(1, b"x")], "failed 1 AfterEnd", "rst 1 stream_closed"),
        (vec![get(1), get(1)], "failed 1 AfterEnd", "rst 1 stream_closed"),
        (vec![post(1), headers(1, 0, "a: b\n")], "failed 1 TrailersWithoutEnd", "rst 1 protocol_error"),
        (
            vec![post(1), headers(1, flag::END_STREAM, ":path: /\n")],
            "failed 1 Head(UnknownPseudo)",
            "rst 1 protocol_error",
        ),
        (vec![post(1), window(1, 0)], "failed 1 Frame(ZeroIncrement)", "rst 1 protocol_error"),
        (vec![post(1), window(1, (1 << 31) - 1)], "failed 1 WindowOverflow", "rst 1 flow_control_error"),
        (
            vec![post(1), frame(Kind::Priority, 0, 1, b"\0\0\0\x01\0")],
            "failed 1 Frame(DependsOnItself)",
            "rst 1 protocol_error",
        ),
        (
            vec![headers(1, 0, &format!("{POST}content-length: 5\n")), data(1, b"123456")],
            "failed 1 BodyTooLong",
            "rst 1 protocol_error",
        ),
        (
            vec![headers(1, 0, &format!("{POST}content-length: 5\n")), data_end(1, b"1234")],
            "failed 1 BodyTooShort",
            "rst 1 protocol_error",
        ),
        (
            vec![
                headers(1, 0, &format!("{POST}content-length: 5\n")),
                headers(1, flag::END_STREAM, "a: b\n"),
            ],
            "failed 1 BodyTooShort",
            "rst 1 protocol_error",
        ),
    ] {
        let mut server = Tested::server();
        let events = server.events(&input.concat());
        assert_eq!(events.last().unwrap(), event);
        assert_eq!(server.settle(), [frame], "{event}");
        let late = [data(1, b"late"), headers(1, 0, "a: b\n"), window(1, 0x7fff_ffff), get(3)].concat();
        assert_eq!(server.events(&late), ["head 3 end: GET /a"], "{event}");
        assert_eq!((server.connection.held(), server.connection.streams()), (0, 2), "{event}");
    }
}

/// The owner never learns of the stream of a malformed request, and its frames are ignored.
#[test]
fn malformed_requests_are_rejected() {
    for (flags, lines, error) in [
        (0, format!("{POST}Connection: x\n"), "Head(BadFieldName)"),
        (0, format!("{POST}transfer-encoding: chunked\n"), "Head(ConnectionField)"),
        (flag::END_STREAM, format!("{POST}content-length: 5\n"), "BodyTooShort"),
        (0, ":method: CONNECT\n:protocol: websocket\n".into(), "Head(BadProtocol)"),
    ] {
        let mut server = Tested::server();
        let input = [headers(1, flags, &lines), data_end(1, b"late"), get(3)].concat();
        assert_eq!(server.events(&input), [&format!("rejected 1 {error}"), "head 3 end: GET /a"]);
        assert_eq!(server.settle(), ["rst 1 protocol_error"]);
        assert_eq!((server.connection.held(), server.connection.streams()), (0, 1));
    }
}

/// A request whose head is too large gets 431 (RFC 9113, section 10.5.1).
#[test]
fn too_large_requests_get_a_response() {
    let many = format!("{GET}{}", "cookie: a\n".repeat(101));
    let value = "x".repeat(100);
    let long = format!("{POST}{}", format!("a: {value}\n").repeat(99));
    let limits = Limits { head_bytes: 10_000, ..Limits::default() };
    let mut server = Tested::new(Role::Server, Config { limits, ..Config::default() });
    let input = [headers(1, flag::END_STREAM, &many), headers(3, 0, &long), data_end(3, b"late"), get(5)];
    let expected = ["rejected 1 Head(TooManyFields)", "rejected 3 Head(HeadTooLong)", "head 5 end: GET /a"];
    assert_eq!(server.events(&input.concat()), expected);
    let responses = ["headers 1 end: :status: 431;", "headers 3 end: :status: 431;", "rst 3 no_error"];
    assert_eq!(server.settle(), responses);
    assert_eq!((server.connection.streams(), server.connection.held()), (1, 0));
}

/// The size of a connection is limited, apart from its heap memory.
#[test]
fn a_connection_is_small() {
    assert!(size_of::<Connection>() <= 640, "{}", size_of::<Connection>());
}

#[test]
fn responses() {
    let mut server = Tested::server();
    let no = stream(&mut server, 1);
    let mut out = Vec::new();
    let connection = &mut server.connection;
    assert_eq!(connection.data(no, b"x", false, &mut out), Err(Closed));
    assert_eq!(connection.head(no, Part::Trailers, |_| {}, &mut out), Err(Closed));
    connection.head(no, Part::Interim, |to| to.status(103), &mut out).unwrap();
    let head = Part::Head { end: false };
    connection
        .head(
            no,
            head,
            |to| {
                to.status(200);
                to.field(b"Server", b"weir");
            },
            &mut out,
        )
        .unwrap();
    assert_eq!(connection.head(no, head, |_| {}, &mut out), Err(Closed));
    assert_eq!(connection.data(no, &[b'x'; 20_000], false, &mut out), Ok(20_000));
    connection.head(no, Part::Trailers, |to| to.field(b"grpc-status", b"0"), &mut out).unwrap();
    assert_eq!(connection.data(no, b"", true, &mut out), Err(Closed));
    let expected = [
        "headers 1: :status: 103;",
        "headers 1: :status: 200;server: weir;",
        "data 1 16375",
        "data 1 3625",
        "headers 1 end: grpc-status: 0;",
    ];
    assert_eq!(server.written(&out), expected);
}

/// RFC 9113, section 8.1: the client keeps a response that it received before the end of its request.
#[test]
fn an_early_response_ends_the_request_without_error() {
    let mut server = Tested::server();
    let no = stream(&mut server, 1);
    let mut out = Vec::new();
    server.connection.head(no, Part::Head { end: true }, |to| to.status(413), &mut out).unwrap();
    server.connection.release(no);
    server.connection.settle(&mut out);
    assert_eq!(server.written(&out), ["headers 1 end: :status: 413;", "rst 1 no_error"]);
    assert_eq!(server.events(&[data(1, &[b'x'; 100]), data_end(1, b"x")].concat()), [""; 0]);
    assert_eq!((server.connection.held(), server.connection.streams()), (0, 0));
    let no = stream(&mut server, 3);
    server.connection.release(no);
    assert_eq!(server.settle(), ["rst 3 cancel"]);
}

#[test]
fn a_large_head_is_fragmented() {
    let mut server = Tested::server();
    let no = stream(&mut server, 1);
    let mut out = Vec::new();
    let value = [0xff; 16_000];
    server
        .connection
        .head(
            no,
            Part::Head { end: true },
            |to| {
                to.status(200);
                (0..3).for_each(|_| to.field(b"a", &value));
            },
            &mut out,
        )
        .unwrap();
    let frames = server.written(&out);
    assert_eq!(frames, ["fragment 1 16384", "fragment 1 16384", "last fragment 1 15252"]);
}

/// CVE-2023-44487: a reset stream counts until its owner releases it.
#[test]
fn a_stream_counts_until_it_is_released() {
    let settings = Settings { max_concurrent_streams: Some(2), ..Settings::default() };
    let mut server = Tested::new(Role::Server, Config { settings, ..Config::default() });
    let first = stream(&mut server, 1);
    let input = [get(3), rst(1, ErrorCode::CANCEL), get(5), data(1, b"")].concat();
    assert_eq!(server.feed(&input), Err(ConnectionError::StreamClosed));
    assert_eq!(server.settle(), ["rst 5 refused_stream"]);
    server.connection.release(first);
    assert_eq!(server.events(&[get(7), get(9)].concat()), ["head 7 end: GET /a"]);
    assert_eq!(server.settle(), ["rst 9 refused_stream"]);
}

#[test]
fn resets_and_windows() {
    let mut server = Tested::server();
    let no = stream(&mut server, 1);
    let input = [rst(1, ErrorCode::CANCEL), rst(1, ErrorCode::CANCEL), window(1, 5)].concat();
    assert_eq!(server.events(&input), ["reset 1 cancel"]);
    assert_eq!(server.connection.data(no, b"x", true, &mut Vec::new()), Err(Closed));
    server.connection.reset(no, ErrorCode::INTERNAL_ERROR);
    assert!(server.settle().is_empty());
}

/// RFC 9113, section 6.8: GOAWAY names the last stream only when the client knows that it must open no more streams.
#[test]
fn a_drain_has_two_steps() {
    let mut server = Tested::server();
    let no = stream(&mut server, 1);
    server.connection.go_away();
    server.connection.go_away();
    assert_eq!(server.settle(), ["goaway 2147483647 no_error", "ping"]);
    let other = stream(&mut server, 3);
    assert_eq!(server.events(&frame(Kind::Ping, flag::ACK, 0, b"\0\0\0drain")), [""; 0]);
    assert_eq!(server.settle(), ["goaway 3 no_error"]);
    let beyond = [post(5), data(5, b"late"), headers(5, flag::END_STREAM, "a: b\n")].concat();
    assert_eq!(server.events(&beyond), [""; 0]);
    assert!(server.settle().is_empty() && server.connection.held() == 0);
    server.connection.release(no);
    assert!(!server.connection.is_drained());
    server.connection.release(other);
    assert!(server.connection.is_drained());
}

/// Regression test: the connection sent DATA that only the client's new window allowed before it acknowledged the
/// client's settings.
#[test]
fn new_settings_are_acknowledged_before_they_are_used() {
    let mut server = Tested::server();
    let no = stream(&mut server, 1);
    assert_eq!(server.events(&settings(&[(4, 100_000)])), ["settings"]);
    let mut out = Vec::new();
    server.connection.head(no, Part::Head { end: false }, |to| to.status(200), &mut out).unwrap();
    assert_eq!(server.events(&settings(&[(4, 200_000)])), ["settings"]);
    assert_eq!(server.connection.data(no, b"x", true, &mut out), Ok(1));
    let expected = ["settings ack", "headers 1: :status: 200;", "settings ack", "data 1 1 end"];
    assert_eq!(server.written(&out), expected);
    assert!(server.settle().is_empty());
}

#[test]
fn pings() {
    let mut server = Tested::server();
    assert_eq!(server.events(&frame(Kind::Ping, 0, 0, b"12345678")), [""; 0]);
    server.connection.ping();
    assert_eq!(server.settle(), ["pong 12345678", "ping"]);
    let ack = |payload| frame(Kind::Ping, flag::ACK, 0, payload);
    assert_eq!(server.events(&[ack(b"12345678"), ack(b"\0\0\0alive")].concat()), ["pong"]);
}

#[test]
fn frames_without_an_event_pause_the_input() {
    let once = |frame: &[u8], times: u32| frame.repeat(times as usize);
    let silent = [
        frame(Kind::Ping, 0, 0, b"12345678"),
        frame(Kind::WindowUpdate, 0, 0, &[0, 0, 0, 1]),
        frame(Kind::Priority, 0, 1, &[0, 0, 0, 0, 9]),
    ];
    for silent in silent {
        let mut server = Tested::server();
        let mut input = once(&silent, SILENT_FRAMES + 1);
        let step = server.connection.feed(&mut input, &mut server.head).unwrap();
        let paused = Step { consumed: SILENT_FRAMES as usize * silent.len(), event: Some(Event::Pause) };
        assert_eq!(step, paused, "{silent:?}");
        // Fewer frames cause no pause, and an event restarts the count.
        let few = once(&silent, SILENT_FRAMES - 1);
        let events = server.events(&[&few[..], &get(1), &few].concat());
        assert_eq!(events, ["head 1 end: GET /a"], "{silent:?}");
    }
}

/// RFC 8441: the setting is announced, and allows `:protocol`.
#[test]
fn extended_connect() {
    let settings = Settings { enable_connect_protocol: true, ..Settings::default() };
    let mut server = Tested::new(Role::Server, Config { settings, ..Config::default() });
    let lines = ":method: CONNECT\n:protocol: websocket\n:scheme: https\n:path: /chat\n:authority: a\n";
    assert_eq!(server.events(&headers(1, 0, lines)), ["head 1: CONNECT /chat"]);
}
