//! Flow control in both directions, fairness, and bounded output.

use super::client::{Client, large_windows};
use super::responses::content;
use crate::server::Server;
use weir_http2::{Config, Settings, StreamNo};

#[test]
fn a_response_larger_than_the_window_continues_when_there_is_room() {
    let server = Server::start();
    let mut client = Client::new(&server);
    client.credits = false;
    let (large, short) = (client.get("/bytes/200000"), client.get("/bytes/5"));
    client.send();
    let window = Config::default().settings.initial_window_size as usize;
    let mut received = 0;
    while received < 200_000 {
        let most = (received + window).min(200_000);
        client.until(|client| client.responses[&large].body.len() == most);
        // Without room, nothing follows; other streams are not concerned.
        client.barrier();
        assert_eq!(client.responses[&large].body.len(), most);
        client.credit(large, most - received);
        received = most;
    }
    assert!(client.response(large).body == content(200_000));
    assert_eq!(client.response(short).body, b"01234");
    drop(client);
    server.stop();
}

/// Each byte of a short text, an echo and a pattern needs its own update.
#[test]
fn windows_of_one_byte_are_enough() {
    let server = Server::start();
    let settings = Settings { initial_window_size: 1, ..Config::default().settings };
    let mut client = Client::with(&server, Config { settings, ..Config::default() });
    let (text, bytes) = (client.get("/nothing"), client.get("/bytes/10"));
    let echo = client.request("POST", "/echo", &[], false);
    assert_eq!(client.data(echo, b"echoed", true), 6);
    assert_eq!(client.response(text).body, b"Not found.\n");
    assert_eq!(client.response(bytes).body, b"0123456789");
    assert_eq!(client.response(echo).body, b"echoed");
    drop(client);
    server.stop();
}

#[test]
fn an_echo_takes_no_more_than_the_client_has_taken() {
    let server = Server::start();
    let mut client = Client::new(&server);
    client.credits = false;
    let body = content(1_000_000);
    let no = client.request("POST", "/echo", &[], false);
    let mut sent = 0;
    loop {
        let taken = client.data(no, &body[sent..], true);
        sent += taken;
        // Credit precedes the acknowledgement of the second PING, which follows all echoes of the first.
        client.barrier();
        client.barrier();
        if taken == 0 {
            break;
        }
    }
    let window = Config::default().settings.initial_window_size as usize;
    assert_eq!(client.responses[&no].body.len(), window);
    // What the server holds is a window at most.
    assert!((window..=2 * window).contains(&sent), "{sent} bytes sent");
    client.credits = true;
    client.credit(no, window);
    while sent < body.len() {
        client.step();
        sent += client.data(no, &body[sent..], true);
        client.send();
    }
    assert!(client.response(no).body == body);
    drop(client);
    server.stop();
}

#[test]
fn streams_take_turns() {
    const LENGTH: usize = 1_000_000;
    let server = Server::start();
    let mut client = Client::with(&server, large_windows());
    let all = [(); 4].map(|()| client.get(&format!("/bytes/{LENGTH}")));
    client.send();
    let echo = client.request("POST", "/echo", &[], false);
    client.upload(echo, b"not last");
    client.response(echo);
    let is_whole = |client: &Client, no: &StreamNo| client.responses[no].is_complete;
    client.until(|client| all.iter().all(|no| is_whole(client, no)));
    let mut received = all.map(|no| (no, 0));
    for (no, length) in &client.pieces {
        let Some((_, bytes)) = received.iter_mut().find(|(stream, _)| stream == no) else { continue };
        *bytes += length;
        let (least, most) =
            (received.iter().map(|(_, bytes)| bytes).min(), received.iter().map(|(_, bytes)| bytes).max());
        // One frame each: a piece may be a part of one.
        assert!(most.unwrap() - least.unwrap() <= 2 * 16_384, "{received:?}");
    }
    drop(client);
    server.stop();
}

/// The largest send and receive buffers of Linux's defaults, 4 and 6 MiB, and a turn or two.
const BUFFERED: u64 = 16 << 20;

#[test]
fn a_client_that_does_not_read_costs_no_memory() {
    let server = Server::start();
    let mut greedy = Client::with(&server, large_windows());
    for _ in 0..100 {
        greedy.get("/bytes/100000000");
    }
    greedy.send();
    let mut other = Client::new(&server);
    // Each response is a turn of the other connection, which could buffer a quarter of a megabyte in it.
    for _ in 0..500 {
        let no = other.get("/bytes/0");
        other.response(no);
    }
    let sent = server.handle.totals().bytes_sent;
    assert!((1..BUFFERED).contains(&sent), "{sent} bytes sent");
    drop((greedy, other));
    server.stop();
}
