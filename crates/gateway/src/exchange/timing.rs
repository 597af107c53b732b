//! The timer of an exchange, set to the nearest deadline: that of the current wait or of a limit.

use super::{Exchange, RequestHalf, Stage};
use crate::deadlines::{BodyProgress, Cause, Limit, ServerWait, Wait};
use std::time::Instant;
use weir_reactor::{Key, Timer, Wheel};

/// A timer and the deadlines of the waits that it covers. The timer fires earlier if a limit is nearer.
#[derive(Debug, Default)]
pub(crate) struct ExchangeTimer {
    pub timer: Timer<Cause>,
    pub waits: Option<(Instant, Wait)>,
    /// The deadline of the wait for the server, on a stream.
    pub server: Option<(Instant, ServerWait)>,
}

impl Exchange {
    /// The exchange's current wait. Waits for the server are separate. `pending`: whether the client has output to
    /// read.
    pub(crate) fn wait(&self, pending: bool) -> Option<Wait> {
        match self.stage {
            _ if self.is_tunnel => Some(Wait::Tunnel),
            Stage::Queued => Some(Wait::Queue),
            Stage::Holding(_) | Stage::Forwarding if !self.request.is_done() => Some(Wait::Body),
            Stage::Holding(_) | Stage::Forwarding => pending.then_some(Wait::Response),
        }
    }

    /// Whether the exchange may need [`Self::set_timer`]. An exchange that completes within a turn needs no timer.
    #[inline]
    pub(crate) fn is_timed(&self, pending: bool) -> bool {
        pending
            || self.timer.is_some()
            || self.body_deadlines.is_some()
            || !self.request.is_done()
            || !self.response.is_awaiting()
            || matches!(self.stage, Stage::Queued)
            || self.upstream_stream().is_some()
    }

    /// The deadline of the total timeout: the shorter of the route's and the gRPC call's. `None` for a tunnel.
    #[inline]
    pub(crate) fn total(&self) -> Option<(Instant, Limit)> {
        if self.is_tunnel {
            return None;
        }
        let of_call = self.grpc.as_ref().and_then(|call| call.within);
        let within = self.policy().timeouts.exchange.into_iter().chain(of_call).min()?;
        Some((self.times.head.checked_add(within)?, Limit::ExchangeTotal))
    }

    /// Sets the exchange's timer; `None` clears it.
    pub(crate) fn set_timer(&mut self, at: Option<(Instant, Cause)>, wheel: &mut Wheel, key: Key) {
        match (at, &mut self.timer) {
            (Some((at, cause)), timer) => timer.get_or_insert_default().timer.set(at, cause, wheel, key),
            (None, Some(timer)) => timer.timer.clear(),
            (None, None) => {}
        }
    }

    #[inline]
    pub(crate) fn cancel_timer(&mut self, wheel: &mut Wheel) {
        if let Some(mut timer) = self.timer.take() {
            timer.timer.cancel(wheel);
        }
    }

    /// The progress of the request's body. `has_taken`: the server's connection has sent all bytes passed to it.
    pub(crate) fn body_progress(&self, has_taken: bool) -> BodyProgress {
        match &self.stage {
            Stage::Holding(held) => BodyProgress::Moving { bytes: held.passed, awaits_client: true },
            Stage::Queued => BodyProgress::Held,
            // While the server's connection still has bytes to send, or is not open yet, the client is not at fault.
            Stage::Forwarding if self.wants_body() => {
                BodyProgress::Moving { bytes: self.received, awaits_client: has_taken }
            }
            Stage::Forwarding => BodyProgress::Over,
        }
    }

    /// Whether the client should send more of the body: the client awaits no `100 Continue`, and the server still takes
    /// the body.
    fn wants_body(&self) -> bool {
        let is_refused = !self.response.is_awaiting() && self.status >= 300;
        let is_forwarding = matches!(self.request, RequestHalf::Forwarding(_));
        is_forwarding && !self.awaits_continue.is_on() && !is_refused && !self.is_tunnel
    }
}
