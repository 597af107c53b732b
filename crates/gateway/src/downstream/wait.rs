//! The timeouts of a client connection, which follow from its state.

use super::{Client, Phase};
use crate::config::document::Timeouts;
use crate::drain::Drain;
use crate::exchange::{Exchange, Stage};
use crate::reason::Reason;
use std::time::Duration;
use weir_reactor::Socket;

/// What the client is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wait {
    /// The end of its preface and its TLS handshake.
    Handshake,
    /// Its next request.
    Idle,
    /// The rest of a request's head.
    Head,
    /// A connection to a server, which is not its fault.
    Queue,
    /// Progress of a request's body.
    Body,
    /// Progress in reading the response.
    Answer,
    /// Its own close, after ours.
    Linger,
    /// Bytes in a tunnel.
    Tunnel,
}

impl Wait {
    /// How long.
    pub(crate) fn timeout(self, timeouts: &Timeouts, drain: Drain) -> Duration {
        match self {
            Self::Handshake => timeouts.handshake,
            Self::Idle => drain.idle(timeouts.idle, timeouts),
            Self::Head => timeouts.head,
            Self::Queue => timeouts.queue,
            Self::Body | Self::Answer => timeouts.stall,
            Self::Linger => timeouts.linger,
            Self::Tunnel => drain.silent(timeouts.tunnel, timeouts),
        }
    }

    /// Whether moving bytes begins it anew. The others are absolute: a byte now and then does not extend them.
    pub(crate) fn is_refreshed_by_progress(self) -> bool {
        match self {
            Self::Body | Self::Answer | Self::Tunnel => true,
            Self::Handshake | Self::Idle | Self::Head | Self::Queue | Self::Linger => false,
        }
    }

    /// Cause the connection or its exchange ends when it has run out; `None` for an end in good order.
    pub(crate) fn reason(self) -> Option<Reason> {
        match self {
            Self::Handshake => Some(Reason::HandshakeTimeout),
            Self::Head => Some(Reason::HeadTimeout),
            Self::Queue => Some(Reason::QueueTimeout),
            Self::Body => Some(Reason::BodyTimeout),
            Self::Answer => Some(Reason::ClientStalled),
            Self::Tunnel => Some(Reason::TunnelIdle),
            Self::Idle | Self::Linger => None,
        }
    }
}

impl<S: Socket> Client<S> {
    /// What the client is waited for now, if for anything. `exchange`: its own.
    pub(crate) fn wait(&self, exchange: Option<&Exchange>) -> Option<Wait> {
        let pending = self.transport.pending() > 0;
        let stage = exchange.map(|exchange| &exchange.stage);
        match self.phase {
            Phase::Closing if pending => Some(Wait::Answer),
            Phase::Closing => Some(Wait::Linger),
            Phase::Preface(_) => Some(Wait::Handshake),
            _ if !self.transport.is_open() => Some(Wait::Handshake),
            Phase::Head { started: true } => Some(Wait::Head),
            // It still reads the last response.
            Phase::Head { started: false } if pending => Some(Wait::Answer),
            Phase::Head { started: false } => Some(Wait::Idle),
            Phase::Exchange(_) if matches!(stage, Some(Stage::Queued)) => Some(Wait::Queue),
            Phase::Exchange(_) if exchange.is_some_and(|exchange| !exchange.request.is_done()) => {
                Some(Wait::Body)
            }
            Phase::Exchange(_) if pending => Some(Wait::Answer),
            Phase::Exchange(_) => None,
            Phase::Tunnel(_) => Some(Wait::Tunnel),
        }
    }
}
