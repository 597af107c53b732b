//! One worker: its connections, its share of the schedule, its loop.

mod users;

use crate::accounting::Edges;
use crate::check::{ErrorClass, Wrong};
use crate::connection::{Connection, Context};
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
    /// Used in turn; the system chooses if empty.
    pub(crate) sources: Cycle<vec::IntoIter<IpAddr>>,
    pub(crate) tls: Option<(Connector, PeerName)>,
    pub(crate) connections: u32,
    pub(crate) per_connection: PerConnection,
    /// Percentage of new connections that resume.
    pub(crate) resume: f64,
    pub(crate) close: Close,
    /// Think time in a closed loop.
    pub(crate) think: Duration,
    pub(crate) timeout: Duration,
    pub(crate) rng: Rng,
}

/// State shared by a worker and the conductor.
pub(crate) struct Link<'a> {
    pub(crate) outbox: &'a Outbox,
    /// An early end of the window.
    pub(crate) stop: &'a OnceLock<Instant>,
}

pub(crate) struct Worker<'a> {
    reactor: Reactor,
    policy: Policy,
    context: Context<'a>,
    edges: Edges<'a>,
    link: Link<'a>,
    connections: Slab<Connection>,
    resting: Slab<Resting>,
    /// Idle connections, the longest idle first: so all of them are used at any
    /// rate, none times out at the server, and the load spreads over all server workers.
    idle: VecDeque<Key>,
    /// Connections that may be opened on demand (without keep-alive).
    spare: u32,
    /// Thinking users of a closed loop, by the instant of their next request: all think equally long,
    /// so they are sorted.
    thinking: VecDeque<(Instant, User)>,
    arrivals: Option<Arrivals>,
    window: Option<Window>,
    stage: Stage,
    /// The next instant at which there is something to do without an event.
    wake: Instant,
    /// The end of the current second, and its number from the window's start.
    second: (Instant, i64),
    /// Requests in flight.
    busy: u32,
    /// Open connections, and their maximum so far.
    standing: u32,
    most_standing: u32,
    /// Connections opening to get sessions, and how many more may open.
    priming: u32,
    to_prime: u32,
    /// Accumulates the share of connections that resume.
    resume_credit: f64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Stage {
    /// Connections open; the only requests are the first on each keep-alive connection.
    Opening,
    WarmUp,
    Window,
    /// No request starts; requests in flight may finish.
    Drain,
}

/// A user of a closed loop.
#[derive(Clone, Copy, Debug)]
enum User {
    /// On an open connection.
    Kept(Key),
    /// On a connection yet to be opened.
    New,
}

/// A failed connection, until it is retried.
#[derive(Clone, Copy, Debug)]
struct Resting {
    failures: u32,
}

