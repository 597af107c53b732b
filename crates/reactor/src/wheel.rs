//! Deadlines as absolute instants in a hierarchical timer wheel.
//!
//! A deadline that moves with each request need not touch the wheel each time: see [`Timer`](crate::Timer). An owner
//! cancels its wheel entry before the owner is dropped; cancelling, like arming, takes a few stores.

use crate::share::share;
use crate::slab::Key;
use std::time::{Duration, Instant};

/// Keys by deadline, with a resolution of a millisecond. No key fires early.
#[derive(Debug)]
pub struct Wheel {
    start: Instant,
    /// All ticks up to and including this one have fired.
    done: u64,
    /// The latest instant at which [`Wheel::expire`] returned all due keys.
    latest: Instant,
    /// The next instant at which a slot may be due; `None` without entries. Most turns only compare the time with it.
    soonest: Option<Instant>,
    /// Per level, a bit for each slot with entries.
    occupied: [u64; LEVELS],
    /// The heads of the slots' lists, level by level, then the entries. Each list is a ring that includes its head.
    nodes: Vec<Node>,
    /// The first unused node; `after` links to the next one, and `NONE` ends the list.
    unused: u32,
    waiting: usize,
}

/// A handle to cancel an armed key. Once the key has fired or been cancelled, the handle is stale and
/// cancelling does nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    index: u32,
    generation: u32,
}

#[derive(Clone, Copy, Debug)]
struct Node {
    tick: u64,
    key: Key,
    generation: u32,
    before: u32,
    after: u32,
}

impl Wheel {
    /// An empty wheel.
    pub fn new(now: Instant) -> Self {
        let head = |index| Node { before: index, after: index, ..Node::UNUSED };
        let nodes = (0..HEADS).map(head).collect();
        Self {
            start: now,
            done: 0,
            latest: now,
            soonest: None,
            occupied: [0; LEVELS],
            nodes,
            unused: NONE,
            waiting: 0,
        }
    }

    /// Schedules `key` for `deadline`, and returns a handle to cancel it.
    pub fn arm(&mut self, deadline: Instant, key: Key) -> Entry {
        // All ticks up to `latest` have fired.
        self.done = self.done.max(self.tick(self.latest));
        let since = deadline.saturating_duration_since(self.start);
        // Round up, so that no deadline is early.
        let tick = since.as_nanos().div_ceil(u128::from(TICK_MS) * 1_000_000) as u64;
        let index = self.take_unused();
        let node = &mut self.nodes[index as usize];
        node.tick = tick.max(self.done + 1);
        node.key = key;
        let generation = node.generation;
        let at = self.start + Duration::from_millis(self.place(index) * TICK_MS);
        self.waiting += 1;
        self.soonest = Some(self.soonest.map_or(at, |soonest| soonest.min(at)));
        Entry { index, generation }
    }

    /// Removes an entry, unless it is stale.
    pub fn cancel(&mut self, entry: Entry) {
        let Node { generation, before, after, .. } = self.nodes[entry.index as usize];
        if generation != entry.generation {
            return;
        }
        self.nodes[before as usize].after = after;
        self.nodes[after as usize].before = before;
        if before == after {
            // The list is empty, apart from its head.
            self.occupied[before as usize / SLOTS] &= !(1 << (before as usize % SLOTS));
        }
        self.release(entry.index);
        if self.waiting == 0 {
            self.soonest = None;
        }
    }

    /// The number of armed entries.
    pub fn len(&self) -> usize {
        self.waiting
    }

    /// Whether no entry is armed.
    pub fn is_empty(&self) -> bool {
        self.waiting == 0
    }

    /// The next instant at which the loop must call [`Wheel::expire`]: no later than the next deadline, possibly
    /// earlier. `None` without entries.
    #[inline]
    pub fn next(&self) -> Option<Instant> {
        self.soonest
    }

    /// Appends the keys due at `now` to `due`, as many as a turn may handle if the previous turn took `spent`. The next
    /// call returns the remaining keys; until then, [`Wheel::next`] is in the past.
    #[inline]
    pub fn expire(&mut self, now: Instant, spent: Duration, due: &mut Vec<Key>) {
        match self.soonest {
            Some(soonest) if soonest <= now => self.expire_some(now, share(spent), due),
            _ => self.latest = self.latest.max(now),
        }
    }

    fn expire_some(&mut self, now: Instant, most: usize, due: &mut Vec<Key>) {
        let target = self.tick(now);
        let mut next = self.next_tick();
        while let Some(tick) = next.filter(|tick| *tick <= target && due.len() < most) {
            self.done = tick;
            if !self.open(tick, most, due) {
                self.done = tick - 1;
            }
            next = self.next_tick();
        }
        if next.is_none_or(|tick| tick > target) {
            self.done = self.done.max(target);
            self.latest = self.latest.max(now);
        }
        self.soonest = next.map(|tick| self.start + Duration::from_millis(tick * TICK_MS));
    }

