//! One run: a gateway's worker between clients and origins, under one clock and one seed.

use crate::client::{Client, Manners};
use crate::ledger::{Ledger, Outcome};
use crate::message::Ask;
use crate::net::{SimNet, peer_address};
use crate::origin::Origin;
use crate::peer::Peer;
use crate::plan::Plan;
use crate::tls;
use crate::world::{Weather, World};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;
use std::time::Duration;
use weir_gateway::bare::{Bare, Census};
use weir_gateway::{Counters, Timeouts};
use weir_reactor::stop::Stop;

/// What a run came to.
#[derive(Debug)]
pub struct Report {
    /// Turns of the gateway's loop.
    pub steps: u64,
    /// Rules that were broken; none, if all is well.
    pub violations: Vec<String>,
    /// What happened, in order.
    pub trace: Vec<String>,
    /// Requests by what their clients got: answered, refused, lost, forgone.
    pub outcomes: [usize; 4],
    /// What the gateway counted.
    pub counters: Counters,
}

/// Runs a plan to its end.
pub fn run(seed: u64, plan: &Plan) -> Report {
    let mut run = Run::new(seed, plan);
    for _ in 0..plan.clients {
        let mut world = run.world.borrow_mut();
        let ask = |world: &mut World| match plan.switches && world.below(8) == 0 {
            true => Ask::switch(world),
            false => Ask::by_chance(0, plan.is_plain(), world),
        };
        let asks = (0..plan.requests).map(|_| ask(&mut world)).collect();
        drop(world);
        run.welcome(asks);
    }
    run.finish()
}

/// One client that asks for answers, one after the other, while nothing goes wrong. For benches: what it costs is the
/// gateway's alone.
#[derive(Clone, Copy, Debug)]
pub struct Steady {
    /// TLS between client and gateway.
    pub client_tls: bool,
    /// TLS between gateway and origin.
    pub upstream_tls: bool,
    /// Bytes of an answer.
    pub bytes: usize,
    /// Answers.
    pub requests: usize,
    /// Each request is on a connection of its own.
    pub lives: bool,
    /// As in [`Plan`].
    pub routes: usize,
    /// As in [`Plan`].
    pub certificates: usize,
}

impl Steady {
    /// Plays it to its end.
    pub fn run(self) -> Report {
        let Self { client_tls, upstream_tls, routes, certificates, .. } = self;
        let plain = Plan { pipelines: false, most_steps: u64::MAX, ..Plan::plain() };
        let plan = Plan { client_tls, upstream_tls, routes, certificates, ..plain };
        // The first key of a process gathers entropy, which takes a hundred times as long as a handshake.
        drop(tls::client_session());
        let mut run = Run::new(0, &plan);
        let below = if routes == 0 { "" } else { tls::ROUTED };
        let ask = |_| Ask { below, ..Ask::plain(self.bytes, self.lives) };
        run.welcome((0..self.requests).map(ask).collect());
        run.finish()
    }
}

struct Run<'a> {
    plan: &'a Plan,
    world: Rc<RefCell<World>>,
    timeouts: Timeouts,
    /// `None` once it is drained.
    bare: Option<Bare<SimNet>>,
    clients: Vec<Client>,
    origins: Vec<Origin>,
    ledger: Ledger,
    log: Vec<String>,
    steps: u64,
    still: u64,
    /// How often the upstream's address has changed.
    moves: u8,
    /// When a drain began.
    draining: Option<Duration>,
    /// When the last client was done.
    played: Duration,
    outcomes: [usize; 4],
}

impl<'a> Run<'a> {
    fn new(seed: u64, plan: &'a Plan) -> Self {
        let weather = Weather {
            rough: plan.rough,
            tiny: !plan.client_tls && !plan.upstream_tls,
            refusals: plan.refusals,
            shortages: plan.shortages,
            corrupts: plan.corrupts,
        };
        let world = Rc::new(RefCell::new(World::new(seed, weather)));
        let net = SimNet::new(Rc::clone(&world));
        // Idle connections that are closed at any moment must not be noticed by anybody.
        let mut timeouts = Timeouts::default();
        if plan.rough {
            // A slow client's exchange keeps its connection.
            timeouts.queue = Duration::from_secs(3000);
        }
        if plan.rough && (plan.client_tls || plan.upstream_tls) {
            // A handshake in small pieces takes its time.
            timeouts.handshake = Duration::from_secs(100);
            timeouts.connect = Duration::from_secs(100);
            timeouts.upstream_handshake = Duration::from_secs(100);
        }
        if plan.rough && seed % 2 == 1 {
            timeouts.pooled = Duration::from_millis(1 + seed % 20);
        }
        if !plan.is_plain() && seed % 3 == 1 {
            timeouts.body = Some(Duration::from_millis(100 + seed % 5000));
            timeouts.answer = Some(Duration::from_millis(100 + seed % 7000));
        }
        let bare = tls::gateway(net, tls::bound(plan, 0, timeouts));
        Self {
            plan,
            world,
            timeouts,
            bare: Some(bare),
            clients: Vec::new(),
            origins: Vec::new(),
            ledger: Ledger::default(),
            log: Vec::new(),
            steps: 0,
            still: 0,
            moves: 0,
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
            violations: self.ledger.violations,
            trace: self.ledger.trace,
            outcomes: self.outcomes,
            counters: self.bare.map(|bare| bare.counters().clone()).unwrap_or_default(),
        }
    }

