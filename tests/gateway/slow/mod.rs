//! Clients and servers that send or read a body too slowly and so occupy a thread of the server.

mod answers;
mod requests;
mod settings;

use super::counting;
use crate::common::{Client, Peer, Switch, Upstream, Weir, poll_until};
use std::time::Duration;
use weir_http::Method;

const GET: &str = "GET / HTTP/1.1\r\nHost: h\r\n\r\n";

/// The default rates of these tests, at which a client that pauses for a window exceeds its limit.
const STRICT: &str = "request = '1MiB'\nresponse = '1MiB'\nwindow = '2s'\n";

/// A gateway with one worker and a route to an upstream; `route` has further lines of that route, `rest` what follows.
/// The gateway buffers requests to `/judged`.
fn gateway(upstream: &Upstream, route: &str, rest: &str) -> Weir {
    Weir::configured(&configuration(upstream, route, rest), 1)
}

fn configuration(upstream: &Upstream, route: &str, rest: &str) -> String {
    format!(
        "workers = 1\n[admin]\nbind = '127.0.0.1:0'\n[listener.web]\nbind = '127.0.0.1:0'\n[service.app]\nservers = 'http://{}'\n\
         [[route]]\npath = '/judged'\nservice = 'app'\nrequest_buffer = '64KiB'\nmin_rate.request = '1MiB'\nmin_rate.window = '1100ms'\n\
         [[route]]\nservice = 'app'\n{route}\n{rest}",
        upstream.address
    )
}

/// Lets at least one window pass: two clients, one after the other, begin a body and exceed the limit.
fn let_a_window_pass(weir: &Weir) {
    for _ in 0..2 {
        let mut judged = Client::connect(weir.address(), None);
        let answer = judged.ask("POST /judged HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\n12");
        assert_eq!((answer.status, answer.text().contains("body_too_slow")), (408, true), "{}", answer.head);
    }
}

/// Sends a byte now and then until a response or a close arrives.
fn trickle(client: &mut Client, bytes: &mut impl Iterator<Item = u8>) {
    poll_until(crate::common::DEADLINE, "the gateway ends a trickle", || {
        if client.stream.has_news_within(Duration::from_millis(20)) {
            return true;
        }
        // A failed send means that the other side has closed.
        bytes.next().is_none_or(|byte| client.stream.send(&[byte]).is_err())
    });
}

/// An upstream that sends the first part of a response, and the second once the switch is thrown.
fn in_two_parts(switch: &Switch, first: &'static str, second: &'static str) -> Upstream {
    let switch = switch.clone();
    Upstream::start(None, move |peer: &mut Peer| {
        if peer.head().is_some() && peer.answer(first) {
            switch.wait();
            peer.answer(second);
            peer.read_to_end();
        }
    })
}

/// Expects the response to a complete body.
fn expect_length(client: &mut Client, length: usize) {
    let answer = client.answer(Method::Post);
    assert_eq!((answer.status, answer.text()), (200, length.to_string().as_str()), "{}", answer.head);
}
