//! One server, as one worker knows it.

use super::Pool;
use crate::config;
use std::time::{Duration, Instant};
use weir_tls::{Connector, PeerName};

/// One server, with this worker's connections to it.
#[derive(Debug)]
pub(crate) struct Server {
    pub config: config::Server,
    pub tls: Option<(Connector, PeerName)>,
    /// Its idle connections.
    pub pool: Pool,
    /// Connections that are not idle.
    pub in_flight: usize,
    /// Answers by the first digit of their status; 0 for none.
    pub answers: [u64; 6],
    /// Its part in the round.
    pub turn: i64,
    /// Failures in a row.
    failures: u32,
    /// How often it was ejected in a row.
    ejections: u32,
    standing: Standing,
    /// Its health checks fail.
    pub is_down: bool,
}

/// Whether it gets requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Standing {
    Good,
    /// None until then.
    Ejected {
        until: Instant,
    },
    /// Its share grows since then.
    Returning {
        since: Instant,
    },
}

impl Server {
    pub(crate) fn new(config: config::Server, tls: Option<(Connector, PeerName)>) -> Self {
        Self {
            config,
            tls,
            pool: Pool::default(),
            in_flight: 0,
            answers: [0; 6],
            turn: 0,
            failures: 0,
            ejections: 0,
            standing: Standing::Good,
            is_down: false,
        }
    }

    /// Whether another request may have a connection: an idle one, or a new one.
    #[inline]
    pub(crate) fn has_room(&self) -> bool {
        self.config.slots.as_ref().is_none_or(|slots| self.pool.len() > 0 || slots.has_room())
    }

    /// Whether it is neither down nor ejected now.
    pub(crate) fn is_available(&mut self, now: Instant) -> bool {
        match self.standing {
            _ if self.is_down => false,
            Standing::Ejected { until } if now < until => false,
            Standing::Ejected { until } => {
                self.standing = Standing::Returning { since: until };
                true
            }
            Standing::Good | Standing::Returning { .. } => true,
        }
    }

    /// Its share: the weight in hundredths, less while it returns.
    pub(crate) fn share(&mut self, now: Instant, slow_return: Duration) -> u64 {
        let full = u64::from(self.config.weight) * 100;
        let Standing::Returning { since } = self.standing else { return full };
        let gone = now.saturating_duration_since(since);
        if gone >= slow_return {
            self.standing = Standing::Good;
            return full;
        }
        let tenth = full / 10;
        let grown = (full - tenth) as u128 * gone.as_micros() / slow_return.as_micros().max(1);
        tenth + grown as u64
    }

    /// Counts an answer.
    pub(crate) fn count(&mut self, status: u16) {
        self.answers[usize::from(status / 100).min(5)] += 1;
    }

    /// It answered.
    pub(crate) fn succeeded(&mut self) {
        self.failures = 0;
        if self.standing == Standing::Good {
            self.ejections = 0;
        }
    }

    /// It failed; returns for how long it is ejected, if it is now.
    pub(crate) fn failed(&mut self, now: Instant, eject: &config::document::Eject) -> Option<Duration> {
        self.failures = self.failures.saturating_add(1);
        // While it returns, one failure is enough.
        let returning = matches!(self.standing, Standing::Returning { .. });
        let is_out = matches!(self.standing, Standing::Ejected { .. });
        if eject.failures == 0 || is_out || (self.failures < eject.failures && !returning) {
            return None;
        }
        let period = eject.period.saturating_mul(1 << self.ejections.min(16)).min(LONGEST.max(eject.period));
        self.ejections += 1;
        self.failures = 0;
        self.standing = Standing::Ejected { until: now + period };
        Some(period)
    }
}

/// The longest ejection, unless the first one is longer.
const LONGEST: Duration = Duration::from_secs(300);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::document::Eject;

    fn server() -> Server {
        let place: weir_transport::Place = "http://192.0.2.1".parse().unwrap();
        let config = config::Server {
            address: place.resolve().unwrap(),
            authority: place.authority(),
            place,
            name: None,
            weight: 2,
            backup: false,
            pool: config::document::Pool::default(),
            slots: None,
            announces: None,
            id: 0,
        };
        Server::new(config, None)
    }

    #[test]
    fn a_server_that_fails_in_a_row_is_ejected_and_returns_slowly() {
        let seconds = Duration::from_secs;
        let eject = Eject { failures: 3, period: seconds(10), slow_return: seconds(100) };
        let (mut server, start) = (server(), Instant::now());
        for _ in 0..2 {
            assert_eq!(server.failed(start, &eject), None);
        }
        server.succeeded();
        for _ in 0..2 {
            assert_eq!(server.failed(start, &eject), None);
        }
        assert!(server.is_available(start));
        assert_eq!(server.failed(start, &eject), Some(seconds(10)));
        assert_eq!(server.failed(start, &eject), None, "requests of before end later");
        assert!(!server.is_available(start + seconds(9)));
        let back = start + seconds(10);
        assert!(server.is_available(back));
        let shares = [0, 50, 99, 100].map(|after| server.share(back + seconds(after), eject.slow_return));
        assert_eq!(shares, [20, 110, 198, 200]);
    }

    #[test]
    fn each_ejection_in_a_row_is_longer() {
        let seconds = Duration::from_secs;
        let eject = Eject { failures: 1, period: seconds(100), slow_return: seconds(10) };
        let (mut server, mut now) = (server(), Instant::now());
        let mut periods = Vec::new();
        for _ in 0..4 {
            let period = server.failed(now, &eject).unwrap();
            periods.push(period.as_secs());
            now += period;
            assert!(server.is_available(now));
        }
        assert_eq!(periods, [100, 200, 300, 300]);
        server.share(now + seconds(10), eject.slow_return);
        server.succeeded();
        assert_eq!(server.failed(now, &eject), Some(seconds(100)));
    }
}
