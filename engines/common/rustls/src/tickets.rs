//! Ticket keys, with a watch on what runs inside them.

use std::sync::Arc;

use rustls::server::ProducesTickets;
use weir_engine::notes::{self, Lock};

/// Ticket keys that note how long each call is inside.
#[cfg_attr(not(feature = "until-0-21"), derive(Debug))]
pub(crate) struct Watched(pub(crate) Arc<dyn ProducesTickets>);

impl ProducesTickets for Watched {
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
