//! A connection's deadline on a timer wheel without cancellation.

use std::time::Instant;
use weir_reactor::{Key, Reactor};

/// One connection's deadline. Moving it later costs two stores: the wheel's entry stays and is re-armed
/// when it fires.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Deadline {
    at: Option<Instant>,
    armed: Option<Instant>,
}

impl Deadline {
    pub(crate) fn set(&mut self, at: Instant, reactor: &mut Reactor, key: Key) {
        self.at = Some(at);
        if self.armed.is_none_or(|armed| armed > at) {
            reactor.arm(at, key);
            self.armed = Some(at);
        }
    }

    pub(crate) fn clear(&mut self) {
        self.at = None;
    }

    /// Call when the wheel fires the key: whether the deadline has really passed. If it was moved, the wheel
    /// is re-armed.
    pub(crate) fn has_come(&mut self, reactor: &mut Reactor, key: Key) -> bool {
        let now = reactor.now();
        if self.armed.is_some_and(|armed| armed <= now) {
            self.armed = None;
        }
        match self.at {
            Some(at) if at <= now => {
                self.at = None;
                true
            }
            Some(at) => {
                self.set(at, reactor, key);
                false
            }
            None => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;
    use weir_reactor::Events;

    /// Runs the loop until the deadline and counts spurious wake-ups.
    fn wakeups(deadline: &mut Deadline, reactor: &mut Reactor, key: Key) -> u32 {
        let (mut events, mut empty) = (Events::default(), 0);
        loop {
            reactor.turn(&mut events, None).unwrap();
            for due in events.due() {
                assert_eq!(*due, key);
                if deadline.has_come(reactor, key) {
                    return empty;
                }
                empty += 1;
            }
            assert!(empty < 10, "the wheel's entries multiply");
        }
    }

    #[test]
    fn a_deadline_that_moves_on_comes_once_and_late() {
        let (mut reactor, key) = (Reactor::new().unwrap(), Key::fixed(0, 0));
        let (start, mut deadline) = (reactor.now(), Deadline::default());
        for ms in [10, 20, 30, 5, 40] {
            deadline.set(start + Duration::from_millis(ms), &mut reactor, key);
        }
        assert!(wakeups(&mut deadline, &mut reactor, key) <= 3);
        assert!(reactor.now() >= start + Duration::from_millis(40));
    }

    #[test]
    fn a_cleared_deadline_does_not_come() {
        let (mut reactor, key) = (Reactor::new().unwrap(), Key::fixed(0, 0));
        let mut deadline = Deadline::default();
        deadline.set(reactor.now(), &mut reactor, key);
        deadline.clear();
        let mut events = Events::default();
        while events.due().is_empty() {
            reactor.turn(&mut events, None).unwrap();
        }
        assert!(!deadline.has_come(&mut reactor, key));
    }
}
