//! A connection's delayed responses.

use std::collections::BTreeSet;
use std::time::Instant;
use weir_http2::StreamNo;

#[derive(Debug, Default)]
pub(super) struct Delays {
    streams: BTreeSet<(Instant, StreamNo)>,
    /// The earliest scheduled visit. Visits cannot be cancelled, so scheduling one in every turn would accumulate them.
    armed: Option<Instant>,
}

impl Delays {
    pub(super) fn add(&mut self, until: Instant, stream: StreamNo) {
        self.streams.insert((until, stream));
    }

    pub(super) fn remove(&mut self, until: Instant, stream: StreamNo) {
        self.streams.remove(&(until, stream));
    }

    pub(super) fn is_empty(&self) -> bool {
        self.streams.is_empty()
    }

    /// Takes a stream whose delay is over.
    pub(super) fn next_due(&mut self, now: Instant) -> Option<StreamNo> {
        let (until, _) = self.streams.first()?;
        if *until > now {
            return None;
        }
        self.streams.pop_first().map(|(_, stream)| stream)
    }

    /// The time of the next visit; `None` if an earlier one is scheduled.
    pub(super) fn wake(&mut self, now: Instant) -> Option<Instant> {
        self.armed = self.armed.filter(|at| *at > now);
        let (next, _) = *self.streams.first()?;
        if self.armed.is_some_and(|armed| armed <= next) {
            return None;
        }
        self.armed = Some(next);
        self.armed
    }
}
