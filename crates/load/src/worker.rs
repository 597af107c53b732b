//! One worker: its connections, its share of the schedule, its loop.

use crate::accounting::Edges;
use crate::check::{Detail, ErrorClass, Wrong};
use crate::connection::{Connection, Desk, Outcome, Phase};
use crate::recorder::{Recorder, Window};
use crate::schedule::Arrivals;
use std::collections::VecDeque;
use std::io;
use std::iter::Cycle;
use std::net::IpAddr;
use std::time::{Duration, Instant};
use std::vec;
use weir_reactor::{Events, Key, Reactor, Ready, Slab};
use weir_tls::{Connector, PeerName};
use weir_transport::{Address, Transport};

const CONNECTION: u8 = 1;
const RESTING: u8 = 2;

/// After a failure, a connection is tried again after this time, twice as long each time ..
const BACK_OFF: Duration = Duration::from_millis(10);
/// .. up to this, so that a port that refuses is not stormed and one that comes back is soon noticed.
const MAX_BACK_OFF: Duration = Duration::from_secs(1);

/// How this worker makes and uses its connections.
pub(crate) struct Policy {
    pub(crate) address: Address,
    /// Used in turn; empty lets the system choose.
    pub(crate) sources: Cycle<vec::IntoIter<IpAddr>>,
    pub(crate) tls: Option<(Connector, PeerName)>,
    pub(crate) connections: u32,
    /// Requests on one connection, then a new one.
    pub(crate) per_connection: Option<u64>,
    pub(crate) timeout: Duration,
}

/// One worker's state.
pub(crate) struct Worker<'a> {
    reactor: Reactor,
    policy: Policy,
    desk: Desk<'a>,
    edges: Edges<'a>,
    connections: Slab<Connection>,
    resting: Slab<Resting>,
    /// Connections between two requests, the one that has waited longest first: so all of them are used whatever the
    /// rate, none times out at the server, and the load is spread over all workers of the server.
    idle: VecDeque<Key>,
    /// Connections that may be made when a request needs one (with a new connection for each request).
    spare: u32,
    arrivals: Option<Arrivals>,
    window: Option<Window>,
    stage: Stage,
    /// The next instant at which something is to be done without an event.
    wake: Instant,
    /// Requests that have no answer yet.
    busy: u32,
    /// Connections that stand, and the most that ever stood at once.
    standing: u32,
    most_standing: u32,
}

/// A connection that failed, until it is tried again.
#[derive(Clone, Copy, Debug)]
struct Resting {
    failures: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Stage {
    /// Connections are made; no request is sent.
    Opening,
    WarmUp,
    Window,
    /// No request is begun; those that have begun may end.
    Drain,
}

impl<'a> Worker<'a> {
    pub(crate) fn new(policy: Policy, mut desk: Desk<'a>, edges: Edges<'a>) -> io::Result<Self> {
        let reactor = Reactor::new()?;
        desk.now = reactor.now();
        Ok(Self {
            wake: reactor.now(),
            reactor,
            policy,
            desk,
            edges,
            connections: Slab::new(CONNECTION),
            resting: Slab::new(RESTING),
            idle: VecDeque::new(),
            spare: 0,
            arrivals: None,
            window: None,
            stage: Stage::Opening,
            busy: 0,
            standing: 0,
            most_standing: 0,
        })
    }

    /// Makes all connections and, where they are kept, has one request answered on each: what a server makes at the first
    /// use (a gateway its connections to the upstream, with their handshakes) belongs to no warm-up, however short.
    /// `waits` is asked every few milliseconds whether the others are still at it.
    pub(crate) fn open(&mut self, mut waits: impl FnMut(bool) -> bool) -> io::Result<()> {
        if self.policy.per_connection == Some(1) {
            self.spare = self.policy.connections;
        } else {
            for _ in 0..self.policy.connections {
                self.dial(None, 0);
            }
        }
        let mut events = Events::default();
        // All stand and have nothing to do, or have failed once.
        let settled = |worker: &Self| {
            worker.idle.len() + worker.resting.len() + worker.spare as usize
                >= worker.policy.connections as usize
        };
        let (mut first_uses, mut all) = (self.policy.per_connection.is_none(), false);
        while waits(all) {
            if settled(self) && first_uses {
                first_uses = false;
                for _ in 0..self.idle.len() {
                    self.send(self.desk.now);
                }
            }
            all |= settled(self) && !first_uses;
            self.turn(&mut events, Instant::now() + GLANCE)?;
        }
        Ok(())
    }

