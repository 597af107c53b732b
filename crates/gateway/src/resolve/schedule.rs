//! The schedule of name resolution. The caller supplies the time.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// The names, each with the time of its next lookup.
#[derive(Debug)]
pub(crate) struct Schedule {
    names: BTreeMap<String, Entry>,
    min: Duration,
    max: Duration,
}

#[derive(Debug)]
struct Entry {
    /// The time of the next lookup; `None` while one is in flight.
    due: Option<Instant>,
    failures: u32,
}

impl Schedule {
    /// Keeps every wait between `min` and `max`. A name in `names` without a TTL is due immediately.
    pub(crate) fn new(
        names: impl IntoIterator<Item = (String, Option<Duration>)>,
        min: Duration,
        max: Duration,
        now: Instant,
    ) -> Self {
        let mut schedule = Self { names: BTreeMap::new(), min, max };
        schedule.follow(names, now);
        schedule
    }

    /// Replaces the names. Names that remain keep their times: restarting them could postpone lookups indefinitely.
    pub(crate) fn follow(
        &mut self,
        names: impl IntoIterator<Item = (String, Option<Duration>)>,
        now: Instant,
    ) {
        let mut before = std::mem::take(&mut self.names);
        for (name, ttl) in names {
            let due = ttl.map_or(now, |ttl| now + self.bounded(ttl));
            let entry = before.remove(&name).unwrap_or(Entry { due: Some(due), failures: 0 });
            self.names.insert(name, entry);
        }
    }

    /// Takes up to `room` names that are due, the longest overdue first. A name remains unscheduled until
    /// [`Schedule::found`] or [`Schedule::failed`] is called for it.
    pub(crate) fn take_due(&mut self, now: Instant, room: usize) -> Vec<String> {
        let mut due: Vec<_> = self.names.iter_mut().filter(|(_, entry)| entry.is_due(now)).collect();
        due.sort_by_key(|(_, entry)| entry.due);
        due.truncate(room);
        let take = |(name, entry): (&String, &mut Entry)| {
            entry.due = None;
            name.clone()
        };
        due.into_iter().map(take).collect()
    }

    /// The time at which the next name is due; `None` if all lookups are in flight.
    pub(crate) fn next(&self) -> Option<Instant> {
        self.names.values().filter_map(|entry| entry.due).min()
    }

    /// Schedules the next lookup after a success. Returns whether the previous lookup had failed.
    pub(crate) fn found(&mut self, name: &str, ttl: Duration, now: Instant) -> bool {
        let wait = self.bounded(ttl);
        let Some(entry) = self.names.get_mut(name) else { return false };
        entry.due = Some(now + wait);
        std::mem::take(&mut entry.failures) > 0
    }

    /// Schedules the next lookup after a failure: soon after the first one, with exponential backoff after further
    /// ones. Returns whether this is the first failure in a row.
    pub(crate) fn failed(&mut self, name: &str, now: Instant) -> bool {
        let Some(entry) = self.names.get(name) else { return false };
        let wait = self.bounded(FIRST_RETRY.saturating_mul(1 << entry.failures.min(16)).min(LAST_RETRY));
        let Some(entry) = self.names.get_mut(name) else { return false };
        entry.due = Some(now + wait);
        entry.failures = entry.failures.saturating_add(1);
        entry.failures == 1
    }

    fn bounded(&self, wait: Duration) -> Duration {
        wait.max(self.min).min(self.max)
    }
}

impl Entry {
    fn is_due(&self, now: Instant) -> bool {
        self.due.is_some_and(|due| due <= now)
    }
}

/// The first retry delay: short, so that a lost packet hardly delays a change of address.
const FIRST_RETRY: Duration = Duration::from_secs(1);

/// The maximum retry delay: long, so that a failing name server gets few queries.
const LAST_RETRY: Duration = Duration::from_secs(30);

#[cfg(test)]
mod tests {
    use super::*;

    const fn seconds(count: u64) -> Duration {
        Duration::from_secs(count)
    }

    fn schedule(names: &[&str], now: Instant) -> Schedule {
        let names = names.iter().map(|name| ((*name).to_owned(), None));
        Schedule::new(names, seconds(1), seconds(60), now)
    }

