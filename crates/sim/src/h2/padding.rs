//! Padding of DATA frames, which the protocol state never adds.

use weir_http2::frame::{self, FrameHeader, HEADER_BYTES, Kind, flag};

/// Pads the first frame, which must be DATA, unless it is too close to the maximum frame size; returns the number of
/// bytes added.
pub(crate) fn pad(frames: &mut Vec<u8>, padding: u8) -> usize {
    let first = frames.first_chunk::<HEADER_BYTES>().map(FrameHeader::parse);
    let Some(header) = first.filter(|header| header.length < 16_000) else { return 0 };
    let rest = frames.split_off(HEADER_BYTES + header.length as usize);
    let data = frames.split_off(HEADER_BYTES);
    frames.clear();
    let payload = [&[padding], &data[..], &vec![0; padding.into()]].concat();
    frame::write(Kind::Data, header.flags | flag::PADDED, header.stream, &payload, frames);
    frames.extend_from_slice(&rest);
    1 + usize::from(padding)
}
