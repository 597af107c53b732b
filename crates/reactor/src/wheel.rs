//! Deadlines as absolute instants in a hierarchical timer wheel.
//!
//! Nothing is ever cancelled: the owner of a deadline keeps the current instant, and checks it when its key becomes
//! due. So a connection that extends its deadline with each request does not touch the wheel; it re-arms once,
//! when the old entry is due. Entries of closed connections find nothing in their slab.

use crate::slab::Key;
use std::time::{Duration, Instant};

/// Keys by due instant, to the millisecond, never early.
#[derive(Debug)]
pub struct Wheel {
    start: Instant,
    /// All ticks up to and including this one have fired.
    done: u64,
    levels: [Level; LEVELS],
}

#[derive(Debug)]
struct Level {
    occupied: u64,
    slots: [Vec<Entry>; SLOTS],
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    tick: u64,
    key: Key,
}

impl Wheel {
    /// An empty wheel.
    pub fn new(now: Instant) -> Self {
        let level = || Level { occupied: 0, slots: std::array::from_fn(|_| Vec::new()) };
        Self { start: now, done: 0, levels: std::array::from_fn(|_| level()) }
    }

    /// Schedules `key` for `deadline`.
    pub fn arm(&mut self, deadline: Instant, key: Key) {
        let since = deadline.saturating_duration_since(self.start);
        // Rounded up: a deadline is never early.
        let tick = since.as_nanos().div_ceil(u128::from(TICK_MS) * 1_000_000) as u64;
        self.place(Entry { tick: tick.max(self.done + 1), key });
    }

    /// When the loop must check again; never later than the next deadline, perhaps earlier.
    pub fn next(&self) -> Option<Instant> {
        let tick = self.next_tick()?;
        Some(self.start + Duration::from_millis(tick * TICK_MS))
    }

    /// Appends the keys that are due at `now` to `due`.
    pub fn expire(&mut self, now: Instant, due: &mut Vec<Key>) {
        let target = now.saturating_duration_since(self.start).as_millis() as u64 / TICK_MS;
        while let Some(tick) = self.next_tick().filter(|tick| *tick <= target) {
            self.done = tick;
            self.open(tick, due);
        }
        self.done = self.done.max(target);
    }

    /// Empties the slots that start at `tick`: due keys fire, the rest moves to a finer level.
    fn open(&mut self, tick: u64, due: &mut Vec<Key>) {
        for number in (0..LEVELS).rev() {
            let width = SLOT_BITS * number as u32;
            if tick & ((1 << width) - 1) != 0 {
                continue;
            }
            let slot = (tick >> width) as usize % SLOTS;
            let level = &mut self.levels[number];
            if level.occupied & (1 << slot) == 0 {
                continue;
            }
            level.occupied &= !(1 << slot);
            let mut entries = std::mem::take(&mut level.slots[slot]);
            for entry in entries.drain(..) {
                if entry.tick <= tick {
                    due.push(entry.key);
                } else {
                    self.place(entry);
                }
            }
            // The slot's storage is kept, so a busy wheel does not allocate.
            if self.levels[number].slots[slot].capacity() == 0 {
                self.levels[number].slots[slot] = entries;
            }
        }
    }

    fn place(&mut self, entry: Entry) {
        let ahead = entry.tick - self.done;
        let number =
            (0..LEVELS - 1).find(|n| ahead < 1 << (SLOT_BITS * (*n as u32 + 1))).unwrap_or(LEVELS - 1);
        let width = SLOT_BITS * number as u32;
        // Keys beyond the last level wait in its farthest slot and are re-placed from there.
        let farthest = (self.done >> width) + SLOTS as u64 - 1;
        let slot = (entry.tick >> width).min(farthest) as usize % SLOTS;
        let level = &mut self.levels[number];
        level.occupied |= 1 << slot;
        level.slots[slot].push(entry);
    }

    /// The first tick after `done` at which an occupied slot starts.
    fn next_tick(&self) -> Option<u64> {
        let starts = self.levels.iter().enumerate().filter(|(_, level)| level.occupied != 0);
        starts
            .map(|(number, level)| {
                let width = SLOT_BITS * number as u32;
                let after = (self.done >> width) + 1;
                let ahead = level.occupied.rotate_right((after % SLOTS as u64) as u32).trailing_zeros();
                (after + u64::from(ahead)) << width
            })
            .min()
    }
}

/// One millisecond: the finest deadline of a gateway is a connect time-out of some ten milliseconds.
const TICK_MS: u64 = 1;
/// 64 slots, so that one word is their occupancy bitmap.
const SLOT_BITS: u32 = 6;
const SLOTS: usize = 1 << SLOT_BITS;
/// 64^4 ms are 4.6 hours; later keys are re-placed on the way.
const LEVELS: usize = 4;

#[cfg(test)]
mod tests {
    use super::*;

    fn key(n: u32) -> Key {
        Key::fixed(0, n)
    }

    /// Drives the wheel from wake-up to wake-up and returns the millisecond at which each key fired.
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
            wheel.expire(next, &mut due);
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
    fn a_loop_that_comes_late_gets_all_that_is_due_and_no_more() {
        let start = Instant::now();
        let mut wheel = Wheel::new(start);
        for n in 0..5000u32 {
            wheel.arm(start + Duration::from_millis(u64::from(n)), key(n));
        }
        let mut due = Vec::new();
        wheel.expire(start + Duration::from_millis(3333), &mut due);
        due.sort_by_key(|key| key.index());
        assert_eq!(due, (0..=3333).map(key).collect::<Vec<_>>());
    }

    #[test]
    fn a_deadline_in_the_past_comes_at_the_next_tick() {
        let start = Instant::now();
        let mut wheel = Wheel::new(start);
        let mut due = Vec::new();
        wheel.expire(start + Duration::from_secs(100), &mut due);
        wheel.arm(start, key(7));
        assert!(wheel.next().unwrap() <= start + Duration::from_millis(100_001));
        wheel.expire(start + Duration::from_millis(100_001), &mut due);
        assert_eq!(due, [key(7)]);
    }

    #[test]
    fn deadlines_between_ticks_are_never_early() {
        let start = Instant::now();
        let mut wheel = Wheel::new(start);
        wheel.arm(start + Duration::from_micros(1500), key(1));
        let mut due = Vec::new();
        wheel.expire(start + Duration::from_micros(1999), &mut due);
        assert_eq!(due, []);
        wheel.expire(start + Duration::from_micros(2000), &mut due);
        assert_eq!(due, [key(1)]);
    }
}
