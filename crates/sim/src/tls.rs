//! The gateway and its peers with TLS where a plan wants it.

use crate::message::HOST;
use crate::net::{SimListener, SimNet};
use crate::plan::Plan;
use std::net::SocketAddr;
use std::sync::OnceLock;
use std::time::Duration;
use weir_gateway::bare::{Bare, Bound, Role};
use weir_gateway::document::{Listener, MinRate, Route, Server, Service, ServiceTls};
use weir_gateway::{Config, Timeouts};
use weir_tls::issue::{Authority, KeyKind, issue};
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
        listeners: [("web".to_owned(), Listener::new(bind))].into(),
        services: [("upstream".to_owned(), upstream)].into(),
        routes: routes(plan),
        timeouts,
        min_rate: min_rate(plan),
        ..Config::default()
    };
    let role = if plan.tunnels { Role::Tunnel } else { Role::Gateway };
    let server = plan.client_tls.then(|| match plan.certificates {
        0 | 1 => server().clone(),
        count => server_of_many(count),
    });
    let client = plan.upstream_tls.then(|| (client().clone(), name()));
    Bound::new(role, &config, server, client).expect("a valid configuration")
}

/// A rough network is slower than any client should be, which only counts where things may go wrong.
fn min_rate(plan: &Plan) -> MinRate {
    match plan.is_plain() {
        true => MinRate { request: 0, answer: 0, ..MinRate::default() },
        false => MinRate { request: 5000, answer: 2000, window: Duration::from_secs(2) },
    }
}

/// So many routes to the upstream, five for each host; none: one for everything.
fn routes(plan: &Plan) -> Vec<Route> {
    let to_upstream = Route {
        service: Some("upstream".to_owned()),
        request_buffer: plan.buffers.then_some(16 * 1024),
        response_buffer: plan.buffers.then_some(1024 * 1024),
        ..Route::default()
    };
    if plan.routes == 0 {
        return vec![to_upstream];
    }
    let route = |index: usize| {
        let host = if index < 5 { HOST.to_owned() } else { format!("h{}.example", index / 5) };
        let path = if index.is_multiple_of(5) { format!("{ROUTED}/*") } else { format!("/p{}/*", index % 5) };
        Route { host: vec![host], path: vec![path.parse().expect("a valid path")], ..to_upstream.clone() }
    };
    (0..plan.routes).map(route).collect()
}

/// What the paths of [`HOST`]'s first route begin with.
pub(crate) const ROUTED: &str = "/p0";

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
    NAME.parse().expect("a valid name")
}

fn server() -> &'static weir_tls::Server {
    static SERVER: OnceLock<weir_tls::Server> = OnceLock::new();
    SERVER.get_or_init(|| {
        let issued = issue(&[NAME], KeyKind::EcdsaP256).expect("a certificate");
        weir_tls::Server::new(&ServerSettings::new(issued.identity())).expect("valid settings")
    })
}

/// With so many certificates for other names, too.
fn server_of_many(count: usize) -> weir_tls::Server {
    let authority = Authority::new().expect("an authority");
    let others = (1..count).map(|index| format!("h{index}.example"));
    let names: Vec<_> = others.chain([NAME.to_owned()]).collect();
    let identity = |name: &String| {
        authority.issue(&[name.as_str()], KeyKind::EcdsaP256).expect("a certificate").identity()
    };
    let mut identities = names.iter().map(identity);
    let first = identities.next().expect("at least one name");
    let settings = ServerSettings::new(first);
    let identities = settings.identities.into_iter().chain(identities).collect();
    weir_tls::Server::new(&ServerSettings { identities, ..settings }).expect("valid settings")
}

/// The name that clients and the gateway ask for.
const NAME: &str = "origin.example";

fn client() -> &'static Client {
    static CLIENT: OnceLock<Client> = OnceLock::new();
    CLIENT.get_or_init(|| {
        // The certificates are the simulation's own, and not what it is about.
        let settings = ClientSettings { roots: Roots::DangerouslyNone, ..ClientSettings::default() };
        Client::new(&settings).expect("valid settings")
    })
}
