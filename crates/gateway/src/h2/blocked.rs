//! The time during which streams wait for flow-control windows.

use std::time::{Duration, Instant};

/// The number of streams whose output waits for a window, and their waiting time since the last count. The clock does
/// not advance within a turn, so one count at the turn's end suffices.
#[derive(Debug, Default)]
pub(super) struct BlockedStreams {
    now: u32,
    /// The number of blocked streams at the last count, and the time of that count.
    since: Option<(u32, Instant)>,
}

impl BlockedStreams {
    /// Sets whether one stream is blocked. `state` is the stream's current state.
    #[inline]
    pub(super) fn set(&mut self, state: &mut bool, is_blocked: bool) {
        self.now = self.now + u32::from(is_blocked) - u32::from(*state);
        *state = is_blocked;
    }

    /// Takes the time since the last call, summed over the streams that were blocked then.
    #[inline]
    pub(super) fn take_time(&mut self, now: Instant) -> Duration {
        let waited = self.since.map_or(Duration::ZERO, |(streams, since)| {
            now.saturating_duration_since(since).saturating_mul(streams)
        });
        self.since = (self.now > 0).then_some((self.now, now));
        waited
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_of_each_blocked_stream_counts() {
        let start = Instant::now();
        let mut blocked = BlockedStreams::default();
        let (mut first, mut second) = (false, false);
        let take = |blocked: &mut BlockedStreams, seconds| {
            blocked.take_time(start + Duration::from_secs(seconds)).as_secs()
        };
        assert_eq!(take(&mut blocked, 10), 0);
        blocked.set(&mut first, true);
        // The stream was not blocked before this turn.
        assert_eq!(take(&mut blocked, 20), 0);
        blocked.set(&mut first, true);
        assert_eq!(take(&mut blocked, 21), 1);
        blocked.set(&mut second, true);
        assert_eq!(take(&mut blocked, 25), 4);
        assert_eq!(take(&mut blocked, 28), 6);
        blocked.set(&mut first, false);
        blocked.set(&mut second, false);
        assert_eq!(take(&mut blocked, 30), 4);
        assert_eq!(take(&mut blocked, 40), 0);
    }
}
