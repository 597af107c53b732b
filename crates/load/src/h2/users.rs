//! Which request goes to which connection, and what follows when connections open, respond, drain or fail.

use super::Http2;
use super::connection::{Connection, Phase};
use super::pending::Pending;
use super::stream::Done;
use crate::check::{Detail, ErrorClass, Wrong};
use crate::options::Close;
use crate::worker::users::{LINGER, NEVER_USED, REFUSED_WITHIN, TIMED_OUT};
use crate::worker::{RESTING, Resting, Stage, Turn, Worker};
use std::time::{Duration, Instant};
use weir_reactor::{Key, Net as _, Ready};
use weir_transport::Transport;

impl Worker<'_, Http2> {
    /// Opens a connection, after this many that failed in a row.
    pub(super) fn dial(&mut self, failures: u32) {
        let (session, offered) = self.session().unzip();
        match Transport::connect_from(self.policy.sources.next(), &self.policy.address, session) {
            Ok(transport) => {
                self.context.recorder.counters.connections += 1;
                let offered = offered.unwrap_or(false);
                let mut connection = Connection::new(transport, &self.policy, offered, self.context.now);
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

    /// Queues a request planned for `planned`.
    pub(super) fn ask(&mut self, planned: Instant) {
        self.busy += 1;
        self.http.waiting.push_back(Pending::new(planned));
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
                // One that was planned just now has not waited.
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

    /// A user of a closed loop can send the next request: on the same connection unless others wait.
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

    /// The server takes no further streams on a connection: another one replaces it.
    fn drain(&mut self, key: Key) {
        let Some(connection) = self.connections.get(key) else { return };
        let (is_useless, failures) = (connection.answered == 0, connection.failures);
        self.http.open -= 1;
        self.replace(is_useless, failures);
    }

    /// Opens another connection, at once unless the last one was of no use.
    fn replace(&mut self, is_useless: bool, failures: u32) {
        let is_needed = self.stage != Stage::Drain || !self.http.waiting.is_empty();
        match is_useless {
            true => self.back_off(failures + 1),
            false if is_needed => self.dial(0),
            false => {}
        }
    }

    fn end_if_drained(&mut self, key: Key) {
        let Some(connection) = self.connections.get_mut(key) else { return };
        if connection.phase != Phase::Draining || !connection.is_idle() {
            return;
        }
        self.standing -= 1;
        if self.policy.close == Close::Reset {
            return self.close(key);
        }
        connection.phase = Phase::Ending;
        self.limit(key, LINGER);
    }

    pub(super) fn due(&mut self, key: Key) {
        if key.tag() == RESTING {
            let Some(Resting { failures }) = self.resting.remove(key) else { return };
            if self.stage != Stage::Drain || !self.http.waiting.is_empty() {
                self.dial(failures);
            }
            return;
        }
        let Some(connection) = self.connections.get_mut(key) else { return };
        if connection.timer.due(self.context.now, self.reactor.wheel(), key).is_none() {
            return;
        }
        match connection.phase {
            Phase::Ending => self.close(key),
            Phase::Opening => {
                connection.give_up_opening(&mut self.context);
                self.lose(key, Some(TIMED_OUT));
            }
            Phase::Open | Phase::Draining => self.expire(key),
        }
        self.deal();
    }

    /// Gives up the requests of a connection that have timed out.
    fn expire(&mut self, key: Key) {
        let timeout = self.policy.timeout;
        while let Some(connection) = self.connections.get_mut(key)
            && connection.expire(timeout, &mut self.context)
        {
            self.finish(Some(key), Done::Answered(Some(TIMED_OUT)));
        }
        let Some(connection) = self.connections.get_mut(key) else { return };
        if let Some(deadline) = connection.deadline(timeout) {
            connection.timer.set(deadline, (), self.reactor.wheel(), key);
        }
        self.mark(key);
        self.end_if_drained(key);
        self.rank(key);
    }

    /// Gives up the requests that have waited too long for a stream.
    pub(super) fn expire_waiting(&mut self) {
        while let Some(asked) = self.http.waiting.front().copied()
            && asked.since + self.policy.timeout <= self.context.now
        {
            self.http.waiting.pop_front();
            self.context.recorder.given_up(asked.planned, None, self.context.now);
            self.finish(None, Done::Answered(Some(TIMED_OUT)));
        }
    }

    /// A connection failed or was closed, and with it its requests.
    fn lose(&mut self, key: Key, wrong: Option<Wrong>) {
        let Some(mut connection) = self.remove(key) else { return };
        if connection.phase == Phase::Ending {
            return;
        }
        let is_useless = connection.answered == 0;
        let was_open = connection.phase == Phase::Open;
        if connection.phase != Phase::Opening {
            self.standing -= 1;
        }
        self.http.open -= u32::from(was_open);
        let lost = connection.take_streams();
        match &wrong {
            _ if !lost.is_empty() => {}
            Some(wrong) => self.context.recorder.error(wrong),
            None if connection.phase == Phase::Opening => self.context.recorder.error(&CLOSED_IN_SETUP),
            // An idle connection may be closed by the server, but not before its first request.
            None if is_useless && self.context.now < connection.connected + REFUSED_WITHIN => {
                self.context.recorder.error(&NEVER_USED);
            }
            None => {}
        }
        let wrong = wrong.unwrap_or(CLOSED);
        for _ in &lost {
            self.finish(None, Done::Answered(Some(wrong.clone())));
        }
        if connection.phase != Phase::Draining {
            self.replace(is_useless, connection.failures);
        }
        // What GOAWAY says about a violation; the connection is lost anyway.
        let _ = connection.flush(&mut self.http.control, &mut self.context);
    }

    /// Sends the output of a turn: one write for each connection.
    pub(super) fn flush(&mut self) {
        while let Some(key) = self.http.dirty.pop() {
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
    }

    /// Closes all connections; requests in flight and waiting have timed out, unless the run was ended early.
    pub(super) fn end_all(&mut self) {
        let is_late = self.link.stop.get().is_none();
        for key in self.connections.keys() {
            let Some(connection) = self.connections.get_mut(key) else { continue };
            for stream in connection.take_streams().iter().filter(|_| is_late) {
                stream.give_up(&mut self.context.recorder, self.context.now);
                self.context.recorder.error(&TIMED_OUT);
            }
            self.close(key);
        }
        for asked in self.http.waiting.drain(..).filter(|_| is_late) {
            self.context.recorder.given_up(asked.planned, None, self.context.now);
            self.context.recorder.error(&TIMED_OUT);
        }
    }

    fn close(&mut self, key: Key) {
        let Some(mut connection) = self.remove(key) else { return };
        connection.say_goodbye(&mut self.context);
        let wire = &mut self.context.wire;
        match self.policy.close {
            // A clean close is a courtesy.
            Close::Graceful => drop(connection.transport.finish(wire)),
            Close::Fin => {
                drop(connection.transport.commit(wire).and_then(|()| connection.transport.finish_bare()))
            }
            Close::Reset => connection.transport.reset(),
        }
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

    /// The connection has output for the end of the turn.
    fn mark(&mut self, key: Key) {
        let Some(connection) = self.connections.get_mut(key) else { return };
        if !std::mem::replace(&mut connection.is_dirty, true) {
            self.http.dirty.push(key);
        }
    }

    /// Gives the server this long from now.
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

const CLOSED: Wrong =
    Wrong::fixed(ErrorClass::Closed, "the connection ended before the response was complete");
const CLOSED_IN_SETUP: Wrong =
    Wrong::fixed(ErrorClass::Closed, "the server closed the connection during setup");
const REFUSED: Wrong = Wrong::fixed(ErrorClass::StreamReset, "the server refused a request again and again");
