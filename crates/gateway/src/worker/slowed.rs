//! Clients of HTTP/2 that reset many requests. The worker serves them once in a millisecond, so that others hardly wait for them.

use crate::keys::ClientId;
use std::time::{Duration, Instant};

/// Clients whose next frames wait.
#[derive(Debug, Default)]
pub(crate) struct Slowed {
    clients: Vec<ClientId>,
    /// The time of their next turn; `None` if there are none.
    until: Option<Instant>,
}

impl Slowed {
    pub(super) fn add(&mut self, id: ClientId, now: Instant) {
        self.until.get_or_insert(now + PAUSE);
        self.clients.push(id);
    }

    /// The time of their next turn; `None` if there are none.
    pub(super) fn until(&self) -> Option<Instant> {
        self.until
    }

    /// Moves them to `resumable` when it is their turn.
    #[inline]
    pub(super) fn resume(&mut self, now: Instant, resumable: &mut Vec<ClientId>) {
        if self.until.is_some_and(|until| until <= now) {
            self.until = None;
            resumable.append(&mut self.clients);
        }
    }
}

const PAUSE: Duration = Duration::from_millis(1);
