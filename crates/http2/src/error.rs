//! The error codes of RST_STREAM and GOAWAY.

/// The reason for closing a stream or a connection (RFC 9113, section 7). Unknown codes are kept as received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ErrorCode(pub u32);

impl ErrorCode {
    /// Graceful close.
    pub const NO_ERROR: Self = Self(0x0);
    /// A violation that no other code describes.
    pub const PROTOCOL_ERROR: Self = Self(0x1);
    /// The sender's own failure.
    pub const INTERNAL_ERROR: Self = Self(0x2);
    /// A violation of flow control.
    pub const FLOW_CONTROL_ERROR: Self = Self(0x3);
    /// No timely acknowledgement of a SETTINGS frame.
    pub const SETTINGS_TIMEOUT: Self = Self(0x4);
    /// A frame on a half-closed stream.
    pub const STREAM_CLOSED: Self = Self(0x5);
    /// A frame of an invalid size.
    pub const FRAME_SIZE_ERROR: Self = Self(0x6);
    /// The request was not processed, so it may be retried, whatever its method (section 8.7).
    pub const REFUSED_STREAM: Self = Self(0x7);
    /// The stream is no longer needed.
    pub const CANCEL: Self = Self(0x8);
    /// The field compression context is lost.
    pub const COMPRESSION_ERROR: Self = Self(0x9);
    /// The connection of a CONNECT request was reset.
    pub const CONNECT_ERROR: Self = Self(0xa);
    /// The peer causes excessive load.
    pub const ENHANCE_YOUR_CALM: Self = Self(0xb);
    /// The properties of the TLS connection are insufficient (section 9.2).
    pub const INADEQUATE_SECURITY: Self = Self(0xc);
    /// The request needs HTTP/1.1.
    pub const HTTP_1_1_REQUIRED: Self = Self(0xd);

    /// The name of a known code in lower case, for logs and metrics; `unknown` for others.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::NO_ERROR => "no_error",
            Self::PROTOCOL_ERROR => "protocol_error",
            Self::INTERNAL_ERROR => "internal_error",
            Self::FLOW_CONTROL_ERROR => "flow_control_error",
            Self::SETTINGS_TIMEOUT => "settings_timeout",
            Self::STREAM_CLOSED => "stream_closed",
            Self::FRAME_SIZE_ERROR => "frame_size_error",
            Self::REFUSED_STREAM => "refused_stream",
            Self::CANCEL => "cancel",
            Self::COMPRESSION_ERROR => "compression_error",
            Self::CONNECT_ERROR => "connect_error",
            Self::ENHANCE_YOUR_CALM => "enhance_your_calm",
            Self::INADEQUATE_SECURITY => "inadequate_security",
            Self::HTTP_1_1_REQUIRED => "http_1_1_required",
            _ => "unknown",
        }
    }
}
