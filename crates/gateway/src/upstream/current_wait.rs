//! The event that a server connection waits for, which follows from its state.

use super::{Intake, Upstream, Use};
use crate::config::document::Timeouts;
use crate::deadlines::ServerWait;
use crate::exchange::{Exchange, ResponseHalf};
use std::time::Duration;
use weir_reactor::Socket;

impl<S: Socket> Upstream<S> {
    pub(crate) fn timeout(&self, want: ServerWait, timeouts: &Timeouts) -> Duration {
        match want {
            ServerWait::Pooled => self.life.idle(timeouts.pooled),
            _ => want.timeout(timeouts),
        }
    }

    /// The event that the timer waits for now, if any. The response timeout starts after the complete request.
    /// `blocked`: the client's pending output has reached its limit, so the gateway does not read from the server.
    pub(crate) fn wait(&self, exchange: Option<&Exchange>, blocked: bool) -> Option<ServerWait> {
        match (self.used_for, exchange) {
            (Use::Idle, _) => Some(ServerWait::Pooled),
            (Use::Closing, _) => Some(ServerWait::Body),
            _ if self.transport.is_connecting() => Some(ServerWait::Connect),
            _ if !self.transport.is_open() => Some(ServerWait::Handshake),
            (Use::Mirror(_), _) => Some(ServerWait::Mirror),
            (Use::Streams, None) => self.wait_for_streams(),
            (Use::Tunnel(_), _) | (Use::Exchange(_), None) => None,
            (Use::Exchange(_) | Use::Streams, Some(exchange)) if blocked || exchange.is_tunnel => None,
            (Use::Exchange(_) | Use::Streams, Some(exchange)) => match exchange.response {
                ResponseHalf::Awaiting if exchange.request.is_done() => Some(ServerWait::Response),
                ResponseHalf::Awaiting => None,
                ResponseHalf::Forwarding { .. } => Some(ServerWait::Body),
            },
        }
    }

    /// As [`Self::wait`], for a connection with streams: its exchanges use their own timers.
    fn wait_for_streams(&self) -> Option<ServerWait> {
        match self.intake {
            Intake::Doubtful => Some(ServerWait::Pong),
            Intake::Open | Intake::Closed => self.has_no_streams().then_some(ServerWait::Pooled),
        }
    }
}
