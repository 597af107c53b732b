//! The ejection of a server: the failures that lead to it, and its periods. `slow_return.rs` computes the server's
//! share afterwards.

use super::slow_return::growing_share;
use crate::config::document::Eject;
use std::time::{Duration, Instant};

/// A server's recent failures, and its ejection if they led to one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ejection {
    failures: u32,
    /// The current window of failures, if the share of failures has a limit.
    window: Option<Window>,
    /// Consecutive ejections; a success after the slow return resets the number.
    ejections: u32,
    state: EjectionState,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum EjectionState {
    Good,
    /// The server gets no requests before this time.
    Ejected {
        until: Instant,
    },
    /// The server's share has been growing since this time.
    Returning {
        since: Instant,
    },
}

/// A period over which the share of failures is computed; it starts with a failure.
#[derive(Clone, Copy, Debug)]
struct Window {
    since: Instant,
    /// The number of the server's responses before the window began.
    responses: u64,
    failures: u64,
    /// Failures that the server's number of responses does not include: [`Counted::No`].
    uncounted: u64,
}

/// Whether the server's number of responses includes the failure. The number excludes failures before a failover, in a
/// tunnel, and of mirrored requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Counted {
    Yes,
    No,
}

/// The maximum duration of an ejection, unless the configured period is longer.
const LONGEST: Duration = Duration::from_secs(300);

impl Default for Ejection {
    fn default() -> Self {
        Self { failures: 0, window: None, ejections: 0, state: EjectionState::Good }
    }
}

impl Ejection {
    /// Records a success, which ends a series of failures and, outside an ejection and a slow return, a series of
    /// ejections.
    pub(crate) fn succeeded(&mut self) {
        self.failures = 0;
        if self.state == EjectionState::Good {
            self.ejections = 0;
        }
    }

    /// Records a failure of a server with this many responses so far. Returns the ejection's duration if this failure
    /// ejects the server.
    pub(crate) fn failed(
        &mut self,
        now: Instant,
        eject: &Eject,
        counted: Counted,
        responses: u64,
    ) -> Option<Duration> {
        self.failures = self.failures.saturating_add(1);
        let fails_often =
            eject.percent.is_some_and(|most| self.note_share(now, eject, counted, responses) >= most.into());
        // During a slow return, one failure is enough.
        let returning = matches!(self.state, EjectionState::Returning { .. });
        let is_out = matches!(self.state, EjectionState::Ejected { .. });
        let fails_in_row = eject.failures > 0 && (self.failures >= eject.failures || returning);
        if is_out || !(fails_in_row || fails_often) {
            return None;
        }
        let period = eject.period.saturating_mul(1 << self.ejections.min(16)).min(LONGEST.max(eject.period));
        self.ejections += 1;
        self.failures = 0;
        self.window = None;
        self.state = EjectionState::Ejected { until: now + period };
        Some(period)
    }

    /// Counts a failure in the window. Returns the share of failures in percent, or 0 below the minimum number of
    /// requests. Successes need no count of their own, since the server counts all responses.
    fn note_share(&mut self, now: Instant, eject: &Eject, counted: Counted, responses: u64) -> u64 {
        let is_counted = counted == Counted::Yes;
        let window =
            self.window.filter(|window| now.saturating_duration_since(window.since) < eject.window());
        let mut window = window.unwrap_or(Window {
            since: now,
            responses: responses.saturating_sub(is_counted.into()),
            failures: 0,
            uncounted: 0,
        });
        window.failures += 1;
        window.uncounted += u64::from(!is_counted);
        self.window = Some(window);
        let requests = responses.saturating_sub(window.responses) + window.uncounted;
        if requests < eject.min_requests().into() { 0 } else { window.failures * 100 / requests.max(1) }
    }

    /// Whether the server is ejected; ends an expired ejection.
    pub(crate) fn is_ejected(&mut self, now: Instant) -> bool {
        match self.state {
            EjectionState::Ejected { until } if now < until => true,
            EjectionState::Ejected { until } => {
                self.state = EjectionState::Returning { since: until };
                false
            }
            EjectionState::Good | EjectionState::Returning { .. } => false,
        }
    }