    /// Runs warm-up, window and drain. `glance` is given the number of answers after each turn.
    pub(crate) fn run(
        mut self,
        start: Instant,
        window: Window,
        arrivals: Option<Arrivals>,
        mut glance: impl FnMut(u64),
    ) -> io::Result<(Recorder, Edges<'a>)> {
        self.window = Some(window);
        self.desk.recorder.window = Some(window);
        self.arrivals = arrivals;
        let mut events = Events::default();
        while Instant::now() < start {
            self.turn(&mut events, start)?;
        }
        self.desk.now = Instant::now();
        self.stage = Stage::WarmUp;
        self.set_wake();
        if self.arrivals.is_none() {
            while self.send(self.desk.now) {}
        }
        let give_up = window.to + self.policy.timeout;
        loop {
            self.tick();
            if self.stage == Stage::Drain && (self.busy == 0 || self.desk.now >= give_up) {
                break;
            }
            let wake = if self.stage == Stage::Drain { give_up } else { self.wake };
            self.turn(&mut events, wake)?;
            glance(self.desk.recorder.counters.answered);
        }
        for key in self.connections.keys() {
            if let Some(mut connection) = self.connections.remove(key) {
                if connection.has_request() {
                    self.desk.recorder.error(&TIMED_OUT);
                }
                // Its end is a courtesy.
                let _ = connection.transport.finish();
            }
        }
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
        let Some(window) = self.window else { return };
        if self.stage == Stage::WarmUp && self.desk.now >= window.from {
            self.stage = Stage::Window;
            self.desk.recorder.window_begins();
            if self.policy.per_connection != Some(1) && self.most_standing < self.policy.connections {
                let missing = self.policy.connections - self.most_standing;
                self.desk.recorder.errors(&MISSING, u64::from(missing));
            }
            self.edges.start();
        }
        if self.stage == Stage::Window && self.desk.now >= window.to {
            self.edges.end();
            self.desk.recorder.window_ends();
            self.see_arrivals(window.to);
            self.send_waiting();
            self.stage = Stage::Drain;
        }
        if self.stage != Stage::Drain {
            self.see_arrivals(self.desk.now);
            self.send_waiting();
        }
        self.set_wake();
    }

    fn set_wake(&mut self) {
        let Some(window) = self.window else { return };
        let edge = match self.stage {
            Stage::Opening | Stage::WarmUp => window.from,
            Stage::Window | Stage::Drain => window.to,
        };
        self.wake = self.arrivals.as_ref().map_or(edge, |arrivals| arrivals.next().min(edge));
        if self.stage == Stage::Drain {
            self.wake = self.desk.now + self.policy.timeout * 2;
        }
    }

    /// Looks at the arrivals up to `until` (those of the window lie before its end).
    fn see_arrivals(&mut self, until: Instant) {
        let (Some(arrivals), Some(window)) = (&mut self.arrivals, self.window) else { return };
        while arrivals.next() < window.to
            && let Some(planned) = arrivals.see(until)
        {
            if window.holds(planned) {
                self.desk.recorder.planned += 1;
                self.desk.recorder.lag.record(self.desk.now.saturating_duration_since(planned));
            }
        }
    }

    fn send_waiting(&mut self) {
        while let Some(planned) = self.arrivals.as_ref().and_then(Arrivals::waiting)
            && self.send(planned)
        {
            if let Some(arrivals) = &mut self.arrivals {
                arrivals.take();
            }
            if self.window.is_some_and(|window| window.holds(planned)) {
                self.desk.recorder.sent += 1;
            }
        }
    }

    /// Sends the request that was planned for `planned`, if a connection is free.
    fn send(&mut self, planned: Instant) -> bool {
        if self.spare > 0 {
            self.spare -= 1;
            self.dial(Some(planned), 0);
            return true;
        }
        while let Some(key) = self.idle.pop_front() {
            if self.connections.get(key).is_some() {
                self.begin(key, planned);
                return true;
            }
        }
        false
    }

    fn begin(&mut self, key: Key, planned: Instant) {
        let Some(connection) = self.connections.get_mut(key) else { return };
        let last = self.policy.per_connection.is_some_and(|most| connection.answered + 1 >= most);
        if !matches!(connection.phase, Phase::Opening(Some(_))) {
            self.busy += 1;
        }
        let begun = connection.begin(planned, last, &mut self.desk);
        connection.deadline = self.desk.now + self.policy.timeout;
        if !connection.armed {
            connection.armed = true;
            self.reactor.arm(connection.deadline, key);
        }
        match begun {
            Ok(()) => self.watch(key),
            Err(wrong) => self.lose(key, Some(&wrong)),
        }
    }

    /// Makes a connection, for the request planned for `carried` or for any.
    fn dial(&mut self, carried: Option<Instant>, failures: u32) {
        let session = self.policy.tls.as_ref().map(|(connector, name)| connector.connect(name));
        self.busy += u32::from(carried.is_some());
        let deadline = self.desk.now + self.policy.timeout;
        match Transport::connect_from(self.policy.sources.next(), &self.policy.address, session) {
            Ok(transport) => {
                self.desk.recorder.counters.connections += 1;
                let connection = Connection::new(transport, Phase::Opening(carried), deadline, failures);
                let key = self.connections.insert(connection);
                if let Some(connection) = self.connections.get_mut(key) {
                    connection.armed = true;
                }
                self.reactor.arm(deadline, key);
                self.watch(key);
            }
            Err(fault) => {
                self.busy -= u32::from(carried.is_some());
                self.desk.recorder.error(&fault.into());
                self.rest(failures + 1);
            }
        }
    }

