//! Per-second figures: recorded by each worker, merged by the conductor during the run,
//! so that a long run needs no memory on the request path.

use crate::options::HttpVersion;
use crate::record::times::enough;
use crate::result::{ByVersion, Second, VersionSecond};
use hdrhistogram::Histogram;
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

#[derive(Clone, Debug, Default)]
pub(crate) struct Part {
    /// Seconds from the window's start; negative before it.
    pub(crate) number: i64,
    /// Without its time and percentiles.
    pub(crate) second: Second,
    pub(crate) response: Coarse,
}

/// A histogram of microseconds with 2 digits: 13 KiB, against 270 KiB for those in the results.
#[derive(Clone, Debug)]
pub(crate) struct Coarse(Histogram<u32>);

/// Finished seconds not yet merged: each worker locks its own queue once per second.
#[derive(Default)]
pub(crate) struct Outbox(Mutex<Vec<Part>>);

pub(crate) struct Seconds {
    /// The version of each worker.
    workers: Vec<HttpVersion>,
    open: BTreeMap<i64, Open>,
    done: Vec<Second>,
    last: Option<Second>,
}

/// A second that not all workers have finished.
struct Open {
    parts: usize,
    all: Part,
    /// `None` with one version.
    by_version: Option<ByVersion<Part>>,
}

impl Default for Coarse {
    fn default() -> Self {
        let histogram = Histogram::new_with_bounds(1, 3_600_000_000, 2);
        // Only contradictory bounds are rejected.
        Self(histogram.unwrap_or_else(|_| unreachable!("1 us to 1 h with 2 digits is a valid histogram")))
    }
}

impl Coarse {
    #[inline]
    pub(crate) fn record(&mut self, time: Duration) {
        self.0.saturating_record(time.as_micros() as u64);
    }

    /// Takes what was recorded.
    pub(crate) fn take(&mut self) -> Self {
        let taken = self.clone();
        self.0.reset();
        taken
    }

    fn quantile_us(&self, quantile: f64) -> Option<f64> {
        enough(self.0.len(), quantile).then(|| self.0.value_at_quantile(quantile) as f64)
    }
}

impl Outbox {
    pub(crate) fn put(&self, part: Part) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(part);
    }

    fn empty(&self) -> Vec<Part> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Seconds {
    /// For workers with these versions.
    pub(crate) fn new(workers: Vec<HttpVersion>) -> Self {
        Self { workers, open: BTreeMap::new(), done: Vec::new(), last: None }
    }

    /// Merges the workers' finished seconds; returns the number of requests in them.
    pub(crate) fn collect(&mut self, outboxes: &[Outbox]) -> u64 {
        let mut requests = 0;
        for (index, outbox) in outboxes.iter().enumerate() {
            for part in outbox.empty() {
                requests += part.second.requests;
                self.add(&part, self.workers[index]);
            }
        }
        requests
    }

    fn add(&mut self, part: &Part, version: HttpVersion) {
        let is_mixed = || self.workers.iter().any(|worker| *worker != version);
        let open = self.open.entry(part.number).or_insert_with(|| Open::new(is_mixed()));
        open.add(part, version);
        if open.parts == self.workers.len() {
            self.close(part.number);
        }
    }

    /// The last second that all workers finished.
    pub(crate) fn last(&self) -> Option<&Second> {
        self.last.as_ref()
    }

    /// The seconds of the window. A second that one worker did not finish has the others' figures.
    pub(crate) fn into_window(mut self) -> Vec<Second> {
        while let Some(number) = self.open.keys().next().copied() {
            self.close(number);
        }
        self.done.sort_by(|a, b| a.at_s.total_cmp(&b.at_s));
        self.done
    }

    fn close(&mut self, number: i64) {
        let Some(Open { all, by_version, .. }) = self.open.remove(&number) else { return };
        let second = Second {
            at_s: number as f64,
            p50_us: all.response.quantile_us(0.5),
            p95_us: all.response.quantile_us(0.95),
            p99_us: all.response.quantile_us(0.99),
            by_version: by_version.map(|parts| parts.map(Part::of_version)),
            ..all.second
        };
        if number >= 0 {
            self.done.push(second.clone());
        }
        self.last = Some(second);
    }
}

impl Open {
    fn new(is_mixed: bool) -> Self {
        Self { parts: 0, all: Part::default(), by_version: is_mixed.then(ByVersion::default) }
    }

