//! The server's stored sessions: for TLS 1.2 clients without tickets, and for servers that keep sessions in memory
//! instead of in tickets.
//!
//! All cores share the store, because the kernel may assign a returning client to any core. The store is sharded by
//! session ID and holds a lock for one lookup, so that cores rarely contend. A full shard evicts its oldest session in
//! constant time.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rustls::server::StoresServerSessions;
use rustls::time_provider::TimeProvider;

use crate::notes::{self, Origin};

/// The number of shards: a power of two well above the number of cores, so that two cores rarely need the same shard.
const SHARDS: usize = 64;
/// The default maximum number of sessions. A session of a client without a certificate takes about 150 bytes, about 300
/// with overhead, so a full store takes 10 MiB.
pub(crate) const SESSIONS: usize = 32_768;

/// A bounded store of sessions by ID.
pub(crate) struct SessionStore {
    shards: Box<[Mutex<Shard>]>,
    /// The maximum number of sessions per shard.
    most: usize,
    /// The lifetime of a session, in seconds.
    lifetime: u64,
    time: Arc<dyn TimeProvider>,
}

/// `order` lists the ID of every session in `sessions`, oldest first. It may also list IDs whose sessions `take` has
/// removed. Its length never exceeds `SessionStore::most`.
#[derive(Default)]
struct Shard {
    sessions: HashMap<Arc<[u8]>, Stored>,
    order: VecDeque<Arc<[u8]>>,
}

struct Stored {
    value: Vec<u8>,
    /// The end of the session's lifetime, in seconds of the wall clock.
    expires: u64,
}

impl SessionStore {
    /// A store of `sessions` sessions, rounded up to a multiple of the number of shards, each valid for
    /// `lifetime` (RFC 5246 F.1.4 suggests at most 24 hours).
    pub(crate) fn new(sessions: usize, lifetime: Duration, time: Arc<dyn TimeProvider>) -> Self {
        Self {
            shards: (0..SHARDS).map(|_| Mutex::default()).collect(),
            most: sessions.div_ceil(SHARDS).max(1),
            lifetime: lifetime.as_secs(),
            time,
        }
    }

    /// Runs `act` with the shard of `id`, chosen by the first bytes of `id`: Weir's IDs are random, so the shards fill
    /// evenly, and foreign IDs match no session.
    fn with_shard<T>(&self, id: &[u8], act: impl FnOnce(&mut Shard) -> T) -> T {
        let index = id.iter().take(2).fold(0, |index, byte| index << 8 | usize::from(*byte)) % SHARDS;
        act(&mut self.shards[index].lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn now(&self) -> Option<u64> {
        Some(self.time.current_time()?.as_secs())
    }

    #[cfg(test)]
    fn len(&self) -> usize {
        self.shards.iter().map(|shard| shard.lock().unwrap().sessions.len()).sum()
    }
}

impl Shard {
    fn put(&mut self, id: Arc<[u8]>, stored: Stored, most: usize) {
        if self.sessions.insert(id.clone(), stored).is_some() {
            return;
        }
        if self.order.len() == most
            && let Some(oldest) = self.order.pop_front()
        {
            self.sessions.remove(&oldest);
        }
        self.order.push_back(id);
    }
}

impl StoresServerSessions for SessionStore {
    fn put(&self, id: Vec<u8>, value: Vec<u8>) -> bool {
        let Some(now) = self.now() else { return false };
        let stored = Stored { value, expires: now.saturating_add(self.lifetime) };
        self.with_shard(&id, |shard| shard.put(Arc::from(id.as_slice()), stored, self.most));
        true
    }

    fn get(&self, id: &[u8]) -> Option<Vec<u8>> {
        let now = self.now()?;
        let found = self.with_shard(id, |shard| {
            let stored = shard.sessions.get(id)?;
            (now < stored.expires).then(|| stored.value.clone())
        })?;
        notes::origin(Origin::SessionId);
        Some(found)
    }

    fn take(&self, id: &[u8]) -> Option<Vec<u8>> {
        let now = self.now()?;
        let stored = self.with_shard(id, |shard| shard.sessions.remove(id))?;
        (now < stored.expires).then_some(stored.value)
    }

    fn can_cache(&self) -> bool {
        true
    }
}

impl fmt::Debug for SessionStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SessionStore").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SystemTime;

    fn store() -> SessionStore {
        SessionStore::new(SESSIONS, crate::ticket_keys::LIFETIME, Arc::new(SystemTime))
    }

    fn id(number: u32) -> Vec<u8> {
        // Multiplication spreads the IDs over the shards like random ones.
        let mut id = number.wrapping_mul(0x9e37_79b9).to_be_bytes().to_vec();
        id.extend_from_slice(&number.to_be_bytes());
        id
    }

    #[test]
    fn the_store_is_bounded_and_forgets_the_oldest() {
        let store = store();
        let most = SESSIONS as u32;
        for number in 0..2 * most {
            assert!(store.put(id(number), vec![1; 8]));
        }
        assert_eq!(store.len(), most as usize);
        assert!((0..100).all(|number| store.get(&id(number)).is_none()));
        assert!((2 * most - 100..2 * most).all(|number| store.get(&id(number)).is_some()));
    }

    /// Taking a session leaves its ID in `order`; these IDs must not accumulate.
    #[test]
    fn taking_leaves_nothing_behind() {
        let store = store();
        for number in 0..100_000 {
            assert!(store.put(id(number), vec![1]));
            assert_eq!(store.take(&id(number)), Some(vec![1]));
            assert_eq!(store.take(&id(number)), None);
        }
        assert_eq!(store.len(), 0);
        assert!(store.shards.iter().all(|shard| shard.lock().unwrap().order.len() <= store.most));
    }

    #[test]
    fn any_identifier_may_be_asked_for() {
        let store = store();
        for id in [&[][..], &[1], &[255, 255], &[7; 300]] {
            assert_eq!(store.get(id), None);
        }
    }
}