    /// The last tick that starts at or before this instant.
    fn tick(&self, at: Instant) -> u64 {
        at.saturating_duration_since(self.start).as_millis() as u64 / TICK_MS
    }

    /// Empties the slots that start at `tick`: fires due keys and moves the others to a finer level. Returns `false` if
    /// it stopped after `most` keys.
    fn open(&mut self, tick: u64, most: usize, due: &mut Vec<Key>) -> bool {
        for level in (0..LEVELS).rev() {
            let width = SLOT_BITS * level as u32;
            if tick & ((1 << width) - 1) != 0 {
                continue;
            }
            let slot = (tick >> width) as usize % SLOTS;
            if self.occupied[level] & (1 << slot) == 0 {
                continue;
            }
            let head = head(level, slot);
            let mut index = self.nodes[head as usize].after;
            while index != head {
                let Node { tick: own, key, after, .. } = self.nodes[index as usize];
                if own > tick {
                    self.place(index);
                } else if due.len() < most {
                    due.push(key);
                    self.release(index);
                } else {
                    self.nodes[head as usize].after = index;
                    self.nodes[index as usize].before = head;
                    return false;
                }
                index = after;
            }
            self.occupied[level] &= !(1 << slot);
            self.nodes[head as usize].before = head;
            self.nodes[head as usize].after = head;
        }
        true
    }

    /// Appends a node to the slot of its tick; returns the tick at which that slot starts.
    fn place(&mut self, index: u32) -> u64 {
        let tick = self.nodes[index as usize].tick;
        let ahead = tick - self.done;
        let level =
            (0..LEVELS - 1).find(|n| ahead < 1 << (SLOT_BITS * (*n as u32 + 1))).unwrap_or(LEVELS - 1);
        let width = SLOT_BITS * level as u32;
        // A key beyond the last level waits in its farthest slot, and is placed again from there.
        let farthest = (self.done >> width) + SLOTS as u64 - 1;
        let number = (tick >> width).min(farthest);
        let slot = number as usize % SLOTS;
        self.occupied[level] |= 1 << slot;
        let head = head(level, slot);
        let last = std::mem::replace(&mut self.nodes[head as usize].before, index);
        self.nodes[last as usize].after = index;
        let node = &mut self.nodes[index as usize];
        node.before = last;
        node.after = head;
        number << width
    }

    /// Reuses the most recently released node, which is still in the cache, so that a busy wheel does not allocate.
    fn take_unused(&mut self) -> u32 {
        if self.unused == NONE {
            self.nodes.push(Node::UNUSED);
            return self.nodes.len() as u32 - 1;
        }
        let index = self.unused;
        self.unused = self.nodes[index as usize].after;
        index
    }

    /// Marks a node as unused and its handle as stale. The node must no longer be in a list.
    fn release(&mut self, index: u32) {
        let node = &mut self.nodes[index as usize];
        node.generation = node.generation.wrapping_add(1);
        node.after = std::mem::replace(&mut self.unused, index);
        self.waiting -= 1;
    }

    /// The first tick after `done` at which an occupied slot starts.
    fn next_tick(&self) -> Option<u64> {
        let levels = self.occupied.iter().enumerate().filter(|(_, occupied)| **occupied != 0);
        levels
            .map(|(level, occupied)| {
                let width = SLOT_BITS * level as u32;
                let after = (self.done >> width) + 1;
                let ahead = occupied.rotate_right((after % SLOTS as u64) as u32).trailing_zeros();
                (after + u64::from(ahead)) << width
            })
            .min()
    }
}

impl Node {
    const UNUSED: Self = Self { tick: 0, key: Key::fixed(0, 0), generation: 0, before: NONE, after: NONE };
}

const fn head(level: usize, slot: usize) -> u32 {
    (level * SLOTS + slot) as u32
}

