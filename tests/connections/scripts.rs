//! Requests and upstream responses for the tests of connections.

use crate::common::Peer;

pub(crate) const GET: &str = "GET / HTTP/1.1\r\nHost: h\r\n\r\n";
pub(crate) const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

/// Responds to each request with its target.
pub(crate) fn echo_target(peer: &mut Peer) {
    while let Some(request) = peer.request() {
        let target = request.head.split(' ').nth(1).unwrap();
        peer.answer(format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{target}", target.len()));
    }
}
