//! How many requests a client may make in a time: a token bucket for each.

use super::Origin;
use super::shards::{SHARDS, Shards};
use std::collections::HashMap;
use std::time::{Duration, Instant};

/// The token buckets of one route. A bucket is one instant, at which it will be full again; a full one takes no room.
#[derive(Debug)]
pub(crate) struct Rate {
    /// The time in which one token comes.
    every: Duration,
    /// The time in which an empty bucket fills.
    depth: Duration,
    /// All clients have one bucket together.
    in_common: bool,
    shards: Shards<Shard>,
}

#[derive(Debug, Default)]
struct Shard {
    full_at: HashMap<Origin, Instant>,
    /// Looked through for full ones, not before.
    swept: Option<Instant>,
}

impl Rate {
    /// `requests` in the time `per`, and `burst` of them at once; both are at least 1. With `in_common`, of all clients together.
    pub(crate) fn new(requests: u32, per: Duration, burst: u32, in_common: bool) -> Self {
        let every = per / requests.max(1);
        Self { every, depth: every * burst.max(1), in_common, shards: Shards::default() }
    }

    /// Takes a token. Errors: the bucket is empty; the time until the next token.
    pub(crate) fn take(&self, origin: Origin, now: Instant) -> Result<(), Duration> {
        let origin = if self.in_common { Origin::of(None) } else { origin };
        let mut shard = self.shards.of(origin);
        let known = shard.full_at.get(&origin).copied();
        let full_at = known.unwrap_or(now).max(now) + self.every;
        let empty_for = full_at.saturating_duration_since(now).saturating_sub(self.depth);
        if !empty_for.is_zero() {
            return Err(empty_for);
        }
        if known.is_none() && shard.full_at.len() >= MOST / SHARDS {
            shard.sweep(now, self.every);
            if shard.full_at.len() >= MOST / SHARDS {
                // More clients than can be told apart: those that are new are let in.
                return Ok(());
            }
        }
        shard.full_at.insert(origin, full_at);
        Ok(())
    }
}

impl Shard {
    /// Drops full buckets: at most once in the time of a token, so that a crowd of clients costs no search for each.
    fn sweep(&mut self, now: Instant, every: Duration) {
        if self.swept.is_none_or(|swept| now.saturating_duration_since(swept) >= every) {
            self.swept = Some(now);
            self.full_at.retain(|_, full_at| *full_at > now);
        }
    }
}

/// Clients that a route tells apart at one time: 2 MiB.
const MOST: usize = 32_768;

#[cfg(test)]
mod tests {
    use super::*;

    fn origin(of: u32) -> Origin {
        Origin::of(Some(std::net::Ipv4Addr::from_bits(of).into()))
    }

    #[test]
    fn a_burst_at_once_then_one_by_one() {
        let (rate, start) = (Rate::new(10, Duration::from_secs(1), 3, false), Instant::now());
        let at = |ms: u64| start + Duration::from_millis(ms);
        for _ in 0..3 {
            assert_eq!(rate.take(origin(1), start), Ok(()));
        }
        assert_eq!(rate.take(origin(1), start), Err(Duration::from_millis(100)));
        assert_eq!(rate.take(origin(2), start), Ok(()), "another client has a bucket of its own");
        assert_eq!(rate.take(origin(1), at(60)), Err(Duration::from_millis(40)));
        assert_eq!(rate.take(origin(1), at(100)), Ok(()));
        assert_eq!(rate.take(origin(1), at(100)), Err(Duration::from_millis(100)));
        // Long after, it is full, and no fuller.
        for _ in 0..3 {
            assert_eq!(rate.take(origin(1), at(60_000)), Ok(()));
        }
        assert!(rate.take(origin(1), at(60_000)).is_err());
    }

    #[test]
    fn all_clients_together() {
        let (rate, now) = (Rate::new(1, Duration::from_secs(60), 1, true), Instant::now());
        assert_eq!(rate.take(origin(1), now), Ok(()));
        assert_eq!(rate.take(origin(2), now), Err(Duration::from_secs(60)));
    }

    #[test]
    fn full_buckets_make_room_for_new_ones_and_memory_has_a_bound() {
        let (rate, start) = (Rate::new(1, Duration::from_secs(1), 1, false), Instant::now());
        let known = |rate: &Rate| -> usize { rate.shards.all().map(|shard| shard.full_at.len()).sum() };
        for client in 0..2 * MOST as u32 {
            assert_eq!(rate.take(origin(client), start), Ok(()));
        }
        assert_eq!(known(&rate), MOST);
        let later = start + Duration::from_secs(2);
        for client in 0..2 * MOST as u32 {
            assert_eq!(rate.take(origin(client + (1 << 24)), later), Ok(()));
        }
        assert_eq!(known(&rate), MOST);
        assert!(rate.take(origin(1 << 24), later).is_err(), "the newer ones are known");
    }
}
