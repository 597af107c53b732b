//! The gateway with a configuration file.

mod accept;
mod activation;
mod addresses;
mod admin_requests;
mod admission;
mod buffering;
mod certificates;
mod check;
mod curves;
mod deadlines;
pub(crate) mod dns;
mod documented;
mod drain;
mod endpoints;
mod exposition;
mod failures;
mod forwarded;
mod health;
mod https_only;
mod import;
mod late_requests;
mod latency;
mod listeners_reload;
mod metrics;
mod mirror;
mod misdirected;
mod newcomers;
mod observe;
mod own;
mod pairs;
mod paths;
mod preface;
mod prometheus;
mod queue;
mod records;
mod refused;
pub(crate) mod reload;
mod resources;
mod rotation;
mod routes;
mod servers;
mod services;
mod settings;
mod slow;
mod split;
mod tcp;
mod tickets;
mod tls;
mod top;
mod tracing;
mod trailers;
mod underscores;
mod unix;
mod upgrade;
mod via;
mod written;

use crate::common::{Answer, Client, Peer, Switch, Upstream, Weir};

/// An upstream that responds to each request with a name and the request's head.
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

/// An upstream that responds once the test throws the switch.
fn held_back(switch: &Switch, answer: &'static str) -> Upstream {
    let switch = switch.clone();
    Upstream::start(None, move |peer: &mut Peer| {
        while peer.request().is_some() {
            switch.wait();
            peer.answer(answer);
        }
    })
}

/// An upstream that responds with the length of each request's body.
fn counting() -> Upstream {
    let switch = Switch::default();
    switch.throw();
    counting_once(&switch)
}

/// Like [`counting`], but responds only once the test throws the switch.
fn counting_once(switch: &Switch) -> Upstream {
    let switch = switch.clone();
    Upstream::start(None, move |peer: &mut Peer| {
        while let Some(request) = peer.request() {
            switch.wait();
            let body = request.body.len().to_string();
            peer.answer(format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len()));
        }
    })
}

/// A gateway with one worker and one route to an upstream; `route` has further lines of that route and whatever follows
/// it.
pub(crate) fn gateway_to(upstream: &Upstream, route: &str) -> Weir {
    Weir::configured(&config_to(upstream, route), 1)
}

/// The configuration of [`gateway_to`].
pub(crate) fn config_to(upstream: &Upstream, route: &str) -> String {
    format!(
        "workers = 1\n[listener.web]\nbind = '127.0.0.1:0'\n[service.app]\nservers = 'http://{}'\n[[route]]\nservice = 'app'\n{route}",
        upstream.address
    )
}

/// Sends `GET TARGET` for a host on a new connection.
fn get(weir: &Weir, host: &str, target: &str) -> Answer {
    ask(weir, &format!("GET {target} HTTP/1.1\r\nHost: {host}\r\n\r\n"))
}

/// The sum of a metric over its labels, from the admin address.
pub(crate) fn metric(weir: &Weir, name: &str) -> u64 {
    let answer = weir.ask_admin("GET /metrics");
    let samples = answer
        .text()
        .lines()
        .filter(|line| line.strip_prefix(name).is_some_and(|rest| rest.starts_with(['{', ' ', ','])));
    samples.map(|line| line.rsplit(' ').next().unwrap().parse::<u64>().unwrap()).sum()
}

fn ask(weir: &Weir, request: &str) -> Answer {
    Client::connect(weir.address(), None).ask(request)
}
