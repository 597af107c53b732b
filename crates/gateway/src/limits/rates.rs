//! Limits on request rates: a token bucket for each client, or one for all clients of a route.

use super::ClientKey;
use super::shards::{SHARDS, Shards};
use crate::config::RateLimit;
use std::collections::HashMap;
use std::hash::{BuildHasher as _, RandomState};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The token buckets of one route. A bucket is stored as the instant at which it will be full again, so a full bucket
/// needs no entry.
#[derive(Debug)]
pub(crate) struct Rate {
    every: Duration,
    /// The time in which an empty bucket fills.
    depth: Duration,
    /// Whether all clients share one bucket.
    in_common: bool,
    shards: Shards<Shard>,
    networks: Networks,
}

/// The buckets of networks, for clients beyond the [`MOST`] that have individual buckets. Several networks may share a
/// bucket.
#[derive(Debug, Default)]
struct Networks {
    full_at: Mutex<HashMap<u64, Instant>>,
    key: RandomState,
}

#[derive(Debug, Default)]
struct Shard {
    full_at: HashMap<ClientKey, Instant>,
    /// The time of the last search for full buckets.
    swept: Option<Instant>,
}

impl Rate {
    pub(crate) fn new(limit: RateLimit) -> Self {
        let RateLimit { requests, per, burst, in_common } = limit;
        let every = per / requests.max(1);
        Self {
            every,
            depth: every * burst.max(1),
            in_common,
            shards: Shards::default(),
            networks: Networks::default(),
        }
    }

    /// Takes a token. Errors: the bucket is empty, and gets its next token after this time.
    pub(crate) fn take(&self, origin: ClientKey, now: Instant) -> Result<(), Duration> {
        let origin = if self.in_common { ClientKey::of(None) } else { origin };
        let mut shard = self.shards.of(origin);
        let known = shard.full_at.get(&origin).copied();
        let full_at = self.less_one(known, now)?;
        if known.is_none() && shard.full_at.len() >= MOST / SHARDS {
            shard.sweep(now, self.every);
            if shard.full_at.len() >= MOST / SHARDS {
                self.take_of_network(origin, now)?;
                shard.drop_one();
            }
        }
        shard.full_at.insert(origin, full_at);
        Ok(())
    }

    /// The instant at which a bucket will be full after one more token is taken. Errors: the bucket is empty, and gets
    /// its next token after this time.
    fn less_one(&self, full_at: Option<Instant>, now: Instant) -> Result<Instant, Duration> {
        let full_at = full_at.unwrap_or(now).max(now) + self.every;
        let empty_for = full_at.saturating_duration_since(now).saturating_sub(self.depth);
        if empty_for.is_zero() { Ok(full_at) } else { Err(empty_for) }
    }

    /// Takes a token from the client's network, since the table of clients is full. A client that is evicted from the
    /// table returns with a full bucket, so without this second limit, clients could evade theirs by evicting one
    /// another.
    #[cold]
    fn take_of_network(&self, origin: ClientKey, now: Instant) -> Result<(), Duration> {
        let Networks { full_at, key } = &self.networks;
        let place = key.hash_one(origin.network()) % MOST_NETWORKS;
        let mut buckets = full_at.lock().unwrap_or_else(PoisonError::into_inner);
        let full_at = self.less_one(buckets.get(&place).copied(), now)?;
        buckets.insert(place, full_at);
        Ok(())
    }
}

impl Shard {
    /// Drops full buckets, at most once per `every`, so that not every new client causes a search.
    fn sweep(&mut self, now: Instant, every: Duration) {
        if self.swept.is_none_or(|swept| now.saturating_duration_since(swept) >= every) {
            self.swept = Some(now);
            self.full_at.retain(|_, full_at| *full_at > now);
        }
    }

    /// Makes room by dropping the fullest of a few buckets: its client gains the fewest tokens.
    fn drop_one(&mut self) {
        let first = self.full_at.iter().take(8).min_by_key(|(_, full_at)| **full_at);
        if let Some(origin) = first.map(|(origin, _)| *origin) {
            self.full_at.remove(&origin);
        }
    }
}

