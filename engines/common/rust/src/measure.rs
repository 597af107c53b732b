//! Threads that measure at the same time.

use std::sync::Barrier;
use std::thread;
use std::time::Instant;

use crate::calls::nanoseconds;
use crate::error::Error;
use crate::scenario::{Load, Until};
use crate::usage::Usage;

/// The work of one thread, unit by unit.
pub(crate) trait Worker {
    /// Its measurements.
    type Record: Default + Send;

    /// Does at least one unit and at most `most`; returns how many.
    fn unit(&mut self, most: u64, record: &mut Self::Record) -> Result<u64, Error>;
}

/// The result of one thread.
pub(crate) struct Measured<R> {
    pub(crate) units: u64,
    pub(crate) wall_ns: u64,
    pub(crate) usage: Usage,
    pub(crate) record: R,
}

/// Measures on as many threads as the load says. Each creates and warms up its worker; then they start together.
pub(crate) fn measure<W: Worker>(
    load: &Load,
    make: impl Fn() -> Result<W, Error> + Sync,
) -> Result<Vec<Measured<W::Record>>, Error> {
    let barrier = Barrier::new(load.threads);
    let thread = || {
        let worker = make().and_then(|worker| warm(worker, load.warmup));
        barrier.wait(); // failed threads come here too, or the others would wait forever
        run(worker?, load.until)
    };
    thread::scope(|scope| {
        let threads: Vec<_> = (0..load.threads).map(|_| scope.spawn(thread)).collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap_or_else(|_| Err(Error::runner("thread", "panicked"))))
            .collect()
    })
}

fn warm<W: Worker>(mut worker: W, units: u64) -> Result<W, Error> {
    let mut record = W::Record::default();
    let mut left = units;
    while left > 0 {
        left -= worker.unit(left, &mut record)?;
    }
    Ok(worker)
}

fn run<W: Worker>(mut worker: W, until: Until) -> Result<Measured<W::Record>, Error> {
    let mut record = W::Record::default();
    let mut units = 0;
    let before = Usage::of_thread();
    let start = Instant::now();
    loop {
        let most = match until {
            Until::Window(window) if units > 0 && start.elapsed() >= window => break,
            Until::Window(_) => u64::MAX,
            Until::Count(count) if units == count => break,
            Until::Count(count) => count - units,
        };
        units += worker.unit(most, &mut record)?;
    }
    let wall_ns = nanoseconds(start);
    Ok(Measured { units, wall_ns, usage: Usage::of_thread().since(before), record })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    struct Counter {
        batch: u64,
        fail_at: u64,
        done: u64,
    }

    impl Worker for Counter {
        type Record = Vec<u64>;

        fn unit(&mut self, most: u64, record: &mut Vec<u64>) -> Result<u64, Error> {
            self.done += 1;
            if self.done == self.fail_at {
                return Err(Error::stack("unit", "fails"));
            }
            record.push(self.batch.min(most));
            Ok(self.batch.min(most))
        }
    }

    #[test]
    fn a_count_is_met_exactly_and_the_warm_up_is_forgotten() {
        let load = Load { threads: 2, warmup: 5, until: Until::Count(7) };
        let measured = measure(&load, || Ok(Counter { batch: 3, fail_at: 0, done: 0 })).expect("measures");
        assert_eq!(measured.len(), 2);
        for thread in measured {
            assert_eq!((thread.units, thread.record), (7, vec![3, 3, 1]));
        }
    }

    #[test]
    fn a_window_is_filled() {
        let load = Load { threads: 1, warmup: 0, until: Until::Window(Duration::from_millis(5)) };
        let measured = measure(&load, || Ok(Counter { batch: 1, fail_at: 0, done: 0 })).expect("measures");
        assert!(measured[0].wall_ns >= 5_000_000 && measured[0].units == measured[0].record.len() as u64);
    }

    #[test]
    fn one_threads_failure_ends_all() {
        for fail_at in [1, 4] {
            let load = Load { threads: 3, warmup: 2, until: Until::Count(9) };
            let result = measure(&load, || Ok(Counter { batch: 1, fail_at, done: 0 }));
            assert_eq!(result.err(), Some(Error::stack("unit", "fails")));
        }
        let load = Load { threads: 2, warmup: 0, until: Until::Count(1) };
        assert!(measure::<Counter>(&load, || Err(Error::scenario("no"))).is_err());
    }
}
