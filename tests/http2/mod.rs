//! HTTP/2 with other programs as clients of the gateway and the test server, and with clients that send raw frames to
//! the gateway: translation of their requests to HTTP/1.1, the cost of hostile clients, and resources shared by
//! streams.

mod behind;
mod bodies;
mod client;
mod clients;
mod downgrade;
mod drain;
mod fields;
mod floods;
mod grpc;
mod h2spec;
mod interop;
mod load_grpc;
mod measures;
mod misdirected;
mod negotiation;
mod own;
mod peers;
mod priorities;
mod programs;
mod responses;
mod server;
mod servers;
mod stalls;
mod tonic;
mod upstreams;
mod violations;
mod websocket;
mod windows;

use crate::common::{Peer, Switch, Upstream, Weir};
use client::Client;

const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

/// A gateway with one service, with further lines of its route and of the configuration.
fn gateway(upstream: &Upstream, route: &str, rest: &str) -> Weir {
    listening("", upstream, route, rest)
}

/// As [`gateway`], with further lines of the listener.
fn listening(listener: &str, upstream: &Upstream, route: &str, rest: &str) -> Weir {
    let config = format!(
        "workers = 1\n[listener.web]\nbind = '127.0.0.1:0'\n{listener}\n[service.app]\nservers = 'http://{}'\n\
         [[route]]\nservice = 'app'\n{route}\n{rest}",
        upstream.address
    );
    Weir::configured(&config, 1)
}

/// An upstream that responds with [`OK`].
fn upstream() -> Upstream {
    Upstream::start(None, |peer: &mut Peer| peer.serve(OK))
}

/// An upstream that responds to `/held` once the test throws the switch, and to other requests at once.
fn holding(switch: &Switch) -> Upstream {
    let switch = switch.clone();
    Upstream::start(None, move |peer: &mut Peer| {
        while let Some(request) = peer.request() {
            if request.head.contains(" /held ") {
                switch.wait();
            }
            peer.answer(OK);
        }
    })
}