/// The maximum number of clients with buckets of their own, per route: 2 MiB.
const MOST: usize = 32_768;
/// The number of buckets for networks. This number bounds memory, and the requests of an attacker with many networks.
const MOST_NETWORKS: u64 = 1024;

#[cfg(test)]
mod tests {
    use super::*;

    fn rate(requests: u32, per: u64, burst: u32, in_common: bool) -> Rate {
        Rate::new(RateLimit { requests, per: Duration::from_secs(per), burst, in_common })
    }

    fn origin(of: u32) -> ClientKey {
        ClientKey::of(Some(std::net::Ipv4Addr::from_bits(of).into()))
    }

    #[test]
    fn a_burst_at_once_then_one_by_one() {
        let (rate, start) = (rate(10, 1, 3, false), Instant::now());
        let at = |ms: u64| start + Duration::from_millis(ms);
        for _ in 0..3 {
            assert_eq!(rate.take(origin(1), start), Ok(()));
        }
        assert_eq!(rate.take(origin(1), start), Err(Duration::from_millis(100)));
        assert_eq!(rate.take(origin(2), start), Ok(()), "another client has a bucket of its own");
        assert_eq!(rate.take(origin(1), at(60)), Err(Duration::from_millis(40)));
        assert_eq!(rate.take(origin(1), at(100)), Ok(()));
        assert_eq!(rate.take(origin(1), at(100)), Err(Duration::from_millis(100)));
        // Long afterwards, the bucket is full, but holds no more than its burst.
        for _ in 0..3 {
            assert_eq!(rate.take(origin(1), at(60_000)), Ok(()));
        }
        assert!(rate.take(origin(1), at(60_000)).is_err());
    }

    #[test]
    fn all_clients_together() {
        let (rate, now) = (rate(1, 60, 1, true), Instant::now());
        assert_eq!(rate.take(origin(1), now), Ok(()));
        assert_eq!(rate.take(origin(2), now), Err(Duration::from_secs(60)));
    }

    #[test]
    fn full_buckets_make_room_for_new_ones_and_memory_has_a_bound() {
        let (rate, start) = (rate(1, 1, 1, false), Instant::now());
        let known = |rate: &Rate| -> usize { rate.shards.all().map(|shard| shard.full_at.len()).sum() };
        for round in 0..2 {
            let at = start + Duration::from_secs(2 * round);
            for client in 0..2 * MOST as u32 {
                let taken = rate.take(origin((round as u32) << 24 | client), at);
                assert!(taken.is_ok() || client as usize > MOST / 2);
            }
            assert_eq!(known(&rate), MOST);
        }
    }

    /// Regression test: 2060 networks of one site filled a shard, and all other clients in that shard had no limit.
    #[test]
    fn beyond_the_clients_that_can_be_told_apart_networks_have_a_limit() {
        let (rate, now) = (rate(2, 3600, 2, false), Instant::now());
        let ipv6 = |site: u128, network: u128| {
            let bits = (0x2001_0db8 << 96) + (site << 80) + (network << 64);
            ClientKey::of(Some(std::net::Ipv6Addr::from_bits(bits).into()))
        };
        let passed =
            |site: u128| (0..1 << 16).filter(|network| rate.take(ipv6(site, *network), now).is_ok()).count();
        // The limit admits the clients with buckets of their own, and two more requests of the site.
        assert_eq!(passed(1).saturating_sub(MOST), 2);
        // New clients share their site's bucket; known clients have a token left.
        for _ in 0..3 {
            assert!(passed(1) <= MOST);
        }
        assert_eq!(passed(1), 0);
        // Other sites are not affected, except for about one in a thousand.
        let others = (2..102).filter(|site| rate.take(ipv6(*site, 0), now).is_ok()).count();
        assert!(others >= 95, "{others}");
        // A known client keeps its own limit.
        let known = ipv6(7, 0);
        let more = (0..3).filter(|_| rate.take(known, now).is_ok()).count();
        assert!(more <= 2, "{more}");
    }
}
