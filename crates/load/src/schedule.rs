//! When requests are to be sent, decided before anything is measured.

use std::time::{Duration, Instant};

/// The planned instants of one worker in an open loop: arrival `i` of the whole run is at `start + i / rate`, and
/// worker `w` of `t` has `w`, `w + t`, `w + 2t`, ..
///
/// Two positions walk along the plan: `seen` is how far the worker has looked (its lag is measured there), `sent` how
/// far it has sent. What lies between waits for a free connection; its planned instant is what its latency counts from.
#[derive(Clone, Debug)]
pub(crate) struct Arrivals {
    start: Instant,
    rate: f64,
    first: u64,
    step: u64,
    seen: u64,
    sent: u64,
    next: Instant,
    oldest: Instant,
}

impl Arrivals {
    /// The plan of worker `index` of `workers` at `rate` arrivals per second in all.
    pub(crate) fn new(start: Instant, rate: f64, index: usize, workers: usize) -> Self {
        let (first, step) = (index as u64, workers as u64);
        let mut arrivals = Self { start, rate, first, step, seen: 0, sent: 0, next: start, oldest: start };
        arrivals.next = arrivals.at(0);
        arrivals.oldest = arrivals.next;
        arrivals
    }

    /// The next planned instant that has not been looked at.
    pub(crate) fn next(&self) -> Instant {
        self.next
    }

    /// Looks at the next arrival if its instant has come.
    pub(crate) fn see(&mut self, now: Instant) -> Option<Instant> {
        if now < self.next {
            return None;
        }
        let planned = self.next;
        self.seen += 1;
        self.next = self.at(self.seen);
        Some(planned)
    }

    /// The oldest arrival that was seen and not sent.
    pub(crate) fn waiting(&self) -> Option<Instant> {
        (self.sent < self.seen).then_some(self.oldest)
    }

    /// The oldest arrival is being sent, or given up.
    pub(crate) fn take(&mut self) {
        self.sent += 1;
        self.oldest = self.at(self.sent);
    }

    /// The worker's own `n`-th arrival.
    fn at(&self, n: u64) -> Instant {
        // A double holds a day in nanoseconds exactly, so the plan does not drift.
        let number = (self.first + n * self.step) as f64;
        self.start + Duration::from_nanos((number * 1e9 / self.rate).round() as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(rate: f64, index: usize, workers: usize, until: Duration) -> Vec<Duration> {
        let start = Instant::now();
        let mut arrivals = Arrivals::new(start, rate, index, workers);
        std::iter::from_fn(|| arrivals.see(start + until)).map(|planned| planned - start).collect()
    }

    #[test]
    fn workers_share_one_constant_rate() {
        let ms = |list: &[u64]| list.iter().map(|ms| Duration::from_millis(*ms)).collect::<Vec<_>>();
        assert_eq!(plan(100.0, 0, 1, Duration::from_millis(35)), ms(&[0, 10, 20, 30]));
        assert_eq!(plan(100.0, 1, 3, Duration::from_millis(80)), ms(&[10, 40, 70]));
        let all: usize = (0..3).map(|index| plan(999.0, index, 3, Duration::from_secs(9)).len()).sum();
        assert_eq!(all, 9 * 999 + 1, "the instant at 9 s belongs to it");
    }

    #[test]
    fn the_plan_does_not_drift() {
        let planned = plan(3.0, 0, 1, Duration::from_secs(100_000));
        assert_eq!(planned[299_999], Duration::from_nanos(99_999_666_666_667));
        assert_eq!(planned[300_000], Duration::from_secs(100_000));
    }

    #[test]
    fn what_was_seen_waits_with_its_own_instant_until_it_is_sent() {
        let start = Instant::now();
        let at = |ms| start + Duration::from_millis(ms);
        let mut arrivals = Arrivals::new(start, 1000.0, 0, 1);
        assert_eq!(arrivals.waiting(), None);
        for ms in 0..3 {
            assert_eq!(arrivals.see(at(2)), Some(at(ms)));
        }
        assert_eq!((arrivals.see(at(2)), arrivals.next()), (None, at(3)));
        assert_eq!(arrivals.waiting(), Some(at(0)));
        arrivals.take();
        assert_eq!(arrivals.waiting(), Some(at(1)));
        arrivals.take();
        arrivals.take();
        assert_eq!(arrivals.waiting(), None);
    }
}
