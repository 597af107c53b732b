//! A deadline that moves often and rarely expires.

use crate::slab::Key;
use crate::wheel::{Entry, Wheel};
use std::time::Instant;

/// The deadline of one object, and its cause. A timer has at most one entry in the wheel, which never fires
/// later than the deadline. It may fire earlier, if the deadline has been moved or cleared since.
#[derive(Debug)]
pub struct Timer<W> {
    pending: Option<(Instant, W)>,
    armed: Option<(Instant, Entry)>,
}

impl<W> Default for Timer<W> {
    fn default() -> Self {
        Self { pending: None, armed: None }
    }
}

impl<W: Copy> Timer<W> {
    /// Sets or moves the deadline. Moving it later takes two stores: the wheel's entry stays, and is armed again when
    /// it fires.
    pub fn set(&mut self, at: Instant, why: W, wheel: &mut Wheel, key: Key) {
        self.pending = Some((at, why));
        match self.armed {
            Some((armed, _)) if armed <= at => return,
            Some((_, too_late)) => wheel.cancel(too_late),
            None => {}
        }
        self.armed = Some((at, wheel.arm(at, key)));
    }

    /// Clears the deadline; the wheel's entry may stay until it fires.
    pub fn clear(&mut self) {
        self.pending = None;
    }

    /// Clears the deadline and removes the wheel's entry. Call before dropping the timer.
    pub fn cancel(&mut self, wheel: &mut Wheel) {
        self.pending = None;
        if let Some((_, entry)) = self.armed.take() {
            wheel.cancel(entry);
        }
    }

    /// Call this whenever the wheel reports the key. Returns the cause if the deadline has passed, otherwise `None`;
    /// arms the entry again for a later deadline.
    pub fn due(&mut self, now: Instant, wheel: &mut Wheel, key: Key) -> Option<W> {
        if let Some((armed, entry)) = self.armed
            && armed <= now
        {
            // Usually this entry has just fired. If the deadline was set since, the report may belong to an
            // earlier entry.
            wheel.cancel(entry);
            self.armed = None;
        }
        let (at, why) = self.pending?;
        if at > now {
            self.set(at, why, wheel, key);
            return None;
        }
        self.pending = None;
        Some(why)
    }

    /// The armed deadline and its cause, if any.
    pub fn pending(&self) -> Option<(Instant, W)> {
        self.pending
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    const KEY: Key = Key::fixed(0, 0);

    struct Clock {
        start: Instant,
        wheel: Wheel,
    }

    impl Clock {
        fn new() -> Self {
            let start = Instant::now();
            Self { start, wheel: Wheel::new(start) }
        }

        fn at(&self, ms: u64) -> Instant {
            self.start + Duration::from_millis(ms)
        }

        fn set(&mut self, timer: &mut Timer<char>, ms: u64, why: char) {
            timer.set(self.at(ms), why, &mut self.wheel, KEY);
            assert_eq!(timer.pending(), Some((self.at(ms), why)));
            assert_eq!(self.wheel.len(), 1, "one timer has one entry");
        }

        /// Runs until the wheel is empty; returns the expiry and its cause, and the number of reports without
        /// an expiry.
        fn run(&mut self, timer: &mut Timer<char>) -> (Option<(u64, char)>, u32) {
            let (mut due, mut empty, mut came) = (Vec::new(), 0, None);
            while let Some(now) = self.wheel.next() {
                self.wheel.expire(now, Duration::ZERO, &mut due);
                for key in due.drain(..) {
                    assert_eq!(key, KEY);
                    match timer.due(now, &mut self.wheel, key) {
                        Some(why) => {
                            assert_eq!(came, None, "it comes once");
                            came = Some(((now - self.start).as_millis() as u64, why));
                        }
                        None => empty += 1,
                    }
                }
                assert!(empty < 10, "the wheel's entries multiply");
            }
            (came, empty)
        }
    }

    #[test]
    fn a_deadline_that_moves_on_comes_once_and_late() {
        let (mut clock, mut timer) = (Clock::new(), Timer::default());
        for (ms, why) in [(10, 'a'), (20, 'b'), (30, 'c'), (5, 'd'), (40, 'e')] {
            clock.set(&mut timer, ms, why);
        }
        assert_eq!(clock.run(&mut timer), (Some((40, 'e')), 1));
        assert_eq!(timer.pending(), None);
    }

    #[test]
    fn a_deadline_that_moves_closer_comes_then_and_leaves_nothing_behind() {
        let (mut clock, mut timer) = (Clock::new(), Timer::default());
        clock.set(&mut timer, 75_000, 'a');
        clock.set(&mut timer, 10, 'b');
        assert_eq!(clock.run(&mut timer), (Some((10, 'b')), 0));
    }

    #[test]
    fn a_cleared_deadline_does_not_come() {
        let (mut clock, mut timer) = (Clock::new(), Timer::default());
        clock.set(&mut timer, 10, 'a');
        timer.clear();
        assert_eq!(timer.pending(), None);
        assert_eq!(clock.run(&mut timer), (None, 1));
    }

    #[test]
    fn a_cleared_deadline_that_is_set_again_uses_the_entry_that_stayed() {
        for (ms, empty) in [(20, 1), (10, 0), (5, 0)] {
            let (mut clock, mut timer) = (Clock::new(), Timer::default());
            clock.set(&mut timer, 10, 'a');
            timer.clear();
            clock.set(&mut timer, ms, 'b');
            assert_eq!(clock.run(&mut timer), (Some((ms, 'b')), empty));
        }
    }

    #[test]
    fn a_cancelled_timer_leaves_nothing_in_the_wheel_and_can_be_set_again() {
        let (mut clock, mut timer) = (Clock::new(), Timer::default());
        clock.set(&mut timer, 10, 'a');
        timer.clear();
        timer.cancel(&mut clock.wheel);
        assert!(clock.wheel.is_empty());
        clock.set(&mut timer, 10, 'b');
        timer.cancel(&mut clock.wheel);
        assert_eq!((timer.pending(), clock.wheel.len()), (None, 0));
        clock.set(&mut timer, 20, 'c');
        assert_eq!(clock.run(&mut timer), (Some((20, 'c')), 0));
    }

    /// The worker may handle an event between the wheel's report and [`Timer::due`].
    #[test]
    fn a_deadline_that_is_set_after_its_entry_has_fired_comes_once() {
        for (ms, why, expected) in [(5, 'b', Some('b')), (10, 'b', Some('b')), (30, 'b', None)] {
            let (mut clock, mut timer, mut due) = (Clock::new(), Timer::default(), Vec::new());
            clock.set(&mut timer, 10, 'a');
            let now = clock.at(10);
            clock.wheel.expire(now, Duration::ZERO, &mut due);
            timer.set(clock.at(ms), why, &mut clock.wheel, KEY);
            assert_eq!(timer.due(now, &mut clock.wheel, KEY), expected);
            assert_eq!(clock.wheel.len(), usize::from(expected.is_none()), "no entry without an owner");
            if expected.is_none() {
                assert_eq!(clock.run(&mut timer), (Some((ms, why)), 0));
            }
        }
    }
}
