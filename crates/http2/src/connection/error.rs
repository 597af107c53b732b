//! Connection errors and stream errors (RFC 9113, section 5.4).

use crate::frame::FrameError;
use crate::hpack::HpackError;
use crate::{Abuse, ErrorCode, HeadError, SettingsError};
use thiserror::Error;

/// A violation that ends the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum ConnectionError {
    /// The client's preface is not HTTP/2's (RFC 9113, section 3.4).
    #[error("the connection preface is not that of HTTP/2")]
    BadPreface,
    /// The first frame is not SETTINGS (RFC 9113, section 3.4).
    #[error("the first frame is not SETTINGS")]
    SettingsMissing,
    /// A malformed frame.
    #[error(transparent)]
    Frame(#[from] FrameError),
    /// A malformed field block.
    #[error(transparent)]
    Hpack(#[from] HpackError),
    /// A setting outside its range.
    #[error(transparent)]
    Settings(#[from] SettingsError),
    /// A PUSH_PROMISE frame, or a server's SETTINGS that enable push (RFC 9113, sections 6.5.2 and 6.6).
    #[error("server push is not enabled")]
    Push,
    /// A frame other than HEADERS and PRIORITY on a stream that is not open yet (RFC 9113, section 5.1).
    #[error("a frame on an idle stream")]
    IdleStream,
    /// A new stream with an even number, or HEADERS from a server on a stream that the client did not open (RFC 9113,
    /// section 5.1.1).
    #[error("a stream that the peer may not open")]
    BadStream,
    /// HEADERS or DATA on a stream that was closed (RFC 9113, section 5.1).
    #[error("a frame on a closed stream")]
    StreamClosed,
    /// CONTINUATION that does not continue a field block, or another frame within a field block (RFC 9113, section
    /// 6.10).
    #[error("a field block is interrupted, or continued without a start")]
    Continuation,
    /// More frames or bytes in a field block than [`Config`](super::Config) allows (CVE-2024-27316).
    #[error("a field block is too long")]
    BlockTooLong,
    /// DATA beyond the connection's window (RFC 9113, section 6.9.1).
    #[error("the peer exceeds the connection's window")]
    FlowControl,
    /// A window beyond 2^31-1 bytes, of the connection or by a setting (RFC 9113, sections 6.9.1 and 6.9.2).
    #[error("a flow-control window exceeds 2^31-1")]
    WindowOverflow,
    /// The peer exceeded one of the [`Budgets`](crate::Budgets).
    #[error(transparent)]
    Abuse(#[from] Abuse),
}

impl ConnectionError {
    /// The code with which GOAWAY reports this violation.
    #[must_use]
    pub fn code(self) -> ErrorCode {
        match self {
            Self::Frame(error) => error.code(),
            Self::Hpack(error) => error.code(),
            Self::Settings(error) => error.code(),
            Self::StreamClosed => ErrorCode::STREAM_CLOSED,
            Self::FlowControl | Self::WindowOverflow => ErrorCode::FLOW_CONTROL_ERROR,
            Self::BlockTooLong | Self::Abuse(_) => ErrorCode::ENHANCE_YOUR_CALM,
            Self::BadPreface
            | Self::SettingsMissing
            | Self::Push
            | Self::IdleStream
            | Self::BadStream
            | Self::Continuation => ErrorCode::PROTOCOL_ERROR,
        }
    }
}

/// A violation that ends one stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum StreamError {
    /// A malformed head or trailer section.
    #[error(transparent)]
    Head(#[from] HeadError),
    /// A malformed frame.
    #[error(transparent)]
    Frame(#[from] FrameError),
    /// DATA before the final head (RFC 9113, section 8.1).
    #[error("DATA before the head")]
    DataBeforeHead,
    /// An interim response that ends the stream (RFC 9113, section 8.1).
    #[error("an interim response ends the stream")]
    InterimEnds,
    /// Trailers that do not end the stream (RFC 9113, section 8.1).
    #[error("trailers do not end the stream")]
    TrailersWithoutEnd,
    /// HEADERS or DATA after END_STREAM (RFC 9113, section 5.1).
    #[error("a frame after the end of the stream")]
    AfterEnd,
    /// More DATA than `content-length` announces (RFC 9113, section 8.1.1).
    #[error("the body is longer than Content-Length")]
    BodyTooLong,
    /// DATA in a response that has no body (RFC 9110, section 6.4.1).
    #[error("a body where none is allowed: in a response to HEAD, or with status 204 or 304")]
    BodyForbidden,
    /// Less DATA than `content-length` announces (RFC 9113, section 8.1.1).
    #[error("the body is shorter than Content-Length")]
    BodyTooShort,
    /// DATA beyond the stream's window (RFC 9113, section 6.9.1).
    #[error("the peer exceeds the stream's window")]
    FlowControl,
    /// A window beyond 2^31-1 bytes (RFC 9113, section 6.9.1).
    #[error("the stream's flow-control window exceeds 2^31-1")]
    WindowOverflow,
}

impl StreamError {
    /// The code with which RST_STREAM reports this violation.
    #[must_use]
    pub fn code(self) -> ErrorCode {
        match self {
            Self::Frame(error) => error.code(),
            Self::AfterEnd => ErrorCode::STREAM_CLOSED,
            Self::FlowControl | Self::WindowOverflow => ErrorCode::FLOW_CONTROL_ERROR,
            _ => ErrorCode::PROTOCOL_ERROR,
        }
    }
}
