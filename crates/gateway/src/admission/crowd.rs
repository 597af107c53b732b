//! How many connections each client has, over all workers.

use super::Origin;
use super::shards::Shards;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

/// Connections by client. Those of clients without any take no room, so there are never more entries than connections.
#[derive(Debug, Default)]
pub(crate) struct Crowd(Shards<HashMap<Origin, u32>>);

/// One connection of a client, no longer counted when this is dropped.
#[derive(Debug)]
pub(crate) struct Present {
    crowd: Arc<Crowd>,
    origin: Origin,
}

impl Crowd {
    /// Counts another connection, unless the client has `most` already.
    pub(crate) fn enter(self: &Arc<Self>, origin: Origin, most: u32) -> Option<Present> {
        let mut shard = self.0.of(origin);
        let open = shard.entry(origin).or_insert(0);
        if *open >= most {
            return None;
        }
        *open += 1;
        Some(Present { crowd: Arc::clone(self), origin })
    }
}

impl Drop for Present {
    fn drop(&mut self) {
        if let Entry::Occupied(mut open) = self.crowd.0.of(self.origin).entry(self.origin) {
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
        let crowd = Arc::new(Crowd::default());
        let [one, other] = ["192.0.2.1", "192.0.2.2"].map(|text| Origin::of(Some(text.parse().unwrap())));
        let first = crowd.enter(one, 2);
        let second = crowd.enter(one, 2);
        assert!(first.is_some() && second.is_some() && crowd.enter(one, 2).is_none());
        assert!(crowd.enter(other, 2).is_some(), "others are not affected");
        drop(first);
        let third = crowd.enter(one, 2);
        assert!(third.is_some() && crowd.enter(one, 2).is_none());
        // The limit is another one since.
        assert!(crowd.enter(one, 3).is_some());
        drop((second, third));
        assert!(crowd.0.all().all(|shard| shard.is_empty()));
    }
}
