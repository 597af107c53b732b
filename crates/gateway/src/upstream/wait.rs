//! The timeouts of a server connection, which follow from its state.

use super::{Upstream, Use};
use crate::config::document::Timeouts;
use crate::exchange::{Exchange, ResponseHalf};
use crate::reason::Reason;
use std::time::Duration;
use weir_reactor::Socket;

/// What the server is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wait {
    /// The connection.
    Connect,
    /// Its handshake.
    Handshake,
    /// The head of its response.
    Response,
    /// Progress of its response's body.
    Body,
    /// The whole response to a copy of a request.
    Mirror,
    /// Another request.
    Pooled,
}

impl Wait {
    /// How long.
    pub(crate) fn timeout(self, timeouts: &Timeouts) -> Duration {
        match self {
            Self::Connect => timeouts.connect,
            Self::Handshake => timeouts.upstream_handshake,
            Self::Response | Self::Mirror => timeouts.response,
            Self::Body => timeouts.stall,
            Self::Pooled => timeouts.pooled,
        }
    }

    /// Whether moving bytes begins it anew: for a response those of the request.
    pub(crate) fn is_refreshed_by_progress(self) -> bool {
        match self {
            Self::Response | Self::Body => true,
            Self::Connect | Self::Handshake | Self::Mirror | Self::Pooled => false,
        }
    }

    /// Why the exchange ends when it has run out; `None` for an end in good order.
    pub(crate) fn reason(self) -> Option<Reason> {
        match self {
            Self::Connect => Some(Reason::UpstreamConnectTimeout),
            Self::Handshake => Some(Reason::UpstreamHandshakeTimeout),
            Self::Response => Some(Reason::UpstreamTimeout),
            Self::Body => Some(Reason::UpstreamStalled),
            Self::Mirror | Self::Pooled => None,
        }
    }
}

impl<S: Socket> Upstream<S> {
    /// How long it is waited for.
    pub(crate) fn timeout(&self, want: Wait, timeouts: &Timeouts) -> Duration {
        match want {
            Wait::Pooled => self.life.idle(timeouts.pooled),
            _ => want.timeout(timeouts),
        }
    }

    /// What the server is waited for now, if for anything. Until the request is complete the client is. `blocked`: the
    /// client does not read, so nothing is read from the server.
    pub(crate) fn wait(&self, exchange: Option<&Exchange>, blocked: bool) -> Option<Wait> {
        match (self.used_for, exchange) {
            (Use::Idle, _) => Some(Wait::Pooled),
            (Use::Closing, _) => Some(Wait::Body),
            _ if self.transport.is_connecting() => Some(Wait::Connect),
            _ if !self.transport.is_open() => Some(Wait::Handshake),
            (Use::Mirror(_), _) => Some(Wait::Mirror),
            (Use::Tunnel(_), _) | (Use::Exchange(_), None) => None,
            (Use::Exchange(_), Some(_)) if blocked => None,
            (Use::Exchange(_), Some(exchange)) => match exchange.response {
                ResponseHalf::Awaiting if exchange.request.is_done() => Some(Wait::Response),
                ResponseHalf::Awaiting => None,
                ResponseHalf::Forwarding { .. } => Some(Wait::Body),
            },
        }
    }
}
