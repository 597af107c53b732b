//! Floods: each ends the connection when its budget is spent.

use super::peer::*;
use super::server::stream;
use weir_http2::frame::{Kind, flag};
use weir_http2::*;

const BUDGETS: Budgets = Budgets {
    resets: 20,
    provoked_resets: 20,
    empty_data: 20,
    settings: 20,
    pings: 20,
    no_effect: 20,
    window_updates: 20,
};

/// A server that has received one SETTINGS frame, and whose stream 1 has a request with a body.
fn server() -> Tested {
    let mut server = Tested::new(Role::Server, Config { budgets: BUDGETS, ..Config::default() });
    server.connection.elapse(1);
    stream(&mut server, 1);
    server
}

/// Feeds inputs until the first error, at most 1000. Returns the number of inputs, and the error.
fn count(server: &mut Tested, mut input: impl FnMut(u32) -> Vec<u8>) -> (u32, Option<ConnectionError>) {
    for number in 0..1000 {
        if let Err(error) = server.feed(&input(number)) {
            return (number, Some(error));
        }
    }
    (1000, None)
}

#[test]
fn floods() {
    type Input = fn(u32) -> Vec<u8>;
    let floods: [(Abuse, Input); 10] = [
        (Abuse::Reset, |n| [get(2 * n + 3), rst(2 * n + 3, ErrorCode::CANCEL)].concat()),
        (Abuse::ProvokedReset, |n| headers(2 * n + 3, flag::END_STREAM, "a: b\n")),
        (Abuse::ProvokedReset, |n| [post(2 * n + 3), window(2 * n + 3, 0)].concat()),
        (Abuse::EmptyData, |_| data(1, b"")),
        (Abuse::EmptyData, |_| data(1, b"x")),
        (Abuse::Settings, |_| settings(&[])),
        (Abuse::Ping, |_| frame(Kind::Ping, 0, 0, b"12345678")),
        (Abuse::NoEffect, |_| frame(Kind::Priority, 0, 1, b"\0\0\0\0\x10")),
        (Abuse::NoEffect, |_| frame(Kind::Unknown(0x10), 0, 0, b"")),
        (Abuse::WindowUpdate, |_| window(1, 1)),
    ];
    for (abuse, input) in floods {
        let error = ConnectionError::Abuse(abuse);
        assert_eq!(error.code(), ErrorCode::ENHANCE_YOUR_CALM);
        assert_eq!(count(&mut server(), input), (20, Some(error)), "{abuse:?}");
        // Each second forgives two frames.
        let mut server = server();
        for number in 0..60 {
            server.events(&input(number));
            server.connection.elapse(1);
        }
    }
}

#[test]
fn refused_streams_are_provoked_resets() {
    let settings = Settings { max_concurrent_streams: Some(1), ..Settings::default() };
    let config = Config { settings, budgets: BUDGETS, ..Config::default() };
    let mut server = Tested::new(Role::Server, config);
    stream(&mut server, 1);
    let refused = count(&mut server, |n| get(2 * n + 3));
    assert_eq!(refused, (20, Some(ConnectionError::Abuse(Abuse::ProvokedReset))));
}

/// A stream that ends regularly forgives a reset, and DATA that we send forgives window updates.
#[test]
fn work_forgives() {
    let mut server = server();
    let mut out = Vec::new();
    for number in 0..100 {
        let no = stream(&mut server, 4 * number + 3);
        let head = Part::Head { end: false };
        server.connection.head(no, head, |to| to.status(200), &mut out).unwrap();
        assert_eq!(server.connection.data(no, &[0; 100], true, &mut out), Ok(100));
        let id = no.get();
        let input = [window(id, 100), window(0, 100), data_end(id, b"xy")].concat();
        server.events(&input);
        server.connection.release(no);
        let cancelled = stream(&mut server, 4 * number + 5);
        server.events(&rst(cancelled.get(), ErrorCode::CANCEL));
        server.connection.release(cancelled);
    }
}

/// A field block without an end is rejected (CVE-2024-27316 and CVE-2026-33871).
#[test]
fn endless_blocks() {
    let start = frame(Kind::Headers, 0, 1, b"\x82");
    for piece in [&b""[..], b"\x86", &[0; 16_384]] {
        let mut server = Tested::server();
        let next = frame(Kind::Continuation, 0, 1, piece);
        let mut input = start.clone();
        let error = loop {
            assert!(input.len() <= server.connection.most_held() + 2 * 16_393);
            input.extend_from_slice(&next);
            if let Err(error) = server.feed(&input) {
                break error;
            }
        };
        assert_eq!(error, ConnectionError::BlockTooLong);
        assert_eq!(error.code(), ErrorCode::ENHANCE_YOUR_CALM);
    }
}

/// PRIORITY_UPDATE frames have a budget even if the configuration makes them effective.
#[test]
fn priority_updates_have_a_budget() {
    let config = Config { budgets: BUDGETS, priorities: true, ..Config::default() };
    for id in [1, 3, 2001] {
        let mut server = Tested::new(Role::Server, config);
        stream(&mut server, 1);
        let (frames, error) = count(&mut server, |_| priority_update(id, "u=1"));
        assert_eq!((frames, error), (20, Some(ConnectionError::Abuse(Abuse::NoEffect))), "{id}");
    }
}
