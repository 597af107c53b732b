//! Frame headers, and the lengths and streams that each type allows.

use super::FrameError;

/// Bytes of a frame header (RFC 9113, section 4.1).
pub const HEADER_BYTES: usize = 9;

/// The type of a frame (RFC 9113, section 6).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// DATA (section 6.1)
    Data,
    /// HEADERS (section 6.2)
    Headers,
    /// PRIORITY (section 6.3), deprecated
    Priority,
    /// RST_STREAM (section 6.4)
    RstStream,
    /// SETTINGS (section 6.5)
    Settings,
    /// PUSH_PROMISE (section 6.6)
    PushPromise,
    /// PING (section 6.7)
    Ping,
    /// GOAWAY (section 6.8)
    GoAway,
    /// WINDOW_UPDATE (section 6.9)
    WindowUpdate,
    /// CONTINUATION (section 6.10)
    Continuation,
    /// A type that RFC 9113 does not define. Receivers ignore such frames (section 4.1).
    Unknown(u8),
}

/// Flags of frames. Flags that a type does not define are ignored (RFC 9113, section 4.1).
pub mod flag {
    /// DATA and HEADERS: the last frame of the stream in this direction.
    pub const END_STREAM: u8 = 0x1;
    /// SETTINGS and PING: an acknowledgement.
    pub const ACK: u8 = 0x1;
    /// HEADERS, PUSH_PROMISE and CONTINUATION: the field block ends with this frame.
    pub const END_HEADERS: u8 = 0x4;
    /// DATA, HEADERS and PUSH_PROMISE: the payload starts with the padding's length.
    pub const PADDED: u8 = 0x8;
    /// HEADERS: a priority precedes the field block.
    pub const PRIORITY: u8 = 0x20;
}

/// The header of a frame (RFC 9113, section 4.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameHeader {
    /// Bytes of the payload: 0 to 2^24-1.
    pub length: u32,
    /// The type of the frame.
    pub kind: Kind,
    /// The flags, see [`flag`].
    pub flags: u8,
    /// The stream: 0 to 2^31-1. 0 is the connection.
    pub stream: u32,
}

impl FrameHeader {
    /// Parses a header. Ignores the reserved bit.
    #[inline]
    #[must_use]
    pub fn parse(bytes: &[u8; HEADER_BYTES]) -> Self {
        let [l0, l1, l2, kind, flags, s0, s1, s2, s3] = *bytes;
        Self {
            length: u32::from_be_bytes([0, l0, l1, l2]),
            kind: Kind::of(kind),
            flags,
            stream: u32::from_be_bytes([s0 & 0x7f, s1, s2, s3]),
        }
    }

    /// Whether `flag` is set. END_STREAM of DATA and ACK of SETTINGS are the same bit: the type decides which one it
    /// is.
    #[inline]
    #[must_use]
    pub fn has(self, flag: u8) -> bool {
        self.flags & flag != 0
    }

    /// Checks length and stream against the type, and the length against the receiver's SETTINGS_MAX_FRAME_SIZE.
    ///
    /// # Errors
    /// The violated rule.
    #[inline]
    pub fn check(self, max_frame_size: u32) -> Result<(), FrameError> {
        if self.length > max_frame_size {
            return Err(FrameError::TooLong);
        }
        match self.kind {
            Kind::Settings | Kind::Ping | Kind::GoAway if self.stream != 0 => {
                return Err(FrameError::StreamGiven);
            }
            Kind::Settings | Kind::Ping | Kind::GoAway | Kind::WindowUpdate | Kind::Unknown(_) => {}
            _ if self.stream == 0 => return Err(FrameError::StreamMissing),
            _ => {}
        }
        let padding = u32::from(self.has(flag::PADDED));
        let fits = match self.kind {
            Kind::Data => self.length >= padding,
            Kind::Headers if self.has(flag::PRIORITY) => self.length >= padding + 5,
            Kind::Headers => self.length >= padding,
            Kind::PushPromise => self.length >= padding + 4,
            Kind::Priority if self.length != 5 => return Err(FrameError::BadPriorityLength),
            Kind::RstStream | Kind::WindowUpdate => self.length == 4,
            Kind::Settings if self.has(flag::ACK) => self.length == 0,
            Kind::Settings => self.length.is_multiple_of(6),
            Kind::Ping => self.length == 8,
            Kind::GoAway => self.length >= 8,
            Kind::Priority | Kind::Continuation | Kind::Unknown(_) => true,
        };
        if fits { Ok(()) } else { Err(FrameError::BadLength) }
    }
}

impl Kind {
    /// PRIORITY_UPDATE (RFC 9218, section 7.1).
    pub const PRIORITY_UPDATE: Self = Self::Unknown(0x10);

    /// The type with this number.
    #[inline]
    #[must_use]
    pub fn of(number: u8) -> Self {
        match number {
            0x0 => Self::Data,
            0x1 => Self::Headers,
            0x2 => Self::Priority,
            0x3 => Self::RstStream,
            0x4 => Self::Settings,
            0x5 => Self::PushPromise,
            0x6 => Self::Ping,
            0x7 => Self::GoAway,
            0x8 => Self::WindowUpdate,
            0x9 => Self::Continuation,
            _ => Self::Unknown(number),
        }
    }

    /// The number of this type.
    #[inline]
    #[must_use]
    pub fn number(self) -> u8 {
        match self {
            Self::Data => 0x0,
            Self::Headers => 0x1,
            Self::Priority => 0x2,
            Self::RstStream => 0x3,
            Self::Settings => 0x4,
            Self::PushPromise => 0x5,
            Self::Ping => 0x6,
            Self::GoAway => 0x7,
            Self::WindowUpdate => 0x8,
            Self::Continuation => 0x9,
            Self::Unknown(number) => number,
        }
    }
}
