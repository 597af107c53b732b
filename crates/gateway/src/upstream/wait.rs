//! The timeouts of a server connection, which follow from its state.

use super::{Intake, Upstream, Use};
use crate::config::document::Timeouts;
use crate::exchange::{Exchange, ResponseHalf};
use crate::reason::Reason;
use std::time::Duration;
use weir_reactor::Socket;

/// The event that a server connection's timer waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wait {
    /// The end of the connection attempt.
    Connect,
    /// The end of the TLS handshake.
    Handshake,
    /// The response head.
    Response,
    /// Progress of the response body, or of a closing connection's output.
    Body,
    /// The whole response to a mirrored request.
    Mirror,
    /// The next request, while the connection is idle.
    Pooled,
    /// The response to a PING, on a connection with streams whose server has not responded to a request.
    Pong,
}

impl Wait {
    /// The configured timeout.
    pub(crate) fn timeout(self, timeouts: &Timeouts) -> Duration {
        match self {
            Self::Connect => timeouts.connect,
            Self::Handshake => timeouts.upstream_handshake,
            Self::Response | Self::Mirror => timeouts.response,
            Self::Pong => timeouts.connect,
            Self::Body => timeouts.stall,
            Self::Pooled => timeouts.pooled,
        }
    }

    /// Whether moving bytes restart the timeout. For `Response` these are bytes of the request.
    pub(crate) fn is_refreshed_by_progress(self) -> bool {
        match self {
            Self::Response | Self::Body => true,
            Self::Connect | Self::Handshake | Self::Mirror | Self::Pooled | Self::Pong => false,
        }
    }

    /// The reason for ending the exchange at the timeout; `None` if the connection has no exchange.
    pub(crate) fn reason(self) -> Option<Reason> {
        match self {
            Self::Connect => Some(Reason::UpstreamConnectTimeout),
            Self::Handshake => Some(Reason::UpstreamHandshakeTimeout),
            Self::Response => Some(Reason::UpstreamTimeout),
            Self::Body => Some(Reason::UpstreamStalled),
            Self::Pong => Some(Reason::UpstreamTimeout),
            Self::Mirror | Self::Pooled => None,
        }
    }
}

impl<S: Socket> Upstream<S> {
    /// The timeout for `want` on this connection.
    pub(crate) fn timeout(&self, want: Wait, timeouts: &Timeouts) -> Duration {
        match want {
            Wait::Pooled => self.life.idle(timeouts.pooled),
            _ => want.timeout(timeouts),
        }
    }

    /// The event that the timer waits for now, if any. The response timeout starts after the complete request.
    /// `blocked`: the client's pending output has reached its limit, so the gateway does not read from the server.
    pub(crate) fn wait(&self, exchange: Option<&Exchange>, blocked: bool) -> Option<Wait> {
        match (self.used_for, exchange) {
            (Use::Idle, _) => Some(Wait::Pooled),
            (Use::Closing, _) => Some(Wait::Body),
            _ if self.transport.is_connecting() => Some(Wait::Connect),
            _ if !self.transport.is_open() => Some(Wait::Handshake),
            (Use::Mirror(_), _) => Some(Wait::Mirror),
            (Use::Streams, None) => self.wait_for_streams(),
            (Use::Tunnel(_), _) | (Use::Exchange(_), None) => None,
            (Use::Exchange(_) | Use::Streams, Some(_)) if blocked => None,
            (Use::Exchange(_) | Use::Streams, Some(exchange)) => match exchange.response {
                ResponseHalf::Awaiting if exchange.request.is_done() => Some(Wait::Response),
                ResponseHalf::Awaiting => None,
                ResponseHalf::Forwarding { .. } => Some(Wait::Body),
            },
        }
    }

    /// As [`Self::wait`], for a connection with streams: its exchanges have timers of their own.
    fn wait_for_streams(&self) -> Option<Wait> {
        match self.intake {
            Intake::Doubtful => Some(Wait::Pong),
            Intake::Open | Intake::Closed => {
                self.h2.as_ref().is_none_or(|h2| h2.is_idle()).then_some(Wait::Pooled)
            }
        }
    }
}
