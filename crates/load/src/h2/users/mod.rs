//! Selecting connections for requests, and handling connections that open and respond.

mod ends;

use super::Http2;
use super::connection::{Connection, Phase};
use super::pending::Pending;
use super::stream::Done;
use crate::check::{Detail, ErrorClass, Wrong};
use crate::setup::Setup;
use crate::worker::{Stage, Turn, Worker};
use std::time::{Duration, Instant};
use weir_reactor::{Key, Net as _, Ready};
use weir_transport::Transport;

impl Worker<'_, Http2> {
    /// Opens a connection, after `failures` failed ones in a row.
    pub(super) fn dial(&mut self, failures: u32) {
        let (session, offered) = self.session().unzip();
        match Transport::connect_from(self.policy.sources.next(), &self.policy.address, session) {
            Ok(transport) => {
                self.context.recorder.counters.connections += 1;
                let setup = Setup::new(offered.unwrap_or(false), self.context.now);
                let mut connection = Connection::new(transport, &self.policy, setup);
                connection.failures = failures;
                let key = self.connections.insert(connection);
                self.limit(key, self.policy.timeout);
                self.watch(key);
            }
            Err(fault) => {
                self.context.recorder.error(&fault.into());
                self.back_off(failures + 1);
            }
        }
    }

    /// Starts a request planned for `planned`, at once unless it has to wait for a stream.
    pub(super) fn ask(&mut self, planned: Instant) {
        self.busy += 1;
        let asked = Pending::new(planned);
        let key = self.http.balance.least().filter(|_| self.http.waiting.is_empty());
        let is_begun = key.is_some_and(|key| {
            let begun = self.begin(key, asked);
            self.rank(key);
            begun.is_ok()
        });
        if !is_begun {
            self.http.waiting.push_back(asked);
        }
    }

    /// Sends the arrival planned for `planned`, if a connection takes another stream.
    pub(super) fn send(&mut self, planned: Instant, turn: Turn) -> bool {
        let asked = Pending::new(planned);
        let Some(key) = self.http.balance.least() else { return false };
        let is_sent = self.begin(key, asked).is_ok();
        if is_sent {
            self.busy += 1;
            if turn == Turn::Waited {
                self.waited(asked);
            }
        }
        self.rank(key);
        is_sent
    }

    /// Deals the waiting requests to the least loaded connections.
    pub(super) fn deal(&mut self) {
        while let Some(asked) = self.http.waiting.front().copied()
            && let Some(key) = self.http.balance.least()
        {
            if self.begin(key, asked).is_ok() {
                self.http.waiting.pop_front();
                // A request refused in this event has not waited.
                if asked.since < self.context.now {
                    self.waited(asked);
                }
            }
            self.rank(key);
        }
        let may_send = matches!(self.stage, Stage::WarmUp | Stage::Window);
        if may_send && self.http.waiting.is_empty() {
            self.send_waiting(Turn::Waited);
        }
    }

    fn waited(&mut self, asked: Pending) {
        let time = self.context.now.saturating_duration_since(asked.since);
        self.context.recorder.waited_for_stream(asked.planned, time);
    }

    fn begin(&mut self, key: Key, asked: Pending) -> Result<(), Pending> {
        let Some(connection) = self.connections.get_mut(key) else { return Err(asked) };
        connection.begin(asked, &mut self.context)?;
        if connection.timer.pending().is_none() {
            self.limit(key, self.policy.timeout);
        }
        self.mark(key);
        if self.connections.get(key).is_some_and(|connection| connection.phase == Phase::Draining) {
            self.drain(key);
        }
        Ok(())
    }

    pub(super) fn ready(&mut self, ready: Ready) {
        let Some(connection) = self.connections.get_mut(ready.key) else { return };
        let before = connection.phase;
        let mut done = std::mem::take(&mut self.http.done);
        let outcome = connection.event(ready.readable, ready.writable, &mut self.context, &mut done);
        let after = connection.phase;
        if before == Phase::Opening && after != Phase::Opening {
            connection.timer.clear();
            self.standing += 1;
            self.most_standing = self.most_standing.max(self.standing);
            self.http.open += 1;
        }
        self.mark(ready.key);
        let key = matches!(outcome, Ok(None)).then_some(ready.key);
        done.drain(..).for_each(|done| self.finish(key, done));
        self.http.done = done;
        if before != Phase::Draining && after == Phase::Draining {
            self.drain(ready.key);
        }
        match outcome {
            Ok(None) => self.end_if_drained(ready.key),
            Ok(Some(_)) => self.lose(ready.key, None),
            Err(wrong) => self.lose(ready.key, Some(wrong)),
        }
        self.rank(ready.key);
        self.deal();
    }

    /// A request has ended; `key` is its connection if that is still open.
    fn finish(&mut self, key: Option<Key>, done: Done) {
        match done {
            Done::Answered(wrong) => {
                wrong.iter().for_each(|wrong| self.context.recorder.error(wrong));
                self.busy -= 1;
                self.free(key);
            }
            Done::Refused(asked) => {
                let counts = &mut self.context.recorder.h2().counts;
                counts.refused += 1;
                match asked.again(self.context.now) {
                    Some(again) => {
                        counts.retried += 1;
                        // Before younger requests.
                        self.http.waiting.push_front(again);
                    }
                    None => self.finish(key, Done::Answered(Some(REFUSED))),
                }
            }
        }
    }

    /// Starts a user's next request in a closed loop, on the same connection unless other requests wait.
    fn free(&mut self, key: Option<Key>) {
        if matches!(self.stage, Stage::Opening | Stage::Drain) || self.arrivals.is_some() {
            return;
        }
        if !self.policy.think.is_zero() {
            return self.think(());
        }
        let asked = Pending::new(self.context.now);
        self.busy += 1;
        let begun =
            key.filter(|_| self.http.waiting.is_empty()).is_some_and(|key| self.begin(key, asked).is_ok());
        if !begun {
            self.http.waiting.push_back(asked);
        }
    }

    /// Sends the output of a turn: one write for each connection.
    pub(super) fn flush(&mut self) {
        let mut next = 0;
        // A lost connection may give its work to others.
        while let Some(key) = self.http.dirty.get(next).copied() {
            next += 1;
            let Some(connection) = self.connections.get_mut(key) else { continue };
            connection.is_dirty = false;
            match connection.flush(&mut self.http.control, &mut self.context) {
                Ok(()) => self.watch(key),
                Err(wrong) => {
                    self.lose(key, Some(wrong));
                    self.deal();
                }
            }
        }
        self.http.dirty.clear();
    }

    fn remove(&mut self, key: Key) -> Option<Connection> {
        let mut connection = self.connections.remove(key)?;
        self.http.balance.set(key, &mut connection.rank, None);
        connection.timer.cancel(self.reactor.wheel());
        Some(connection)
    }

    /// Ranks a connection by its load, if it takes another stream.
    fn rank(&mut self, key: Key) {
        let Some(connection) = self.connections.get_mut(key) else { return };
        let load = connection.load();
        self.http.balance.set(key, &mut connection.rank, load);
    }

    /// Notes that a connection has output for the end of the turn.
    fn mark(&mut self, key: Key) {
        let Some(connection) = self.connections.get_mut(key) else { return };
        if !std::mem::replace(&mut connection.is_dirty, true) {
            self.http.dirty.push(key);
        }
    }

    /// Sets the timeout of a connection.
    fn limit(&mut self, key: Key, time: Duration) {
        let Some(connection) = self.connections.get_mut(key) else { return };
        connection.timer.set(self.context.now + time, (), self.reactor.wheel(), key);
    }

    fn watch(&mut self, key: Key) {
        let Some(connection) = self.connections.get_mut(key) else { return };
        if let Err(error) = connection.transport.watch(&self.reactor, key, true) {
            let detail = Detail::Text(format!("cannot poll a socket: {error}"));
            self.lose(key, Some(Wrong { class: ErrorClass::Socket, detail }));
        }
    }
}

const REFUSED: Wrong = Wrong::fixed(ErrorClass::StreamReset, "the server refused a request again and again");
