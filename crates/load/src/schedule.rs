//! The schedule of requests, fixed before anything is measured.

use crate::options::{ArrivalKind, RateStep};
use crate::share::Turns;
use std::collections::VecDeque;
use std::time::{Duration, Instant};
use weir_stats::rng::Rng;

/// The planned instants of one worker in an open loop. There is one schedule for the whole run, and each worker takes its
/// [`Turns`] in it: so the server sees the same for any number of workers.
///
/// A due but unsent arrival waits for a free connection; its response time counts from its planned instant.
#[derive(Clone, Debug)]
pub(crate) struct Arrivals {
    clock: Clock,
    units: Units,
    turns: Turns,
    next: Instant,
    waiting: VecDeque<Instant>,
}

/// The parameters of all workers' arrivals.
#[derive(Clone, Debug)]
pub(crate) struct Plan<'a> {
    /// The earliest first arrival.
    pub(crate) start: Instant,
    /// The start of the steps; before it, the first step's rate applies.
    pub(crate) window: Instant,
    pub(crate) kind: ArrivalKind,
    pub(crate) steps: &'a [RateStep],
    pub(crate) seed: u64,
}

impl Arrivals {
    pub(crate) fn new(plan: &Plan<'_>, turns: Turns) -> Self {
        let first = turns.first();
        let mut arrivals = Self {
            clock: Clock::new(plan),
            units: Units::new(plan),
            turns,
            next: plan.start,
            waiting: VecDeque::new(),
        };
        arrivals.units.skip(first);
        arrivals.next = arrivals.clock.at(arrivals.units.now);
        arrivals
    }

    /// The next planned instant.
    pub(crate) fn next(&self) -> Instant {
        self.next
    }

    /// Takes the next arrival if it is due; from then on it waits.
    pub(crate) fn see(&mut self, now: Instant) -> Option<Instant> {
        if now < self.next {
            return None;
        }
        let planned = self.next;
        self.waiting.push_back(planned);
        self.units.skip(self.turns.skip());
        self.next = self.clock.at(self.units.now);
        Some(planned)
    }

    /// Takes the oldest waiting arrival.
    pub(crate) fn take(&mut self) -> Option<Instant> {
        self.waiting.pop_front()
    }

    /// Puts back an arrival that could not be sent, as the oldest.
    pub(crate) fn put_back(&mut self, planned: Instant) {
        self.waiting.push_front(planned);
    }

    /// All waiting arrivals, oldest first.
    pub(crate) fn waiting(&self) -> &VecDeque<Instant> {
        &self.waiting
    }
}

/// Arrivals on a scale of one expected per unit, so that only [`Clock`] knows about rates.
#[derive(Clone, Debug)]
struct Units {
    now: f64,
    /// Draws the gaps; `None` makes them all 1.
    random: Option<Rng>,
}

impl Units {
    fn new(plan: &Plan<'_>) -> Self {
        match plan.kind {
            ArrivalKind::Constant => Self { now: 0.0, random: None },
            ArrivalKind::Poisson => {
                let mut rng = Rng::new(plan.seed);
                Self { now: rng.exponential(), random: Some(rng) }
            }
        }
    }

    fn skip(&mut self, count: u64) {
        match &mut self.random {
            // Whole numbers below 2^53 add up exactly: the schedule does not drift.
            None => self.now += count as f64,
            Some(rng) => (0..count).for_each(|_| self.now += rng.exponential()),
        }
    }
}

#[derive(Clone, Debug)]
struct Clock {
    start: Instant,
    /// In order; the first starts at 0.
    pieces: Vec<Piece>,
}

#[derive(Clone, Copy, Debug)]
struct Piece {
    from_unit: f64,
    from_ns: f64,
    rate: f64,
}

impl Clock {
    fn new(plan: &Plan<'_>) -> Self {
        let mut pieces: Vec<Piece> = Vec::new();
        let mut at = Piece { from_unit: 0.0, from_ns: 0.0, rate: 0.0 };
        let before = plan.window.saturating_duration_since(plan.start);
        for (number, step) in plan.steps.iter().enumerate() {
            // Merge steps of the same rate, to avoid rounding between them.
            if pieces.last().is_none_or(|last| last.rate != step.rate) {
                pieces.push(Piece { rate: step.rate, ..at });
            }
            let time = if number == 0 { before + step.time } else { step.time };
            at.from_ns += time.as_nanos() as f64;
            at.from_unit += time.as_secs_f64() * step.rate;
        }
        Self { start: plan.start, pieces }
    }

