//! What a worker does with its connections: whom they are for, and what follows when they open, answer or fail.

use super::{CONNECTION, RESTING, Resting, Stage, User, Worker};
use crate::check::{Detail, ErrorClass, Wrong};
use crate::connection::{Connection, Outcome, Phase, Purpose, Then};
use crate::options::{Close, PerConnection};
use crate::record::recorder::Course;
use std::time::{Duration, Instant};
use weir_reactor::{Key, Ready};
use weir_tls::Session;
use weir_transport::Transport;

/// After a failure, a connection is tried again after this time, twice as long each time ..
const BACK_OFF: Duration = Duration::from_millis(10);
/// .. up to this, so that a port that refuses is not stormed and one that comes back is soon noticed.
const MAX_BACK_OFF: Duration = Duration::from_secs(1);

/// How long a connection that has done its work waits for a session, for a word on its handshake, or for the end that the
/// server has announced. All of them come within a round trip, if they come.
const LINGER: Duration = Duration::from_secs(1);

/// How far ahead a connection's deadline is looked for.
const FARTHEST: Duration = Duration::from_secs(10);

/// A server that ends a connection without a request within this time has refused it; later, it was idle.
const REFUSED_WITHIN: Duration = Duration::from_secs(1);

/// Connections that are made at once for sessions: the server is to be asked, not stormed.
const PRIMING_AT_ONCE: u32 = 16;

