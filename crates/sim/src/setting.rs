//! The gateway's configuration in a run, and how it changes.

use crate::message::HOST;
use crate::plan::Plan;
use crate::tls::{PASSED, client, name, server, server_of_many};
use std::net::{Ipv4Addr, SocketAddr};
use std::ops::RangeInclusive;
use std::time::Duration;
use weir_gateway::bare::{Bound, Role};
use weir_gateway::document::{
    Eject, EjectOn, ErrorStatuses, Listener, MinRate, Mirror, Passthrough, Retries, Route, Server, Service,
    ServiceTls,
};
use weir_gateway::{Config, Timeouts};

/// What changes from one configuration to the next, and beside it.
#[derive(Clone, Debug)]
pub(crate) struct Setting {
    /// Its number, from 0.
    pub(crate) version: u32,
    /// How often each server of the upstream has moved.
    pub(crate) moves: Vec<u8>,
    /// Whether each of them is drained.
    pub(crate) drained: Vec<bool>,
    pub(crate) timeouts: Timeouts,
}

impl Setting {
    /// The first one of a plan.
    pub(crate) fn new(plan: &Plan, timeouts: Timeouts) -> Self {
        Self { version: 0, moves: vec![0; plan.servers], drained: vec![false; plan.servers], timeouts }
    }

    /// The gateway's configuration.
    pub(crate) fn bound(&self, plan: &Plan) -> Bound {
        let scheme = if plan.upstream_tls { "https" } else { "http" };
        let at = |address: [u8; 4]| {
            let url = format!("{scheme}://{}", SocketAddr::from((address, 443)));
            Server::new(url.parse().expect("a valid URL"))
        };
        let of = |servers: Vec<Server>| {
            // The certificates are the simulation's own, and not what it is about.
            let tls = ServiceTls { insecure: plan.upstream_tls, ..ServiceTls::default() };
            Service { tls, ..Service::new(servers) }
        };
        let origins = self.moves.iter().enumerate().map(|(server, moves)| at(origin(server, *moves)));
        let upstream = of(origins.collect());
        let upstream = Service {
            max_connections: plan.most_connections,
            max_waiting: plan.most_waiting.filter(|_| plan.most_connections.is_some()),
            retry_percent: plan.retry_percent,
            proxy_protocol: plan.announces,
            eject: eject(plan),
            ..upstream
        };
        let mut services = vec![("upstream".to_owned(), upstream)];
        if plan.mirrors {
            services.push(("mirror".to_owned(), of(vec![at(MIRROR)])));
        }
        if plan.passes {
            services.push(("passed".to_owned(), of(vec![at(BEHIND)])));
        }
        let mut listener = Listener::new(vec!["192.0.2.1:80".parse().expect("a valid address")]);
        listener.half_close = plan.half_close;
        if plan.announced {
            listener.proxy_protocol = vec!["192.0.2.0/24".parse().expect("a valid network")];
        }
        if plan.passes {
            listener.passthrough =
                vec![Passthrough { name: vec![PASSED.to_owned()], service: "passed".to_owned() }];
        }
        let config = Config {
            workers: Some(plan.workers),
            listeners: [("web".to_owned(), listener)].into(),
            services: services.into_iter().collect(),
            routes: self.routes(plan),
            timeouts: self.timeouts,
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

    /// So many routes to the upstream, five for each host; none: one for everything.
    fn routes(&self, plan: &Plan) -> Vec<Route> {
        let mut to_upstream = Route {
            service: Some("upstream".to_owned()),
            request_buffer: plan.buffers.then_some(REQUEST_BUFFER),
            response_buffer: plan.buffers.then_some(1024 * 1024),
            retry: Retries { requests: plan.retry, on: statuses(plan.retries_errors, RETRIED) },
            ..Route::default()
        };
        if plan.marks {
            let mark = (VERSION.to_owned(), self.version.to_string());
            to_upstream.request_headers.set = [mark.clone()].into();
            to_upstream.response_headers.set = [mark].into();
        }
        if plan.mirrors {
            let service = "mirror".to_owned();
            let mirror = Mirror { service, percent: 70.0, max_body: 64 * 1024, max_in_flight: 3 };
            to_upstream.mirror = Some(mirror);
        }
        if plan.routes == 0 {
            return vec![to_upstream];
        }
        let route = |index: usize| {
            let host = if index < 5 { HOST.to_owned() } else { format!("h{}.example", index / 5) };
            let path =
                if index.is_multiple_of(5) { format!("{ROUTED}/*") } else { format!("/p{}/*", index % 5) };
            Route { host: vec![host], path: vec![path.parse().expect("a valid path")], ..to_upstream.clone() }
        };
        (0..plan.routes).map(route).collect()
    }
}

/// When a server gets no requests for a while.
fn eject(plan: &Plan) -> Eject {
    let on = EjectOn { statuses: statuses(plan.ejects_errors, 500..=599), ..EjectOn::default() };
    match plan.eject_percent {
        None => Eject { failures: 2, on, ..Eject::default() },
        percent => Eject { failures: 0, percent, min_requests: Some(4), on, ..Eject::default() },
    }
}

fn statuses(are_meant: bool, statuses: RangeInclusive<u16>) -> ErrorStatuses {
    if are_meant { statuses.into() } else { ErrorStatuses::default() }
}

/// Errors after which another server is asked, where any are.
pub(crate) const RETRIED: RangeInclusive<u16> = 502..=504;

/// A rough network is slower than any client should be, which only counts where things may go wrong.
fn min_rate(plan: &Plan) -> MinRate {
    match plan.is_faultless() {
        true => MinRate { request: 0, answer: 0, ..MinRate::default() },
        false => MinRate { request: 5000, answer: 2000, window: Duration::from_secs(2) },
    }
}

/// Where a server of the upstream is after it has moved so often.
pub(crate) fn origin(server: usize, moves: u8) -> [u8; 4] {
    // RFC 2544: reserved for tests of the network.
    [198, 18, server as u8, moves]
}

/// The server of the upstream at an address, and how often it had moved; `None`: another one is there.
pub(crate) fn server_at(address: [u8; 4]) -> Option<(usize, u8)> {
    let [198, 18, server, moves] = address else { return None };
    Some((usize::from(server), moves))
}

/// The address of a server, and until when a worker says that it gets no requests.
pub(crate) type Ejection = ([u8; 4], Duration);

/// The ejection of which a line of the log tells.
pub(crate) fn ejected(line: &str, now: Duration) -> Option<Ejection> {
    let (place, period) = line.split_once("://")?.1.split_once(" keeps failing; it gets no requests for ")?;
    let address: Ipv4Addr = place.split(':').next()?.parse().ok()?;
    let period: f64 = period.strip_suffix(" s")?.parse().ok()?;
    Some((address.octets(), now + Duration::from_secs_f64(period)))
}

/// The server that gets copies.
pub(crate) const MIRROR: [u8; 4] = [198, 19, 0, 1];

/// The server that terminates TLS itself.
pub(crate) const BEHIND: [u8; 4] = [198, 19, 0, 2];

/// So much of a body is waited for, where messages are buffered.
pub(crate) const REQUEST_BUFFER: u64 = 16 * 1024;

/// The field in which the gateway says which configuration it follows.
pub(crate) const VERSION: &str = "X-Version";

/// What the paths of [`HOST`]'s first route begin with.
pub(crate) const ROUTED: &str = "/p0";
