//! `Expect: 100-continue` (RFC 9110 section 10.1.1). The gateway forwards the server's `100 Continue`, and sends its
//! own if it buffers the body. The limits on slow bodies start after the client's wait (`timing.rs`).

use weir_http1::RequestHead;

/// Whether the client waits for `100 Continue` before it sends the body.
#[derive(Debug)]
pub(crate) struct AwaitsContinue(bool);

impl AwaitsContinue {
    /// The state when a request begins. `was_held`: the gateway has already buffered the body.
    #[inline]
    pub(crate) fn of(head: &RequestHead, was_held: bool) -> Self {
        Self(head.expect_continue && !was_held)
    }

    #[inline]
    pub(super) fn is_on(&self) -> bool {
        self.0
    }

    /// The gateway forwards an interim response with this status.
    #[inline]
    pub(super) fn on_interim(&mut self, status: u16) {
        self.0 &= status != 100;
    }

    /// The client has sent this many bytes of the body: it may stop waiting at any time.
    #[inline]
    pub(crate) fn on_body(&mut self, bytes: usize) {
        self.0 &= bytes == 0;
    }

    /// Ends the client's wait. Returns `true` if the gateway must send `100 Continue`.
    #[inline]
    pub(crate) fn take(&mut self) -> bool {
        std::mem::take(&mut self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn awaiting() -> AwaitsContinue {
        let mut head = RequestHead::new();
        head.expect_continue = true;
        assert!(!AwaitsContinue::of(&head, true).is_on());
        AwaitsContinue::of(&head, false)
    }

    #[test]
    fn a_client_waits_for_100_or_sends_its_body_anyway() {
        let mut by_server = awaiting();
        by_server.on_interim(103);
        by_server.on_body(0);
        assert!(by_server.is_on());
        by_server.on_interim(100);
        assert!(!by_server.is_on());
        let mut by_client = awaiting();
        by_client.on_body(1);
        assert!(!by_client.is_on());
        let mut by_gateway = awaiting();
        assert!(by_gateway.take() && !by_gateway.is_on() && !by_gateway.take());
    }
}