    /// Connects a client that asks all this.
    fn welcome(&mut self, asks: VecDeque<Ask>) {
        let mut world = self.world.borrow_mut();
        let manners = Manners {
            pipelines: self.plan.pipelines && world.below(3) == 0,
            half_closes: self.plan.vanishes > 0 && world.below(10) == 0,
            is_slow: self.plan.rough && world.below(5) == 0,
            vanishes_after: (world.below(1000) < self.plan.vanishes).then(|| world.below(200)),
            talks_garbage: world.below(1000) < self.plan.garbage,
        };
        let Some(link) = world.connect() else { return };
        let session = self.plan.client_tls.then(tls::client_session);
        self.clients.push(Client::new(Peer::new(link, session), asks, manners));
    }

    /// Until all clients are done.
    fn play(&mut self) {
        let drain_at = self.plan.drains.then(|| self.world.borrow_mut().below(600));
        while self.clients.iter().any(|client| !client.is_done) {
            if !self.step() || self.steps > self.plan.most_steps {
                return;
            }
            if self.plan.adopts && self.world.borrow_mut().below(100) == 0 {
                self.adopt();
            }
            if drain_at == Some(self.steps) {
                self.ledger.note(|| "drain".to_owned());
                self.draining = Some(self.world.borrow().now);
                self.stop(Stop::Drain);
            }
        }
    }

    /// New settings: the upstream is elsewhere, or an idle connection is kept for another time.
    fn adopt(&mut self) {
        let is_elsewhere = self.world.borrow_mut().below(2) == 0;
        if is_elsewhere {
            self.moves = self.moves.wrapping_add(1);
        } else {
            self.timeouts.pooled = Duration::from_millis(1 + self.world.borrow_mut().below(60_000));
        }
        let moves = self.moves;
        self.ledger.note(|| format!("new configuration: the upstream has moved {moves} times"));
        if let Some(bare) = &mut self.bare {
            bare.adopt(tls::bound(self.plan, moves, self.timeouts));
        }
    }

    fn stop(&mut self, stop: Stop) {
        if let Some(bare) = &mut self.bare {
            bare.stop(stop);
        }
    }

    /// One turn of everybody; whether anything can still happen.
    fn step(&mut self) -> bool {
        self.steps += 1;
        let before = self.world.borrow().moves;
        self.world.borrow_mut().arrive();
        self.attach_origins();
        let mut rest = Vec::new();
        for client in &mut self.clients {
            client.poll(&mut self.world.borrow_mut(), &mut self.ledger);
        }
        for client in self.clients.extract_if(.., |client| client.is_done) {
            rest.push(client.into_rest());
        }
        for origin in &mut self.origins {
            origin.poll(&mut self.world.borrow_mut(), &mut self.ledger);
        }
        self.origins.retain(|origin| !origin.is_done);
        for asks in rest.into_iter().filter(|asks| !asks.is_empty()) {
            self.welcome(asks);
        }
        self.turn();
        if self.world.borrow().moves == before {
            // The net learns of timers that this turn has set when the next one begins.
            self.turn();
        }
        if self.world.borrow().moves != before {
            self.still = 0;
            return true;
        }
        self.still += 1;
        if self.still > MOST_STILL {
            self.ledger.violation("the gateway turns, and nothing moves".to_owned());
            return false;
        }
        self.advance()
    }

    fn turn(&mut self) {
        let Some(bare) = &mut self.bare else { return };
        let Census { clients, upstreams, .. } = bare.census();
        let turned = bare.turn();
        let timers = self.world.borrow().timers;
        // One for each connection, one for the listener's rest and one for its drain.
        if timers > clients + upstreams + 2 {
            self.ledger.violation(format!("{timers} timers for {clients} clients and {upstreams} upstreams"));
        }
        // A moved upstream is another server.
        let most = self.plan.most_connections.filter(|_| !self.plan.adopts).unwrap_or(usize::MAX);
        let now = bare.census().upstreams;
        if now > most {
            self.ledger.violation(format!("{now} connections to the origin, and {most} are allowed"));
        }
        if let Err(error) = turned {
            self.ledger.violation(format!("the gateway failed: {error}"));
        }
        for line in bare.lines() {
            if line.contains("internal_error") {
                self.ledger.violation(line.clone());
            }
            self.ledger.note(|| line.clone());
            self.log.push(line);
        }
        let limit = self.timeouts.drain + LATE;
        if self.draining.is_some_and(|began| self.world.borrow().now > began + limit) {
            self.ledger.violation(format!("the drain takes longer than {limit:?}"));
            self.draining = None;
        }
        if bare.is_drained() {
            self.ledger.note(|| "drained".to_owned());
            for line in bare.lines() {
                self.ledger.note(|| line.clone());
                self.log.push(line);
            }
            self.bare = None;
        }
    }

