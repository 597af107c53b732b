//! A table by client that all workers share. Each shard has its own lock, so workers seldom wait for each other.

use super::ClientKey;
use std::hash::{BuildHasher as _, RandomState};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A table that is divided into shards. A random key assigns clients to shards, so an attacker cannot fill a chosen
/// one.
#[derive(Debug, Default)]
pub(super) struct Shards<T> {
    parts: [Mutex<T>; SHARDS],
    key: RandomState,
}

impl<T> Shards<T> {
    /// Locks the shard of a client.
    pub(super) fn of(&self, origin: ClientKey) -> MutexGuard<'_, T> {
        self.parts[self.index(origin)].lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[cfg(test)]
    pub(super) fn all(&self) -> impl Iterator<Item = MutexGuard<'_, T>> {
        self.parts.iter().map(|shard| shard.lock().unwrap())
    }

    fn index(&self, origin: ClientKey) -> usize {
        self.key.hash_one(origin) as usize % SHARDS
    }
}

pub(super) const SHARDS: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

    #[test]
    fn which_part_a_client_falls_to_cannot_be_foreseen() {
        let neighbours: [fn(u128) -> IpAddr; 3] = [
            |number| Ipv4Addr::from_bits(0xc000_0200 + number as u32).into(),
            |number| Ipv6Addr::from_bits((0x2001_0db8 << 96) + (number << 64)).into(),
            // These clients filled one shard before a random key assigned them.
            |number| Ipv6Addr::from_bits((0x2001_0db8 << 96) + ((number * 0x1_1b1b) << 64)).into(),
        ];
        for neighbour in neighbours {
            let (one, other) = (Shards::<()>::default(), Shards::<()>::default());
            let of = |shards: &Shards<()>| -> Vec<_> {
                (0..=255).map(|number| shards.index(ClientKey::of(Some(neighbour(number))))).collect()
            };
            assert_eq!(of(&one).into_iter().collect::<BTreeSet<_>>().len(), SHARDS);
            assert_ne!(of(&one), of(&other));
        }
    }
}
