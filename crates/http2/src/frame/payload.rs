//! Frame payloads, parsed in place.

use super::{FrameError, FrameHeader, Kind, flag};
use crate::ErrorCode;
use std::ops::Range;

/// A frame with its payload, without padding. Ranges are offsets into the payload, so that the receiver can join the
/// fragments of a field block in place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Frame<'a> {
    /// DATA (RFC 9113, section 6.1)
    Data {
        /// The bytes of the body.
        data: Range<usize>,
    },
    /// HEADERS (RFC 9113, section 6.2)
    Headers {
        /// The fragment of the field block.
        fragment: Range<usize>,
    },
    /// PRIORITY (RFC 9113, section 6.3)
    Priority(Priority),
    /// RST_STREAM (RFC 9113, section 6.4)
    RstStream(ErrorCode),
    /// SETTINGS (RFC 9113, section 6.5): parameters of six bytes each, for [`parameters`](Self::parameters)
    Settings(&'a [u8]),
    /// SETTINGS with ACK
    SettingsAck,
    /// PUSH_PROMISE (RFC 9113, section 6.6)
    PushPromise {
        /// The promised stream.
        promised: u32,
        /// The fragment of the field block.
        fragment: Range<usize>,
    },
    /// PING (RFC 9113, section 6.7)
    Ping([u8; 8]),
    /// PING with ACK
    Pong([u8; 8]),
    /// GOAWAY (RFC 9113, section 6.8)
    GoAway {
        /// The highest stream that the sender may have processed.
        last: u32,
        /// The reason for closing the connection.
        code: ErrorCode,
        /// Diagnostic data without a defined form.
        debug: &'a [u8],
    },
    /// WINDOW_UPDATE (RFC 9113, section 6.9): 1 to 2^31-1 bytes
    WindowUpdate(u32),
    /// CONTINUATION (RFC 9113, section 6.10): the whole payload is a fragment.
    Continuation,
    /// A type that RFC 9113 does not define.
    Unknown,
}

/// A priority of RFC 7540, section 5.3. RFC 9113 deprecates it; only its form is checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Priority {
    /// The stream that this one depends on.
    pub dependency: u32,
    /// Whether the other dependents of `dependency` become dependents of this stream.
    pub exclusive: bool,
    /// The weight minus one.
    pub weight: u8,
}

impl<'a> Frame<'a> {
    /// Parses the payload of a frame whose header [fits](FrameHeader::check).
    ///
    /// # Errors
    /// The violated rule; [`FrameError::BadLength`] if the length of `payload` differs from that in the header.
    #[inline]
    pub fn parse(header: FrameHeader, payload: &'a [u8]) -> Result<Self, FrameError> {
        if payload.len() != header.length as usize {
            return Err(FrameError::BadLength);
        }
        Ok(match header.kind {
            Kind::Data => Self::Data { data: unpadded(header, payload, 0)? },
            Kind::Headers => {
                let prefix = if header.has(flag::PRIORITY) { 5 } else { 0 };
                let fragment = unpadded(header, payload, prefix)?;
                if prefix != 0 {
                    let at = fragment.start - prefix;
                    Priority::parse(array(&payload[at..])?, header.stream)?;
                }
                Self::Headers { fragment }
            }
            Kind::Priority => Self::Priority(Priority::parse(array(payload)?, header.stream)?),
            Kind::RstStream => Self::RstStream(ErrorCode(number(payload)?)),
            Kind::Settings if header.has(flag::ACK) => Self::SettingsAck,
            Kind::Settings => Self::Settings(payload),
            Kind::PushPromise => {
                let fragment = unpadded(header, payload, 4)?;
                Self::PushPromise { promised: number(&payload[fragment.start - 4..])? & STREAM, fragment }
            }
            Kind::Ping if header.has(flag::ACK) => Self::Pong(array(payload)?),
            Kind::Ping => Self::Ping(array(payload)?),
            Kind::GoAway => Self::GoAway {
                last: number(payload)? & STREAM,
                code: ErrorCode(number(&payload[4..])?),
                debug: payload.get(8..).ok_or(FrameError::BadLength)?,
            },
            Kind::WindowUpdate => match number(payload)? & STREAM {
                0 => return Err(FrameError::ZeroIncrement),
                increment => Self::WindowUpdate(increment),
            },
            Kind::Continuation => Self::Continuation,
            Kind::Unknown(_) => Self::Unknown,
        })
    }

    /// The parameters of a SETTINGS payload: identifier and value.
    pub fn parameters(payload: &[u8]) -> impl Iterator<Item = (u16, u32)> {
        payload.as_chunks::<6>().0.iter().map(|&[i0, i1, v0, v1, v2, v3]| {
            (u16::from_be_bytes([i0, i1]), u32::from_be_bytes([v0, v1, v2, v3]))
        })
    }
}

impl Priority {
    fn parse([d0, d1, d2, d3, weight]: [u8; 5], stream: u32) -> Result<Self, FrameError> {
        let dependency = u32::from_be_bytes([d0, d1, d2, d3]);
        if dependency & STREAM == stream {
            return Err(FrameError::DependsOnItself);
        }
        Ok(Self { dependency: dependency & STREAM, exclusive: dependency & !STREAM != 0, weight })
    }
}

/// The bits of a stream identifier, without the reserved bit.
const STREAM: u32 = u32::MAX >> 1;

/// The part of `payload` between a prefix of `prefix` bytes and the padding (RFC 9113, section 6.1).
#[inline]
fn unpadded(header: FrameHeader, payload: &[u8], prefix: usize) -> Result<Range<usize>, FrameError> {
    let (start, padding) = match (header.has(flag::PADDED), payload) {
        (false, _) => (prefix, 0),
        (true, [padding, ..]) => (1 + prefix, usize::from(*padding)),
        (true, []) => return Err(FrameError::BadLength),
    };
    match payload.len().checked_sub(padding) {
        Some(end) if end >= start => Ok(start..end),
        _ => Err(FrameError::BadPadding),
    }
}

#[inline]
fn array<const N: usize>(bytes: &[u8]) -> Result<[u8; N], FrameError> {
    bytes.first_chunk().copied().ok_or(FrameError::BadLength)
}

#[inline]
fn number(bytes: &[u8]) -> Result<u32, FrameError> {
    array(bytes).map(u32::from_be_bytes)
}