    fn attach_origins(&mut self) {
        let mut world = self.world.borrow_mut();
        for link in std::mem::take(&mut world.dialled) {
            let session = self.plan.upstream_tls.then(tls::server_session);
            let interim = !self.plan.is_plain();
            let mut origin =
                Origin::new(Peer::new(link, session), self.plan.bad_answers, interim, &mut world);
            if world.below(1000) < self.plan.speaks_first && !self.plan.upstream_tls {
                self.ledger.note(|| format!("origin {link} speaks first"));
                origin.speak_first(&mut world);
            }
            self.origins.push(origin);
        }
    }

    /// Moves the clock to the next instant at which something happens by itself; false if there is none.
    fn advance(&mut self) -> bool {
        let mut world = self.world.borrow_mut();
        let now = world.now;
        let clients = self.clients.iter().map(|client| client.wake);
        let origins = self.origins.iter().flat_map(Origin::wakes);
        let by_themselves = clients.chain(origins).filter(|at| *at > now).min();
        let timer = if self.bare.is_some() { world.timer } else { None };
        let Some(next) = [by_themselves, world.next_arrival(), timer].into_iter().flatten().min() else {
            return false;
        };
        // A loop that comes late finds several things at the same instant, timers among them.
        let is_late = world.weather.rough && world.below(3) == 0;
        let late = if is_late { world.below(8000) } else { 0 };
        world.now = next.max(now) + Duration::from_micros(late);
        if next > now {
            self.still = 0;
        }
        true
    }

    /// Lets all time-outs pass: then nothing may be left.
    fn wind_down(&mut self) {
        self.played = self.world.borrow().now;
        if let Some(client) = self.clients.first() {
            let text = format!("{client:?}").chars().take(300).collect::<String>();
            self.ledger.violation(format!("a client waits for ever: {text}"));
            return;
        }
        let end = self.world.borrow().now + Duration::from_secs(4000);
        while self.world.borrow().now < end && self.is_anything_left() {
            if !self.step() {
                break;
            }
        }
        if let Some(bare) = &self.bare {
            let census = bare.census();
            if census != Census::default() {
                self.ledger.violation(format!("left behind: {census:?}"));
            }
            let timers = self.world.borrow().timers;
            if timers > 0 {
                self.ledger.violation(format!("left behind: {timers} timers"));
            }
        }
        let open = self.world.borrow().links.iter().filter(|link| !link.gateway_gone).count();
        let queued = self.world.borrow().backlog.len();
        if open > queued {
            self.ledger.violation(format!("left behind: {} connections", open - queued));
        }
        if self.draining.is_some() && self.bare.is_some() {
            self.ledger.violation("the drain does not end".to_owned());
        }
    }

    fn is_anything_left(&self) -> bool {
        let census = self.bare.as_ref().map(Bare::census).unwrap_or_default();
        census != Census::default()
            || self.world.borrow().timers > 0
            || (self.draining.is_some() && self.bare.is_some())
    }

    /// Every request has one outcome, and every loss a reason.
    fn judge(&mut self) {
        let mut wrong = Vec::new();
        for (id, entry) in self.ledger.entries.iter().enumerate() {
            let client = format!("client={} ", peer_address(entry.link));
            let client_at_end = client.trim_end().to_owned();
            let has_reason =
                self.log.iter().any(|line| line.contains(&client) || line.ends_with(&client_at_end));
            match entry.outcome {
                None => wrong.push(format!("#{id} has no outcome")),
                Some(Outcome::Answered) => {
                    self.outcomes[0] += 1;
                    if entry.is_passed_on == Some(false) && !has_reason {
                        wrong.push(format!("#{id} was not passed on to its end after the switch"));
                    }
                }
                Some(Outcome::Refused(status)) => {
                    self.outcomes[1] += 1;
                    if !has_reason {
                        wrong.push(format!("#{id} got {status}, and the log does not say why"));
                    }
                }
                Some(Outcome::Lost) => {
                    self.outcomes[2] += 1;
                    // What passes a tunnel may end in any way.
                    if !has_reason && self.draining.is_none() && !self.plan.tunnels {
                        wrong.push(format!("#{id} is lost, and the log does not say why"));
                    }
                }
                Some(Outcome::Forgone) => self.outcomes[3] += 1,
            }
        }
        if self.plan.is_plain() {
            if self.outcomes[1..] != [0, 0, 0] {
                wrong.push(format!("nothing was wrong, and not all were answered: {:?}", self.outcomes));
            }
            if !self.plan.rough && self.played > Duration::from_secs(1) {
                wrong.push(format!("nothing takes time, and it took {:?}", self.played));
            }
            if !self.log.is_empty() {
                wrong.push(format!("nothing was wrong, and the log says: {}", self.log[0]));
            }
        }
        for what in wrong {
            self.ledger.violation(what);
        }
    }
}

/// More than the latest turn of a loop that comes late.
const LATE: Duration = Duration::from_secs(1);

/// Turns without a byte, an end or the clock moving.
const MOST_STILL: u64 = 10_000;
