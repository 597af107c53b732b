//! Clients that stop reading or sending: their deadlines, and other clients, which must not be affected.

use super::fields::{block, request};
use super::windows::{BIG, INITIAL_WINDOW_SIZE, LARGEST, upstream};
use super::{Client, gateway};
use crate::common::{DEADLINE, Peer, Stream, Switch, Upstream, poll_until};
use weir_http2::ErrorCode;
use weir_http2::frame::{Kind, flag};

#[test]
fn a_stream_that_is_never_read_ends_with_a_reason() {
    let upstream = upstream();
    let weir = gateway(&upstream, "", "[timeouts]\nstall = '300ms'");
    let mut client = Client::with_settings(weir.address(), &[(INITIAL_WINDOW_SIZE, 0)]);
    client.get(1, "/big").get(3, "/big").window_update(3, LARGEST);
    assert_eq!(client.response(3).body.len(), BIG);
    let stalled = client.response(1);
    assert!(stalled.status() == 200 && !stalled.ended, "{stalled:?}");
    assert!(stalled.reset.is_some());
    weir.wait_for_stderr(&[" client_stalled ", "GET /big"]);
    // The same for a short response, whose exchange has ended.
    client.get(5, "/small");
    let stalled = client.response(5);
    assert_eq!((stalled.status(), stalled.reset), (200, Some(ErrorCode::CANCEL)));
    client.get(7, "/small").window_update(7, 1);
    assert_eq!(client.response(7).text(), "0");
}

/// Regression test: a client that occasionally read a byte could keep a stored response, and its memory, indefinitely.
#[test]
fn a_stored_response_keeps_the_limits_of_its_exchange() {
    let upstream = upstream();
    let rate = "min_rate = { response = '64KiB', window = '1s' }";
    let total = "timeouts = { response_body = '500ms' }";
    for (limits, reason) in [(rate, "client_too_slow"), (total, "response_overdue")] {
        // The limits of the route, and the general ones, which are the same keys of a table.
        let (key, table) = limits.split_once(" = ").unwrap();
        let entries = table.trim_matches(['{', '}', ' ']).replace(", ", "\n");
        for (route, general) in [(limits, ""), ("", &format!("[{key}]\n{entries}")[..])] {
            let weir = gateway(&upstream, route, general);
            let mut client = Client::with_settings(weir.address(), &[(INITIAL_WINDOW_SIZE, 0)]);
            client.credits = false;
            client.get(1, "/stored");
            poll_until(DEADLINE, "the slow stream is reset", || {
                client.window_update(1, 1).sync().get_stream(1).reset.is_some()
            });
            let slow = client.get_stream(1);
            assert_eq!((slow.status(), slow.reset, slow.ended), (200, Some(ErrorCode::CANCEL), false));
            weir.wait_for_stderr(&[reason]);
            // Its connection continues.
            client.get(3, "/small").window_update(3, 1);
            assert_eq!(client.response(3).text(), "0");
        }
    }
}

/// Regression test: any frame extended the timeout of a client that does not read its last response.
#[test]
fn frames_do_not_extend_the_time_of_a_stalled_response() {
    let upstream = upstream();
    let weir = gateway(&upstream, "", "[timeouts]\nstall = '500ms'");
    let mut client = Client::with_settings(weir.address(), &[(INITIAL_WINDOW_SIZE, 0)]);
    client.get(1, "/small");
    poll_until(DEADLINE, "the stream is reset", || client.sync().get_stream(1).reset.is_some());
    assert_eq!(client.get_stream(1).reset, Some(ErrorCode::CANCEL));
    weir.wait_for_stderr(&[" client_stalled "]);
}

/// Regression test: each PING extended the timeout of an idle client.
#[test]
fn frames_that_are_no_requests_do_not_extend_the_time_of_an_idle_client() {
    let upstream = upstream();
    let weir = gateway(&upstream, "", "[timeouts]\nidle = '500ms'");
    let mut client = Client::connect(weir.address());
    assert_eq!(client.get(1, "/small").response(1).text(), "0");
    poll_until(DEADLINE, "the connection ends", || client.sync().ending.is_some());
    assert_eq!(client.go_aways, [(1, ErrorCode::NO_ERROR)]);
}

