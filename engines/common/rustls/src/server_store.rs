//! The server's session store, with a watch on what runs inside it.

use std::sync::Arc;

use rustls::server::StoresServerSessions;
use weir_engine::notes::{self, Lock};

/// A store that notes how long each call is inside.
#[cfg_attr(not(feature = "until-0-21"), derive(Debug))]
pub(crate) struct Watched(pub(crate) Arc<dyn StoresServerSessions>);

impl StoresServerSessions for Watched {
    fn put(&self, key: Vec<u8>, value: Vec<u8>) -> bool {
        notes::held(Lock::SessionStore, || self.0.put(key, value))
    }

    fn get(&self, key: &[u8]) -> Option<Vec<u8>> {
        notes::held(Lock::SessionStore, || self.0.get(key))
    }

    fn take(&self, key: &[u8]) -> Option<Vec<u8>> {
        notes::held(Lock::SessionStore, || self.0.take(key))
    }

    fn can_cache(&self) -> bool {
        self.0.can_cache()
    }
}
