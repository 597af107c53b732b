//! Priorities of requests (RFC 9218).

use super::peer::*;
use weir_http2::frame::{FrameError, Kind, flag};
use weir_http2::*;

fn server(priorities: bool) -> Tested {
    Tested::new(Role::Server, Config { priorities, ..Config::default() })
}

/// Opens a stream with these fields; returns its number.
fn open(server: &mut Tested, id: u32, lines: &str) -> StreamNo {
    let mut input = headers(id, flag::END_STREAM, &format!("{GET}{lines}")).to_vec();
    let step = server.connection.feed(&mut input, &mut server.head).unwrap();
    match step.event {
        Some(Event::Head { stream, .. }) => stream,
        other => panic!("{other:?}"),
    }
}

fn priority(urgency: u8, incremental: bool) -> Priority {
    Priority { urgency, incremental }
}

#[test]
fn a_request_has_the_priority_of_its_fields() {
    let mut server = server(true);
    for (id, lines, expected) in [
        (1, "", Priority::default()),
        (3, "priority: u=1, i\n", priority(1, true)),
        (5, "priority: u=9, i=1\n", Priority::default()),
        (7, "priority: u=1,\n", Priority::default()),
        (9, "priority: u=1\na: b\npriority: i\n", priority(1, true)),
        (11, "x-priority: u=1\n", Priority::default()),
    ] {
        let stream = open(&mut server, id, lines);
        assert_eq!(server.connection.priority(stream), expected, "{lines}");
        server.connection.release(stream);
        assert_eq!(server.connection.priority(stream), Priority::default());
    }
}

#[test]
fn a_frame_changes_the_priority_of_an_open_stream() {
    let mut server = server(true);
    let stream = open(&mut server, 1, "priority: u=1, i\n");
    for (value, expected) in [
        ("u=5", priority(5, false)),
        ("i", priority(3, true)),
        // A PRIORITY_UPDATE replaces the whole priority: an absent or invalid parameter has its default.
        ("", Priority::default()),
        ("u=7", priority(7, false)),
        ("u=", Priority::default()),
    ] {
        assert_eq!(server.events(&priority_update(1, value)), [""; 0]);
        assert_eq!(server.connection.priority(stream), expected, "{value}");
    }
}

#[test]
fn the_field_of_a_response_changes_its_parameters() {
    let mut server = server(true);
    let stream = open(&mut server, 1, "priority: u=1\n");
    server.connection.update_priority(stream, b"i");
    assert_eq!(server.connection.priority(stream), priority(1, true));
    server.connection.update_priority(stream, b"u=6");
    assert_eq!(server.connection.priority(stream), priority(6, true));
}

#[test]
fn a_frame_before_its_request_is_stronger_than_the_fields() {
    let mut server = server(true);
    for id in [3, 7, 9] {
        server.events(&priority_update(id, "u=7"));
    }
    server.events(&priority_update(7, "u=0, i"));
    for (id, expected) in [(1, 1), (5, 1), (9, 7), (11, 1)] {
        let stream = open(&mut server, id, "priority: u=1\n");
        assert_eq!(server.connection.priority(stream).urgency, expected, "{id}");
    }
    // The server stores no priority for stream 7, which can no longer be opened.
    assert_eq!(server.events(&priority_update(7, "u=1")), [""; 0]);
}

#[test]
fn the_last_frame_before_a_request_counts() {
    let mut server = server(true);
    server.events(&[priority_update(3, "u=7"), priority_update(3, "u=0, i")].concat());
    let stream = open(&mut server, 3, "");
    assert_eq!(server.connection.priority(stream), priority(0, true));
}

#[test]
fn few_frames_before_their_requests_are_kept() {
    let mut server = server(true);
    for id in (1..100).step_by(2) {
        server.events(&priority_update(id, "u=0"));
    }
    let kept = (1..100).step_by(2).filter(|id| {
        let stream = open(&mut server, *id, "");
        server.connection.priority(stream).urgency == 0
    });
    assert_eq!(kept.collect::<Vec<_>>(), (1..32).step_by(2).collect::<Vec<_>>());
}

#[test]
fn malformed_frames_end_the_connection() {
    let id = |id: u32| id.to_be_bytes();
    for (stream, payload, expected) in [
        (1, &id(1)[..], FrameError::StreamGiven.into()),
        (0, &[0, 0, 1], FrameError::BadLength.into()),
        (0, b"", FrameError::BadLength.into()),
        (0, &id(0), FrameError::StreamMissing.into()),
        (0, &id(2), ConnectionError::IdleStream),
    ] {
        let input = frame(Kind::PRIORITY_UPDATE, 0, stream, payload);
        assert_eq!(server(true).feed(&input), Err(expected), "{stream} {payload:?}");
        assert_eq!(server(false).feed(&input), Ok(Vec::new()), "{stream} {payload:?}");
    }
}

#[test]
fn without_the_setting_priorities_have_no_effect() {
    let mut server = server(false);
    server.events(&priority_update(1, "u=1"));
    let stream = open(&mut server, 1, "priority: u=2, i\n");
    server.events(&priority_update(1, "u=1"));
    assert_eq!(server.connection.priority(stream), Priority::default());
}

#[test]
fn a_frame_in_pieces_is_one_frame() {
    let mut server = server(true);
    let stream = open(&mut server, 1, "");
    let mut input = priority_update(1, "u=2");
    for length in 0..input.len() {
        let step = server.connection.feed(&mut input[..length], &mut server.head).unwrap();
        assert_eq!(step, Step { consumed: 0, event: None });
    }
    server.events(&input);
    assert_eq!(server.connection.priority(stream).urgency, 2);
}
