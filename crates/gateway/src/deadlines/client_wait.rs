//! The client events that the gateway waits for, and their timeouts; the causes of all timers. A wait such as
//! [`Wait::Head`] begins when `downstream/current_wait.rs` or, for an exchange, `exchange/timing.rs` selects it.

use super::{Limit, ServerWait};
use crate::config::document::Timeouts;
use crate::drain::ClientDrain;
use crate::reason::Reason;
use std::time::{Duration, Instant};

/// The client event that a timer waits for. The timer is the connection's or, for `Queue`, `Body`, `Response` and a
/// `Tunnel` with a stream, the exchange's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wait {
    /// The end of the connection's preface and TLS handshake.
    Handshake,
    Idle,
    /// The rest of a request head or, in HTTP/2, of a frame.
    Head,
    /// A connection to a server, for which the request is queued.
    Queue,
    /// Progress of a request body.
    Body,
    /// Progress in reading the response. If its last bytes outlive the exchange, the connection's timer waits for them.
    Response,
    /// The client's close, after the gateway's.
    Linger,
    Tunnel,
}

impl Wait {
    /// The timeout, possibly shortened by the client's drain.
    pub(crate) fn timeout(self, timeouts: &Timeouts, drain: ClientDrain) -> Duration {
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

    /// Whether this wait continues as `want`, with its deadline. Moved bytes begin a new wait if they restart the
    /// timeout.
    #[inline]
    pub(crate) fn continues(self, want: Self, moved: bool) -> bool {
        self == want && !(moved && want.is_refreshed_by_progress())
    }

    /// Whether moving bytes restart the timeout. Other timeouts are absolute: a trickle of bytes does not extend them.
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

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cause {
    /// The timeout of the current wait.
    Waited(Wait),
    /// The timeout of the current wait for the server, on a stream.
    Server(ServerWait),
    /// A limit that holds regardless of the current wait.
    Limit(Limit),
}

/// The deadline of the current wait. A wait that [continues](Wait::continues) keeps its deadline.
pub(crate) fn deadline_of(
    before: Option<(Instant, Wait)>,
    want: Option<Wait>,
    moved: bool,
    deadline: impl FnOnce(Wait) -> Instant,
) -> Option<(Instant, Wait)> {
    let want = want?;
    let continued = before.filter(|(_, wait)| wait.continues(want, moved));
    Some(continued.unwrap_or_else(|| (deadline(want), want)))
}

pub(crate) fn nearest(
    waits: Option<(Instant, Wait)>,
    server: Option<(Instant, ServerWait)>,
    limit: Option<(Instant, Limit)>,
) -> Option<(Instant, Cause)> {
    let waits = waits.map(|(at, wait)| (at, Cause::Waited(wait)));
    let server = server.map(|(at, wait)| (at, Cause::Server(wait)));
    let limit = limit.map(|(at, limit)| (at, Cause::Limit(limit)));
    waits.into_iter().chain(server).chain(limit).min_by_key(|(at, _)| *at)
}
