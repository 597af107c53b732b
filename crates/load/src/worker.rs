//! One worker: its connections, its share of the schedule, its loop.

mod users;

use crate::accounting::Edges;
use crate::check::{ErrorClass, Wrong};
use crate::connection::{Connection, Desk};
use crate::options::{Close, PerConnection};
use crate::record::recorder::{Recorder, Window};
use crate::record::seconds::Outbox;
use crate::schedule::Arrivals;
use std::collections::VecDeque;
use std::io;
use std::iter::Cycle;
use std::net::IpAddr;
use std::sync::OnceLock;
use std::time::{Duration, Instant};
use std::vec;
use weir_reactor::{Events, Key, Reactor, Slab};
use weir_stats::rng::Rng;
use weir_tls::{Connector, PeerName};
use weir_transport::Address;

const CONNECTION: u8 = 1;
const RESTING: u8 = 2;

pub(crate) struct Policy {
    pub(crate) address: Address,
    /// Used in turn; empty lets the system choose.
    pub(crate) sources: Cycle<vec::IntoIter<IpAddr>>,
    pub(crate) tls: Option<(Connector, PeerName)>,
    pub(crate) connections: u32,
    pub(crate) per_connection: PerConnection,
    /// Share of new connections that resume, in percent.
    pub(crate) resume: f64,
    pub(crate) close: Close,
    /// Between an answer and the next request, in a closed loop.
    pub(crate) think: Duration,
    pub(crate) timeout: Duration,
    pub(crate) rng: Rng,
}

/// What a worker shares with the thread that conducts it.
pub(crate) struct Link<'a> {
    pub(crate) outbox: &'a Outbox,
    /// An end of the window that comes before the planned one.
    pub(crate) stop: &'a OnceLock<Instant>,
}

pub(crate) struct Worker<'a> {
    reactor: Reactor,
    policy: Policy,
    desk: Desk<'a>,
    edges: Edges<'a>,
    link: Link<'a>,
    connections: Slab<Connection>,
    resting: Slab<Resting>,
    /// Connections between two requests, the one that has waited longest first: so all of them are used whatever the
    /// rate, none times out at the server, and the load is spread over all workers of the server.
    idle: VecDeque<Key>,
    /// Connections that may be made when a request needs one (where they are not kept).
    spare: u32,
    /// Users of a closed loop between an answer and their next request, by the instant of that: all think equally long,
    /// so they are in order.
    thinking: VecDeque<(Instant, User)>,
    arrivals: Option<Arrivals>,
    window: Option<Window>,
    stage: Stage,
    /// The next instant at which something is to be done without an event.
    wake: Instant,
    /// The end of the current second, and its number from the window's start.
    second: (Instant, i64),
    /// Requests that have no answer yet.
    busy: u32,
    /// Connections that stand, and the most that ever stood at once.
    standing: u32,
    most_standing: u32,
    /// Connections that are being made for sessions, and how many more may be.
    priming: u32,
    to_prime: u32,
    /// What is owed to the share of connections that resume.
    resume_credit: f64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Stage {
    /// Connections are made; no request is sent but the first on each that is kept.
    Opening,
    WarmUp,
    Window,
    /// No request is begun; those that have begun may end.
    Drain,
}

/// Who sends requests in a closed loop.
#[derive(Clone, Copy, Debug)]
enum User {
    /// On a connection that stands.
    Kept(Key),
    /// On one that is still to be made.
    New,
}

/// A connection that failed, until it is tried again.
#[derive(Clone, Copy, Debug)]
struct Resting {
    failures: u32,
}

impl<'a> Worker<'a> {
    pub(crate) fn new(
        policy: Policy,
        mut desk: Desk<'a>,
        edges: Edges<'a>,
        link: Link<'a>,
    ) -> io::Result<Self> {
        let reactor = Reactor::new()?;
        desk.now = reactor.now();
        Ok(Self {
            wake: reactor.now(),
            second: (reactor.now(), 0),
            reactor,
            policy,
            desk,
            edges,
            link,
            connections: Slab::new(CONNECTION),
            resting: Slab::new(RESTING),
            idle: VecDeque::new(),
            spare: 0,
            thinking: VecDeque::new(),
            arrivals: None,
            window: None,
            stage: Stage::Opening,
            busy: 0,
            standing: 0,
            most_standing: 0,
            priming: 0,
            to_prime: 0,
            resume_credit: 0.0,
        })
    }

