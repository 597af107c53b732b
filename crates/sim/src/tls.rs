//! The gateway and its peers with TLS where a plan wants it.

use crate::net::{SimListener, SimNet};
use crate::plan::Plan;
use std::net::SocketAddr;
use std::sync::OnceLock;
use weir_gateway::bare::{Bare, Bound, Role};
use weir_gateway::document::{Listener, Route, Server, Service, ServiceTls};
use weir_gateway::{Config, Timeouts};
use weir_tls::issue::{KeyKind, issue};
use weir_tls::{Client, ClientSettings, PeerName, Roots, ServerSettings, Session};

/// A gateway's configuration, whose upstream has moved so often, with these timeouts.
pub(crate) fn bound(plan: &Plan, moves: u8, timeouts: Timeouts) -> Bound {
    let scheme = if plan.upstream_tls { "https" } else { "http" };
    let origin = Server::new(format!("{scheme}://{}", address(moves)).parse().expect("a valid URL"));
    // The certificates are the simulation's own, and not what it is about.
    let tls = ServiceTls { insecure: plan.upstream_tls, ..ServiceTls::default() };
    let max_connections = plan.most_connections;
    let upstream = Service { tls, max_connections, ..Service::new(vec![origin]) };
    let bind = vec!["192.0.2.1:80".parse().expect("a valid address")];
    let config = Config {
        workers: Some(1),
        listeners: [(
            "web".to_owned(),
            Listener {
                bind,
                mode: None,
                trusted_proxies: Vec::new(),
                proxy_field: None,
                proxy_protocol: Vec::new(),
                passthrough: Vec::new(),
                tls: None,
            },
        )]
        .into(),
        services: [("upstream".to_owned(), upstream)].into(),
        routes: vec![Route {
            service: Some("upstream".to_owned()),
            request_buffer: plan.buffers.then_some(16 * 1024),
            response_buffer: plan.buffers.then_some(1024 * 1024),
            ..Route::default()
        }],
        timeouts,
        ..Config::default()
    };
    let role = if plan.tunnels { Role::Tunnel } else { Role::Gateway };
    let server = plan.client_tls.then(|| server().clone());
    let client = plan.upstream_tls.then(|| (client().clone(), name()));
    Bound::new(role, &config, server, client).expect("a valid configuration")
}

/// A worker with one listener and one upstream.
pub(crate) fn gateway(net: SimNet, bound: Bound) -> Bare<SimNet> {
    Bare::new(net, bound, vec![SimListener]).expect("nothing here can fail")
}

/// Where the upstream is after it has moved so often.
fn address(moves: u8) -> SocketAddr {
    SocketAddr::from(([198, 51, 100, moves], 443))
}

/// A client's session with the gateway.
pub(crate) fn client_session() -> Session {
    client().core().connect(&name())
}

/// An origin's session with the gateway.
pub(crate) fn server_session() -> Session {
    server().core().accept()
}

fn name() -> PeerName {
    "origin.example".parse().expect("a valid name")
}

fn server() -> &'static weir_tls::Server {
    static SERVER: OnceLock<weir_tls::Server> = OnceLock::new();
    SERVER.get_or_init(|| {
        let issued = issue(&["origin.example"], KeyKind::EcdsaP256).expect("a certificate");
        weir_tls::Server::new(&ServerSettings::new(issued.identity())).expect("valid settings")
    })
}

fn client() -> &'static Client {
    static CLIENT: OnceLock<Client> = OnceLock::new();
    CLIENT.get_or_init(|| {
        // The certificates are the simulation's own, and not what it is about.
        let settings = ClientSettings { roots: Roots::DangerouslyNone, ..ClientSettings::default() };
        Client::new(&settings).expect("valid settings")
    })
}
