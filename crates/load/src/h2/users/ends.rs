//! The ends of connections and requests: drained, lost, timed out, closed.

use crate::check::{ErrorClass, Wrong};
use crate::h2::Http2;
use crate::h2::connection::Phase;
use crate::h2::stream::Done;
use crate::options::Close;
use crate::worker::users::{LINGER, NEVER_USED, REFUSED_WITHIN, TIMED_OUT};
use crate::worker::{RESTING, Resting, Stage, Worker};
use weir_reactor::{Key, Net as _};

impl Worker<'_, Http2> {
    /// Replaces a connection on which the server takes no further streams.
    pub(in crate::h2) fn drain(&mut self, key: Key) {
        let Some(connection) = self.connections.get(key) else { return };
        let (is_useless, failures) = (connection.answered == 0, connection.failures);
        self.http.open -= 1;
        self.replace(is_useless, failures);
    }

    /// Opens another connection, after a delay if the last one had no response.
    pub(in crate::h2) fn replace(&mut self, is_useless: bool, failures: u32) {
        let is_needed = self.stage != Stage::Drain || !self.http.waiting.is_empty();
        match is_useless {
            true => self.back_off(failures + 1),
            false if is_needed => self.dial(0),
            false => {}
        }
    }

    pub(in crate::h2) fn end_if_drained(&mut self, key: Key) {
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

    pub(in crate::h2) fn due(&mut self, key: Key) {
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
    pub(in crate::h2) fn expire(&mut self, key: Key) {
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
    pub(in crate::h2) fn expire_waiting(&mut self) {
        while let Some(asked) = self.http.waiting.front().copied()
            && asked.since + self.policy.timeout <= self.context.now
        {
            self.http.waiting.pop_front();
            self.context.recorder.given_up(asked.planned, None, self.context.now);
            self.finish(None, Done::Answered(Some(TIMED_OUT)));
        }
    }

    /// Handles a connection that failed or was closed: its requests fail.
    pub(in crate::h2) fn lose(&mut self, key: Key, wrong: Option<Wrong>) {
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
            None if is_useless && self.context.now < connection.setup.connected + REFUSED_WITHIN => {
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
        // Sends the GOAWAY of a violation. The connection is lost even if that fails.
        let _ = connection.flush(&mut self.http.control, &mut self.context);
    }

    /// Closes all connections; requests in flight and waiting have timed out, unless the run was ended early.
    pub(in crate::h2) fn end_all(&mut self) {
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

    pub(in crate::h2) fn close(&mut self, key: Key) {
        let Some(mut connection) = self.remove(key) else { return };
        connection.say_goodbye(&mut self.context);
        let wire = &mut self.context.wire;
        match self.policy.close {
            // The results do not depend on a clean close.
            Close::Graceful => drop(connection.transport.finish(wire)),
            Close::Fin => {
                drop(connection.transport.commit(wire).and_then(|()| connection.transport.finish_bare()));
            }
            Close::Reset => connection.transport.reset(),
        }
    }
}

const CLOSED: Wrong =
    Wrong::fixed(ErrorClass::Closed, "the connection ended before the response was complete");
const CLOSED_IN_SETUP: Wrong =
    Wrong::fixed(ErrorClass::Closed, "the server closed the connection during setup");
