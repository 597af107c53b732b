//! Frames (RFC 9113, sections 4 and 6).
//!
//! A frame is a header of [`HEADER_BYTES`] and a payload. [`FrameHeader::parse`] reads the header,
//! [`FrameHeader::check`] checks length and stream against the type, and [`Frame::parse`] reads the payload in place. A
//! receiver need not buffer a whole DATA frame: after the padding's length, it may forward the bytes as they arrive.

mod error;
mod header;
mod payload;
mod write;

pub use error::FrameError;
pub use header::{FrameHeader, HEADER_BYTES, Kind, flag};
pub use payload::{Frame, Priority};
pub use write::{
    header_bytes, write, write_data, write_go_away, write_ping, write_priority, write_rst_stream,
    write_settings, write_settings_ack, write_window_update,
};
