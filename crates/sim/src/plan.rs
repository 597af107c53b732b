//! The parameters of a run, and shrinking a failing run to a smaller one.

use crate::run::{Report, run};
use weir_gateway::document::{HalfClose, ProxyProtocol, Retry};

/// The participants and faults of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// The number of gateway workers.
    pub workers: usize,
    /// The number of servers of the upstream service.
    pub servers: usize,
    /// The number of concurrent clients.
    pub clients: usize,
    /// The number of requests per client.
    pub requests: usize,
    /// Whether clients use TLS.
    pub client_tls: bool,
    /// Whether the gateway uses TLS towards origins.
    pub upstream_tls: bool,
    /// Splits and delays bytes, limits buffers and shuffles events.
    pub rough: bool,
    /// Some clients pipeline requests.
    pub pipelines: bool,
    /// Clients that speak HTTP/2, per thousand.
    pub http2: u64,
    /// The servers of the upstream speak HTTP/2.
    pub http2_servers: bool,
    /// Reloads switch the gateway between HTTP/1.1 and HTTP/2 towards servers that speak both. For cleartext only.
    pub flips_http2: bool,
    /// Limit of concurrent requests on one connection to an HTTP/2 server; `None`: the default.
    pub most_streams: Option<u32>,
    /// Streams that their clients reset, per thousand.
    pub resets: u64,
    /// Streams whose responses their clients do not read, per thousand.
    pub stalls: u64,
    /// Clients that disconnect early, per thousand.
    pub vanishes: u64,
    /// Clients that end their stream after their last request, per thousand.
    pub half_closes: u64,
    /// The gateway's policy for requests of clients that end their stream early.
    pub half_close: HalfClose,
    /// Clients whose first request is malformed, per thousand.
    pub garbage: u64,
    /// Faulty responses, per thousand.
    pub bad_answers: u64,
    /// Error responses of the first server, per thousand; the other servers send fewer.
    pub errors: u64,
    /// Error responses count towards a server's ejection.
    pub ejects_errors: bool,
    /// The failure percentage that ejects a server; `None`: two failures in a row.
    pub eject_percent: Option<u32>,
    /// The gateway retries 502, 503 and 504 responses at another server.
    pub retries_errors: bool,
    /// Refused connections to origins, per thousand.
    pub refusals: u64,
    /// Connections, from clients or to origins, for which the gateway has no free descriptor, per thousand.
    pub shortages: u64,
    /// Origins that send a response before any request, per thousand; cleartext only.
    pub speaks_first: u64,
    /// Some requests ask for a switch of protocols, and origins grant some of these. The protocol is WebSocket if
    /// clients or servers speak HTTP/2.
    pub switches: bool,
    /// Every connection is a tunnel.
    pub tunnels: bool,
    /// Workers write an access log.
    pub access_log: bool,
    /// The gateway reloads its configuration at random times.
    pub adopts: bool,
    /// Some reloads give the listener another name, so that its connections drain.
    pub renames: bool,
    /// The gateway drains at a random time.
    pub drains: bool,
    /// The network flips bits.
    pub corrupts: bool,
    /// Connection limit of the upstream; requests beyond it wait.
    pub most_connections: Option<usize>,
    /// The gateway buffers request and response bodies.
    pub buffers: bool,
    /// Limit of waiting requests per worker; the gateway rejects requests beyond it. `None`: the default.
    pub most_waiting: Option<usize>,
    /// Requests that the gateway may send again.
    pub retry: Retry,
    /// Retries per hundred requests.
    pub retry_percent: u32,
    /// Outages per thousand steps: a server resets its connections and refuses new ones for up to 20 s.
    pub outages: u64,
    /// Health reports mark servers down and up.
    pub health: bool,
    /// The gateway drains single servers, then restores them.
    pub drains_servers: bool,
    /// The gateway mirrors requests to another server.
    pub mirrors: bool,
    /// Clients connect through a proxy that sends a PROXY header.
    pub announced: bool,
    /// The PROXY header version that the gateway sends to servers.
    pub announces: Option<ProxyProtocol>,
    /// Some clients ask for a server name that the gateway passes through without decrypting.
    pub passes: bool,
    /// Requests and responses carry the configuration version that the gateway used.
    pub marks: bool,
    /// Number of routes by host and path, one of which matches the requests; 0: one catch-all route.
    pub routes: usize,
    /// Number of gateway certificates, one of which has the clients' server name; at least 1.
    pub certificates: usize,
    /// Maximum number of steps before the run counts as stuck.
    pub most_steps: u64,
}

