//! Flow-control windows (RFC 9113, section 6.9). The connection's owner decides when a receive window opens again, by
//! `Connection::credit`.

use crate::settings::MAX_WINDOW;

/// A window beyond 2^31-1 bytes, or a peer that sent beyond its window. The callers in `connection` choose the error.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Violation;

/// The number of bytes that we may send.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SendWindow(i64);

impl SendWindow {
    pub(crate) fn new(size: u32) -> Self {
        Self(size.into())
    }

    /// The bytes that may be sent. A window may be negative after the peer's settings have shrunk it (RFC 9113, section
    /// 6.9.2); then this is 0.
    pub(crate) fn available(self) -> usize {
        usize::try_from(self.0).unwrap_or(0)
    }

    /// Subtracts sent bytes, at most [`SendWindow::available`].
    pub(crate) fn take(&mut self, bytes: usize) {
        self.0 -= bytes as i64;
    }

    /// Adds an increment, or the difference of two initial sizes.
    pub(crate) fn shift(&mut self, by: i64) -> Result<(), Violation> {
        self.0 += by;
        if self.0 > MAX_WINDOW.into() { Err(Violation) } else { Ok(()) }
    }
}

/// The bytes that the peer may send, and consumed bytes whose WINDOW_UPDATE was not sent yet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReceiveWindow {
    size: i64,
    available: i64,
    consumed: i64,
}

impl ReceiveWindow {
    pub(crate) fn new(size: u32) -> Self {
        Self { size: size.into(), available: size.into(), consumed: 0 }
    }

    /// Takes the bytes of a received frame from the window. Fails if the window is smaller.
    pub(crate) fn receive(&mut self, bytes: u32) -> Result<(), Violation> {
        if i64::from(bytes) > self.available {
            return Err(Violation);
        }
        self.available -= i64::from(bytes);
        Ok(())
    }

    /// The received bytes that were not consumed yet.
    pub(crate) fn held(&self) -> i64 {
        self.size - self.available - self.consumed
    }

    /// Marks received bytes as consumed. Returns the increment of a WINDOW_UPDATE once at least half of the window is
    /// consumed, and `None` before that, since smaller increments lead peers to send small frames.
    pub(crate) fn consume(&mut self, bytes: u32) -> Option<u32> {
        self.consumed += i64::from(bytes).min(self.held());
        if self.consumed == 0 || self.consumed < self.size / 2 {
            return None;
        }
        self.available += self.consumed;
        Some(std::mem::take(&mut self.consumed) as u32)
    }

    /// Changes the size, as an acknowledged SETTINGS_INITIAL_WINDOW_SIZE does. Returns the increment of a WINDOW_UPDATE
    /// as [`ReceiveWindow::consume`] does: the bytes consumed so far may already be half of the new size, and the peer
    /// may have no window left for another byte.
    pub(crate) fn resize(&mut self, size: u32) -> Option<u32> {
        self.available += i64::from(size) - self.size;
        self.size = size.into();
        self.consume(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_send_window_may_be_negative_and_never_overflows() {
        let mut window = SendWindow::new(10);
        window.take(10);
        assert_eq!(window.shift(-5), Ok(()));
        assert_eq!(window.available(), 0);
        assert_eq!(window.shift(7), Ok(()));
        assert_eq!(window.available(), 2);
        assert_eq!(window.shift(i64::from(MAX_WINDOW) - 2), Ok(()));
        assert_eq!(window.shift(1), Err(Violation));
    }

    #[test]
    fn consumed_bytes_are_given_back_in_halves() {
        let mut window = ReceiveWindow::new(100);
        assert_eq!(window.receive(101), Err(Violation));
        assert_eq!(window.receive(100), Ok(()));
        assert_eq!(window.receive(1), Err(Violation));
        assert_eq!(window.consume(49), None);
        assert_eq!(window.held(), 51);
        assert_eq!(window.consume(1), Some(50));
        assert_eq!(window.receive(50), Ok(()));
        // At most the received bytes count as consumed.
        assert_eq!(window.consume(1000), Some(100));
        assert_eq!(window.held(), 0);
    }

    #[test]
    fn a_receive_window_shrinks_below_what_is_held() {
        let mut window = ReceiveWindow::new(100);
        assert_eq!(window.receive(80), Ok(()));
        assert_eq!(window.resize(50), None);
        assert_eq!(window.receive(1), Err(Violation));
        assert_eq!(window.consume(80), Some(80));
        assert_eq!(window.receive(50), Ok(()));
        assert_eq!(window.receive(1), Err(Violation));
    }

    /// Regression test: bytes consumed under a larger window were never returned to the peer.
    #[test]
    fn a_smaller_size_gives_back_what_is_half_of_it() {
        let mut window = ReceiveWindow::new(100);
        assert_eq!(window.receive(100), Ok(()));
        assert_eq!(window.consume(60), Some(60));
        assert_eq!(window.consume(40), None);
        assert_eq!(window.resize(50), Some(40));
        assert_eq!(window.receive(50), Ok(()));
        assert_eq!(window.receive(1), Err(Violation));
    }
}
