//! The gateway's configuration in a run, and its changes.

use crate::message::{HOST, TRAILER};
use crate::plan::Plan;
use crate::tls::{PASSED, client, h2_client, h2_server, name, server, server_of_many};
use std::net::{Ipv4Addr, SocketAddr};
use std::ops::RangeInclusive;
use std::time::Duration;
use weir_gateway::document::{
    Eject, EjectOn, ErrorStatuses, Listener, MinRate, Mirror, Passthrough, Pool, Retries, Route, Server,
    Service, ServiceTls,
};
use weir_gateway::harness::{Bound, Role};
use weir_gateway::{Config, Timeouts};

/// The part of the configuration that changes during a run, and the drained servers.
#[derive(Clone, Debug)]
pub(crate) struct Setting {
    /// The configuration's number, from 0.
    pub(crate) version: u32,
    /// Number of address changes of each server.
    pub(crate) moves: Vec<u8>,
    /// Whether the listener has its second name.
    pub(crate) renamed: bool,
    /// Whether the gateway uses HTTP/2 towards the upstream's servers.
    pub(crate) http2: bool,
    /// Whether each server is drained.
    pub(crate) drained: Vec<bool>,
    pub(crate) timeouts: Timeouts,
}

impl Setting {
    /// The configuration at the start of a run.
    pub(crate) fn new(plan: &Plan, timeouts: Timeouts) -> Self {
        let (moves, drained) = (vec![0; plan.servers], vec![false; plan.servers]);
        Self { version: 0, moves, renamed: false, http2: plan.http2_servers, drained, timeouts }
    }

    /// The gateway's configuration.
    pub(crate) fn bound(&self, plan: &Plan) -> Bound {
        let scheme = if plan.upstream_tls { "https" } else { "http" };
        let at = |address: [u8; 4]| {
            let url = format!("{scheme}://{}", SocketAddr::from((address, 443)));
            Server::new(url.parse().expect("a valid URL"))
        };
        let of = |servers: Vec<Server>| {
            // The simulation creates the certificates, and does not test their verification.
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
            http2: self.http2,
            pool: Pool { max_streams: plan.most_streams.filter(|_| self.http2), ..Pool::default() },
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
            listeners: [(if self.renamed { "renamed" } else { "web" }.to_owned(), listener)].into(),
            services: services.into_iter().collect(),
            routes: self.routes(plan),
            timeouts: self.timeouts,
            min_rate: min_rate(plan),
            ..Config::default()
        };
        let role = if plan.tunnels { Role::Tunnel } else { Role::Gateway };
        let server = plan.client_tls.then(|| match plan.certificates {
            0 | 1 if plan.http2 > 0 => h2_server().clone(),
            0 | 1 => server().clone(),
            count => server_of_many(count),
        });
        let client = plan.upstream_tls.then(|| match plan.http2_servers {
            true => (h2_client().clone(), name()),
            false => (client().clone(), name()),
        });
        Bound::new(role, &config, server, client).expect("a valid configuration")
    }

    /// Creates `plan.routes` routes to the upstream, five per host; for 0, one catch-all route.
    fn routes(&self, plan: &Plan) -> Vec<Route> {
        let mut to_upstream = Route {
            service: Some("upstream".into()),
            request_trailers: vec![TRAILER.to_owned()],
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

/// The plan's ejection settings: after two failures in a row, or by percentage.
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

/// Error statuses that the gateway retries at another server, if the plan asks for such retries.
pub(crate) const RETRIED: RangeInclusive<u16> = 502..=504;

/// The minimum rates. A faultless plan has none: on a rough network, transfers without a fault may be slower than these
/// rates, and the gateway would abort them.
fn min_rate(plan: &Plan) -> MinRate {
    match plan.is_faultless() {
        true => MinRate { request: 0, response: 0, ..MinRate::default() },
        false => MinRate { request: 5000, response: 2000, window: Duration::from_secs(2) },
    }
}

/// The address of a server after this many moves.
pub(crate) fn origin(server: usize, moves: u8) -> [u8; 4] {
    // 198.18.0.0/15 is reserved for benchmarks (RFC 2544).
    [198, 18, server as u8, moves]
}

/// The upstream server at an address, and its number of moves; `None`: not an upstream server.
pub(crate) fn server_at(address: [u8; 4]) -> Option<(usize, u8)> {
    let [198, 18, server, moves] = address else { return None };
    Some((usize::from(server), moves))
}

/// A server's address, and the end of its ejection according to a worker.
pub(crate) type Ejection = ([u8; 4], Duration);

/// Parses an ejection from a log line.
pub(crate) fn ejected(line: &str, now: Duration) -> Option<Ejection> {
    let (place, period) = line.split_once("://")?.1.split_once(" keeps failing; it gets no requests for ")?;
    let address: Ipv4Addr = place.split(':').next()?.parse().ok()?;
    let period: f64 = period.strip_suffix(" s")?.parse().ok()?;
    Some((address.octets(), now + Duration::from_secs_f64(period)))
}

/// The server for mirrored copies.
pub(crate) const MIRROR: [u8; 4] = [198, 19, 0, 1];

/// The server that terminates passthrough connections.
pub(crate) const BEHIND: [u8; 4] = [198, 19, 0, 2];

/// Limit of a buffered request body.
pub(crate) const REQUEST_BUFFER: u64 = 16 * 1024;

/// The field that carries the configuration's version.
pub(crate) const VERSION: &str = "X-Version";

/// The path prefix of [`HOST`]'s first route.
pub(crate) const ROUTED: &str = "/p0";