impl Plan {
    /// A plan without faults and delays.
    pub fn plain() -> Self {
        Self {
            workers: 1,
            servers: 1,
            clients: 4,
            requests: 12,
            client_tls: false,
            upstream_tls: false,
            rough: false,
            pipelines: true,
            http2: 0,
            http2_servers: false,
            flips_http2: false,
            most_streams: None,
            resets: 0,
            stalls: 0,
            vanishes: 0,
            half_closes: 0,
            half_close: HalfClose::Abort,
            garbage: 0,
            bad_answers: 0,
            errors: 0,
            ejects_errors: false,
            eject_percent: None,
            retries_errors: false,
            refusals: 0,
            shortages: 0,
            speaks_first: 0,
            switches: false,
            tunnels: false,
            access_log: true,
            adopts: false,
            renames: false,
            drains: false,
            corrupts: false,
            most_connections: None,
            buffers: false,
            most_waiting: None,
            retry: Retry::Idempotent,
            retry_percent: 10,
            outages: 0,
            health: false,
            drains_servers: false,
            mirrors: false,
            announced: false,
            announces: None,
            passes: false,
            marks: true,
            routes: 0,
            certificates: 1,
            most_steps: 400_000,
        }
    }

    /// [`Plan::plain`] over a rough network, with protocol upgrades and reloads.
    pub fn rough() -> Self {
        Self { rough: true, switches: true, adopts: true, ..Self::plain() }
    }

    /// [`Plan::rough`] with tunnels only.
    pub fn tunnels() -> Self {
        Self { tunnels: true, ..Self::rough() }
    }

    /// [`Plan::rough`] with faults of clients, origins and the network, but without outages, error responses and
    /// drains.
    pub fn faulty() -> Self {
        let some = Self { vanishes: 150, half_closes: 100, garbage: 30, bad_answers: 200, ..Self::rough() };
        Self { refusals: 30, shortages: 30, speaks_first: 30, ..some }
    }

    /// [`Plan::faulty`] with a drain.
    pub fn drained() -> Self {
        Self { drains: true, ..Self::faulty() }
    }

    /// [`Plan::faulty`] with three servers, outages and health changes.
    pub fn failing() -> Self {
        Self { servers: 3, outages: 15, health: true, ..Self::faulty() }
    }

    /// [`Plan::rough`] with ejections, retries at other servers, and three servers that send error responses.
    pub fn erring() -> Self {
        let errors = Self { errors: 500, ejects_errors: true, retries_errors: true, ..Self::rough() };
        Self { servers: 3, ..errors }
    }

    /// [`Plan::rough`] with two workers that share a low connection limit.
    pub fn lending() -> Self {
        let most_connections = Some(2);
        Self { workers: 2, most_connections, clients: 8, adopts: false, switches: false, ..Self::rough() }
    }

    /// This plan with only HTTP/2 clients. If the plan has other faults, clients also reset and stall some streams.
    pub fn over_http2(self) -> Self {
        let (resets, stalls) = if self.is_faultless() { (0, 0) } else { (60, 30) };
        Self { http2: 1000, resets, stalls, ..self }
    }

    /// This plan with HTTP/2 servers, to which the gateway sends no PROXY header.
    pub fn to_http2(self) -> Self {
        Self { http2_servers: true, announces: None, tunnels: false, ..self }
    }

    /// Whether the plan has no fault and no drain.
    pub fn is_plain(&self) -> bool {
        self.is_faultless() && !self.drains
    }

    /// Whether client connections drain: all of them, or those of a listener that a reload has renamed.
    pub(crate) fn drains_clients(&self) -> bool {
        self.drains || self.renames
    }

