//! Limits on the reuse of a server connection: its age, its number of requests, its idle timeout.

use super::mix;
use crate::config::document::Pool;
use std::time::{Duration, Instant};

/// A connection's age and use, and the server's idle timeout.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Life {
    pub dialled: Instant,
    /// Requests completed on the connection.
    pub requests: u32,
    /// The server's idle timeout, from the `Keep-Alive` field of a response.
    pub keep_alive_hint: Option<Duration>,
    jitter: Jitter,
}

/// The amount, up to a tenth, by which a connection's limits are reduced, so that connections dialled together are not
/// redialled together. The maximum, 255 / [`PARTS`], is just below a tenth.
#[derive(Clone, Copy, Debug)]
struct Jitter(u8);

const PARTS: u32 = 2560;

/// The time by which the gateway closes an idle connection before its server does, since a request sent during the
/// server's close would be lost. One second is far longer than a network delay, and short compared with the usual
/// timeout of 5 s.
const AHEAD: Duration = Duration::from_secs(1);

impl Life {
    /// The life of the worker's connection number `nth`, dialled at `now`.
    pub(crate) fn begins(nth: u64, now: Instant) -> Self {
        Self { dialled: now, requests: 0, keep_alive_hint: None, jitter: Jitter::of(nth) }
    }

    /// Whether the connection has reached its maximum age or number of requests.
    pub(crate) fn is_used_up(&self, pool: &Pool, now: Instant) -> bool {
        pool.max_requests.is_some_and(|most| self.requests >= self.jitter.requests(most))
            || pool
                .max_age
                .is_some_and(|most| now.saturating_duration_since(self.dialled) >= self.jitter.age(most))
    }

    /// The idle timeout: `most`, reduced if necessary to end before the server's timeout.
    pub(crate) fn idle(&self, most: Duration) -> Duration {
        self.keep_alive_hint.map_or(most, |kept| most.min(kept.saturating_sub(AHEAD).max(kept / 2)))
    }
}

impl Jitter {
    fn of(nth: u64) -> Self {
        // `mix` maps 0 to 0, so the constant gives a connection with number 0 a jitter, too.
        Self((mix(nth.wrapping_add(0x9e37_79b9_7f4a_7c15)) >> 56) as u8)
    }

    /// The maximum number of requests: `most`, reduced by at most a tenth.
    fn requests(self, most: u32) -> u32 {
        let less = u64::from(most) * u64::from(self.0) / u64::from(PARTS);
        most - less as u32
    }

    /// The maximum age: `most`, reduced by at most a tenth.
    fn age(self, most: Duration) -> Duration {
        most - most / PARTS * u32::from(self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn connections_end_at_different_times_within_a_tenth() {
        let (mut requests, mut ages) = (BTreeSet::new(), BTreeSet::new());
        for nth in 0..1000 {
            let jitter = Jitter::of(nth);
            requests.insert(jitter.requests(10_000));
            ages.insert(jitter.age(Duration::from_secs(3600)));
        }
        assert!(requests.len() > 200 && ages.len() > 200, "{} {}", requests.len(), ages.len());
        assert!(requests.iter().all(|most| (9000..=10_000).contains(most)));
        assert!(ages.iter().all(|age| (3240..=3600).contains(&age.as_secs())));
    }

    #[test]
    fn small_and_large_limits_hold() {
        for nth in 0..1000 {
            assert_eq!(Jitter::of(nth).requests(9), 9);
            assert!(Jitter::of(nth).requests(u32::MAX) >= u32::MAX / 10 * 9);
            assert!(Jitter::of(nth).age(Duration::MAX) >= Duration::MAX / 10 * 9);
        }
    }

    #[test]
    fn an_idle_connection_is_closed_before_its_server_closes_it() {
        let mut life = Life::begins(0, Instant::now());
        for (kept, idle) in
            [(None, 50.0), (Some(120), 50.0), (Some(5), 4.0), (Some(2), 1.0), (Some(1), 0.5), (Some(0), 0.0)]
        {
            life.keep_alive_hint = kept.map(Duration::from_secs);
            assert_eq!(life.idle(Duration::from_secs(50)).as_secs_f64(), idle, "{kept:?}");
        }
    }
}
