//! The events that a connection reports to its owner.

use super::StreamError;
use crate::ErrorCode;
use std::ops::Range;

/// The number of a stream (RFC 9113, section 5.1.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StreamNo(pub(super) u32);

impl StreamNo {
    /// The number: 1 to 2^31-1.
    #[must_use]
    pub fn get(self) -> u32 {
        self.0
    }
}

/// The result of one call of [`Connection::feed`](super::Connection::feed).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// The number of input bytes consumed.
    pub consumed: usize,
    /// The event in these bytes. `None` if the remaining input contains no complete event.
    pub event: Option<Event>,
}

/// An action of the peer, or its effect.
///
/// The owner knows a stream until it [releases](super::Connection::release) it: as a server from its first
/// [`Event::Head`], as a client from [`open`](super::Connection::open).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A request, or a response, interim or final. The caller's [`Head`](crate::Head) contains it until the next call
    /// of [`feed`](super::Connection::feed).
    Head {
        /// The stream; for a server, a new one.
        stream: StreamNo,
        /// Whether the message has no body.
        end: bool,
    },
    /// Bytes of a body.
    Data {
        /// The stream of the message.
        stream: StreamNo,
        /// The bytes, as a range of the input.
        range: Range<usize>,
        /// The bytes, including padding, to [credit](super::Connection::credit) once this piece is forwarded or
        /// dropped.
        flow: u32,
        /// Whether the body ends with these bytes.
        end: bool,
    },
    /// Trailers, which end the message. The caller's [`Head`](crate::Head) contains them until the next call.
    Trailers {
        /// The stream of the message, which has ended in this direction.
        stream: StreamNo,
    },
    /// The peer reset the stream.
    Reset {
        /// The stream that the peer reset.
        stream: StreamNo,
        /// The reason. [`ErrorCode::REFUSED_STREAM`]: the request was not processed. [`ErrorCode::NO_ERROR`] after a
        /// complete response: the server does not need the remaining request (RFC 9113, section 8.1).
        code: ErrorCode,
    },
    /// The peer violated a rule, and the connection reset the stream.
    Failed {
        /// The stream that the connection reset.
        stream: StreamNo,
        /// The violated rule.
        error: StreamError,
    },
    /// As [`Event::Failed`], for a request whose stream the owner does not know and need not release. If the request's
    /// head exceeds [`Limits`](crate::Limits), the connection has responded with 431.
    Rejected {
        /// The stream of the rejected request.
        stream: StreamNo,
        /// The violated rule.
        error: StreamError,
    },
    /// A window has room again.
    Room {
        /// The stream; `None` for the connection's window, which affects all streams.
        stream: Option<StreamNo>,
    },
    /// The peer's settings have changed, which may make room on all streams.
    Settings,
    /// A client opens no more streams, or a server accepts no more. Our streams above `last` are reset and were not processed,
    /// so that any of their requests may be retried (RFC 9113, section 6.8).
    GoAway {
        /// The highest stream that the peer may have processed.
        last: u32,
        /// The reason for the GOAWAY.
        code: ErrorCode,
    },
    /// The response to [`ping`](super::Connection::ping).
    Pong,
    /// The peer has sent [`SILENT_FRAMES`] frames without an event, and more input may follow: an owner of many
    /// connections can serve the others first.
    Pause,
}

/// The number of frames without an event after which [`Connection::feed`](super::Connection::feed) reports
/// [`Event::Pause`].
pub const SILENT_FRAMES: u32 = 128;
