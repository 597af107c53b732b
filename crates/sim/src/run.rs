//! One run: a gateway's workers between clients and origins, under one clock and one seed.

use crate::Invariant;
use crate::client::{Behaviour, Client, Way};
use crate::clients::AnyClient;
use crate::gateway::Gateway;
use crate::h2::{self, H2Client};
use crate::h2_origin::H2Origin;
use crate::ledger::{Ledger, Repeats};
use crate::message::Ask;
use crate::net::{LISTENER, peer_address};
use crate::origin::{Origin, Site};
use crate::origins::{AnyOrigin, Fresh};
use crate::peer::Peer;
use crate::plan::Plan;
use crate::setting::{BEHIND, MIRROR, ROUTED, server_at};
use crate::tls;
use crate::tunnels::Tunnels;
use crate::world::{Faults, World};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;
use weir_gateway::{Counters, Timeouts};
use weir_preface::proxy::{self, Addresses, Version};

/// The result of a run.
#[derive(Debug)]
pub struct Report {
    /// Turns of the event loop.
    pub steps: u64,
    /// Violated invariants; empty on success.
    pub violations: Vec<String>,
    /// Lookups of connections, exchanges, services and servers by the workers; 0 in release builds.
    pub look_ups: u64,
    /// All events, in order.
    pub trace: Vec<String>,
    /// Number of requests by outcome: answered, refused, lost, forgone.
    pub outcomes: [usize; 4],
    /// The ends of tunnels.
    pub tunnels: Tunnels,
    /// The gateway's counters.
    pub counters: Counters,
}

/// Runs a plan to its end.
pub fn run(seed: u64, plan: &Plan) -> Report {
    let mut run = Run::new(seed, plan);
    for _ in 0..plan.clients {
        let mut world = run.world.borrow_mut();
        let ask = |world: &mut World| match plan.switches && world.below(8) == 0 {
            true => Ask::switch(plan, world),
            false => Ask::by_chance(0, plan.is_faultless(), world),
        };
        let asks = (0..plan.requests).map(|_| ask(&mut world)).collect();
        drop(world);
        run.welcome(asks);
    }
    run.finish()
}

/// One client that sends requests one after the other, without faults: for benchmarks of the gateway alone.
#[derive(Clone, Copy, Debug)]
pub struct Steady {
    /// TLS between client and gateway.
    pub client_tls: bool,
    /// TLS between gateway and origin.
    pub upstream_tls: bool,
    /// Bytes per response body.
    pub bytes: usize,
    /// Number of requests.
    pub requests: usize,
    /// Each request uses a new connection.
    pub lives: bool,
    /// As [`Plan::routes`].
    pub routes: usize,
    /// As [`Plan::certificates`].
    pub certificates: usize,
}

impl Steady {
    /// Runs the client until it has received all responses.
    pub fn run(self) -> Report {
        let Self { client_tls, upstream_tls, routes, certificates, .. } = self;
        let plain =
            Plan { pipelines: false, marks: false, access_log: false, most_steps: u64::MAX, ..Plan::plain() };
        let plan = Plan { client_tls, upstream_tls, routes, certificates, ..plain };
        // The first key pair of a process gathers entropy, which takes as long as a hundred handshakes: create it
        // before the run.
        drop(tls::client_session(false));
        let mut run = Run::new(0, &plan);
        let below = if routes == 0 { "" } else { ROUTED };
        let ask = |_| Ask { below, ..Ask::plain(self.bytes, self.lives) };
        run.welcome((0..self.requests).map(ask).collect());
        run.finish()
    }
}

/// The state of one simulation: the gateway, its clients and origins on a simulated network, and the ledger for the
/// checks.
pub(crate) struct Run<'a> {
    pub(crate) plan: &'a Plan,
    pub(crate) world: Rc<RefCell<World>>,
    pub(crate) gateway: Gateway,
    pub(crate) clients: Vec<AnyClient>,
    pub(crate) origins: Vec<AnyOrigin>,
    pub(crate) ledger: Ledger,
    steps: u64,
    still: u64,
    drain_within: Duration,
    /// The time at which the drain started, if it did.
    pub(crate) draining: Option<Duration>,
    /// The time at which the last client finished.
    pub(crate) played: Duration,
    pub(crate) outcomes: [usize; 4],
}

