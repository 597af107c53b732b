//! A minimum rate over a window of time.

use crate::config::MinRate;
use std::time::{Duration, Instant};

/// The time that a client has left. Waiting for the client uses time up, and each byte adds time according to the
/// minimum rate, up to one window in total. So a client that keeps the rate is never cut off, even if its bytes arrive
/// unevenly within a window, and a fast start earns at most one window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RateMeter {
    rate: MinRate,
    /// The byte count at the last update.
    seen: u64,
    clock: Clock,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Clock {
    /// The gateway waits for the client, at most until this instant.
    Running { until: Instant },
    /// The gateway does not wait for the client, which has this much time left.
    Stopped { left: Duration },
}

impl RateMeter {
    /// A meter that starts at `seen` bytes, with the whole window left.
    pub(crate) fn new(rate: MinRate, seen: u64) -> Self {
        Self { rate, seen, clock: Clock::Stopped { left: rate.window } }
    }

    /// Whether the meter enforces exactly this rate.
    pub(crate) fn is_of(&self, rate: MinRate) -> bool {
        self.rate == rate
    }

    /// Updates the meter to `total` bytes. `awaits_client`: whether the gateway waits for the client from now on.
    /// Returns the deadline, which further bytes extend.
    pub(crate) fn update(&mut self, now: Instant, total: u64, awaits_client: bool) -> Option<Instant> {
        let bought = self.rate.time_of(total.saturating_sub(self.seen));
        self.seen = self.seen.max(total);
        self.clock = match (self.clock, awaits_client) {
            (Clock::Running { until }, true) => {
                Clock::Running { until: (until + bought).min(now + self.rate.window) }
            }
            (Clock::Running { until }, false) => {
                let left = (until + bought).saturating_duration_since(now);
                Clock::Stopped { left: left.min(self.rate.window) }
            }
            (Clock::Stopped { left }, _) => {
                let left = (left + bought).min(self.rate.window);
                match awaits_client {
                    true => Clock::Running { until: now + left },
                    false => Clock::Stopped { left },
                }
            }
        };
        match self.clock {
            Clock::Running { until } => Some(until),
            Clock::Stopped { .. } => None,
        }
    }

    /// Stops the clock: the gateway does not wait for the client.
    pub(crate) fn rest(&mut self, now: Instant) {
        self.update(now, self.seen, false);
    }
}

