//! The timeouts of a client connection, which follow from its state.

use super::{Client, Phase};
use crate::config::document::Timeouts;
use crate::drain::Drain;
use crate::exchange::{Exchange, Stage};
use crate::reason::Reason;
use std::time::Duration;
use weir_reactor::Socket;

/// The event that a client connection's timer waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wait {
    /// The end of its preface and its TLS handshake.
    Handshake,
    /// The next request.
    Idle,
    /// The rest of a request head.
    Head,
    /// A connection to a server, for which the request is queued.
    Queue,
    /// Progress of a request body.
    Body,
    /// Progress in reading the response.
    Response,
    /// The client's close, after the gateway's.
    Linger,
    /// Bytes in a tunnel.
    Tunnel,
}

impl Wait {
    /// The timeout, shortened by a drain.
    pub(crate) fn timeout(self, timeouts: &Timeouts, drain: Drain) -> Duration {
        match self {
            Self::Handshake => timeouts.handshake,
            Self::Idle => drain.idle(timeouts.idle, timeouts),
            Self::Head => timeouts.head,
            Self::Queue => timeouts.queue,
            Self::Body | Self::Response => timeouts.stall,
            Self::Linger => timeouts.linger,
            Self::Tunnel => drain.silent(timeouts.tunnel, timeouts),
        }
    }

    /// Whether moving bytes restart the timeout. The others are absolute: a trickle of bytes does not extend them.
    pub(crate) fn is_refreshed_by_progress(self) -> bool {
        match self {
            Self::Body | Self::Response | Self::Tunnel => true,
            Self::Handshake | Self::Idle | Self::Head | Self::Queue | Self::Linger => false,
        }
    }

    /// The reason for ending the connection or its exchange at the timeout; `None` for an orderly close.
    pub(crate) fn reason(self) -> Option<Reason> {
        match self {
            Self::Handshake => Some(Reason::HandshakeTimeout),
            Self::Head => Some(Reason::HeadTimeout),
            Self::Queue => Some(Reason::QueueTimeout),
            Self::Body => Some(Reason::BodyTimeout),
            Self::Response => Some(Reason::ClientStalled),
            Self::Tunnel => Some(Reason::TunnelIdle),
            Self::Idle | Self::Linger => None,
        }
    }
}

impl<S: Socket> Client<S> {
    /// The event that the timer waits for now, if any. `exchange`: the client's.
    pub(crate) fn wait(&self, exchange: Option<&Exchange>) -> Option<Wait> {
        let pending = self.transport.pending() > 0;
        let stage = exchange.map(|exchange| &exchange.stage);
        match self.phase {
            Phase::Closing if pending => Some(Wait::Response),
            Phase::Closing => Some(Wait::Linger),
            Phase::Preface(_) => Some(Wait::Handshake),
            _ if !self.transport.is_open() => Some(Wait::Handshake),
            Phase::Head { started: true } => Some(Wait::Head),
            // The client is still reading the last response.
            Phase::Head { started: false } if pending => Some(Wait::Response),
            Phase::Head { started: false } => Some(Wait::Idle),
            Phase::Exchange(_) if matches!(stage, Some(Stage::Queued)) => Some(Wait::Queue),
            Phase::Exchange(_) if exchange.is_some_and(|exchange| !exchange.request.is_done()) => {
                Some(Wait::Body)
            }
            Phase::Exchange(_) if pending => Some(Wait::Response),
            Phase::Exchange(_) => None,
            Phase::Tunnel(_) => Some(Wait::Tunnel),
        }
    }
}
