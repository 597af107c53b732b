//! Priorities (RFC 9218): the order of the responses on a connection.

use super::fields::request;
use super::windows::{INITIAL_WINDOW_SIZE, LARGEST};
use super::{Client, listening};
use crate::common::{DEADLINE, Peer, Upstream, Weir, pattern, poll_until};
use std::fs;
use std::path::Path;
use weir_http2::frame::Kind;

/// The initial window of a connection (RFC 9113 section 6.9.2).
const WINDOW: usize = 65_535;
/// The length of a response that the gateway stores as a whole, and the part of it that it may send per step.
const LENGTH: usize = 40_000;
const STEP: usize = 10_000;

const ON: &str = "http2_priorities = true";

/// Responds to `/fill` with as many bytes as the connection's window has, and to other requests with [`LENGTH`] bytes.
/// The response to `/late` has its own priority.
fn upstream() -> Upstream {
    Upstream::start(None, |peer: &mut Peer| {
        while let Some(request) = peer.request() {
            let length = if request.head.contains(" /fill ") { WINDOW } else { LENGTH };
            let own = if request.head.contains(" /late ") { "Priority: u=7\r\n" } else { "" };
            let head = format!("HTTP/1.1 200 OK\r\n{own}Content-Length: {length}\r\n\r\n");
            peer.answer([head.as_bytes(), &pattern(length)].concat());
        }
    })
}

/// A client with an empty connection window, and with these requests from stream 3 on. The gateway has stored their
/// responses. A request is a path and the value of its `priority` field.
fn waiting(weir: &Weir, log: &Path, before: &[(u32, &str)], requests: &[(&str, &str)]) -> Client {
    let mut client = Client::with_settings(weir.address(), &[(INITIAL_WINDOW_SIZE, LARGEST)]);
    client.credits = false;
    client.get(1, "/fill");
    assert_eq!(client.response(1).body.len(), WINDOW);
    for (stream, value) in before {
        update(&mut client, *stream, value);
    }
    for (nth, (path, priority)) in requests.iter().enumerate() {
        let fields = [&request("GET", path)[..], &[(b"priority", priority.as_bytes())]].concat();
        client.headers(3 + 2 * nth as u32, &fields, true);
    }
    client.flush();
    let lines = || fs::read_to_string(log).unwrap_or_default().lines().count();
    poll_until(DEADLINE, "the ends of all exchanges", || lines() == 1 + requests.len());
    // Receive the heads, which were sent before.
    client.sync();
    client
}

/// Stages a PRIORITY_UPDATE frame.
fn update(client: &mut Client, stream: u32, value: &str) {
    let payload = [&stream.to_be_bytes(), value.as_bytes()].concat();
    client.frame(Kind::PRIORITY_UPDATE, 0, 0, &payload);
}

/// The order in which streams send, one per step.
fn order(client: &mut Client) -> Vec<u32> {
    let lengths = |client: &Client| {
        client.streams().map(|(stream, received)| (stream, received.body.len())).collect::<Vec<_>>()
    };
    let sum = |client: &Client| lengths(client).iter().map(|(_, length)| length).sum::<usize>();
    let mut order = Vec::new();
    while client.streams().any(|(_, stream)| !stream.ended) {
        let (before, total) = (lengths(client), sum(client) + STEP);
        client.window_update(0, STEP as u32).read_until(|client| sum(client) >= total);
        let after = lengths(client);
        let grown: Vec<_> = after.iter().filter(|now| !before.contains(now)).collect();
        assert_eq!((grown.len(), sum(client)), (1, total), "{before:?} {after:?}");
        order.push(grown[0].0);
    }
    order
}

/// The order of the responses to these requests, with the priorities of frames before them and after them.
fn sent(
    listener: &str,
    before: &[(u32, &str)],
    requests: &[(&str, &str)],
    after: &[(u32, &str)],
) -> Vec<u32> {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("access.log");
    let upstream = upstream();
    let weir = listening(listener, &upstream, "", &format!("[log]\naccess = '{}'", log.display()));
    let mut client = waiting(&weir, &log, before, requests);
    for (stream, value) in after {
        update(&mut client, *stream, value);
    }
    let order = order(&mut client);
    for stream in (3..).step_by(2).take(requests.len()) {
        assert_eq!(client.response(stream).body, pattern(LENGTH));
    }
    order
}

#[test]
fn the_most_urgent_response_leaves_first() {
    let requests = [("/", "u=5"), ("/", "u=1"), ("/", "x"), ("/", "u=7"), ("/", "u=0;a, i")];
    let expected = [[11; 4], [5; 4], [7; 4], [3; 4], [9; 4]].concat();
    assert_eq!(sent(ON, &[], &requests, &[]), expected);
}

#[test]
fn responses_of_one_urgency_leave_one_after_the_other() {
    let requests = [("/", "u=2, i"), ("/", "u=2"), ("/", "i=?0, u=2")];
    assert_eq!(sent(ON, &[], &requests, &[]), [[5; 4], [7; 4], [3; 4]].concat());
}

#[test]
fn incremental_responses_take_turns() {
    let order = sent(ON, &[], &[("/", "i"), ("/", "i"), ("/", "u=4")], &[]);
    assert_eq!((order.len(), &order[8..]), (12, &[7; 4][..]));
    assert!(order[..8].windows(2).all(|pair| pair[0] != pair[1]), "{order:?}");
}

#[test]
fn frames_change_the_order() {
    let requests = [("/", "u=1"), ("/", "u=4"), ("/", "u=3")];
    let expected = [[5; 4], [7; 4], [3; 4]].concat();
    assert_eq!(sent(ON, &[], &requests, &[(5, "u=0"), (3, "i, u=6")]), expected);
    assert_eq!(sent(ON, &[(5, "u=0"), (3, "u=5, i")], &requests, &[]), expected);
}

#[test]
fn a_server_changes_the_urgency_of_its_response() {
    let requests = [("/late", "u=1"), ("/", "u=5")];
    assert_eq!(sent(ON, &[], &requests, &[]), [[5; 4], [3; 4]].concat());
}

#[test]
fn without_the_setting_responses_take_turns() {
    let order = sent("", &[(3, "u=0")], &[("/", "u=0"), ("/", "u=7")], &[(3, "u=0")]);
    assert_eq!(order.len(), 8);
    assert!(order.windows(2).all(|pair| pair[0] != pair[1]), "{order:?}");
}
