//! The rules for sending a request again: on a new connection, or to another server. `step.rs` consults them at each
//! event, and `worker/retries.rs` retries, within the budget of `upstream/retry_budget.rs`.

use super::Exchange;

impl Exchange {
    /// Whether to send the request again after the server closed the connection without a response. The connection must
    /// be a reused one, which the server may have closed before it read the request. The request must allow repetition,
    /// since the server may already have processed it.
    pub(super) fn can_retry(&self) -> bool {
        // An HTTP/2 retry may get a reused connection again, so without this limit a request could be retried
        // indefinitely. An HTTP/1.1 retry always dials.
        self.attempt.is_some_and(|attempt| attempt.reused && (attempt.stream.is_none() || self.retries == 0))
            && self.times.first_byte.is_none()
            && self.is_repeatable
            && self.is_kept()
    }

    /// Whether to send a request again that its server left unprocessed (RFC 9113 section 8.7).
    pub(super) fn can_go_elsewhere(&self) -> bool {
        self.times.first_byte.is_none() && self.is_kept() && self.retries < MOST_UNPROCESSED
    }

    /// Whether another server may still replace the response: no final head is forwarded yet.
    pub(crate) fn may_ask_another(&self) -> bool {
        self.status == 0
            && self.others > 0
            && self.is_repeatable
            && self.is_kept()
            && !self.policy().retry.on.is_empty()
    }

    /// Whether the gateway asks another server instead of forwarding a response with this status.
    pub(crate) fn is_to_ask_another(&self, status: u16) -> bool {
        self.may_ask_another()
            && self.policy().retry.on.contains(status)
            && self.request.is_passed_on()
            && !self.asks_upgrade
    }

    /// Whether the gateway still stores the request's head, without which it cannot send the request again.
    #[inline]
    pub(crate) fn is_kept(&self) -> bool {
        self.head.is_some()
    }
}

/// The maximum number of further attempts of a request that servers leave unprocessed.
const MOST_UNPROCESSED: u8 = 10;