    fn at(&self, unit: f64) -> Instant {
        let passed = self.pieces.partition_point(|piece| piece.from_unit <= unit);
        let Some(piece) = self.pieces.get(passed.saturating_sub(1)) else { return self.start };
        // A double holds a day in nanoseconds exactly.
        let ns = piece.from_ns + (unit - piece.from_unit) * 1e9 / piece.rate;
        self.start + Duration::from_nanos(ns.round() as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::HttpVersion;

    const SECOND: Duration = Duration::from_secs(1);

    fn turns(index: u32, workers: u32) -> Turns {
        Turns::new(1, 1, HttpVersion::Http1, index, workers)
    }

    /// The arrivals that `workers` see until then, as times from the start.
    fn seen(
        kind: ArrivalKind,
        steps: &[(f64, u64)],
        warmup: Duration,
        (index, workers): (u32, u32),
        until: Duration,
    ) -> Vec<Duration> {
        let start = Instant::now();
        let steps: Vec<RateStep> =
            steps.iter().map(|(rate, s)| RateStep { rate: *rate, time: SECOND * *s as u32 }).collect();
        let plan = Plan { start, window: start + warmup, kind, steps: &steps, seed: 7 };
        let mut arrivals = Arrivals::new(&plan, turns(index, workers));
        std::iter::from_fn(|| arrivals.see(start + until)).map(|planned| planned - start).collect()
    }

    fn constant(rate: f64, index: u32, workers: u32, until: Duration) -> Vec<Duration> {
        seen(ArrivalKind::Constant, &[(rate, 1)], Duration::ZERO, (index, workers), until)
    }

    #[test]
    fn workers_share_one_constant_rate() {
        let ms = |list: &[u64]| list.iter().map(|ms| Duration::from_millis(*ms)).collect::<Vec<_>>();
        assert_eq!(constant(100.0, 0, 1, Duration::from_millis(35)), ms(&[0, 10, 20, 30]));
        assert_eq!(constant(100.0, 1, 3, Duration::from_millis(80)), ms(&[10, 40, 70]));
        let all: usize = (0..3).map(|index| constant(999.0, index, 3, SECOND * 9).len()).sum();
        assert_eq!(all, 9 * 999 + 1, "the instant at 9 s belongs to it");
    }

    #[test]
    fn the_plan_does_not_drift() {
        let planned = constant(3.0, 0, 1, SECOND * 100_000);
        assert_eq!(planned[299_999], Duration::from_nanos(99_999_666_666_667));
        assert_eq!(planned[300_000], SECOND * 100_000);
    }

    #[test]
    fn a_rate_ramps_in_steps_after_a_warm_up_at_the_first() {
        let steps = [(100.0, 1), (1000.0, 2), (10.0, 1)];
        let planned = seen(ArrivalKind::Constant, &steps, SECOND, (0, 1), SECOND * 5);
        let within = |from: u32, to: u32| {
            planned.iter().filter(|at| (SECOND * from..SECOND * to).contains(*at)).count()
        };
        assert_eq!([within(0, 1), within(1, 2), within(2, 4), within(4, 5)], [100, 100, 2000, 10]);
        assert!(planned.is_sorted());
    }

    #[test]
    fn poisson_gaps_are_exponential_and_the_same_for_any_number_of_workers() {
        let poisson = |part| seen(ArrivalKind::Poisson, &[(1000.0, 1)], Duration::ZERO, part, SECOND * 100);
        let alone = poisson((0, 1));
        let mut shared: Vec<Duration> = (0..3).flat_map(|index| poisson((index, 3))).collect();
        shared.sort_unstable();
        assert_eq!(alone, shared);

        let gaps: Vec<f64> = alone.windows(2).map(|pair| (pair[1] - pair[0]).as_secs_f64() * 1e3).collect();
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        let deviation = (gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / gaps.len() as f64).sqrt();
        let below = |limit: f64| gaps.iter().filter(|gap| **gap < limit).count() as f64 / gaps.len() as f64;
        // 100 000 gaps: three standard errors are 1 %.
        for (seen, expected) in [
            (mean, 1.0),
            (deviation, 1.0),
            (below(0.1), 0.095_16),
            (below(1.0), 0.632_12),
            (below(3.0), 0.950_21),
        ] {
            assert!((seen / expected - 1.0).abs() < 0.04, "{seen} {expected}");
        }
    }

    #[test]
    fn what_was_seen_waits_with_its_own_instant_until_it_is_sent() {
        let start = Instant::now();
        let at = |ms| start + Duration::from_millis(ms);
        let steps = [RateStep { rate: 1000.0, time: SECOND }];
        let plan = Plan { start, window: start, kind: ArrivalKind::Constant, steps: &steps, seed: 0 };
        let mut arrivals = Arrivals::new(&plan, turns(0, 1));
        assert_eq!(arrivals.take(), None);
        for ms in 0..3 {
            assert_eq!(arrivals.see(at(2)), Some(at(ms)));
        }
        assert_eq!((arrivals.see(at(2)), arrivals.next()), (None, at(3)));
        assert_eq!(arrivals.take(), Some(at(0)));
        assert_eq!(arrivals.take(), Some(at(1)));
        arrivals.put_back(at(1));
        assert_eq!(arrivals.waiting().len(), 2);
        assert_eq!([arrivals.take(), arrivals.take(), arrivals.take()], [Some(at(1)), Some(at(2)), None]);
    }
}