    /// Makes all connections that are kept and has one request answered on each: what a server makes at the first use
    /// (a gateway its connections to the upstream, with their handshakes) belongs to no warm-up, however short. Where
    /// new connections are to resume, makes those that bring the sessions for it. `waits` is asked every few
    /// milliseconds whether the others are still at it.
    pub(crate) fn open(&mut self, mut waits: impl FnMut(bool) -> bool) -> io::Result<()> {
        let keeps = self.policy.per_connection.keeps();
        if keeps {
            for _ in 0..self.policy.connections {
                self.dial_stock(0);
            }
        } else {
            self.spare = self.policy.connections;
            if self.policy.resume > 0.0 {
                self.to_prime = self.sessions_wanted();
            }
        }
        let mut events = Events::default();
        // All stand and have nothing to do, or have failed once.
        let settled = |worker: &Self| {
            worker.idle.len() + worker.resting.len() + worker.spare as usize
                >= worker.policy.connections as usize
        };
        let (mut first_uses, mut all) = (keeps, false);
        while waits(all) {
            if settled(self) && first_uses {
                first_uses = false;
                for _ in 0..self.idle.len() {
                    self.use_idle(self.desk.now);
                }
            }
            self.prime();
            all |= settled(self) && !first_uses && self.priming == 0;
            self.turn(&mut events, Instant::now() + GLANCE)?;
        }
        Ok(())
    }

    /// Runs warm-up, window and drain. `step_ends` are those of a rate that ramps.
    pub(crate) fn run(
        mut self,
        start: Instant,
        window: Window,
        arrivals: Option<Arrivals>,
        step_ends: &[Instant],
    ) -> io::Result<(Recorder, Edges<'a>)> {
        self.window = Some(window);
        self.desk.recorder.window = Some(window);
        self.desk.recorder.by_step(step_ends.iter().copied());
        self.arrivals = arrivals;
        let mut events = Events::default();
        while Instant::now() < start {
            self.turn(&mut events, start)?;
        }
        self.desk.now = Instant::now();
        self.stage = Stage::WarmUp;
        let whole = (window.from - self.desk.now.min(window.from)).as_secs();
        self.second = (window.from - Duration::from_secs(whole), -1 - whole as i64);
        self.set_wake();
        if self.arrivals.is_none() {
            self.begin_users();
        }
        loop {
            self.tick();
            let give_up = self.window.map_or(window.to, |window| window.to) + self.patience();
            if self.stage == Stage::Drain && (self.busy == 0 || self.desk.now >= give_up) {
                break;
            }
            let wake = match self.stage {
                Stage::Drain => give_up.min(self.desk.now + GLANCE_AT_STOP),
                _ => self.wake,
            };
            self.turn(&mut events, wake)?;
            let turn = self.desk.now.saturating_duration_since(self.reactor.now());
            if self.stage == Stage::Window {
                self.desk.recorder.loop_lag.record(turn);
            }
        }
        self.end_all();
        Ok((self.desk.recorder, self.edges))
    }

    fn turn(&mut self, events: &mut Events, until: Instant) -> io::Result<()> {
        self.reactor.turn(events, Some(until))?;
        self.desk.now = self.reactor.now();
        self.tick();
        for ready in events.ready() {
            self.ready(ready);
            self.tick();
        }
        for key in events.due() {
            self.due(*key);
        }
        Ok(())
    }

    /// What the time of the last event demands: the edges of the window, arrivals.
    #[inline]
    fn tick(&mut self) {
        if self.desk.now >= self.wake && self.stage != Stage::Opening {
            self.late();
        }
    }

    fn late(&mut self) {
        if let (Some(to), Some(window)) = (self.link.stop.get(), &mut self.window)
            && *to < window.to
        {
            window.to = *to;
            self.desk.recorder.window = self.window;
        }
        let Some(window) = self.window else { return };
        let now = self.desk.now;
        if self.stage == Stage::WarmUp && window.to <= window.from {
            // It was ended before there was a window.
            self.stage = Stage::Drain;
        }
        if self.stage == Stage::WarmUp && now >= window.from {
            self.end_seconds(window.from);
            self.stage = Stage::Window;
            self.begin_window();
        }
        if self.stage == Stage::Window && now >= window.to {
            self.edges.end();
            self.desk.recorder.window_ends();
            self.see_arrivals(window.to);
            for planned in self.arrivals.iter().flat_map(Arrivals::waiting) {
                self.desk.recorder.unsent(*planned, window.to);
            }
            self.end_seconds(window.to);
            self.stage = Stage::Drain;
        }
        if self.stage != Stage::Drain {
            self.end_seconds(now);
            self.see_arrivals(now);
            self.wake_users();
        }
        self.set_wake();
    }

