//! HTTP/2 clients that reset many requests, or send many frames at once that cause no event. The worker serves each
//! such client at most once per millisecond, so that it hardly delays other clients.

use crate::keys::ClientId;
use std::time::{Duration, Instant};

#[derive(Debug, Default)]
pub(crate) struct Slowed {
    clients: Vec<ClientId>,
    until: Option<Instant>,
}

impl Slowed {
    pub(super) fn add(&mut self, id: ClientId, now: Instant) {
        self.until.get_or_insert(now + PAUSE);
        self.clients.push(id);
    }

    /// The time of the clients' next turn; `None` without clients.
    pub(super) fn until(&self) -> Option<Instant> {
        self.until
    }

    /// Moves the clients to `resumable` when it is their turn.
    #[inline]
    pub(super) fn resume(&mut self, now: Instant, resumable: &mut Vec<ClientId>) {
        if self.until.is_some_and(|until| until <= now) {
            self.until = None;
            resumable.append(&mut self.clients);
        }
    }
}

const PAUSE: Duration = Duration::from_millis(1);
