//! The server events that the gateway waits for, and their timeouts. `upstream/current_wait.rs` selects the current
//! one.

use crate::config::document::Timeouts;
use crate::reason::Reason;
use std::time::Duration;

/// The server event that a timer waits for. The timer is the connection's or, on a stream, the exchange's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ServerWait {
    /// The end of the connection attempt.
    Connect,
    Handshake,
    Response,
    /// Progress of the response body, or of a closing connection's output.
    Body,
    /// The whole response to a mirrored request.
    Mirror,
    /// The next request, while the connection is idle.
    Pooled,
    /// The response to a PING, on a connection with streams whose server has not responded to a request in time.
    Pong,
}

impl ServerWait {
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

    /// As [`Wait::continues`](super::Wait::continues).
    #[inline]
    pub(crate) fn continues(self, want: Self, moved: bool) -> bool {
        self == want && !(moved && want.is_refreshed_by_progress())
    }

    /// Whether moving bytes restart the timeout. For `Response`, these are the last bytes of the request, which the
    /// connection still had to send.
    pub(crate) fn is_refreshed_by_progress(self) -> bool {
        match self {
            Self::Response | Self::Body | Self::Pong => true,
            Self::Connect | Self::Handshake | Self::Mirror | Self::Pooled => false,
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