    /// How long what has begun may take to end.
    fn patience(&self) -> Duration {
        let ended_early = self.link.stop.get().is_some();
        if ended_early { self.policy.timeout.min(PATIENCE_AT_STOP) } else { self.policy.timeout }
    }

    fn begin_window(&mut self) {
        let recorder = &mut self.desk.recorder;
        recorder.window_begins();
        recorder.backlog = self.arrivals.as_ref().map_or(0, |arrivals| arrivals.waiting().len() as u64);
        if self.policy.per_connection.keeps() && self.most_standing < self.policy.connections {
            let missing = self.policy.connections - self.most_standing;
            recorder.errors(&MISSING, u64::from(missing));
        }
        self.edges.start();
    }

    /// Ends the seconds that are over at `now`; the window's end also ends a part of one.
    fn end_seconds(&mut self, now: Instant) {
        let (end, number) = self.second;
        let last = self.window.is_some_and(|window| window.to == now);
        if now < end && !last {
            return;
        }
        let waiting = self.arrivals.as_ref().map_or(0, |arrivals| arrivals.waiting().len() as u64);
        // After a pause that was longer, what came in it stands in the first of its seconds.
        let over = now.saturating_duration_since(end).as_secs();
        for number in number..=number + over as i64 {
            let part = self.desk.recorder.second(number, u64::from(self.standing), waiting);
            self.link.outbox.put(part);
        }
        self.second = (end + Duration::from_secs(over + 1), number + 1 + over as i64);
    }

    fn set_wake(&mut self) {
        let Some(window) = self.window else { return };
        let now = self.desk.now;
        let edge = match self.stage {
            Stage::Opening | Stage::WarmUp => window.from,
            Stage::Window => window.to,
            Stage::Drain => now + self.policy.timeout * 2,
        };
        let arrival = self.arrivals.as_ref().filter(|_| self.stage != Stage::Drain).map(Arrivals::next);
        let user = self.thinking.front().map(|(planned, _)| *planned);
        let times = [Some(edge), Some(self.second.0), Some(now + GLANCE_AT_STOP), arrival, user];
        self.wake = times.into_iter().flatten().min().unwrap_or(edge);
    }

    /// Looks at the arrivals up to `until` (those of the window lie before its end), and sends each as it is seen: what
    /// one of them takes makes the next one late, and the lag has it.
    fn see_arrivals(&mut self, until: Instant) {
        loop {
            let (Some(arrivals), Some(window)) = (&mut self.arrivals, self.window) else { return };
            if arrivals.next() >= window.to {
                return;
            }
            let Some(planned) = arrivals.see(until) else { return };
            self.desk.recorder.arrival(planned, self.desk.now);
            self.send_waiting();
        }
    }

    /// Sends what waits, as long as a connection is free. Called for every arrival that is seen and every connection that
    /// becomes free: so nothing waits beside a free connection.
    fn send_waiting(&mut self) {
        while let Some(planned) = self.arrivals.as_mut().and_then(Arrivals::take) {
            if !self.send(planned) {
                if let Some(arrivals) = &mut self.arrivals {
                    arrivals.put_back(planned);
                }
                return;
            }
            self.desk.now = Instant::now();
            if self.window.is_some_and(|window| window.holds(planned)) {
                self.desk.recorder.sent += 1;
            }
        }
    }
}

/// How often a worker that has opened its connections looks whether the others have.
const GLANCE: Duration = Duration::from_millis(2);

/// How often a worker that has nothing to do looks whether the run is to end early.
const GLANCE_AT_STOP: Duration = Duration::from_millis(100);

/// How long a run that was ended early waits for its last answers; then they are left, and no errors.
const PATIENCE_AT_STOP: Duration = Duration::from_secs(1);

const MISSING: Wrong =
    Wrong::fixed(ErrorClass::Missing, "not all connections stood when the warm-up was over");
