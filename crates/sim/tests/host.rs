//! Rules for connections that have no request in flight.

use std::time::Duration;
use weir_gateway::Timeouts;
use weir_gateway::document::Limits;
use weir_sim::Host;

const GET: &[u8] = b"GET / HTTP/1.1\r\nHost: h\r\n\r\n";

/// Sends bytes that complete a request, and expects a 200.
fn ask(host: &mut Host, client: usize, bytes: &[u8]) {
    host.say(client, bytes);
    host.settle();
    let response = host.take(client);
    assert!(response.starts_with(b"HTTP/1.1 200 "), "{}", response.escape_ascii());
}

#[test]
fn a_response_restarts_the_time_for_the_next_request() {
    let timeouts =
        Timeouts { idle: Duration::from_secs(10), head: Duration::from_secs(5), ..Timeouts::default() };
    let mut host = Host::new(1, Limits::default(), timeouts, false);
    let (whole, parts) = (host.connect(0, false), host.connect(0, false));
    host.say(parts, &GET[..3]);
    for _ in 0..12 {
        ask(&mut host, whole, GET);
        ask(&mut host, parts, &[&GET[3..], &GET[..3]].concat());
        host.pass(Duration::from_secs(4));
    }
    assert!(!host.has_ended(whole) && !host.has_ended(parts));
    host.pass(Duration::from_secs(2));
    assert!(!host.has_ended(whole) && host.take(parts).starts_with(b"HTTP/1.1 408 "));
    host.pass(Duration::from_secs(5));
    assert!(host.has_ended(whole));
}

#[test]
fn a_new_client_displaces_no_client_with_a_recent_request() {
    let limits = Limits { connections: Some(2), ..Limits::default() };
    let mut host = Host::new(1, limits, Timeouts::default(), false);
    let asking = host.connect(0, false);
    host.settle();
    let silent = host.connect(0, false);
    for _ in 0..10 {
        ask(&mut host, asking, GET);
        host.pass(Duration::from_millis(900));
    }
    let new = host.connect(0, false);
    ask(&mut host, new, GET);
    assert!(host.has_ended(silent) && !host.has_ended(asking));
    ask(&mut host, asking, GET);
}

/// The new client's worker has no idle connection, so one other worker closes some of its own.
#[test]
fn a_client_without_room_costs_few_idle_ones_of_one_other_worker() {
    const IDLE: usize = 20;
    let limits = Limits { connections: Some(2 * IDLE as u32 + 1), ..Limits::default() };
    let mut host = Host::new(3, limits, Timeouts::default(), false);
    let busy = host.connect(0, false);
    host.say(busy, &GET[..3]);
    for worker in [1, 2] {
        for _ in 0..IDLE {
            host.connect(worker, false);
        }
    }
    host.settle();
    host.pass(Duration::from_secs(2));
    let new = host.connect(0, false);
    ask(&mut host, new, GET);
    assert_eq!([1, 2].map(|worker| host.leak_check(worker).clients), [IDLE - 8, IDLE]);
    // More new clients, until no connection is idle.
    host.say(new, &GET[..3]);
    let news: Vec<_> = (0..2 * IDLE - 1).map(|_| host.connect(0, false)).collect();
    for new in &news {
        host.say(*new, &GET[..3]);
    }
    host.pass(Duration::from_secs(1));
    assert_eq!([0, 1, 2].map(|worker| host.leak_check(worker).clients), [2 * IDLE + 1, 0, 0]);
    // The last client waits, and its worker asks the others ten times a second.
    host.connect(0, false);
    host.pass(Duration::from_secs(1));
    let before = host.messages();
    host.pass(Duration::from_secs(5));
    let messages = host.messages() - before;
    assert!((90..=110).contains(&messages), "{messages}");
}

#[test]
fn the_gateway_does_not_read_from_a_handshake_that_waits_for_its_turn() {
    let limits = Limits { handshakes_per_turn: 1, ..Limits::default() };
    let mut host = Host::new(1, limits, Timeouts::default(), true);
    let (first, second) = (host.connect(0, true), host.connect(0, true));
    host.narrow(second, 100);
    host.read(first, false);
    host.read(second, false);
    host.settle();
    assert!(host.is_read(second));
    // The first client completes its handshake, which uses up the turn's only step.
    host.read(first, true);
    host.send(second, &[22]);
    host.turn([first, second]);
    assert!(host.is_read(first) && !host.is_read(second));
    host.turn([]);
    assert!(host.is_read(second));
}

#[test]
fn the_cost_of_a_trickling_client_is_linear() {
    let mut host = Host::new(1, Limits::default(), Timeouts::default(), false);
    let client = host.connect(0, false);
    let start = format!("GET / HTTP/1.1\r\nHost: h\r\nX: {}", "x".repeat(24 * 1024));
    host.say(client, start.as_bytes());
    for _ in 0..4096 {
        host.turn([client]);
        host.say(client, b"y");
    }
    ask(&mut host, client, b"\r\n\r\n");
    assert!(host.parsed_in_vain(0) < 2 * start.len() as u64, "{}", host.parsed_in_vain(0));
}

/// A borrowed connection arrives at a worker whose client has disconnected, so it is idle there. Its idle timeout still
/// starts at its last response.
#[test]
fn a_borrowed_connection_is_idle_for_no_longer_than_one_that_stayed() {
    let timeouts = Timeouts { pooled: Duration::from_secs(50), ..Timeouts::default() };
    let mut host = Host::with_server(2, timeouts);
    let (first, second) = (host.connect(0, false), host.connect(1, false));
    ask(&mut host, first, GET);
    host.pass(Duration::from_secs(30));
    host.hold_letters(true);
    host.say(second, GET);
    host.settle();
    assert_eq!(host.leak_check(1).waiting, 1);
    host.reset(second);
    host.settle();
    host.hold_letters(false);
    host.settle();
    assert_eq!([0, 1].map(|worker| host.leak_check(worker).pooled), [0, 1]);
    host.pass(Duration::from_secs(19));
    assert_eq!(host.leak_check(1).pooled, 1);
    host.pass(Duration::from_secs(2));
    assert_eq!(host.leak_check(1).upstreams, 0);
}

/// The client's preface and an empty SETTINGS frame.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";

/// Regression test: when a turn filled the connection's buffer and the socket took all of it at once, the gateway did
/// not send the remaining output of other streams before the client sent another frame. Clients with large windows
/// stalled.
#[test]
fn output_beyond_a_turn_follows_without_input() {
    const BODY: usize = 100_000;
    let mut host = Host::with_body("x".repeat(BODY));
    let client = host.connect(0, false);
    host.say(client, PREFACE);
    // SETTINGS_INITIAL_WINDOW_SIZE and WINDOW_UPDATE of the connection: 16 MiB more.
    host.say(client, b"\0\0\x06\x04\0\0\0\0\0\0\x04\x01\0\0\0\0\0\x04\x08\0\0\0\0\0\x01\0\0\0");
    for stream in [1, 3, 5, 7] {
        // GET, http, /, and the authority h.
        host.say(client, &[0, 0, 6, 1, 5, 0, 0, 0, stream, 0x82, 0x86, 0x84, 0x41, 1, b'h']);
    }
    host.settle();
    let got = host.take(client);
    assert_eq!(got.iter().filter(|byte| **byte == b'x').count(), 4 * BODY);
}
