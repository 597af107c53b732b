//! A request that waits for a stream.

use std::time::Instant;

/// A request before it has a stream, for the first time or again.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pending {
    pub(super) planned: Instant,
    /// The start of its wait for a stream.
    pub(super) since: Instant,
    /// Its position in the mix; `None` before its first stream.
    pub(super) place: Option<u64>,
    /// The number of refusals by the server.
    pub(super) refusals: u32,
}

/// Refusals that a request survives: a server that refuses it more often is overloaded.
const MOST_REFUSALS: u32 = 10;

impl Pending {
    pub(super) fn new(planned: Instant) -> Self {
        Self { planned, since: planned, place: None, refusals: 0 }
    }

    /// The request after a refusal at `now`; `None` after too many refusals.
    pub(super) fn again(self, now: Instant) -> Option<Self> {
        let refusals = self.refusals + 1;
        (refusals <= MOST_REFUSALS).then_some(Self { since: now, refusals, ..self })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn a_retry_keeps_its_plan_until_there_are_too_many_refusals() {
        let planned = Instant::now();
        let mut pending = Pending { place: Some(7), ..Pending::new(planned) };
        for number in 1..=10 {
            let now = planned + Duration::from_secs(number);
            pending = pending.again(now).unwrap();
            assert_eq!((pending.planned, pending.since, pending.place), (planned, now, Some(7)));
        }
        assert!(pending.again(planned).is_none());
    }
}
