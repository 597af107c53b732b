//! The choice of a connection for a request.

use std::collections::BTreeMap;
use weir_reactor::Key;

/// The connections that take another stream, the least loaded first, and among equals the one with the oldest rank. So
/// every connection gets requests at any rate, and the load spreads over all server workers.
#[derive(Debug, Default)]
pub(super) struct Balance {
    ranks: BTreeMap<Rank, Key>,
    next: u64,
}

/// The number of a connection's streams, and the number of the last change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Rank {
    load: u32,
    since: u64,
}

impl Balance {
    pub(super) fn least(&self) -> Option<Key> {
        self.ranks.first_key_value().map(|(_, key)| *key)
    }

    /// Sets the load of the connection with this `rank`; `None` if the connection takes no stream.
    pub(super) fn set(&mut self, key: Key, rank: &mut Option<Rank>, load: Option<u32>) {
        if rank.map(|rank| rank.load) == load {
            return;
        }
        if let Some(rank) = rank.take() {
            self.ranks.remove(&rank);
        }
        if let Some(load) = load {
            self.next += 1;
            let new = Rank { load, since: self.next };
            self.ranks.insert(new, key);
            *rank = Some(new);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_loaded_and_longest_idle_connection_is_next() {
        let mut balance = Balance::default();
        let keys = [0, 1, 2].map(|index| Key::fixed(1, index));
        let mut ranks = [None; 3];
        let mut set = |balance: &mut Balance, index: usize, load| {
            balance.set(keys[index], &mut ranks[index], load);
            balance.least().map(|least| keys.iter().position(|key| *key == least).unwrap())
        };
        assert_eq!(set(&mut balance, 0, Some(0)), Some(0));
        assert_eq!(set(&mut balance, 1, Some(0)), Some(0));
        assert_eq!(set(&mut balance, 2, Some(1)), Some(0));
        assert_eq!(set(&mut balance, 0, Some(1)), Some(1));
        assert_eq!(set(&mut balance, 1, None), Some(2), "it was at 1 before connection 0");
        assert_eq!(set(&mut balance, 0, Some(0)), Some(0));
        assert_eq!(set(&mut balance, 1, Some(0)), Some(0));
        assert_eq!(set(&mut balance, 0, Some(0)), Some(0), "an equal load keeps the rank");
        assert_eq!(set(&mut balance, 0, None), Some(1));
        assert_eq!(set(&mut balance, 1, None), Some(2));
        assert_eq!(set(&mut balance, 2, None), None);
        assert!(balance.ranks.is_empty());
    }
}
