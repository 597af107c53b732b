//! hyper's server with concurrent requests: on as many connections as its limit of streams requires, and across
//! graceful shutdowns.

use crate::common::{DEADLINE, pattern, poll_until};
use crate::http2::behind::Behind;
use crate::http2::client::Client;
use crate::servers::Server;

fn behind() -> Behind {
    Behind::routed(false, "request_trailers = 'x-sent'", |_, tls| Some(Server::hyper(tls))).unwrap()
}

/// Each response waits for all requests, and the server allows 20 per connection.
#[test]
fn requests_meet_across_connections() {
    let behind = behind();
    let mut client = Client::connect(behind.weir.address());
    // The response to the first request brings the server's limit.
    assert_eq!(client.get(1, "/connections").response(1).text(), "1");
    let streams = || (3..).step_by(2).take(90);
    for stream in streams() {
        client.get(stream, "/together/90");
    }
    for stream in streams() {
        let response = client.response(stream);
        assert_eq!((response.status(), response.text()), (200, "90"), "{stream}");
    }
    let connections: usize = client.get(201, "/connections").response(201).text().parse().unwrap();
    assert!(connections >= 5, "{connections}");
    behind.stop();
}

/// Uploads that began before GOAWAY finish on the old connection; later requests use another one.
#[test]
fn uploads_outlive_a_graceful_shutdown() {
    let behind = behind();
    let body = pattern(10_000);
    let (first, rest) = body.split_at(5000);
    let mut client = Client::connect(behind.weir.address());
    for stream in [1, 3, 5] {
        client.post(stream, "/echo").data(stream, first, false);
        client.read_until(|client| client.get_stream(stream).body.len() == first.len());
    }
    assert_eq!(client.get(7, "/last").response(7).text(), "last");
    let mut next = 9;
    poll_until(DEADLINE, "another connection", || {
        let response = client.get(next, "/connections").response(next);
        next += 2;
        response.text() == "2"
    });
    for stream in [1, 3, 5] {
        client.data(stream, rest, false).headers(stream, &[(b"x-sent", b"1")], true);
        let response = client.response(stream);
        assert!(response.ended && response.body == body, "{stream}: {} bytes", response.body.len());
        assert_eq!(response.trailers, "x-sent: 1\r\nx-sum: 10000\r\n");
    }
    behind.stop();
}

/// One shutdown per round, between requests whose responses the client does not await.
#[test]
fn no_request_is_lost_in_shutdowns() {
    const ROUNDS: u32 = 50;
    let behind = behind();
    let mut client = Client::connect(behind.weir.address());
    let body = pattern(3000);
    for round in 0..ROUNDS {
        let streams = (1 + 60 * round..).step_by(2).take(30);
        for (at, stream) in streams.clone().enumerate() {
            match at {
                10 => client.get(stream, "/last"),
                _ if at % 2 == 0 => client.get(stream, "/bytes/3000"),
                _ => client.post(stream, "/echo").data(stream, &body, true),
            };
            client.flush();
        }
        for (at, stream) in streams.enumerate() {
            let response = client.response(stream);
            let expected = if at == 10 { 4 } else { body.len() };
            let got = (response.status(), response.ended, response.body.len());
            assert_eq!(got, (200, true, expected), "{round}, {at}: {response:?}");
            assert!(at % 2 == 0 || response.body == body, "{round}, {at}");
        }
    }
    let last = 1 + 60 * ROUNDS;
    let connections: u32 = client.get(last, "/connections").response(last).text().parse().unwrap();
    assert!(connections >= ROUNDS, "{connections}");
    behind.stop();
}
