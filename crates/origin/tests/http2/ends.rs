//! The end of a connection: by the client, or by a drain.

use super::client::{Client, large_windows};
use crate::server::Server;
use std::net::Shutdown;
use std::thread;
use std::time::{Duration, Instant};
use weir_http2::ErrorCode;

/// Waits until the server has counted this many requests.
fn wait_for_requests(server: &Server, number: u64) {
    let deadline = Instant::now() + Duration::from_secs(20);
    while server.handle.totals().requests < number {
        assert!(Instant::now() < deadline);
        thread::yield_now();
    }
}

#[test]
fn a_drain_finishes_requests_in_flight() {
    let server = Server::start();
    let mut busy = Client::with(&server, large_windows());
    let mut idle = Client::new(&server);
    let (delayed, large) = (busy.get("/bytes/5?delay_ms=100"), busy.get("/bytes/3000000"));
    busy.send();
    wait_for_requests(&server, 2);
    server.handle.drain();
    idle.read_to_end();
    busy.read_to_end();
    // The first GOAWAY allows requests in transit, the second has the last stream.
    assert_eq!(idle.goaways, [((1 << 31) - 1, ErrorCode::NO_ERROR), (0, ErrorCode::NO_ERROR)]);
    assert_eq!(busy.goaways, [((1 << 31) - 1, ErrorCode::NO_ERROR), (3, ErrorCode::NO_ERROR)]);
    assert_eq!(busy.responses[&delayed].body, b"01234");
    assert_eq!(busy.responses[&large].body.len(), 3_000_000);
    drop((busy, idle));
    let totals = server.stop();
    assert_eq!((totals.requests, totals.answers, totals.failed), (2, 2, 0));
}

#[test]
fn a_client_that_has_said_all_still_gets_its_responses() {
    let server = Server::start();
    let mut client = Client::with(&server, large_windows());
    let (delayed, large) = (client.get("/bytes/5?delay_ms=20"), client.get("/bytes/3000000"));
    client.send();
    client.socket.shutdown(Shutdown::Write).unwrap();
    client.read_to_end();
    assert_eq!(client.responses[&delayed].body, b"01234");
    assert_eq!(client.responses[&large].body.len(), 3_000_000);
    let totals = server.stop();
    assert_eq!((totals.answers, totals.failed), (2, 0));
}

/// A stream that waits for the client cannot end.
#[test]
fn a_client_that_leaves_a_request_has_failed() {
    let server = Server::start();
    let mut client = Client::new(&server);
    let upload = client.request("POST", "/bytes/1", &[], false);
    assert_eq!(client.data(upload, b"a part", false), 6);
    client.send();
    client.socket.shutdown(Shutdown::Write).unwrap();
    client.read_to_end();
    let totals = server.stop();
    assert_eq!((totals.answers, totals.failed), (0, 1));
}