impl<'a> Worker<'a> {
    pub(crate) fn new(
        policy: Policy,
        mut context: Context<'a>,
        edges: Edges<'a>,
        link: Link<'a>,
    ) -> io::Result<Self> {
        let reactor = Reactor::new()?;
        context.now = reactor.now();
        Ok(Self {
            wake: reactor.now(),
            second: (reactor.now(), 0),
            reactor,
            policy,
            context,
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

    /// Opens all keep-alive connections and completes one request on each, so that what a server sets up on first use
    /// (such as a gateway's upstream connections) is done even with a short warm-up. If
    /// new connections resume, opens connections to get sessions. Polls `waits` every few
    /// milliseconds: whether the other workers are still opening.
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
        // All are open and idle, or have failed once.
        let settled = |worker: &Self| {
            worker.idle.len() + worker.resting.len() + worker.spare as usize
                >= worker.policy.connections as usize
        };
        let (mut first_uses, mut all) = (keeps, false);
        while waits(all) {
            if settled(self) && first_uses {
                first_uses = false;
                for _ in 0..self.idle.len() {
                    self.use_idle(self.context.now);
                }
            }
            self.prime();
            all |= settled(self) && !first_uses && self.priming == 0;
            self.turn(&mut events, Instant::now() + GLANCE)?;
        }
        Ok(())
    }

    /// Runs warm-up, window and drain. `step_ends` are the ends of a ramp's steps.
    pub(crate) fn run(
        mut self,
        start: Instant,
        window: Window,
        arrivals: Option<Arrivals>,
        step_ends: &[Instant],
    ) -> io::Result<(Recorder, Edges<'a>)> {
        self.window = Some(window);
        self.context.recorder.window = Some(window);
        self.context.recorder.by_step(step_ends.iter().copied());
        self.arrivals = arrivals;
        let mut events = Events::default();
        while Instant::now() < start {
            self.turn(&mut events, start)?;
        }
        self.context.now = Instant::now();
        self.stage = Stage::WarmUp;
        let whole = (window.from - self.context.now.min(window.from)).as_secs();
        self.second = (window.from - Duration::from_secs(whole), -1 - whole as i64);
        self.set_wake();
        if self.arrivals.is_none() {
            self.begin_users();
        }
        loop {
            self.tick();
            let give_up = self.window.map_or(window.to, |window| window.to) + self.patience();
            if self.stage == Stage::Drain && (self.busy == 0 || self.context.now >= give_up) {
                break;
            }
            let wake = match self.stage {
                Stage::Drain => give_up.min(self.context.now + GLANCE_AT_STOP),
                _ => self.wake,
            };
            self.turn(&mut events, wake)?;
            let turn = self.context.now.saturating_duration_since(self.reactor.now());
            if self.stage == Stage::Window {
                self.context.recorder.loop_lag.record(turn);
            }
        }
        self.end_all();
        Ok((self.context.recorder, self.edges))
    }

    fn turn(&mut self, events: &mut Events, until: Instant) -> io::Result<()> {
        self.reactor.turn(events, Some(until))?;
        self.context.now = self.reactor.now();
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

    /// Handles the time of the last event: edges of the window, arrivals.
    #[inline]
    fn tick(&mut self) {
        if self.context.now >= self.wake && self.stage != Stage::Opening {
            self.late();
        }
    }

    fn late(&mut self) {
        if let (Some(to), Some(window)) = (self.link.stop.get(), &mut self.window)
            && *to < window.to
        {
            window.to = *to;
            self.context.recorder.window = self.window;
        }
        let Some(window) = self.window else { return };
        let now = self.context.now;
        if self.stage == Stage::WarmUp && window.to <= window.from {
            // It was stopped before the window.
            self.stage = Stage::Drain;
        }
        if self.stage == Stage::WarmUp && now >= window.from {
            self.end_seconds(window.from);
            self.stage = Stage::Window;
            self.begin_window();
        }
        if self.stage == Stage::Window && now >= window.to {
            self.edges.end();
            self.context.recorder.window_ends();
            self.see_arrivals(window.to);
            for planned in self.arrivals.iter().flat_map(Arrivals::waiting) {
                self.context.recorder.unsent(*planned, window.to);
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

    /// How long requests in flight may take to finish.
    fn patience(&self) -> Duration {
        let ended_early = self.link.stop.get().is_some();
        if ended_early { self.policy.timeout.min(PATIENCE_AT_STOP) } else { self.policy.timeout }
    }

    fn begin_window(&mut self) {
        let recorder = &mut self.context.recorder;
        recorder.window_begins();
        recorder.backlog = self.arrivals.as_ref().map_or(0, |arrivals| arrivals.waiting().len() as u64);
        if self.policy.per_connection.keeps() && self.most_standing < self.policy.connections {
            let missing = self.policy.connections - self.most_standing;
            recorder.errors(&MISSING, u64::from(missing));
        }
        self.edges.start();
    }

    /// Finishes the seconds that are over at `now`; the window's end also finishes a partial one.
    fn end_seconds(&mut self, now: Instant) {
        let (end, number) = self.second;
        let last = self.window.is_some_and(|window| window.to == now);
        if now < end && !last {
            return;
        }
        let waiting = self.arrivals.as_ref().map_or(0, |arrivals| arrivals.waiting().len() as u64);
        // After a longer pause, its events count in its first second.
        let over = now.saturating_duration_since(end).as_secs();
        for number in number..=number + over as i64 {
            let part = self.context.recorder.second(number, u64::from(self.standing), waiting);
            self.link.outbox.put(part);
        }
        self.second = (end + Duration::from_secs(over + 1), number + 1 + over as i64);
    }

    fn set_wake(&mut self) {
        let Some(window) = self.window else { return };
        let now = self.context.now;
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

    /// Takes the arrivals up to `until` (the window's lie before its end), and sends each at once: the time
    /// one takes delays the next, and shows up in the lag.
    fn see_arrivals(&mut self, until: Instant) {
        loop {
            let (Some(arrivals), Some(window)) = (&mut self.arrivals, self.window) else { return };
            if arrivals.next() >= window.to {
                return;
            }
            let Some(planned) = arrivals.see(until) else { return };
            self.context.recorder.arrival(planned, self.context.now);
            self.send_waiting();
        }
    }

    /// Sends waiting arrivals while a connection is free. Called for every arrival and every connection that
    /// becomes free, so nothing waits while a connection is free.
    fn send_waiting(&mut self) {
        while let Some(planned) = self.arrivals.as_mut().and_then(Arrivals::take) {
            if !self.send(planned) {
                if let Some(arrivals) = &mut self.arrivals {
                    arrivals.put_back(planned);
                }
                return;
            }
            self.context.now = Instant::now();
            if self.window.is_some_and(|window| window.holds(planned)) {
                self.context.recorder.sent += 1;
            }
        }
    }
}

/// Polling interval of a worker that waits for the others to open their connections.
const GLANCE: Duration = Duration::from_millis(2);

/// Polling interval of an idle worker for an early end.
const GLANCE_AT_STOP: Duration = Duration::from_millis(100);

/// How long a run that was ended early waits for its last responses; after that they are dropped, not errors.
const PATIENCE_AT_STOP: Duration = Duration::from_secs(1);

const MISSING: Wrong =
    Wrong::fixed(ErrorClass::Missing, "not all connections were established by the end of the warm-up");