    /// Whether only the gateway may close connections early.
    pub fn is_faultless(&self) -> bool {
        let faults = self.vanishes + self.garbage + self.bad_answers + self.refusals + self.speaks_first;
        let faults = faults + self.errors + self.resets + self.stalls;
        let has_given_up = self.half_closes > 0 && self.half_close == HalfClose::Abort;
        faults + self.shortages + self.outages == 0
            && !has_given_up
            && !self.health
            && !self.corrupts
            && self.most_waiting.is_none()
    }

    /// All plans that differ from this one by a single reduction.
    fn smaller(&self) -> Vec<Self> {
        let mut plans = Vec::new();
        for clients in [1, self.clients / 2, self.clients.saturating_sub(1)] {
            plans.push(Self { clients, ..self.clone() });
        }
        for requests in [1, self.requests / 2, self.requests.saturating_sub(1)] {
            plans.push(Self { requests, ..self.clone() });
        }
        plans.push(Self { http2: 0, ..self.clone() });
        plans.push(Self { http2: 1000, ..self.clone() });
        plans.push(Self { http2_servers: false, flips_http2: false, most_streams: None, ..self.clone() });
        plans.push(Self { flips_http2: false, ..self.clone() });
        plans.push(Self { most_streams: None, ..self.clone() });
        plans.push(Self { resets: 0, ..self.clone() });
        plans.push(Self { stalls: 0, ..self.clone() });
        plans.push(Self { workers: 1, ..self.clone() });
        plans.push(Self { servers: 1, ..self.clone() });
        plans.push(Self { outages: 0, ..self.clone() });
        plans.push(Self { health: false, ..self.clone() });
        plans.push(Self { drains_servers: false, ..self.clone() });
        plans.push(Self { mirrors: false, ..self.clone() });
        plans.push(Self { announced: false, ..self.clone() });
        plans.push(Self { announces: None, ..self.clone() });
        plans.push(Self { passes: false, ..self.clone() });
        plans.push(Self { most_waiting: None, ..self.clone() });
        plans.push(Self { drains: false, ..self.clone() });
        plans.push(Self { most_connections: None, ..self.clone() });
        plans.push(Self { buffers: false, ..self.clone() });
        plans.push(Self { vanishes: 0, ..self.clone() });
        plans.push(Self { half_closes: 0, ..self.clone() });
        plans.push(Self { garbage: 0, ..self.clone() });
        plans.push(Self { refusals: 0, ..self.clone() });
        plans.push(Self { shortages: 0, ..self.clone() });
        plans.push(Self { speaks_first: 0, ..self.clone() });
        plans.push(Self { switches: false, ..self.clone() });
        plans.push(Self { adopts: false, ..self.clone() });
        plans.push(Self { renames: false, ..self.clone() });
        plans.push(Self { bad_answers: 0, ..self.clone() });
        plans.push(Self { errors: 0, ..self.clone() });
        plans.push(Self { ejects_errors: false, ..self.clone() });
        plans.push(Self { eject_percent: None, ..self.clone() });
        plans.push(Self { retries_errors: false, ..self.clone() });
        plans.push(Self { pipelines: false, ..self.clone() });
        plans.push(Self { rough: false, ..self.clone() });
        plans.push(Self { upstream_tls: false, ..self.clone() });
        plans.push(Self { client_tls: false, ..self.clone() });
        plans.retain(|plan| plan != self && plan.clients > 0 && plan.requests > 0);
        plans
    }
}

/// Reduces a failing run while it still fails: fewer clients, requests and faults. Also runs other seeds, since a
/// smaller plan draws other random numbers. Stops after [`MOST`] steps.
pub fn shrink(seed: u64, plan: &Plan) -> (u64, Plan, Report) {
    let (mut seed, mut plan) = (seed, plan.clone());
    let mut report = run(seed, &plan);
    let mut steps = 0;
    'smaller: while steps < MOST {
        for candidate in plan.smaller() {
            for seed_of in [seed].into_iter().chain(0..20) {
                let tried = run(seed_of, &candidate);
                steps += tried.steps;
                if !tried.violations.is_empty() {
                    (seed, plan, report) = (seed_of, candidate, tried);
                    continue 'smaller;
                }
            }
        }
        break;
    }
    (seed, plan, report)
}

/// The maximum number of steps for shrinking, since a client that hangs takes many steps in every attempt.
const MOST: u64 = 5_000_000;