impl MinRate {
    /// The time that this many bytes may take at the minimum rate, up to the window.
    fn time_of(self, bytes: u64) -> Duration {
        let nanoseconds = u128::from(bytes) * 1_000_000_000 / u128::from(self.per_second.get());
        u64::try_from(nanoseconds).map_or(self.window, Duration::from_nanos).min(self.window)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::document;
    use std::num::NonZeroU64;

    /// Milliseconds since the start, bytes moved, and whether the gateway waits for the client from then on.
    type Events = &'static [(u64, u64, bool)];

    /// The time in ms at which a client loses its connection, with 1000 bytes/s and a window of 10 s.
    fn ends(events: impl IntoIterator<Item = (u64, u64, bool)>) -> Option<u64> {
        let per_second = NonZeroU64::new(1000).unwrap();
        let mut meter = RateMeter::new(MinRate { per_second, window: Duration::from_secs(10) }, 7);
        let start = Instant::now();
        let (mut total, mut until) = (7, None);
        for (ms, bytes, awaits_client) in events {
            let now = start + Duration::from_millis(ms);
            if until.is_some_and(|until| until <= now) {
                break;
            }
            total += bytes;
            until = meter.update(now, total, awaits_client);
        }
        until.map(|until: Instant| (until - start).as_millis() as u64)
    }

    #[test]
    fn windows() {
        let table: [(&str, Events, Option<u64>); 10] = [
            ("nothing moves", &[(0, 0, true)], Some(10_000)),
            ("a byte now and then", &[(0, 0, true), (3000, 1, true), (9000, 1, true)], Some(10_002)),
            (
                "half the rate lasts two windows",
                &[(0, 0, true), (8000, 4000, true), (13_000, 2500, true)],
                Some(16_500),
            ),
            ("a fast beginning buys one window", &[(0, 0, true), (1000, 1_000_000_000, true)], Some(11_000)),
            ("what came with the head does, too", &[(0, 1_000_000_000, true)], Some(10_000)),
            ("it is not waited for", &[(0, 0, false), (60_000, 0, false)], None),
            ("time stands still", &[(0, 0, true), (4000, 0, false), (90_000, 0, true)], Some(96_000)),
            (
                "bytes count meanwhile",
                &[(0, 0, true), (4000, 0, false), (50_000, 1000, false), (90_000, 0, true)],
                Some(97_000),
            ),
            (
                "and buy no more than a window",
                &[(0, 0, true), (4000, 0, false), (50_000, 99_999, false), (90_000, 0, true)],
                Some(100_000),
            ),
            (
                "its last byte comes with the pause",
                &[(0, 0, true), (9999, 2000, false), (20_000, 0, true)],
                Some(22_001),
            ),
        ];
        for (what, events, expected) in table {
            assert_eq!(ends(events.iter().copied()), expected, "{what}");
        }
    }

    /// Kernels open TCP windows in large steps, so bytes arrive in bursts.
    #[test]
    fn a_steady_client_is_never_ended_and_a_slower_one_is() {
        for lump in [1, 100, 1500, 4096, 9999] {
            let steady =
                |every_us: u64| move |n: u64| (n * every_us / 1000, if n == 0 { 0 } else { lump }, true);
            // The intervals, in microseconds: a thousandth shorter than the rate requires, and a fifth longer.
            let (faster, slower) = (lump * 999, lump * 1200);
            let (count, end) = (200_000 / lump.min(200), 200_000 * faster / 1000 / lump.min(200));
            let until = ends((0..=count).map(steady(faster))).unwrap();
            assert!(until > end, "{lump}: ended at {until} of {end}");
            let until = ends((0..=count).map(steady(slower))).unwrap();
            assert!((10_000..=61_000).contains(&until), "{lump}: {until}");
        }
    }

    /// A laptop may need a minute to change networks, but a client that trickles bytes must lose its connection.
    #[test]
    fn by_default_a_pause_of_a_minute_is_no_attack() {
        let document::MinRate { request, window, .. } = document::MinRate::default();
        let rate = MinRate { per_second: NonZeroU64::new(request).unwrap(), window };
        let start = Instant::now();
        let after = |seconds| start + Duration::from_secs(seconds);
        for first in [0, 1, 5000, 1_000_000] {
            let mut meter = RateMeter::new(rate, 0);
            meter.update(start, 0, true);
            assert!(meter.update(after(1), first, true) > Some(after(61)), "{first}");
            // The client pauses a second time, after a stretch of 50 KB/s.
            meter.update(after(61), first + 1000, true);
            assert!(meter.update(after(63), first + 100_000, true) > Some(after(123)), "{first}");
        }
        // These are the slow bodies of slowhttptest, by default and at their fastest.
        for (every, bytes) in [(10, 24), (2, 64), (1, 250)] {
            let mut meter = RateMeter::new(rate, 0);
            let mut until = meter.update(start, 0, true).unwrap();
            let trickle = (1..).map(|nth| (after(nth * every), nth * bytes));
            for (now, total) in trickle.take_while(|(now, _)| *now < after(600)) {
                if now >= until {
                    break;
                }
                until = meter.update(now, total, true).unwrap();
            }
            assert!(until <= start + 2 * window, "{bytes} bytes every {every} s");
        }
    }

    #[test]
    fn extreme_rates_and_counts_do_not_overflow() {
        for (per_second, bytes) in [(1, u64::MAX), (1 << 30, 1), (1 << 30, u64::MAX), (u64::MAX, u64::MAX)] {
            let rate = MinRate {
                per_second: NonZeroU64::new(per_second).unwrap(),
                window: Duration::from_secs(3600),
            };
            let mut meter = RateMeter::new(rate, 0);
            let now = Instant::now();
            assert_eq!(meter.update(now, 0, true), Some(now + rate.window));
            assert!(meter.update(now, bytes, true) <= Some(now + rate.window));
        }
    }
}
