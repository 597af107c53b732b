//! HTTP/2 on the wire (RFC 9113).
//!
//! The crate does no I/O and reads no clock. Received bytes are parsed in place.
//!
//! * [`frame`]: parses and writes frames.
//! * [`Settings`]: the parameters of a SETTINGS frame, with their ranges.
//! * [`ErrorCode`]: the code of RST_STREAM and GOAWAY.

mod error;
pub mod frame;
mod settings;

pub use error::ErrorCode;
pub use settings::{Settings, SettingsError};
