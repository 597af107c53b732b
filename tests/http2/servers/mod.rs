//! HTTP/2 to servers: translation of requests and responses, refusals and violations by servers, and sharing of
//! connections. The servers send raw frames; the clients speak HTTP/1.1 or HTTP/2.

mod ask;
mod bodies;
mod broken;
mod cuts;
mod early;
mod failover;
mod fields;
mod go_away;
mod heads;
mod interims;
mod limits;
mod lines;
mod malformed;
mod not_http2;
mod pool;
mod refused;
mod reload;
mod sharing;
mod silence;
mod trailers;
mod websocket;
mod windows;

use super::Client;
use super::fields::request;
use super::server::{Connection, Request, Server};
use crate::common::{Client as Http1, Weir};
use ask::{BOTH, Content, Version, ask};

/// A gateway with a service of these servers. `service`: further lines of the service; `rest`: further lines of its
/// route, and of the configuration.
fn gateway(servers: &[&Server], service: &str, rest: &str) -> Weir {
    Weir::configured(&config(1, servers, service, rest), 1)
}

fn config(workers: usize, servers: &[&Server], service: &str, rest: &str) -> String {
    let servers: Vec<_> = servers.iter().map(|server| format!("http://{}", server.address())).collect();
    format!(
        "workers = {workers}\n[listener.web]\nbind = '127.0.0.1:0'\n[service.app]\nservers = {servers:?}\nhttp2 = true\n\
         {service}\n[[route]]\nservice = 'app'\n{rest}"
    )
}

/// The value of a metric without labels.
fn metric(weir: &Weir, name: &str) -> u64 {
    let metrics = weir.ask_admin("GET /metrics");
    let line = metrics.text().lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    line.unwrap_or_else(|| panic!("{name} in {}", metrics.text())).parse().unwrap()
}

/// Lines of a configuration with an admin address.
const ADMIN: &str = "[admin]\nbind = '127.0.0.1:0'\n";
