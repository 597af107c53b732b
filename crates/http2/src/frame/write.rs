//! Writing frames. Only [`header_bytes`] encodes lengths, and it never truncates one.

use super::{HEADER_BYTES, Kind, flag};
use crate::ErrorCode;

/// Encodes a frame header.
///
/// # Panics
/// If `length` does not fit into 24 bits: the receiver would parse the payload's end as further frames.
#[inline]
#[must_use]
pub fn header_bytes(length: usize, kind: Kind, flags: u8, stream: u32) -> [u8; HEADER_BYTES] {
    assert!(length < 1 << 24, "a frame of {length} bytes");
    let [_, l0, l1, l2] = (length as u32).to_be_bytes();
    let [s0, s1, s2, s3] = stream.to_be_bytes();
    [l0, l1, l2, kind.number(), flags, s0, s1, s2, s3]
}

/// Appends a frame with any payload.
///
/// # Panics
/// As [`header_bytes`].
#[inline]
pub fn write(kind: Kind, flags: u8, stream: u32, payload: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(&header_bytes(payload.len(), kind, flags, stream));
    out.extend_from_slice(payload);
}

/// Appends a DATA frame without padding (RFC 9113, section 6.1).
///
/// # Panics
/// As [`header_bytes`].
#[inline]
pub fn write_data(stream: u32, data: &[u8], end: bool, out: &mut Vec<u8>) {
    write(Kind::Data, if end { flag::END_STREAM } else { 0 }, stream, data, out);
}

/// Appends a PRIORITY frame (RFC 9113, section 6.3).
pub fn write_priority(stream: u32, priority: super::Priority, out: &mut Vec<u8>) {
    let exclusive = u32::from(priority.exclusive) << 31;
    let [d0, d1, d2, d3] = (priority.dependency | exclusive).to_be_bytes();
    write(Kind::Priority, 0, stream, &[d0, d1, d2, d3, priority.weight], out);
}

/// Appends a RST_STREAM frame (RFC 9113, section 6.4).
pub fn write_rst_stream(stream: u32, code: ErrorCode, out: &mut Vec<u8>) {
    write(Kind::RstStream, 0, stream, &code.0.to_be_bytes(), out);
}

/// Appends a SETTINGS frame with these parameters (RFC 9113, section 6.5).
pub fn write_settings(parameters: impl Iterator<Item = (u16, u32)> + Clone, out: &mut Vec<u8>) {
    out.extend_from_slice(&header_bytes(6 * parameters.clone().count(), Kind::Settings, 0, 0));
    for (id, value) in parameters {
        out.extend_from_slice(&id.to_be_bytes());
        out.extend_from_slice(&value.to_be_bytes());
    }
}

/// Appends the acknowledgement of a SETTINGS frame (RFC 9113, section 6.5.3).
pub fn write_settings_ack(out: &mut Vec<u8>) {
    write(Kind::Settings, flag::ACK, 0, &[], out);
}

/// Appends a PING frame or its acknowledgement (RFC 9113, section 6.7).
pub fn write_ping(payload: [u8; 8], ack: bool, out: &mut Vec<u8>) {
    write(Kind::Ping, if ack { flag::ACK } else { 0 }, 0, &payload, out);
}

/// Appends a GOAWAY frame without diagnostic data (RFC 9113, section 6.8).
pub fn write_go_away(last: u32, code: ErrorCode, out: &mut Vec<u8>) {
    let ([l0, l1, l2, l3], [c0, c1, c2, c3]) = (last.to_be_bytes(), code.0.to_be_bytes());
    write(Kind::GoAway, 0, 0, &[l0, l1, l2, l3, c0, c1, c2, c3], out);
}

/// Appends a WINDOW_UPDATE frame; `increment` is 1 to 2^31-1 (RFC 9113, section 6.9).
pub fn write_window_update(stream: u32, increment: u32, out: &mut Vec<u8>) {
    write(Kind::WindowUpdate, 0, stream, &increment.to_be_bytes(), out);
}