    fn add(&mut self, part: &Part, version: HttpVersion) {
        self.parts += 1;
        self.all.add(part);
        if let Some(by_version) = &mut self.by_version {
            by_version.as_mut().of(version).add(part);
        }
    }
}

impl Part {
    fn of_version(self) -> VersionSecond {
        VersionSecond {
            requests: self.second.requests,
            errors: self.second.errors,
            p50_us: self.response.quantile_us(0.5),
            p99_us: self.response.quantile_us(0.99),
        }
    }

    fn add(&mut self, other: &Self) {
        let (second, others) = (&mut self.second, &other.second);
        second.requests += others.requests;
        second.errors += others.errors;
        second.handshakes += others.handshakes;
        second.connections += others.connections;
        second.waiting += others.waiting;
        second.goaways += others.goaways;
        second.resets += others.resets;
        second.refused += others.refused;
        second.messages_sent += others.messages_sent;
        second.messages_received += others.messages_received;
        // Histograms with equal bounds can always be merged.
        let _ = self.response.0.add(&other.response.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(number: i64, us: u64, requests: u64) -> Part {
        let mut response = Coarse::default();
        (0..requests).for_each(|_| response.record(Duration::from_micros(us)));
        let second = Second {
            requests,
            errors: 1,
            handshakes: 2,
            connections: 3,
            waiting: 4,
            goaways: 5,
            resets: 6,
            refused: 7,
            messages_sent: 8,
            messages_received: 9,
            ..Second::default()
        };
        Part { number, second, response: response.take() }
    }

    #[test]
    fn a_second_is_there_when_all_workers_have_ended_it() {
        let outboxes = [Outbox::default(), Outbox::default()];
        let mut seconds = Seconds::new(vec![HttpVersion::Http1; 2]);
        outboxes[0].put(part(-1, 100, 5));
        outboxes[1].put(part(-1, 100, 5));
        outboxes[0].put(part(0, 100, 500));
        seconds.collect(&outboxes);
        assert_eq!(seconds.last().map(|second| (second.at_s, second.requests)), Some((-1.0, 10)));
        outboxes[1].put(part(0, 300, 1500));
        outboxes[0].put(part(1, 100, 7));
        seconds.collect(&outboxes);
        let last = seconds.last().unwrap().clone();
        assert_eq!((last.requests, last.errors, last.handshakes), (2000, 2, 4));
        assert_eq!((last.connections, last.waiting), (6, 8));
        assert_eq!((last.goaways, last.resets, last.refused), (10, 12, 14));
        assert_eq!((last.messages_sent, last.messages_received), (16, 18));
        assert!((last.p50_us.unwrap() / 300.0 - 1.0).abs() < 0.01, "{last:?}");
        assert_eq!(last.by_version, None);
        let window = seconds.into_window();
        assert_eq!(window.iter().map(|second| second.requests).collect::<Vec<_>>(), [2000, 7]);
        assert_eq!(window[1].p50_us, None, "seven samples are too few");
    }

    #[test]
    fn a_second_of_both_versions_has_the_figures_of_each() {
        let outboxes = [(); 3].map(|()| Outbox::default());
        let mut seconds = Seconds::new(vec![HttpVersion::Http1, HttpVersion::Http1, HttpVersion::Http2]);
        for (outbox, (us, requests)) in outboxes.iter().zip([(100, 1000), (100, 500), (3000, 30)]) {
            assert_eq!(seconds.last(), None);
            outbox.put(part(0, us, requests));
            assert_eq!(seconds.collect(&outboxes), requests);
        }
        let last = seconds.last().unwrap();
        assert_eq!((last.requests, last.errors), (1530, 3));
        let ByVersion { http1, http2 } = last.by_version.clone().unwrap();
        assert_eq!((http1.requests, http1.errors, http2.requests, http2.errors), (1500, 2, 30, 1));
        let close = |found: Option<f64>, us: f64| (found.unwrap() / us - 1.0).abs() < 0.01;
        assert!(close(http1.p50_us, 100.0) && close(http1.p99_us, 100.0), "{http1:?}");
        assert!(close(http2.p50_us, 3000.0) && http2.p99_us.is_none(), "{http2:?}");
    }

    #[test]
    fn what_was_taken_is_not_there_any_more() {
        let mut response = Coarse::default();
        (0..30).for_each(|_| response.record(Duration::from_micros(10)));
        assert!(response.take().quantile_us(0.5).is_some());
        assert_eq!(response.quantile_us(0.5), None);
    }
}