impl Worker<'_> {
    /// Has every user of a closed loop begin: at once, or spread over the time that they think.
    pub(super) fn begin_users(&mut self) {
        let users: Vec<User> = std::iter::repeat_n(User::New, self.spare as usize)
            .chain(self.idle.drain(..).map(User::Kept))
            .collect();
        self.spare = 0;
        let step = self.policy.think / users.len().max(1) as u32;
        for (number, user) in users.into_iter().enumerate() {
            self.thinking.push_back((self.desk.now + step * number as u32, user));
        }
        self.wake_users();
        self.set_wake();
    }

    /// Begins the requests of the users that have thought.
    pub(super) fn wake_users(&mut self) {
        while let Some((planned, user)) = self.thinking.front().copied()
            && planned <= self.desk.now
        {
            self.thinking.pop_front();
            self.use_(user, planned);
            self.desk.now = Instant::now();
        }
    }

    /// Sends the request that was planned for `planned`, if a connection is free.
    pub(super) fn send(&mut self, planned: Instant) -> bool {
        if self.use_idle(planned) {
            return true;
        }
        if self.spare > 0 {
            self.spare -= 1;
            self.dial_for(planned, 0);
            return true;
        }
        false
    }

    pub(super) fn use_idle(&mut self, planned: Instant) -> bool {
        while let Some(key) = self.idle.pop_front() {
            if self.connections.get(key).is_some() {
                self.begin(key, planned);
                return true;
            }
        }
        false
    }

    pub(super) fn dial_stock(&mut self, failures: u32) {
        let session = self.session();
        self.dial(Purpose::Stock, session, failures);
    }

    /// As many sessions as may be under way at once, and some that come back late.
    pub(super) fn sessions_wanted(&self) -> u32 {
        self.policy.connections + self.policy.connections / 4 + 1
    }

    /// Makes connections until there are sessions enough.
    pub(super) fn prime(&mut self) {
        while self.to_prime > 0 && self.priming < PRIMING_AT_ONCE {
            let Some((connector, name)) = &self.policy.tls else { return };
            if connector.sessions(name) + self.priming as usize >= self.sessions_wanted() as usize {
                return;
            }
            let session = connector.connect_full(name);
            self.to_prime -= 1;
            self.priming += 1;
            self.dial(Purpose::Session, Some((session, false)), 0);
        }
    }

    pub(super) fn ready(&mut self, ready: Ready) {
        let Some(connection) = self.connections.get_mut(ready.key) else { return };
        match connection.event(ready.readable, ready.writable, &mut self.desk) {
            Ok(Outcome::Waits) => self.watch(ready.key),
            Ok(Outcome::Opened) => self.opened(ready.key),
            Ok(Outcome::Answered { wrong, then }) => self.answered(ready.key, wrong.as_ref(), then),
            Ok(Outcome::Ticket) => self.end(ready.key),
            Ok(Outcome::Ended) => self.lose(ready.key, None),
            Err(wrong) => self.lose(ready.key, Some(&wrong)),
        }
    }

    pub(super) fn due(&mut self, key: Key) {
        if key.tag() == RESTING {
            let Some(Resting { failures }) = self.resting.remove(key) else { return };
            match (self.policy.per_connection, self.stage) {
                (_, Stage::Drain) => {}
                (PerConnection::Unlimited, _) => self.dial_stock(failures),
                (_, Stage::Opening) => self.spare += 1,
                // A closed loop tries again at once; an open one when the next request needs it.
                _ if self.arrivals.is_none() => self.dial_for(self.desk.now, failures),
                _ => self.free(User::New),
            }
            return;
        }
        let Some(connection) = self.connections.get_mut(key) else { return };
        connection.armed = false;
        if connection.phase == Phase::Idle {
            return;
        }
        if connection.deadline > self.desk.now {
            self.arm(key);
            return;
        }
        match connection.phase {
            Phase::AwaitingTicket(_) => self.end(key),
            Phase::AwaitingVerdict | Phase::Ending => self.close(key),
            Phase::Busy { .. } | Phase::Opening(_) | Phase::Idle => {
                connection.give_up(&mut self.desk);
                self.lose(key, Some(&TIMED_OUT));
            }
        }
    }

    /// Ends all connections; requests that are still under way have timed out, unless the run was ended early.
    pub(super) fn end_all(&mut self) {
        for key in self.connections.keys() {
            let Some(connection) = self.connections.get(key) else { continue };
            if connection.has_request() && self.link.stop.get().is_none() {
                connection.give_up(&mut self.desk);
                self.desk.recorder.error(&TIMED_OUT);
            }
            self.close(key);
        }
    }

    fn use_(&mut self, user: User, planned: Instant) {
        match user {
            User::Kept(key) if self.connections.get(key).is_some() => self.begin(key, planned),
            // The server may have ended it meanwhile.
            User::Kept(_) | User::New => self.dial_for(planned, 0),
        }
    }

    fn begin(&mut self, key: Key, planned: Instant) {
        let Some(connection) = self.connections.get_mut(key) else { return };
        if !matches!(connection.phase, Phase::Opening(Purpose::Request(_))) {
            self.busy += 1;
        }
        let begun = connection.begin(planned, &mut self.desk);
        connection.deadline = self.desk.now + self.policy.timeout;
        if !connection.armed {
            self.arm(key);
        }
        match begun {
            Ok(()) => self.watch(key),
            Err(wrong) => self.lose(key, Some(&wrong)),
        }
    }

    /// Makes a connection for what was planned for `planned`.
    fn dial_for(&mut self, planned: Instant, failures: u32) {
        self.busy += 1;
        let session = self.session();
        let purpose = match self.policy.per_connection {
            PerConnection::Handshake => Purpose::Handshake(planned),
            PerConnection::Unlimited | PerConnection::Requests { .. } => Purpose::Request(planned),
        };
        self.dial(purpose, session, failures);
    }

    /// The client's side of a new connection, and whether it offers a session because it is to resume.
    fn session(&mut self) -> Option<(Session, bool)> {
        let (connector, name) = self.policy.tls.as_ref()?;
        self.resume_credit += self.policy.resume;
        if self.resume_credit < 100.0 {
            return Some((connector.connect_full(name), false));
        }
        self.resume_credit -= 100.0;
        Some(match connector.connect_resuming(name) {
            Some(session) => (session, true),
            None => {
                self.desk.recorder.counters.had_nothing += 1;
                (connector.connect_full(name), false)
            }
        })
    }

    fn dial(&mut self, purpose: Purpose, session: Option<(Session, bool)>, failures: u32) {
        let (session, offered) = session.unzip();
        let now = self.desk.now;
        let deadline = now + self.policy.timeout;
        match Transport::connect_from(self.policy.sources.next(), &self.policy.address, session) {
            Ok(transport) => {
                self.desk.recorder.counters.connections += 1;
                let mut connection = Connection::new(transport, purpose, now, deadline);
                connection.failures = failures;
                connection.offered = offered.unwrap_or(false);
                if let PerConnection::Requests { least, most } = self.policy.per_connection {
                    let range = (most - least + 1) as usize;
                    connection.quota = least + self.policy.rng.below(range) as u64;
                }
                let key = self.connections.insert(connection);
                self.arm(key);
                self.watch(key);
            }
            Err(fault) => {
                self.busy -= u32::from(purpose.planned().is_some());
                self.desk.recorder.error(&fault.into());
                self.failed(purpose, failures + 1);
            }
        }
    }

    fn opened(&mut self, key: Key) {
        let Some(connection) = self.connections.get_mut(key) else { return };
        self.standing += 1;
        self.most_standing = self.most_standing.max(self.standing);
        let Phase::Opening(purpose) = connection.phase else { return };
        let handshakes_only = self.policy.per_connection == PerConnection::Handshake;
        match purpose {
            Purpose::Request(planned) => self.begin(key, planned),
            Purpose::Stock => {
                connection.phase = Phase::Idle;
                self.watch(key);
                self.free(User::Kept(key));
            }
            Purpose::Handshake(planned) => {
                self.busy -= 1;
                let written = connection.connected;
                let end = self.desk.now;
                let course = Course { planned, written, first: None, end };
                self.desk.recorder.answer(course);
                self.await_ticket(key, purpose);
            }
            // Some servers (BoringSSL, AWS-LC) send their tickets with the first answer.
            Purpose::Session if !handshakes_only => {
                connection.primes = true;
                self.begin(key, self.desk.now);
            }
            Purpose::Session => self.await_ticket(key, purpose),
        }
    }

    /// The handshake is done; a connection whose successors are to resume stays until it has brought a session.
    fn await_ticket(&mut self, key: Key, purpose: Purpose) {
        let Some(connection) = self.connections.get_mut(key) else { return };
        connection.answered = 1;
        connection.phase = Phase::AwaitingTicket(purpose);
        let tls13 =
            connection.transport.facts().is_some_and(|facts| facts.version == weir_tls::Version::Tls13);
        if !tls13 || connection.transport.tickets_received() > 0 {
            return self.end(key);
        }
        if self.policy.resume == 0.0 {
            // Whoever has shaken hands does not wait for what the server says to it.
            self.standing -= 1;
            self.linger(key, Phase::AwaitingVerdict);
            return self.vacate();
        }
        self.linger(key, Phase::AwaitingTicket(purpose));
    }

    /// A connection has done its work and stays for a moment, for what the server has still to say.
    fn linger(&mut self, key: Key, phase: Phase) {
        let Some(connection) = self.connections.get_mut(key) else { return };
        connection.phase = phase;
        connection.deadline = self.desk.now + LINGER;
        // The entry that the wheel has is that of the time-out, which may be later.
        self.arm(key);
        self.watch(key);
    }

    /// Has the connection looked at when its deadline has come, or some seconds from now: the wheel forgets nothing that
    /// it was given, and where connections come and go a long time-out would fill it.
    fn arm(&mut self, key: Key) {
        let Some(connection) = self.connections.get_mut(key) else { return };
        connection.armed = true;
        self.reactor.arm(connection.deadline.min(self.desk.now + FARTHEST), key);
    }

    /// A connection has done all that it was made for.
    fn end(&mut self, key: Key) {
        let Some(connection) = self.connections.get(key) else { return };
        let primes = connection.phase == Phase::AwaitingTicket(Purpose::Session);
        self.standing -= 1;
        self.close(key);
        if primes { self.priming -= 1 } else { self.vacate() }
    }

    fn answered(&mut self, key: Key, wrong: Option<&Wrong>, then: Then) {
        self.busy -= 1;
        if let Some(wrong) = wrong {
            self.desk.recorder.error(wrong);
        }
        if self.connections.get(key).is_some_and(|connection| connection.primes) {
            return self.await_ticket(key, Purpose::Session);
        }
        if then == Then::Reuse {
            return self.free(User::Kept(key));
        }
        self.standing -= 1;
        if then == Then::AwaitEnd && self.policy.close != Close::Reset {
            self.linger(key, Phase::Ending);
        } else {
            self.close(key);
        }
        // Whoever has his answer does not wait for the connection's end.
        self.vacate();
    }

    /// A connection is of no more use, and with it the request that it had.
    fn lose(&mut self, key: Key, wrong: Option<&Wrong>) {
        match self.connections.get(key).map(|connection| connection.phase) {
            Some(Phase::Ending) => return self.close(key),
            // The handshake was counted, and is wrong after all.
            Some(Phase::AwaitingVerdict) => {
                wrong.into_iter().for_each(|wrong| self.desk.recorder.error(wrong));
                return self.close(key);
            }
            _ => {}
        }
        let Some(connection) = self.connections.remove(key) else { return };
        self.busy -= u32::from(connection.has_request());
        self.standing -= u32::from(!matches!(connection.phase, Phase::Opening(_)));
        let idle = connection.phase == Phase::Idle;
        let useless = connection.answered == 0;
        match wrong {
            Some(wrong) => self.desk.recorder.error(wrong),
            // An idle connection may be closed by the server (RFC 9112 section 9.5), but not before its first request.
            None if useless && self.desk.now < connection.connected + REFUSED_WITHIN => {
                self.desk.recorder.error(&NEVER_USED);
            }
            None => {}
        }
        if idle && self.stage == Stage::Opening {
            // Another one takes its place, for which there must be one user.
            self.idle.retain(|other| *other != key);
        }
        match connection.phase {
            Phase::Opening(purpose) => self.failed(purpose, connection.failures + 1),
            Phase::AwaitingTicket(Purpose::Session) => self.priming -= 1,
            Phase::Busy { .. } if connection.primes => self.priming -= 1,
            // The user of an idle connection thinks, and will find that it is gone.
            _ if idle && self.stage != Stage::Opening && self.arrivals.is_none() => {}
            _ if useless => self.failed(Purpose::Stock, connection.failures + 1),
            _ => self.vacate(),
        }
    }

    /// A connection could not be made, or never got an answer: its place rests before it is tried again.
    fn failed(&mut self, purpose: Purpose, failures: u32) {
        if purpose == Purpose::Session {
            self.priming -= 1;
            return;
        }
        let time = BACK_OFF.saturating_mul(1 << (failures - 1).min(10)).min(MAX_BACK_OFF);
        let key = self.resting.insert(Resting { failures });
        self.reactor.arm(self.desk.now + time, key);
    }

    /// A place is empty: a connection that is kept is made anew, any other when it is needed.
    fn vacate(&mut self) {
        let keeps = self.policy.per_connection.keeps();
        match self.stage {
            Stage::Drain => {}
            Stage::Opening if keeps => self.dial_stock(0),
            _ if keeps && self.arrivals.is_some() => self.dial_stock(0),
            _ => self.free(User::New),
        }
    }

    /// Someone can send a request.
    fn free(&mut self, user: User) {
        match (self.stage, &self.arrivals) {
            (Stage::Drain, _) => {}
            (Stage::Opening, _) | (_, Some(_)) => {
                match user {
                    User::Kept(key) => self.idle.push_back(key),
                    User::New => self.spare += 1,
                }
                if self.stage != Stage::Opening {
                    self.send_waiting();
                }
            }
            (_, None) if self.policy.think.is_zero() => self.use_(user, self.desk.now),
            (_, None) => {
                let planned = self.desk.now + self.policy.think;
                self.thinking.push_back((planned, user));
                self.wake = self.wake.min(planned);
            }
        }
    }

    fn close(&mut self, key: Key) {
        let Some(mut connection) = self.connections.remove(key) else { return };
        match self.policy.close {
            // Its end is a courtesy.
            Close::Graceful => drop(connection.transport.finish()),
            Close::Fin => drop(connection.transport.finish_bare()),
            Close::Reset => connection.transport.reset(),
        }
    }

    fn watch(&mut self, key: Key) {
        debug_assert_eq!(key.tag(), CONNECTION);
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

const TIMED_OUT: Wrong = Wrong::fixed(ErrorClass::Timeout, "nothing complete within the time-out");
const NEVER_USED: Wrong =
    Wrong::fixed(ErrorClass::Closed, "the server closed a connection that had had no request");
