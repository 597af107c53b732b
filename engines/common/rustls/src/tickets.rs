//! Ticket keys, with a watch on what runs inside them.

use std::fmt;
use std::sync::Arc;
use std::time::Instant;

use rustls::server::ProducesTickets;
use weir_engine::notes::{self, Lock};

/// Ticket keys that note how long each call is inside.
pub(crate) struct Watched(pub(crate) Arc<dyn ProducesTickets>);

impl ProducesTickets for Watched {
    fn enabled(&self) -> bool {
        self.0.enabled()
    }

    fn lifetime(&self) -> u32 {
        self.0.lifetime()
    }

    fn encrypt(&self, plain: &[u8]) -> Option<Vec<u8>> {
        let start = Instant::now();
        let ticket = self.0.encrypt(plain);
        notes::held(Lock::TicketKeys, start);
        ticket
    }

    fn decrypt(&self, cipher: &[u8]) -> Option<Vec<u8>> {
        let start = Instant::now();
        let plain = self.0.decrypt(cipher);
        notes::held(Lock::TicketKeys, start);
        plain
    }
}

impl fmt::Debug for Watched {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Watched")
    }
}
