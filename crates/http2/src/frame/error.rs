//! Violations of the rules for single frames, with one variant for each rule.

use crate::ErrorCode;
use thiserror::Error;

/// The rule that a frame violates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum FrameError {
    /// The payload exceeds SETTINGS_MAX_FRAME_SIZE (RFC 9113, section 4.2).
    #[error("the frame is larger than SETTINGS_MAX_FRAME_SIZE")]
    TooLong,
    /// The type does not allow the payload's length (RFC 9113, section 6).
    #[error("the frame's length does not fit its type")]
    BadLength,
    /// A PRIORITY frame of a length other than 5 bytes (RFC 9113, section 6.3).
    #[error("a PRIORITY frame does not have 5 bytes")]
    BadPriorityLength,
    /// A stream's frame on stream 0 (RFC 9113, sections 6.1 to 6.4, 6.6 and 6.10).
    #[error("a frame of a stream on stream 0")]
    StreamMissing,
    /// A SETTINGS, PING or GOAWAY frame on a stream (RFC 9113, sections 6.5, 6.7 and 6.8).
    #[error("a frame of the connection on a stream")]
    StreamGiven,
    /// Padding that is as long as the payload, or longer (RFC 9113, sections 6.1 and 6.2).
    #[error("the padding is longer than the frame")]
    BadPadding,
    /// A stream that depends on itself (RFC 7540, section 5.3.1).
    #[error("a stream depends on itself")]
    DependsOnItself,
    /// A WINDOW_UPDATE frame with an increment of 0 (RFC 9113, section 6.9).
    #[error("a window increment of 0")]
    ZeroIncrement,
}

impl FrameError {
    /// The code with which RST_STREAM or GOAWAY reports this error.
    #[must_use]
    pub fn code(self) -> ErrorCode {
        match self {
            Self::TooLong | Self::BadLength | Self::BadPriorityLength => ErrorCode::FRAME_SIZE_ERROR,
            _ => ErrorCode::PROTOCOL_ERROR,
        }
    }

    /// Whether the violation on `stream` ends only that stream and not the connection (RFC 9113, section 5.4). All
    /// other violations end the connection, as section 4.2 permits for an oversized frame on a stream.
    #[must_use]
    pub fn is_stream_error(self, stream: u32) -> bool {
        match self {
            Self::BadPriorityLength | Self::DependsOnItself | Self::ZeroIncrement => stream != 0,
            _ => false,
        }
    }
}