impl<'a> Run<'a> {
    fn new(seed: u64, plan: &'a Plan) -> Self {
        let faults = Faults {
            rough: plan.rough,
            tiny: !plan.client_tls && !plan.upstream_tls,
            refusals: plan.refusals,
            shortages: plan.shortages,
            corrupts: plan.corrupts,
        };
        let world = Rc::new(RefCell::new(World::new(seed, faults, plan.workers)));
        let timeouts = timeouts(seed, plan);
        let gateway = Gateway::new(&world, plan, timeouts);
        Self {
            plan,
            world,
            gateway,
            clients: Vec::new(),
            origins: Vec::new(),
            ledger: Ledger::default(),
            steps: 0,
            still: 0,
            drain_within: timeouts.drain + LATE,
            draining: None,
            played: Duration::ZERO,
            outcomes: [0; 4],
        }
    }

    fn finish(mut self) -> Report {
        self.play();
        self.wind_down();
        self.judge();
        Report {
            steps: self.steps,
            tunnels: Tunnels::of(&self.ledger.entries),
            look_ups: self.gateway.look_ups(),
            violations: self.ledger.violations,
            trace: self.ledger.trace,
            outcomes: self.outcomes,
            counters: self.gateway.counters(),
        }
    }

    /// Connects a client with these requests.
    fn welcome(&mut self, asks: VecDeque<Ask>) {
        let mut world = self.world.borrow_mut();
        let plan = self.plan;
        let is_passed = plan.passes && world.below(3) == 0;
        let behaviour = Behaviour {
            pipelines: plan.pipelines && world.below(3) == 0,
            half_closes: world.below(1000) < plan.half_closes,
            // A slow client could outlast a drain, and so lose a response without a fault.
            is_slow: plan.rough && world.below(5) == 0 && !(plan.drains_clients() && plan.is_faultless()),
            disconnects_after: (world.below(1000) < plan.vanishes).then(|| world.below(200)),
            is_malformed: world.below(1000) < plan.garbage && !is_passed,
        };
        let speaks_h2 = plan.http2 > 0 && world.below(1000) < plan.http2 && !is_passed && !plan.tunnels;
        let of_streams = speaks_h2.then(|| h2::Behaviour::by_chance(plan, &mut world));
        let Some(link) = world.connect() else { return };
        let session = || if speaks_h2 { tls::h2_session() } else { tls::client_session(is_passed) };
        let mut peer = Peer::new(link, plan.client_tls.then(session));
        let mut way = Way { source: Some(peer_address(link)), is_passed, preface: 0 };
        if plan.announced {
            let header = announcement(link, &mut world);
            peer.announce(&header.bytes);
            way = Way { source: Some(header.source), preface: header.bytes.len(), ..way };
        }
        // A tunnel relays bytes unchanged, so the gateway cannot report the client's address to the origin.
        way.source = way.source.filter(|_| !plan.tunnels);
        drop(world);
        self.clients.push(match of_streams {
            Some(behaviour) => AnyClient::H2(Box::new(H2Client::new(peer, asks, behaviour, way))),
            None => AnyClient::H1(Box::new(Client::new(peer, asks, behaviour, way))),
        });
    }

    /// Runs until all clients have finished.
    fn play(&mut self) {
        let drain_at = self.plan.drains.then(|| self.world.borrow_mut().below(600));
        let chance = |run: &Self, of: u64| run.world.borrow_mut().below(1000) < of;
        while self.clients.iter().any(|client| !client.is_done()) {
            if !self.step() || self.steps > self.plan.most_steps {
                return;
            }
            if self.plan.adopts && chance(self, 10) {
                self.gateway.adopt(self.plan, &mut self.ledger);
            }
            if self.plan.health && chance(self, 10) {
                self.gateway.turn_health(&mut self.ledger);
            }
            if self.plan.drains_servers && chance(self, 10) {
                self.gateway.drain_server(&mut self.ledger);
            }
            if self.plan.outages > 0 && chance(self, self.plan.outages) {
                self.black_out();
            }
            if drain_at == Some(self.steps) {
                self.ledger.note(|| "drain".to_owned());
                self.draining = Some(self.world.borrow().now);
                self.gateway.drain();
            }
        }
    }