    fn ready(&mut self, ready: Ready) {
        let Some(connection) = self.connections.get_mut(ready.key) else { return };
        match connection.event(ready.readable, ready.writable, &mut self.desk) {
            Ok(Outcome::Waits) => self.watch(ready.key),
            Ok(Outcome::Opened) => self.opened(ready.key),
            Ok(Outcome::Answered { wrong, reusable }) => self.answered(ready.key, wrong.as_ref(), reusable),
            Ok(Outcome::Ended) => self.lose(ready.key, None),
            Err(wrong) => self.lose(ready.key, Some(&wrong)),
        }
    }

    fn opened(&mut self, key: Key) {
        let Some(connection) = self.connections.get_mut(key) else { return };
        self.standing += 1;
        self.most_standing = self.most_standing.max(self.standing);
        match connection.phase {
            Phase::Opening(Some(planned)) => self.begin(key, planned),
            Phase::Opening(None) => {
                connection.phase = Phase::Idle;
                self.watch(key);
                self.free(key);
            }
            Phase::Idle | Phase::Busy { .. } => {}
        }
    }

    /// A connection can take a request.
    fn free(&mut self, key: Key) {
        match (self.stage, &self.arrivals) {
            (Stage::Opening, _) => self.idle.push_back(key),
            (Stage::Drain, _) => {}
            (_, None) => self.begin(key, self.desk.now),
            (_, Some(_)) => {
                self.idle.push_back(key);
                self.send_waiting();
            }
        }
    }

    fn answered(&mut self, key: Key, wrong: Option<&Wrong>, reusable: bool) {
        self.busy -= 1;
        if let Some(wrong) = wrong {
            self.desk.recorder.error(wrong);
        }
        if reusable {
            self.free(key);
            return;
        }
        if let Some(mut connection) = self.connections.remove(key) {
            self.standing -= 1;
            // Its end is a courtesy.
            let _ = connection.transport.finish();
        }
        self.replace(0);
    }

    /// A connection is of no more use, and with it the request that it had.
    fn lose(&mut self, key: Key, wrong: Option<&Wrong>) {
        let Some(connection) = self.connections.remove(key) else { return };
        self.busy -= u32::from(connection.has_request());
        self.standing -= u32::from(!matches!(connection.phase, Phase::Opening(_)));
        let useless = connection.answered == 0;
        match wrong {
            Some(wrong) => self.desk.recorder.error(wrong),
            // An idle connection may be closed by the server (RFC 9112 section 9.5), but not before its first request.
            None if useless => self.desk.recorder.error(&NEVER_USED),
            None => {}
        }
        if useless {
            self.rest(connection.failures + 1);
        } else {
            self.replace(0);
        }
    }

    /// A connection is gone: another takes its place.
    fn replace(&mut self, failures: u32) {
        if self.stage == Stage::Drain {
            return;
        }
        if self.policy.per_connection != Some(1) {
            self.dial(None, failures);
            return;
        }
        self.spare += 1;
        match self.arrivals {
            None => drop(self.send(self.desk.now)),
            Some(_) => self.send_waiting(),
        }
    }

    fn rest(&mut self, failures: u32) {
        let time = BACK_OFF.saturating_mul(1 << (failures - 1).min(10)).min(MAX_BACK_OFF);
        let key = self.resting.insert(Resting { failures });
        self.reactor.arm(self.desk.now + time, key);
    }

    fn due(&mut self, key: Key) {
        if key.tag() == RESTING {
            let Some(Resting { failures }) = self.resting.remove(key) else { return };
            match (self.policy.per_connection, self.stage) {
                (_, Stage::Drain) => {}
                // A closed loop tries again at once; an open one when the next request needs it.
                (Some(1), _) if self.arrivals.is_none() => self.dial(Some(self.desk.now), failures),
                (Some(1), _) => self.replace(failures),
                _ => self.dial(None, failures),
            }
            return;
        }
        let Some(connection) = self.connections.get_mut(key) else { return };
        connection.armed = false;
        if connection.phase == Phase::Idle {
            return;
        }
        if connection.deadline > self.desk.now {
            connection.armed = true;
            self.reactor.arm(connection.deadline, key);
            return;
        }
        self.lose(key, Some(&TIMED_OUT));
    }

    fn watch(&mut self, key: Key) {
        let Some(connection) = self.connections.get_mut(key) else { return };
        if let Err(error) = connection.transport.watch(&self.reactor, key, true) {
            let wrong = Wrong {
                class: ErrorClass::Socket,
                detail: Detail::Text(format!("the poller refused a socket: {error}")),
            };
            self.lose(key, Some(&wrong));
        }
    }
}

/// How often a worker that has opened its connections looks whether the others have.
const GLANCE: Duration = Duration::from_millis(2);

const TIMED_OUT: Wrong = Wrong::fixed(ErrorClass::Timeout, "nothing complete within the time-out");
const MISSING: Wrong =
    Wrong::fixed(ErrorClass::Missing, "not all connections stood when the warm-up was over");
const NEVER_USED: Wrong =
    Wrong::fixed(ErrorClass::Closed, "the server closed a connection that had had no request");