/// The length of a tick in milliseconds: short enough for a gateway's shortest deadline, a connect timeout of about ten
/// milliseconds.
const TICK_MS: u64 = 1;
/// The bits of a slot's number. With 64 slots, one word contains the occupancy bitmap of a level.
const SLOT_BITS: u32 = 6;
const SLOTS: usize = 1 << SLOT_BITS;
/// The number of levels. They cover 64^4 ms, about 4.6 hours; keys beyond that pass through the last level again.
const LEVELS: usize = 4;
const HEADS: u32 = head(LEVELS, 0);
/// The end of the list of unused nodes: index 0 belongs to a head, which is never in this list.
const NONE: u32 = 0;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn key(n: u32) -> Key {
        Key::fixed(0, n)
    }

    /// Drives the wheel from wake-up to wake-up; returns the millisecond at which each key fired.
    fn run(deadlines_ms: &[u64], until_ms: u64) -> Vec<(u32, u64)> {
        let start = Instant::now();
        let mut wheel = Wheel::new(start);
        for (n, ms) in deadlines_ms.iter().enumerate() {
            wheel.arm(start + Duration::from_millis(*ms), key(n as u32));
        }
        let (mut due, mut seen, mut turns) = (Vec::new(), Vec::new(), 0);
        while let Some(next) = wheel.next() {
            let ms = (next - start).as_millis() as u64;
            if ms > until_ms {
                break;
            }
            wheel.expire(next, Duration::ZERO, &mut due);
            seen.extend(due.drain(..).map(|key| (key.index(), ms)));
            turns += 1;
            assert!(turns < 1000, "the wheel keeps waking up");
        }
        seen
    }

    #[test]
    fn keys_come_exactly_when_due_on_every_level() {
        let deadlines =
            [1, 2, 63, 64, 65, 127, 128, 4095, 4096, 4097, 262_143, 262_144, 300_000, 16_777_216, 40_000_000];
        let seen = run(&deadlines, u64::MAX);
        let expected: Vec<(u32, u64)> = deadlines.iter().enumerate().map(|(n, ms)| (n as u32, *ms)).collect();
        assert_eq!(seen, expected);
    }

    #[test]
    fn after_a_long_turn_more_is_due_at_once() {
        let start = Instant::now();
        let mut wheel = Wheel::new(start);
        for n in 0..100 {
            wheel.arm(start, key(n));
        }
        let mut due = Vec::new();
        for (spent_ms, expected) in [(0, 1), (1, 4), (6, 25), (1000, 64)] {
            wheel.expire(start + Duration::from_millis(1), Duration::from_millis(spent_ms), &mut due);
            assert_eq!(due.drain(..).len(), expected, "after a turn of {spent_ms} ms");
        }
    }

    #[test]
    fn a_loop_that_comes_late_gets_all_that_is_due_in_turns_and_no_more() {
        for in_a_tick in [1, 3, 30] {
            let start = Instant::now();
            let mut wheel = Wheel::new(start);
            for n in 0..5000u32 {
                wheel.arm(start + Duration::from_millis(u64::from(n / in_a_tick)), key(n));
            }
            let late = 3333 / in_a_tick;
            let now = start + Duration::from_millis(u64::from(late));
            let (mut due, mut all) = (Vec::new(), Vec::new());
            while wheel.next().is_some_and(|next| next <= now) {
                wheel.expire(now, Duration::ZERO, &mut due);
                assert_eq!(due.len(), 1);
                // A key armed in the meantime fires last.
                if all.is_empty() {
                    wheel.arm(now, key(5000));
                }
                all.append(&mut due);
            }
            let expected: Vec<Key> = (0..(late + 1) * in_a_tick).chain([5000]).map(key).collect();
            assert!(all == expected, "{in_a_tick} in a tick");
        }
    }

    #[test]
    fn a_deadline_in_the_past_comes_at_the_next_tick() {
        let start = Instant::now();
        let mut wheel = Wheel::new(start);
        let mut due = Vec::new();
        wheel.expire(start + Duration::from_secs(100), Duration::ZERO, &mut due);
        wheel.arm(start, key(7));
        assert!(wheel.next().unwrap() <= start + Duration::from_millis(100_001));
        wheel.expire(start + Duration::from_millis(100_001), Duration::ZERO, &mut due);
        assert_eq!(due, [key(7)]);
    }

    #[test]
    fn deadlines_between_ticks_are_never_early() {
        let start = Instant::now();
        let mut wheel = Wheel::new(start);
        wheel.arm(start + Duration::from_micros(1500), key(1));
        let mut due = Vec::new();
        wheel.expire(start + Duration::from_micros(1999), Duration::ZERO, &mut due);
        assert_eq!(due, []);
        wheel.expire(start + Duration::from_micros(2000), Duration::ZERO, &mut due);
        assert_eq!(due, [key(1)]);
    }

    #[test]
    fn a_cancelled_entry_never_fires_and_its_storage_is_reused() {
        let start = Instant::now();
        let mut wheel = Wheel::new(start);
        let at = |ms| start + Duration::from_millis(ms);
        let kept = wheel.arm(at(75_000), key(0));
        let storage = wheel.nodes.len() + 3;
        for n in 0..1000 {
            // The second and third entries of a slot's list, and the only entry of another slot.
            let entries = [75_000, 75_000, 5].map(|ms| wheel.arm(at(ms), key(n)));
            assert_eq!(wheel.len(), 4);
            for entry in entries {
                wheel.cancel(entry);
            }
            assert_eq!(wheel.len(), 1);
        }
        assert_eq!(wheel.nodes.len(), storage);
        let mut due = Vec::new();
        wheel.expire(at(74_999), Duration::ZERO, &mut due);
        assert_eq!(due, []);
        wheel.cancel(kept);
        assert!(wheel.is_empty());
        assert_eq!(wheel.next(), None, "no wake-up is left behind");
    }

    #[test]
    fn a_stale_handle_does_not_cancel_the_entry_that_took_its_storage() {
        let start = Instant::now();
        let mut wheel = Wheel::new(start);
        let at = |ms| start + Duration::from_millis(ms);
        let mut due = Vec::new();
        let cancelled = wheel.arm(at(10), key(1));
        wheel.cancel(cancelled);
        let fired = wheel.arm(at(10), key(2));
        wheel.cancel(cancelled);
        wheel.expire(at(10), Duration::ZERO, &mut due);
        assert_eq!(due, [key(2)]);
        due.clear();
        wheel.arm(at(20), key(3));
        wheel.cancel(fired);
        wheel.cancel(cancelled);
        assert_eq!(wheel.nodes.len(), HEADS as usize + 1, "all used the same storage");
        wheel.expire(at(20), Duration::ZERO, &mut due);
        assert_eq!(due, [key(3)]);
    }

    #[derive(Clone, Debug)]
    enum Step {
        /// Arms a key this many microseconds from now; negative values are in the past.
        Arm(i64),
        /// Cancels one of all handles so far, stale or not.
        Cancel(prop::sample::Index),
        /// Advances the clock by this many microseconds.
        Pass(u64),
        /// Sleeps until the wheel's next check.
        Sleep,
    }

    fn step() -> impl Strategy<Value = Step> {
        // All levels, the edges of their slots, and times beyond the last level.
        let span = || prop_oneof![0..3_000i64, 0..200_000i64, 0..10_000_000i64, 0..60_000_000_000i64];
        prop_oneof![
            4 => span().prop_map(Step::Arm),
            1 => span().prop_map(|ago| Step::Arm(-ago)),
            3 => any::<prop::sample::Index>().prop_map(Step::Cancel),
            2 => span().prop_map(|us| Step::Pass(us as u64)),
            2 => Just(Step::Sleep),
        ]
    }

    proptest! {
        #[test]
        fn a_sorted_list_would_do_the_same(steps in prop::collection::vec(step(), 1..300)) {
            let start = Instant::now();
            let mut wheel = Wheel::new(start);
            let (mut entries, mut waiting, mut due): (Vec<Entry>, Vec<(u64, u32)>, Vec<Key>) = Default::default();
            let mut now_us = 0u64;
            for step in steps {
                match step {
                    Step::Arm(ahead) => {
                        let at_us = now_us.saturating_add_signed(ahead);
                        let n = entries.len() as u32;
                        entries.push(wheel.arm(start + Duration::from_micros(at_us), key(n)));
                        waiting.push((at_us.div_ceil(1000).max(now_us / 1000 + 1), n));
                    }
                    Step::Cancel(_) if entries.is_empty() => {}
                    Step::Cancel(which) => {
                        let n = which.index(entries.len());
                        wheel.cancel(entries[n]);
                        waiting.retain(|(_, other)| *other != n as u32);
                    }
                    Step::Pass(us) => now_us += us,
                    Step::Sleep => {
                        let wake = wheel.next().map(|wake| (wake - start).as_micros() as u64);
                        now_us = wake.map_or(now_us, |wake| now_us.max(wake));
                    }
                }
                let now = start + Duration::from_micros(now_us);
                wheel.expire(now, Duration::ZERO, &mut due);
                while wheel.next().is_some_and(|next| next <= now) {
                    let mut more = Vec::new();
                    wheel.expire(now, Duration::ZERO, &mut more);
                    due.append(&mut more);
                }
                waiting.sort_unstable();
                let (fired, wait) = waiting.split_at(waiting.partition_point(|(ms, _)| *ms <= now_us / 1000));
                due.sort_unstable_by_key(|key| key.index());
                let mut expected: Vec<u32> = fired.iter().map(|(_, n)| *n).collect();
                expected.sort_unstable();
                prop_assert_eq!(due.drain(..).map(Key::index).collect::<Vec<_>>(), expected);
                waiting = wait.to_vec();
                prop_assert_eq!(wheel.len(), waiting.len());
                let first = waiting.first().map(|(ms, _)| start + Duration::from_millis(*ms));
                prop_assert!(wheel.next() <= first && wheel.next().is_some() == first.is_some());
            }
            prop_assert!(wheel.nodes.len() <= HEADS as usize + entries.len());
        }
    }
}