    /// Starts an outage: one server resets its connections and refuses new ones for a while.
    fn black_out(&mut self) {
        let mut world = self.world.borrow_mut();
        let mut open: Vec<_> = self.origins.iter_mut().filter(|origin| !origin.is_done()).collect();
        if open.is_empty() {
            return;
        }
        let one = open[world.below(open.len() as u64) as usize].link();
        let Some(to) = world.links[one].to else { return };
        let until = world.now + Duration::from_millis(world.below(20_000));
        self.ledger.note(|| format!("{to:?} is gone until {until:?}"));
        world.dark.insert(to, until);
        for origin in &mut open {
            if world.links[origin.link()].to == Some(to) {
                origin.goes_dark(&mut world);
            }
        }
    }

    /// Runs one turn of all participants; returns whether anything can still happen.
    pub(crate) fn step(&mut self) -> bool {
        self.steps += 1;
        let before = self.world.borrow().moves;
        self.world.borrow_mut().arrive();
        self.attach_origins();
        let mut rest = Vec::new();
        for client in &mut self.clients {
            client.poll(&mut self.world.borrow_mut(), &mut self.ledger);
        }
        self.judge_idle();
        for client in self.clients.extract_if(.., |client| client.is_done()) {
            rest.push(client.into_rest());
        }
        for origin in &mut self.origins {
            origin.poll(self.plan, &mut self.world.borrow_mut(), &mut self.ledger);
        }
        self.judge_arrivals();
        self.origins.retain(|origin| !origin.is_done());
        for asks in rest.into_iter().filter(|asks| !asks.is_empty()) {
            self.welcome(asks);
        }
        self.turn();
        if self.world.borrow().moves == before {
            // The simulated net reports timers that are set in this turn only in the next one.
            self.turn();
        }
        if self.world.borrow().moves != before {
            self.still = 0;
            return true;
        }
        self.still += 1;
        if self.still > MOST_STILL {
            self.ledger.violation(Invariant::Progress, "the gateway turns, and nothing moves".to_owned());
            return false;
        }
        self.judge_quiet();
        self.judge_servers();
        self.advance()
    }

    fn turn(&mut self) {
        self.gateway.turn(&mut self.ledger);
        let limit = self.drain_within;
        if !self.gateway.is_there() {
            return;
        }
        if self.draining.is_some_and(|began| self.world.borrow().now > began + limit) {
            self.ledger.violation(Invariant::Progress, format!("the drain takes longer than {limit:?}"));
            self.draining = None;
        }
    }

    fn attach_origins(&mut self) {
        let mut world = self.world.borrow_mut();
        let plan = self.plan;
        for link in std::mem::take(&mut world.dialled) {
            let to = world.links[link].to;
            let (is_passed, server) = (to == Some(BEHIND), to.and_then(server_at));
            let speaks_h2 = plan.http2_servers && server.is_some();
            let session = || if speaks_h2 { tls::h2_server_session() } else { tls::server_session() };
            let peer = Peer::new(link, (plan.upstream_tls || is_passed).then(session));
            let site = Site {
                is_mirror: to == Some(MIRROR),
                is_announced: plan.announces.is_some() && server.is_some(),
                is_passed,
                repeats: Repeats { retry: plan.retry, after_errors: plan.retries_errors },
                errors: server.map_or(0, |(server, _)| plan.errors / (1 + server as u64)),
                badness: plan.bad_answers,
                interim: !plan.is_faultless(),
                most_streams: plan.most_streams.unwrap_or(100) as usize,
            };
            if speaks_h2 {
                self.origins.push(match plan.flips_http2 {
                    true => AnyOrigin::Fresh(Box::new(Fresh { peer, site })),
                    false => AnyOrigin::H2(Box::new(H2Origin::new(peer, site, plan, &mut world))),
                });
                continue;
            }
            let mut origin = Origin::new(peer, site, &mut world);
            if world.below(1000) < plan.speaks_first && !plan.upstream_tls && !is_passed {
                self.ledger.note(|| format!("origin {link} speaks first"));
                origin.speak_first(&mut world);
            }
            self.origins.push(AnyOrigin::H1(Box::new(origin)));
        }
    }

