//! The gateway with a configuration file.

mod check;
mod documented;
mod health;
mod import;
mod observe;
mod preface;
mod queue;
mod routes;
mod services;
mod tickets;
mod tls;
mod tracing;
mod unix;

use crate::common::{Answer, Client, Peer, Upstream, Weir};

/// An upstream that answers each request with a name and the request's head.
fn named(name: &'static str) -> Upstream {
    Upstream::start(None, move |peer: &mut Peer| {
        while let Some(request) = peer.request() {
            let body = format!("{name}\n{}", request.head);
            peer.answer(format!(
                "HTTP/1.1 200 OK\r\nX-Server: {name}\r\nContent-Length: {}\r\n\r\n{body}",
                body.len()
            ));
        }
    })
}

/// Sends `GET TARGET` for a host on a new connection.
fn get(weir: &Weir, host: &str, target: &str) -> Answer {
    ask(weir, &format!("GET {target} HTTP/1.1\r\nHost: {host}\r\n\r\n"))
}

fn ask(weir: &Weir, request: &str) -> Answer {
    Client::connect(weir.address(), None).ask(request)
}
