//! The gateway and its peers with TLS where a plan wants it.

use crate::net::{SimListener, SimNet};
use crate::plan::Plan;
use std::net::SocketAddr;
use std::sync::OnceLock;
use weir_gateway::bare::{Bare, Role};
use weir_gateway::{Settings, Timeouts, UpstreamTls};
use weir_http1::Limits;
use weir_tls::issue::{KeyKind, issue};
use weir_tls::{Client, ClientSettings, PeerName, Roots, Server, ServerSettings, Session};

/// A gateway's settings.
pub(crate) fn settings(upstream_tls: bool, timeouts: Timeouts) -> Settings {
    let to = if upstream_tls { "https://origin.example" } else { "http://origin.example" };
    Settings {
        listen: Vec::new(),
        server_tls: None,
        to: to.parse().expect("a valid URL"),
        upstream_tls: UpstreamTls { client: ClientSettings::default(), name: None },
        workers: None,
        cores: None,
        limits: Limits::default(),
        max_body: None,
        timeouts,
    }
}

/// A worker with one listener and one upstream.
pub(crate) fn gateway(net: SimNet, settings: Settings, plan: &Plan) -> Bare<SimNet> {
    let acceptor = plan.client_tls.then(|| server().core());
    let tls = plan.upstream_tls.then(|| (client().core(), name()));
    let role = if plan.tunnels { Role::Tunnel } else { Role::Gateway };
    let listeners = vec![(SimListener, acceptor)];
    Bare::new(role, net, settings, address(0), tls, listeners).expect("nothing here can fail")
}

/// Where the upstream is after it has moved so often.
pub(crate) fn address(moves: u8) -> SocketAddr {
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

fn server() -> &'static Server {
    static SERVER: OnceLock<Server> = OnceLock::new();
    SERVER.get_or_init(|| {
        let issued = issue(&["origin.example"], KeyKind::EcdsaP256).expect("a certificate");
        Server::new(&ServerSettings::new(issued.identity())).expect("valid settings")
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