    /// Moves the clock to the next scheduled event; false if there is none.
    fn advance(&mut self) -> bool {
        let timer = self.gateway.next();
        let mut world = self.world.borrow_mut();
        let now = world.now;
        let clients = self.clients.iter().flat_map(AnyClient::wakes);
        let origins = self.origins.iter().flat_map(AnyOrigin::wakes);
        let by_themselves = clients.chain(origins).filter(|at| *at > now).min();
        let Some(next) = [by_themselves, world.next_arrival(), timer].into_iter().flatten().min() else {
            return false;
        };
        // A late loop finds several events at the same instant, including timers.
        let is_late = world.faults.rough && world.below(3) == 0;
        let late = if is_late { world.below(8000) } else { 0 };
        world.now = next.max(now) + Duration::from_micros(late);
        if next > now {
            self.still = 0;
        }
        true
    }
}

/// The timeouts that suit a plan.
fn timeouts(seed: u64, plan: &Plan) -> Timeouts {
    let mut timeouts = Timeouts::default();
    if plan.rough {
        // A slow client's exchange occupies its connection, so other requests wait long.
        timeouts.queue = Duration::from_secs(3000);
    }
    if plan.rough && (plan.client_tls || plan.upstream_tls) {
        // A handshake in small pieces is slow.
        timeouts.handshake = Duration::from_secs(100);
        timeouts.connect = Duration::from_secs(100);
        timeouts.upstream_handshake = Duration::from_secs(100);
    }
    // Closing pooled connections at any moment must not affect clients, so half of the rough runs do so.
    if plan.rough && seed % 2 == 1 {
        timeouts.pooled = Duration::from_millis(1 + seed % 20);
    }
    if !plan.is_faultless() && seed % 3 == 1 {
        timeouts.body = Some(Duration::from_millis(100 + seed % 5000));
        timeouts.response_body = Some(Duration::from_millis(100 + seed % 7000));
    }
    if plan.stalls > 0 && seed.is_multiple_of(3) {
        // Shorter than the time that the budget of the minimum rate allows.
        timeouts.stall = Duration::from_secs(20);
    }
    if plan.drains && plan.is_faultless() {
        // Small buffers can delay a drain by minutes.
        timeouts.drain = Duration::from_secs(3000);
    }
    // Limits how long the simulator waits for the last timer.
    timeouts.upgrade_drain = Duration::from_secs(3000);
    timeouts
}

/// A PROXY header that describes a client.
struct Announcement {
    bytes: Vec<u8>,
    source: SocketAddr,
}

/// A random PROXY header of either version; one in eight names no client (the proxy's own connection).
fn announcement(link: usize, world: &mut World) -> Announcement {
    let version = if world.below(2) == 0 { Version::V1 } else { Version::V2 };
    let [.., high, middle, low] = (link as u32).to_be_bytes();
    let source = SocketAddr::from(([10, high, middle, low], 1000 + low as u16));
    let destination = LISTENER;
    let is_own = world.below(8) == 0;
    let addresses = (!is_own).then_some(Addresses { source, destination });
    let mut bytes = Vec::new();
    proxy::write(version, addresses, &mut bytes);
    Announcement { bytes, source: if is_own { peer_address(link) } else { source } }
}

/// The time by which a drain may exceed its timeout: far more than the delay of any simulated turn.
const LATE: Duration = Duration::from_secs(1);

/// Limit of consecutive turns without an event or progress of the clock.
const MOST_STILL: u64 = 10_000;