    #[test]
    fn a_name_is_due_when_its_ttl_is_over_within_the_bounds() {
        let start = Instant::now();
        let mut names = schedule(&["a"], start);
        for (ttl, wait) in [(0, 1), (1, 1), (7, 7), (60, 60), (86_400, 60)] {
            let now = start + seconds(100);
            assert_eq!(names.take_due(now, 9), ["a"]);
            assert_eq!((names.next(), names.take_due(now, 9)), (None, vec![]), "it is being resolved");
            assert!(!names.found("a", seconds(ttl), start));
            assert_eq!(names.next(), Some(start + seconds(wait)), "{ttl}");
            let before = start + seconds(wait) - Duration::from_millis(1);
            assert!(names.take_due(before, 9).is_empty(), "{ttl}");
        }
    }

    #[test]
    fn failures_back_off_and_the_first_is_told_from_the_others() {
        let now = Instant::now();
        let mut names = schedule(&["a"], now);
        names.found("a", seconds(60), now);
        let fail = |names: &mut Schedule| {
            let first = names.failed("a", now);
            (first, names.next().unwrap() - now)
        };
        assert_eq!(fail(&mut names), (true, seconds(1)));
        for wait in [2, 4, 8, 16, 30, 30] {
            assert_eq!(fail(&mut names), (false, seconds(wait)));
        }
        for _ in 0..100 {
            assert_eq!(fail(&mut names), (false, seconds(30)));
        }
        assert!(names.found("a", seconds(5), now), "it had failed");
        assert!(!names.found("a", seconds(5), now));
        assert_eq!(fail(&mut names), (true, seconds(1)));
    }

    #[test]
    fn retries_are_within_the_bounds_too() {
        let now = Instant::now();
        let mut names = Schedule::new([("a".to_owned(), None)], seconds(10), seconds(20), now);
        let mut waits = Vec::new();
        for _ in 0..6 {
            names.failed("a", now);
            waits.push((names.next().unwrap() - now).as_secs());
        }
        assert_eq!(waits, [10, 10, 10, 10, 16, 20]);
    }

    #[test]
    fn those_that_have_waited_longest_come_first_and_no_more_than_there_is_room_for() {
        let start = Instant::now();
        let mut names = schedule(&["a", "b", "c"], start);
        assert_eq!(names.take_due(start, 9).len(), 3);
        for (name, ttl) in [("a", 9), ("b", 3), ("c", 6)] {
            names.found(name, seconds(ttl), start);
        }
        assert_eq!(names.next(), Some(start + seconds(3)));
        assert_eq!(names.take_due(start + seconds(60), 2), ["b", "c"]);
        assert_eq!(names.take_due(start + seconds(60), 2), ["a"]);
    }

    #[test]
    fn what_is_known_at_the_start_holds_for_its_ttl() {
        let now = Instant::now();
        let names = [("known".to_owned(), Some(seconds(5))), ("unknown".to_owned(), None)];
        let mut names = Schedule::new(names, seconds(1), seconds(60), now);
        assert_eq!(names.take_due(now, 9), ["unknown"]);
        assert_eq!(names.next(), Some(now + seconds(5)));
    }

    /// Regression test: if the names changed more often than their TTLs ended, no name was ever due.
    #[test]
    fn names_that_stay_keep_their_times() {
        let start = Instant::now();
        let with_ttl = |names: &[&str]| -> Vec<_> {
            names.iter().map(|name| ((*name).to_owned(), Some(seconds(10)))).collect()
        };
        let mut names = Schedule::new(with_ttl(&["a", "b", "c"]), seconds(1), seconds(60), start);
        names.follow(with_ttl(&["b", "c", "d"]), start + seconds(9));
        let now = start + seconds(10);
        assert_eq!(names.take_due(now, 1), ["b"]);
        names.follow(with_ttl(&["a", "b", "c", "d"]), now);
        assert_eq!(names.take_due(now, 9), ["c"], "the look-up of `b` is in flight");
        assert_eq!(names.take_due(start + seconds(19), 9), ["d"]);
        names.found("b", seconds(1), now);
        assert_eq!(names.take_due(start + seconds(20), 9), ["b", "a"]);
    }
}
