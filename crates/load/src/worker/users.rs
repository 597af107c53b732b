//! How a worker uses its connections, and what follows when they open, respond or fail.

use super::http1::User;
use super::{CONNECTION, RESTING, Resting, Stage, Turn, Worker};
use crate::check::{Detail, ErrorClass, Wrong};
use crate::connection::{Connection, Outcome, Phase, Purpose, Then};
use crate::options::{Close, PerConnection};
use crate::record::recorder::Course;
use crate::setup::Setup;
use std::time::{Duration, Instant};
use weir_reactor::{Key, Net as _, Ready};
use weir_tls::Session;
use weir_transport::Transport;

/// How long a finished connection waits for a session, for confirmation of its handshake, or for the close that the
/// server announced. All of them arrive within a round trip, if at all.
pub(crate) const LINGER: Duration = Duration::from_secs(1);

/// A server that closes a connection without a request within this time rejected it; later, it was idle.
pub(crate) const REFUSED_WITHIN: Duration = Duration::from_secs(1);

/// Concurrent connections opened to get sessions, limited so as not to flood the server.
const PRIMING_AT_ONCE: u32 = 16;

impl Worker<'_> {
    /// Sends the request planned for `planned`, if a connection is free.
    pub(super) fn send(&mut self, planned: Instant) -> bool {
        if self.use_idle(planned) {
            return true;
        }
        if self.http.spare > 0 {
            self.http.spare -= 1;
            self.dial_for(planned, 0);
            return true;
        }
        false
    }

    pub(super) fn use_idle(&mut self, planned: Instant) -> bool {
        while let Some(key) = self.http.idle.pop_front() {
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

    /// As many sessions as can be in use at once, and a few for late ones.
    pub(super) fn sessions_wanted(&self) -> u32 {
        self.policy.connections + self.policy.connections / 4 + 1
    }

    /// Opens connections until there are enough sessions.
    pub(super) fn prime(&mut self) {
        while self.http.to_prime > 0 && self.http.priming < PRIMING_AT_ONCE {
            let Some((connector, name)) = &self.policy.tls else { return };
            if connector.sessions(name) + self.http.priming as usize >= self.sessions_wanted() as usize {
                return;
            }
            let session = connector.connect_full(name);
            self.http.to_prime -= 1;
            self.http.priming += 1;
            self.dial(Purpose::Session, Some((session, false)), 0);
        }
    }

    pub(super) fn ready(&mut self, ready: Ready) {
        let Some(connection) = self.connections.get_mut(ready.key) else { return };
        match connection.event(ready.readable, ready.writable, &mut self.context) {
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
                (_, Stage::Opening) => self.http.spare += 1,
                // A closed loop retries at once; an open one when the next request needs it.
                _ if self.arrivals.is_none() => self.dial_for(self.context.now, failures),
                _ => self.free(User::New),
            }
            return;
        }
        let Some(connection) = self.connections.get_mut(key) else { return };
        if connection.timer.due(self.context.now, self.reactor.wheel(), key).is_none() {
            return;
        }
        match connection.phase {
            Phase::AwaitingTicket(_) => self.end(key),
            Phase::AwaitingVerdict | Phase::Ending => self.close(key),
            Phase::Busy { .. } | Phase::Opening(_) | Phase::Idle => {
                connection.give_up(&mut self.context);
                self.lose(key, Some(&TIMED_OUT));
            }
        }
    }

    /// Closes all connections; requests still in flight have timed out, unless the run was ended early.
    pub(super) fn end_all(&mut self) {
        for key in self.connections.keys() {
            let Some(connection) = self.connections.get(key) else { continue };
            if connection.has_request() && self.link.stop.get().is_none() {
                connection.give_up(&mut self.context);
                self.context.recorder.error(&TIMED_OUT);
            }
            self.close(key);
        }
    }

    pub(super) fn use_(&mut self, user: User, planned: Instant) {
        match user {
            User::Kept(key) if self.connections.get(key).is_some() => self.begin(key, planned),
            // The server may have closed it meanwhile.
            User::Kept(_) | User::New => self.dial_for(planned, 0),
        }
    }

    fn begin(&mut self, key: Key, planned: Instant) {
        let Some(connection) = self.connections.get_mut(key) else { return };
        if !matches!(connection.phase, Phase::Opening(Purpose::Request(_))) {
            self.busy += 1;
        }
        let started = connection.begin(planned, &mut self.context);
        connection.timer.set(self.context.now + self.policy.timeout, (), self.reactor.wheel(), key);
        match started {
            Ok(()) => self.watch(key),
            Err(wrong) => self.lose(key, Some(&wrong)),
        }
    }

    /// Opens a connection for the request planned for `planned`.
    fn dial_for(&mut self, planned: Instant, failures: u32) {
        self.busy += 1;
        let session = self.session();
        let purpose = match self.policy.per_connection {
            PerConnection::Handshake => Purpose::Handshake(planned),
            PerConnection::Unlimited | PerConnection::Requests { .. } => Purpose::Request(planned),
        };
        self.dial(purpose, session, failures);
    }

    fn dial(&mut self, purpose: Purpose, session: Option<(Session, bool)>, failures: u32) {
        let (session, offered) = session.unzip();
        match Transport::connect_from(self.policy.sources.next(), &self.policy.address, session) {
            Ok(transport) => {
                self.context.recorder.counters.connections += 1;
                let setup = Setup::new(offered.unwrap_or(false), self.context.now);
                let mut connection = Connection::new(transport, purpose, setup);
                connection.failures = failures;
                if let PerConnection::Requests { least, most } = self.policy.per_connection {
                    let range = (most - least + 1) as usize;
                    connection.quota = least + self.policy.rng.below(range) as u64;
                }
                let key = self.connections.insert(connection);
                self.limit(key, self.policy.timeout);
                self.watch(key);
            }
            Err(fault) => {
                self.busy -= u32::from(purpose.planned().is_some());
                self.context.recorder.error(&fault.into());
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
                connection.rest();
                self.watch(key);
                self.free(User::Kept(key));
            }
            Purpose::Handshake(planned) => {
                self.busy -= 1;
                let written = connection.setup.connected;
                let end = self.context.now;
                let course = Course { planned, written, first: None, end };
                self.context.recorder.answer(course);
                self.await_ticket(key, purpose);
            }
            // Some servers (BoringSSL, AWS-LC) send their tickets with the first answer.
            Purpose::Session if !handshakes_only => {
                connection.primes = true;
                self.begin(key, self.context.now);
            }
            Purpose::Session => self.await_ticket(key, purpose),
        }
    }

    /// The handshake is done; if later connections resume, this one stays open until it has a session.
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
            // The user does not wait for the server's confirmation of the handshake.
            self.standing -= 1;
            self.linger(key, Phase::AwaitingVerdict);
            return self.vacate();
        }
        self.linger(key, Phase::AwaitingTicket(purpose));
    }

    /// A finished connection stays open briefly for what the server still sends.
    fn linger(&mut self, key: Key, phase: Phase) {
        let Some(connection) = self.connections.get_mut(key) else { return };
        connection.phase = phase;
        self.limit(key, LINGER);
        self.watch(key);
    }

    /// Gives the peer this long from now.
    fn limit(&mut self, key: Key, time: Duration) {
        let Some(connection) = self.connections.get_mut(key) else { return };
        connection.timer.set(self.context.now + time, (), self.reactor.wheel(), key);
    }

    fn remove(&mut self, key: Key) -> Option<Connection> {
        let mut connection = self.connections.remove(key)?;
        connection.timer.cancel(self.reactor.wheel());
        Some(connection)
    }

    /// A connection has served its purpose.
    fn end(&mut self, key: Key) {
        let Some(connection) = self.connections.get(key) else { return };
        let primes = connection.phase == Phase::AwaitingTicket(Purpose::Session);
        self.standing -= 1;
        self.close(key);
        if primes { self.http.priming -= 1 } else { self.vacate() }
    }

    fn answered(&mut self, key: Key, wrong: Option<&Wrong>, then: Then) {
        self.busy -= 1;
        if let Some(wrong) = wrong {
            self.context.recorder.error(wrong);
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
        // A user with a response does not wait for the close.
        self.vacate();
    }

    /// A connection failed, and with it its request.
    fn lose(&mut self, key: Key, wrong: Option<&Wrong>) {
        match self.connections.get(key).map(|connection| connection.phase) {
            Some(Phase::Ending) => return self.close(key),
            // The handshake was counted, but has failed after all.
            Some(Phase::AwaitingVerdict) => {
                wrong.into_iter().for_each(|wrong| self.context.recorder.error(wrong));
                return self.close(key);
            }
            _ => {}
        }
        let Some(connection) = self.remove(key) else { return };
        self.busy -= u32::from(connection.has_request());
        self.standing -= u32::from(!matches!(connection.phase, Phase::Opening(_)));
        let idle = connection.phase == Phase::Idle;
        let useless = connection.answered == 0;
        match wrong {
            Some(wrong) => self.context.recorder.error(wrong),
            // An idle connection may be closed by the server (RFC 9112 section 9.5), but not before its first request.
            None if useless && self.context.now < connection.setup.connected + REFUSED_WITHIN => {
                self.context.recorder.error(&NEVER_USED);
            }
            None => {}
        }
        if idle && self.stage == Stage::Opening {
            // Another one takes its place, and needs one user.
            self.http.idle.retain(|other| *other != key);
        }
        match connection.phase {
            Phase::Opening(purpose) => self.failed(purpose, connection.failures + 1),
            Phase::AwaitingTicket(Purpose::Session) => self.http.priming -= 1,
            Phase::Busy { .. } if connection.primes => self.http.priming -= 1,
            // The user of an idle connection is thinking, and will find it gone.
            _ if idle && self.stage != Stage::Opening && self.arrivals.is_none() => {}
            _ if useless => self.failed(Purpose::Stock, connection.failures + 1),
            _ => self.vacate(),
        }
    }

    /// A connection failed to open or never got a response: its slot backs off before the retry.
    fn failed(&mut self, purpose: Purpose, failures: u32) {
        if purpose == Purpose::Session {
            self.http.priming -= 1;
            return;
        }
        self.back_off(failures);
    }

    /// A slot is empty: a keep-alive connection is reopened now, any other on demand.
    fn vacate(&mut self) {
        let keeps = self.policy.per_connection.keeps();
        match self.stage {
            Stage::Drain => {}
            Stage::Opening if keeps => self.dial_stock(0),
            _ if keeps && self.arrivals.is_some() => self.dial_stock(0),
            _ => self.free(User::New),
        }
    }

    /// A user can send a request.
    fn free(&mut self, user: User) {
        match (self.stage, &self.arrivals) {
            (Stage::Drain, _) => {}
            (Stage::Opening, _) | (_, Some(_)) => {
                match user {
                    User::Kept(key) => self.http.idle.push_back(key),
                    User::New => self.http.spare += 1,
                }
                if self.stage != Stage::Opening {
                    self.send_waiting(Turn::Waited);
                }
            }
            (_, None) if self.policy.think.is_zero() => self.use_(user, self.context.now),
            (_, None) => self.think(user),
        }
    }

    fn close(&mut self, key: Key) {
        let Some(mut connection) = self.remove(key) else { return };
        match self.policy.close {
            // A clean close is a courtesy.
            Close::Graceful => drop(connection.transport.finish(&mut self.context.wire)),
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
                detail: Detail::Text(format!("cannot poll a socket: {error}")),
            };
            self.lose(key, Some(&wrong));
        }
    }
}

pub(crate) const TIMED_OUT: Wrong = Wrong::fixed(ErrorClass::Timeout, "nothing complete within the timeout");
pub(crate) const NEVER_USED: Wrong =
    Wrong::fixed(ErrorClass::Closed, "the server closed a connection before any request");