    /// Begins a slow return, unless the server is ejected: then it follows the ejection.
    pub(crate) fn begin_return(&mut self, now: Instant) {
        if !self.is_ejected(now) {
            self.state = EjectionState::Returning { since: now };
        }
    }

    /// The server's share of the requests: `full`, unless the server is in a slow return.
    pub(crate) fn share(&mut self, full: u64, now: Instant, slow_return: Duration) -> u64 {
        let EjectionState::Returning { since } = self.state else { return full };
        growing_share(full, now.saturating_duration_since(since), slow_return).unwrap_or_else(|| {
            self.state = EjectionState::Good;
            full
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The full share of a server with a weight of 2.
    const FULL: u64 = 200;

    #[test]
    fn a_server_that_fails_in_a_row_is_ejected_and_returns_slowly() {
        let seconds = Duration::from_secs;
        let eject = Eject { failures: 3, period: seconds(10), slow_return: seconds(100), ..Eject::default() };
        let (mut ejection, start) = (Ejection::default(), Instant::now());
        for _ in 0..2 {
            assert_eq!(ejection.failed(start, &eject, Counted::No, 0), None);
        }
        ejection.succeeded();
        for _ in 0..2 {
            assert_eq!(ejection.failed(start, &eject, Counted::No, 0), None);
        }
        assert!(!ejection.is_ejected(start));
        assert_eq!(ejection.failed(start, &eject, Counted::No, 0), Some(seconds(10)));
        assert_eq!(ejection.failed(start, &eject, Counted::No, 0), None, "requests of before end later");
        assert!(ejection.is_ejected(start + seconds(9)));
        let back = start + seconds(10);
        assert!(!ejection.is_ejected(back));
        let shares =
            [0, 50, 99, 100].map(|after| ejection.share(FULL, back + seconds(after), eject.slow_return));
        assert_eq!(shares, [20, 110, 198, 200]);
    }

    #[test]
    fn a_server_that_fails_often_is_ejected_though_never_in_a_row() {
        let seconds = Duration::from_secs;
        let eject = Eject { failures: 0, percent: Some(50), min_requests: Some(10), ..Eject::default() };
        let start = Instant::now();
        // Failures with a response, and without one.
        for counted in [Counted::Yes, Counted::No] {
            let (mut ejection, mut responses, mut ejected) = (Ejection::default(), 0, Vec::new());
            for request in 0..11 {
                let is_failure = [1, 3, 5, 7, 9, 10].contains(&request);
                responses += u64::from(!is_failure || counted == Counted::Yes);
                match is_failure {
                    true => {
                        let now = start + seconds(request);
                        ejected.extend(ejection.failed(now, &eject, counted, responses).map(|_| request));
                    }
                    false => ejection.succeeded(),
                }
            }
            // The window begins with the first failure, request 1, so its tenth request is number 10.
            assert_eq!(ejected, [10], "{counted:?}");
        }
        let mut ejection = Ejection::default();
        for request in 0..100 {
            // Each window of ten seconds has four requests.
            let now = start + seconds(request * 5);
            assert_eq!(ejection.failed(now, &eject, Counted::Yes, 2 * (request + 1)), None);
        }
        let mut ejection = Ejection::default();
        for request in (0..100).step_by(3) {
            let failed = ejection.failed(start, &eject, Counted::Yes, request + 1);
            assert_eq!(failed, None, "a third is no half");
        }
    }

    #[test]
    fn each_ejection_in_a_row_is_longer() {
        let seconds = Duration::from_secs;
        let eject = Eject { failures: 1, period: seconds(100), slow_return: seconds(10), ..Eject::default() };
        let (mut ejection, mut now) = (Ejection::default(), Instant::now());
        let mut periods = Vec::new();
        for _ in 0..4 {
            let period = ejection.failed(now, &eject, Counted::No, 0).unwrap();
            periods.push(period.as_secs());
            now += period;
            assert!(!ejection.is_ejected(now));
        }
        assert_eq!(periods, [100, 200, 300, 300]);
        ejection.share(FULL, now + seconds(10), eject.slow_return);
        ejection.succeeded();
        assert_eq!(ejection.failed(now, &eject, Counted::No, 0), Some(seconds(100)));
    }
}
