//! What the body of a request waits for, once the request has a stream.

use crate::record::recorder::Recorder;
use std::time::{Duration, Instant};

/// The cause of a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cause {
    /// The flow-control window of the stream or of the connection is empty (RFC 9113, section 5.2).
    Window,
    /// The socket has yet to take other output of the connection.
    Wire,
}

/// The waits of one body.
#[derive(Debug, Default)]
pub(super) struct Waits {
    current: Option<(Cause, Instant)>,
    window: Duration,
    wire: Duration,
}

impl Waits {
    /// The body waits from `now` on, unless it already does for the same cause.
    pub(super) fn begin(&mut self, cause: Cause, now: Instant) {
        if self.current.is_none_or(|(current, _)| current != cause) {
            self.end(now);
            self.current = Some((cause, now));
        }
    }

    /// The body continues.
    pub(super) fn end(&mut self, now: Instant) {
        let Some((cause, since)) = self.current.take() else { return };
        let waited = now.saturating_duration_since(since);
        match cause {
            Cause::Window => self.window += waited,
            Cause::Wire => self.wire += waited,
        }
    }

    /// Records the waits of a request that was planned for this instant.
    pub(super) fn record(&self, planned: Instant, recorder: &mut Recorder) {
        if !self.window.is_zero() {
            recorder.waited_for_window(planned, self.window);
        }
        if !self.wire.is_zero() {
            recorder.waited_for_wire(planned, self.wire);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_wait_counts_for_its_cause() {
        let start = Instant::now();
        let at = |ms| start + Duration::from_millis(ms);
        let mut waits = Waits::default();
        waits.end(at(1));
        waits.begin(Cause::Window, at(2));
        waits.begin(Cause::Window, at(5));
        // Its window opens, but others send.
        waits.begin(Cause::Wire, at(12));
        waits.end(at(15));
        waits.end(at(20));
        waits.begin(Cause::Wire, at(30));
        waits.end(at(31));
        assert_eq!((waits.window, waits.wire), (Duration::from_millis(10), Duration::from_millis(4)));
    }
}