/// All windows are open, and the client does not read its socket.
#[test]
fn a_client_that_never_reads_costs_bounded_memory_and_ends() {
    let upstream = upstream();
    let weir = gateway(&upstream, "", "[timeouts]\nstall = '500ms'");
    let mut deaf = Client::with_settings(weir.address(), &[(INITIAL_WINDOW_SIZE, LARGEST)]);
    deaf.window_update(0, LARGEST - 65_535);
    for stream in (1..200).step_by(2) {
        deaf.get(stream, "/big");
    }
    assert!(deaf.try_flush());
    upstream.wait_for_requests(100);
    let mut other = Client::connect(weir.address());
    assert_eq!(other.get(1, "/small").response(1).text(), "0");
    weir.wait_for_stderr(&[" client_stalled "]);
    let resident = weir.memory_kib("VmHWM");
    assert!(resident < 150 * 1024, "{resident} KiB");
    poll_until(DEADLINE, "it is closed", || {
        deaf.ping([0; 8]);
        !deaf.try_flush()
    });
    assert_eq!(other.get(3, "/small").response(3).text(), "0");
}

#[test]
fn requests_that_stop_before_their_end() {
    let upstream = upstream();
    let weir = gateway(&upstream, "", "[timeouts]\nstall = '300ms'\nhead = '300ms'\nidle = '300ms'");
    // Within a body: the client gets a response, and other clients are not affected.
    let mut client = Client::connect(weir.address());
    client.post(1, "/a").data(1, b"hello", false);
    let late = client.response(1);
    assert_eq!((late.status(), late.text().contains("body_timeout")), (408, true), "{late:?}");
    client.read_until(|client| client.get_stream(1).reset.is_some());
    assert_eq!(client.get_stream(1).reset, Some(ErrorCode::NO_ERROR));
    assert_eq!(client.get(3, "/b").response(3).text(), "0");
    // Between requests.
    assert_eq!(client.end(), Some((3, ErrorCode::NO_ERROR)));
    // Before the first request.
    assert_eq!(Client::connect(weir.address()).end(), Some((0, ErrorCode::NO_ERROR)));
    // Within a field block, a frame, or a frame header.
    let start = block(&request("GET", "/c"));
    for step in 0..3 {
        let mut client = Client::connect(weir.address());
        // The client sends nothing after the fragment.
        (client.acknowledges, client.credits) = (false, false);
        client.get(1, "/b").frame(Kind::Headers, flag::END_STREAM, 3, &start);
        match step {
            0 => {}
            1 => {
                client.frame(Kind::Continuation, flag::END_HEADERS, 3, b"\0\x01a\x01b");
            }
            _ => client.out.extend_from_slice(&[0, 0, 1]),
        }
        if step == 1 {
            client.out.truncate(client.out.len() - 1);
        }
        assert!(client.end().is_some(), "{step}");
        assert_eq!(client.get_stream(1).text(), "0", "{step}");
    }
    poll_until(DEADLINE, "three lines", || weir.stderr().matches(" head_timeout ").count() == 3);
    // Within the preface.
    let mut client = Client::silent(Stream::connect(weir.address(), None).unwrap());
    client.out.extend_from_slice(b"PRI * HTTP/2.0\r\n\r\nSM\r\n");
    client.flush();
    weir.wait_for_stderr(&["408 head_timeout"]);
}

#[test]
fn a_client_that_leaves_takes_its_exchanges_along() {
    let switch = Switch::default();
    let held = switch.clone();
    let upstream = Upstream::start(None, move |peer: &mut Peer| {
        if let Some(request) = peer.request() {
            if request.head.contains(" /held ") {
                peer.read_to_end();
                return held.throw();
            }
            peer.answer(super::OK);
        }
    });
    let weir = gateway(&upstream, "", "");
    // The gateway resets the stream: the server's connection closes, and the client's continues.
    let mut client = Client::connect(weir.address());
    client.get(1, "/held").flush();
    upstream.wait_for_requests(1);
    client.reset(1, ErrorCode::CANCEL).flush();
    switch.wait();
    weir.wait_for_stderr(&[" client_reset ", "GET /held"]);
    assert_eq!(client.get(3, "/").response(3).text(), "ok");
    // The client closes the connection.
    client.get(5, "/held").flush();
    upstream.wait_for_requests(3);
    client.stream.finish_tcp();
    upstream.wait_for_ending(2);
    weir.wait_for_stderr(&[" client_closed ", "GET /held"]);
}
