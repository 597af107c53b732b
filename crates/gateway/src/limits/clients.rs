//! The limit of connections per client, across all workers.

use super::ClientKey;
use super::shards::Shards;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

/// Counts connections by client. Clients without connections have no entry, so the memory is bounded by the number of
/// connections.
#[derive(Debug, Default)]
pub(crate) struct ConnectionLimiter(Shards<HashMap<ClientKey, u32>>);

/// Counts one connection of a client until this value is dropped.
#[derive(Debug)]
pub(crate) struct Permit {
    limiter: Arc<ConnectionLimiter>,
    client: ClientKey,
}

impl ConnectionLimiter {
    /// Counts another connection; `None` if the client already has `most`.
    pub(crate) fn admit(self: &Arc<Self>, client: ClientKey, most: u32) -> Option<Permit> {
        let mut shard = self.0.of(client);
        let open = shard.entry(client).or_insert(0);
        if *open >= most {
            return None;
        }
        *open += 1;
        Some(Permit { limiter: Arc::clone(self), client })
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        if let Entry::Occupied(mut open) = self.limiter.0.of(self.client).entry(self.client) {
            match *open.get() {
                0 | 1 => drop(open.remove()),
                _ => *open.get_mut() -= 1,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_has_as_many_as_it_may_and_leaves_no_trace() {
        let limiter = Arc::new(ConnectionLimiter::default());
        let [one, other] = ["192.0.2.1", "192.0.2.2"].map(|text| ClientKey::of(Some(text.parse().unwrap())));
        let first = limiter.admit(one, 2);
        let second = limiter.admit(one, 2);
        assert!(first.is_some() && second.is_some() && limiter.admit(one, 2).is_none());
        assert!(limiter.admit(other, 2).is_some(), "others are not affected");
        drop(first);
        let third = limiter.admit(one, 2);
        assert!(third.is_some() && limiter.admit(one, 2).is_none());
        // A reload may have raised the limit.
        assert!(limiter.admit(one, 3).is_some());
        drop((second, third));
        assert!(limiter.0.all().all(|shard| shard.is_empty()));
    }
}
