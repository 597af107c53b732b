//! How long a server is waited for, and why.

use super::{Job, Upstream};
use crate::config::document::Timeouts;
use crate::exchange::{AnswerHalf, Exchange};
use crate::reason::Reason;
use std::time::Duration;
use weir_reactor::Socket;

/// What the server is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Patience {
    /// The connection.
    Connect,
    /// Its handshake.
    Handshake,
    /// The head of its answer.
    Response,
    /// Progress of its answer's body.
    Body,
    /// The whole answer to a copy of a request.
    Mirror,
    /// Another request.
    Pooled,
}

impl Patience {
    /// How long.
    pub(crate) fn within(self, timeouts: &Timeouts) -> Duration {
        match self {
            Self::Connect => timeouts.connect,
            Self::Handshake => timeouts.upstream_handshake,
            Self::Response | Self::Mirror => timeouts.response,
            Self::Body => timeouts.stall,
            Self::Pooled => timeouts.pooled,
        }
    }

    /// Whether moving bytes begins it anew: for a response those of the request.
    pub(crate) fn extends(self) -> bool {
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
    pub(crate) fn within(&self, want: Patience, timeouts: &Timeouts) -> Duration {
        match want {
            Patience::Pooled => self.life.idle(timeouts.pooled),
            _ => want.within(timeouts),
        }
    }

    /// What the server is waited for now, if for anything. Until the request is complete the client is. `blocked`: the
    /// client does not read, so nothing is read from the server.
    pub(crate) fn patience(&self, exchange: Option<&Exchange>, blocked: bool) -> Option<Patience> {
        match (self.job, exchange) {
            (Job::Idle, _) => Some(Patience::Pooled),
            (Job::Closing, _) => Some(Patience::Body),
            _ if self.transport.is_connecting() => Some(Patience::Connect),
            _ if !self.transport.is_open() => Some(Patience::Handshake),
            (Job::Mirror(_), _) => Some(Patience::Mirror),
            (Job::Tunnel(_), _) | (Job::Exchange(_), None) => None,
            (Job::Exchange(_), Some(_)) if blocked => None,
            (Job::Exchange(_), Some(exchange)) => match exchange.answer {
                AnswerHalf::Awaiting if exchange.request.is_done() => Some(Patience::Response),
                AnswerHalf::Awaiting => None,
                AnswerHalf::Forwarding { .. } => Some(Patience::Body),
            },
        }
    }
}
