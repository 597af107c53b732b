//! What is kept of clients, for all workers: in parts, of which they seldom want the same one at the same time.

use super::Origin;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The parts, each with the clients that fall to it.
#[derive(Debug, Default)]
pub(super) struct Shards<T>([Mutex<T>; SHARDS]);

impl<T> Shards<T> {
    /// The part that a client falls to.
    pub(super) fn of(&self, origin: Origin) -> MutexGuard<'_, T> {
        self.0[index(origin)].lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// All parts, one after the other.
    #[cfg(test)]
    pub(super) fn all(&self) -> impl Iterator<Item = MutexGuard<'_, T>> {
        self.0.iter().map(|shard| shard.lock().unwrap())
    }
}

/// How many parts there are.
pub(super) const SHARDS: usize = 16;

fn index(Origin(bits): Origin) -> usize {
    // Neighbours come together: the low bits of an IPv4 address and those of an IPv6 network.
    let mixed = ((bits >> 64) as u64 ^ bits as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (mixed >> 32) as usize % SHARDS
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::net::Ipv4Addr;

    #[test]
    fn neighbours_do_not_crowd_in_one_part() {
        let address = |last| Some(Ipv4Addr::new(192, 0, 2, last).into());
        let indexes: BTreeSet<_> = (0..=255).map(|last| index(Origin::of(address(last)))).collect();
        assert_eq!(indexes.len(), SHARDS);
    }
}
