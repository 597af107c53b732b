//! The number of a server's requests in flight. Over HTTP/1.1, a connection counts while its use is not [`Use::Idle`];
//! over HTTP/2, each stream counts. `LeakCheck` (`harness.rs`) finds counts that do not return to 0.

use super::Use;

/// Requests in flight, mirrored ones included, and tunnels.
#[derive(Debug, Default)]
pub(crate) struct InFlight(usize);

impl InFlight {
    /// Counts a request that a server gets.
    #[inline]
    pub(crate) fn begin(&mut self) {
        self.0 += 1;
    }

    /// Ends one request that [`Self::begin`] or [`Self::change_use`] counted.
    #[inline]
    pub(crate) fn end(&mut self) {
        self.0 -= 1;
    }

    /// Begins or ends a request if this change of a connection's use does.
    #[inline]
    pub(crate) fn change_use(&mut self, before: Use, after: Use) {
        self.0 = self.0 + usize::from(after != Use::Idle) - usize::from(before != Use::Idle);
    }

    #[inline]
    pub(crate) fn count(&self) -> usize {
        self.0
    }

    #[cfg(test)]
    pub(crate) fn of(count: usize) -> Self {
        Self(count)
    }
}
