//! Limits of the process: what it does when it has no more of something.

mod descriptors;
mod handshakes;
mod memory;

use super::{metric, named};
use crate::common::{Client, DEADLINE, Peer, Switch, Upstream, Weir, poll_until};

const GET: &str = "GET / HTTP/1.1\r\nHost: h\r\n\r\n";

/// An upstream that answers each request once the switch is thrown.
fn held(switch: &Switch) -> Upstream {
    let switch = switch.clone();
    Upstream::start(None, move |peer: &mut Peer| {
        while peer.request().is_some() {
            switch.wait();
            peer.answer("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
        }
    })
}

fn reload(weir: &Weir) -> u16 {
    Client::connect(weir.admin(), None).ask("POST /reload HTTP/1.1\r\nHost: a\r\n\r\n").status
}
