//! What a run is made of, and how a failing one is made smaller.

use crate::run::{Report, run};
use weir_gateway::document::{HalfClose, ProxyProtocol, Retry};

/// Who takes part, and what may go wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// Workers of the gateway.
    pub workers: usize,
    /// Servers of the upstream.
    pub servers: usize,
    /// Clients at the same time.
    pub clients: usize,
    /// Requests of each.
    pub requests: usize,
    /// TLS between clients and gateway.
    pub client_tls: bool,
    /// TLS between gateway and origins.
    pub upstream_tls: bool,
    /// Bytes come in pieces, late, through small buffers; events in any order.
    pub rough: bool,
    /// Some clients do not wait for an answer before they ask again.
    pub pipelines: bool,
    /// Per thousand: clients that go away in the middle.
    pub vanishes: u64,
    /// Per thousand: clients that end their stream behind their last request.
    pub half_closes: u64,
    /// What becomes of the requests of those.
    pub half_close: HalfClose,
    /// Per thousand: clients whose first request is none.
    pub garbage: u64,
    /// Per thousand: answers that are bad.
    pub bad_answers: u64,
    /// Errors per thousand responses of the first origin; the others have fewer.
    pub errors: u64,
    /// Servers are ejected for errors.
    pub ejects_errors: bool,
    /// Their share of failures at which servers are ejected; `None`: two in a row.
    pub eject_percent: Option<u32>,
    /// Another server is asked after some errors.
    pub retries_errors: bool,
    /// Per thousand: connections to origins that are refused.
    pub refusals: u64,
    /// Per thousand: the system has no descriptor for a connection, of a client or to an origin.
    pub shortages: u64,
    /// Per thousand: origins that answer before they are asked; over TLS nobody can tell.
    pub speaks_first: u64,
    /// Some requests ask for another protocol, and some of them get it.
    pub switches: bool,
    /// Every connection is passed on as it is.
    pub tunnels: bool,
    /// The gateway gets new settings now and then.
    pub adopts: bool,
    /// The gateway is drained at some moment.
    pub drains: bool,
    /// The network turns bytes into others.
    pub corrupts: bool,
    /// The most connections to the origin at one time; with more requests, some wait.
    pub most_connections: Option<usize>,
    /// Requests are held until their bodies are here, and answers for slow clients.
    pub buffers: bool,
    /// The most requests that wait in a worker at one time, and how many are refused beyond; `None`: as by default.
    pub most_waiting: Option<usize>,
    /// Which requests may be sent a second time.
    pub retry: Retry,
    /// Retries for each hundred requests.
    pub retry_percent: u32,
    /// Per thousand steps: a server of the upstream closes all its connections and takes none for some time.
    pub outages: u64,
    /// Servers are said to be down, and up again.
    pub health: bool,
    /// Servers are drained while all others go on, and get requests again.
    pub drains_servers: bool,
    /// Copies of the requests go to another server.
    pub mirrors: bool,
    /// Clients come through a proxy that says so at the begin of each connection.
    pub announced: bool,
    /// The gateway does so towards the servers.
    pub announces: Option<ProxyProtocol>,
    /// Some clients ask for a name whose connections are passed on without being decrypted.
    pub passes: bool,
    /// Each request and answer says by which configuration it was passed on.
    pub marks: bool,
    /// Routes by host and path, of which one is for the clients' requests; 0: one for everything.
    pub routes: usize,
    /// Certificates of the gateway, of which one has the name that clients ask for; at least 1.
    pub certificates: usize,
    /// A run ends here.
    pub most_steps: u64,
}

impl Plan {
    /// Nothing goes wrong, and everything is at once.
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
            adopts: false,
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

    /// As [`Plan::plain`], over a rough network, with switches of protocol and new settings.
    pub fn rough() -> Self {
        Self { rough: true, switches: true, adopts: true, ..Self::plain() }
    }

    /// As [`Plan::rough`], and nobody looks at what passes.
    pub fn tunnels() -> Self {
        Self { tunnels: true, ..Self::rough() }
    }

    /// Everything goes wrong.
    pub fn faulty() -> Self {
        let some = Self { vanishes: 150, half_closes: 100, garbage: 30, bad_answers: 200, ..Self::rough() };
        Self { refusals: 30, shortages: 30, speaks_first: 30, ..some }
    }

    /// As [`Plan::faulty`], and the gateway is drained.
    pub fn drained() -> Self {
        Self { drains: true, ..Self::faulty() }
    }

    /// As [`Plan::faulty`], with several servers, of which some fail for a while, or are said to.
    pub fn failing() -> Self {
        Self { servers: 3, outages: 15, health: true, ..Self::faulty() }
    }

    /// As [`Plan::rough`], with several servers that respond with errors and are ejected for them, and retries at other servers.
    pub fn erring() -> Self {
        let errors = Self { errors: 500, ejects_errors: true, retries_errors: true, ..Self::rough() };
        Self { servers: 3, ..errors }
    }

    /// As [`Plan::rough`], with two workers, which may have few connections together.
    pub fn lending() -> Self {
        let most_connections = Some(2);
        Self { workers: 2, most_connections, clients: 8, adopts: false, switches: false, ..Self::rough() }
    }

    /// Whether nothing may go wrong.
    pub fn is_plain(&self) -> bool {
        self.is_faultless() && !self.drains
    }

    /// Whether nobody but the gateway ends anything early.
    pub fn is_faultless(&self) -> bool {
        let faults = self.vanishes + self.garbage + self.bad_answers + self.refusals + self.speaks_first;
        let faults = faults + self.errors;
        let has_given_up = self.half_closes > 0 && self.half_close == HalfClose::Abort;
        faults + self.shortages + self.outages == 0
            && !has_given_up
            && !self.health
            && !self.corrupts
            && self.most_waiting.is_none()
    }

    /// All plans that are a step smaller.
    fn smaller(&self) -> Vec<Self> {
        let mut plans = Vec::new();
        for clients in [1, self.clients / 2, self.clients.saturating_sub(1)] {
            plans.push(Self { clients, ..self.clone() });
        }
        for requests in [1, self.requests / 2, self.requests.saturating_sub(1)] {
            plans.push(Self { requests, ..self.clone() });
        }
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

/// Makes a failing run smaller, as long as it fails: fewer clients, fewer requests, fewer things that go wrong; under other
/// seeds, too, since a smaller plan draws other chances. Ends after [`MOST`] steps.
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

/// A client that waits for ever takes many steps in every attempt.
const MOST: u64 = 5_000_000;
