//! Timing the state shared by the server's threads.

use std::sync::Arc;

use rustls::server::{ProducesTickets, StoresServerSessions};
use weir_engine::notes::{self, Lock};

/// A session store that times each call.
#[cfg_attr(not(feature = "until-0-21"), derive(Debug))]
pub(crate) struct Store(pub(crate) Arc<dyn StoresServerSessions>);

impl StoresServerSessions for Store {
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

/// Ticket keys that time each call.
#[cfg_attr(not(feature = "until-0-21"), derive(Debug))]
pub(crate) struct Tickets(pub(crate) Arc<dyn ProducesTickets>);

impl ProducesTickets for Tickets {
    fn enabled(&self) -> bool {
        self.0.enabled()
    }

    fn lifetime(&self) -> u32 {
        self.0.lifetime()
    }

    fn encrypt(&self, plain: &[u8]) -> Option<Vec<u8>> {
        notes::held(Lock::TicketKeys, || self.0.encrypt(plain))
    }

    fn decrypt(&self, cipher: &[u8]) -> Option<Vec<u8>> {
        notes::held(Lock::TicketKeys, || self.0.decrypt(cipher))
    }
}
