//! One worker: its connections, its share of the schedule, its loop.
//!
//! All versions of HTTP share the loop. They differ in the use of connections: see [`Protocol`].

mod http1;
mod protocol;
pub(crate) mod users;

pub(crate) use http1::Http1;
pub(crate) use protocol::{Protocol, Turn};

use crate::accounting::Edges;
use crate::check::{ErrorClass, Wrong};
use crate::connection::Context;
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
use weir_reactor::{Events, Reactor, Slab};
use weir_stats::rng::Rng;
use weir_tls::{Connector, PeerName, Session};
use weir_transport::Address;

pub(crate) const CONNECTION: u8 = 1;
pub(crate) const RESTING: u8 = 2;

pub(crate) struct Policy {
    pub(crate) address: Address,
    /// Used in turn; the system chooses if empty.
    pub(crate) sources: Cycle<vec::IntoIter<IpAddr>>,
    pub(crate) tls: Option<(Connector, PeerName)>,
    pub(crate) connections: u32,
    /// HTTP/2: streams per connection.
    pub(crate) streams: u32,
    /// HTTP/2: the receive window of a stream, in bytes.
    pub(crate) stream_window: u32,
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

pub(crate) struct Worker<'a, P: Protocol = Http1> {
    pub(crate) reactor: Reactor,
    pub(crate) policy: Policy,
    pub(crate) context: Context<'a, P>,
    edges: Edges<'a>,
    pub(crate) link: Link<'a>,
    pub(crate) connections: Slab<P::Connection>,
    pub(crate) resting: Slab<Resting>,
    /// The users of the connections.
    pub(crate) http: P,
    /// Thinking users of a closed loop, by the instant of their next request: all think equally long,
    /// so they are sorted.
    thinking: VecDeque<(Instant, P::User)>,
    pub(crate) arrivals: Option<Arrivals>,
    window: Option<Window>,
    pub(crate) stage: Stage,
    /// The next instant at which there is something to do without an event.
    wake: Instant,
    /// The end of the current second, and its number from the window's start.
    second: (Instant, i64),
    /// Requests in flight.
    pub(crate) busy: u32,
    /// Open connections, and their maximum so far.
    pub(crate) standing: u32,
    pub(crate) most_standing: u32,
    /// Accumulates the share of connections that resume.
    resume_credit: f64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Stage {
    /// Connections open; the only requests are the first on each keep-alive connection.
    Opening,
    WarmUp,
    Window,
    /// No request starts; requests in flight may finish.
    Drain,
}

/// A failed connection, until it is retried.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Resting {
    pub(crate) failures: u32,
}

impl<'a, P: Protocol> Worker<'a, P> {
    pub(crate) fn new(
        policy: Policy,
        mut context: Context<'a, P>,
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
            http: P::default(),
            thinking: VecDeque::new(),
            arrivals: None,
            window: None,
            stage: Stage::Opening,
            busy: 0,
            standing: 0,
            most_standing: 0,
            resume_credit: 0.0,
        })
    }

    /// Opens all keep-alive connections and completes one request on each, so that what a server sets up on first use
    /// (such as a gateway's upstream connections) is done even with a short warm-up. If
    /// new connections resume, opens connections to get sessions. Polls `waits` every few
    /// milliseconds: whether the other workers are still opening.
    pub(crate) fn open(&mut self, mut waits: impl FnMut(bool) -> bool) -> io::Result<()> {
        P::start_opening(self);
        let mut events = Events::default();
        let (mut first_uses, mut all) = (self.policy.per_connection.keeps(), false);
        while waits(all) {
            if P::is_settled(self) && first_uses {
                first_uses = false;
                P::use_each(self);
            }
            P::keep_opening(self);
            all |= P::is_settled(self) && !first_uses && P::is_ready(self);
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
        P::end_all(&mut self);
        Ok((self.context.recorder, self.edges))
    }

    fn turn(&mut self, events: &mut Events, until: Instant) -> io::Result<()> {
        P::flush(self);
        self.reactor.turn(events, Some(until))?;
        self.context.now = self.reactor.now();
        self.tick();
        for ready in events.ready() {
            P::ready(self, ready);
            self.tick();
        }
        for key in events.due() {
            P::due(self, *key);
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
        P::tend(self);
        self.set_wake();
    }

    /// The timeout for requests in flight.
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
            self.send_waiting(Turn::Now);
        }
    }

    /// Sends waiting arrivals while a connection is free. Called for every arrival and every connection that
    /// becomes free, so nothing waits while a connection is free.
    pub(crate) fn send_waiting(&mut self, turn: Turn) {
        while let Some(planned) = self.arrivals.as_mut().and_then(Arrivals::take) {
            if !P::send(self, planned, turn) {
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

    /// Starts every user of a closed loop: at once, or spread over the think time.
    fn begin_users(&mut self) {
        let users = P::take_users(self);
        let step = self.policy.think / users.len().max(1) as u32;
        for (number, user) in users.into_iter().enumerate() {
            self.thinking.push_back((self.context.now + step * number as u32, user));
        }
        self.wake_users();
        self.set_wake();
    }

    /// Starts the requests of users whose think time is over.
    fn wake_users(&mut self) {
        while let Some((planned, user)) = self.thinking.front().copied()
            && planned <= self.context.now
        {
            self.thinking.pop_front();
            P::begin_for(self, user, planned);
            self.context.now = Instant::now();
        }
    }

    /// Lets a user of a closed loop think before the next request.
    pub(crate) fn think(&mut self, user: P::User) {
        let planned = self.context.now + self.policy.think;
        self.thinking.push_back((planned, user));
        self.wake = self.wake.min(planned);
    }

    /// The client side of a new connection, and whether it offers a session to resume.
    pub(crate) fn session(&mut self) -> Option<(Session, bool)> {
        let (connector, name) = self.policy.tls.as_ref()?;
        self.resume_credit += self.policy.resume;
        if self.resume_credit < 100.0 {
            return Some((connector.connect_full(name), false));
        }
        self.resume_credit -= 100.0;
        Some(match connector.connect_resuming(name) {
            Some(session) => (session, true),
            None => {
                self.context.recorder.counters.had_nothing += 1;
                (connector.connect_full(name), false)
            }
        })
    }

    /// Retries a failed connection after a delay, which grows with the number of failures.
    pub(crate) fn back_off(&mut self, failures: u32) {
        let time = BACK_OFF.saturating_mul(1 << (failures - 1).min(10)).min(MAX_BACK_OFF);
        let key = self.resting.insert(Resting { failures });
        self.reactor.arm(self.context.now + time, key);
    }
}

/// Retry delay after a failed connection, doubled each time ..
const BACK_OFF: Duration = Duration::from_millis(10);
/// .. up to this: a refusing port is not flooded, and its recovery is noticed soon.
const MAX_BACK_OFF: Duration = Duration::from_secs(1);

/// Polling interval of a worker that waits for the others to open their connections.
const GLANCE: Duration = Duration::from_millis(2);

/// Polling interval of an idle worker for an early end.
const GLANCE_AT_STOP: Duration = Duration::from_millis(100);

/// The timeout for the last responses of a run that was ended early. Later ones are dropped, and are no errors.
const PATIENCE_AT_STOP: Duration = Duration::from_secs(1);

const MISSING: Wrong =
    Wrong::fixed(ErrorClass::Missing, "not all connections were established by the end of the warm-up");
