//! The parameters of SETTINGS frames.

use crate::{ErrorCode, frame};
use thiserror::Error;

/// The settings of one side, which the other side must respect (RFC 9113, section 6.5.2). [`Settings::default`] returns
/// the initial values, in force until a SETTINGS frame changes them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The largest dynamic table, in bytes, that the other side's encoder may use.
    pub header_table_size: u32,
    /// Whether the other side may push. Weir sends `false` as a client, and omits the parameter as a server.
    pub enable_push: bool,
    /// The maximum number of streams that the other side may have open; `None`: unlimited.
    pub max_concurrent_streams: Option<u32>,
    /// The flow-control window of a new stream: 0 to 2^31-1 bytes.
    pub initial_window_size: u32,
    /// The largest payload that the other side may send in a frame: 2^14 to 2^24-1 bytes.
    pub max_frame_size: u32,
    /// The maximum size of a field section: bytes of names and values, plus 32 for each field; `None`: unlimited.
    pub max_header_list_size: Option<u32>,
    /// Whether extended CONNECT is available (RFC 8441, section 3).
    pub enable_connect_protocol: bool,
    /// Whether the priorities of RFC 7540 are ignored (RFC 9218, section 2.1).
    pub no_rfc7540_priorities: bool,
}

/// A parameter outside its range. Always a connection error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum SettingsError {
    /// SETTINGS_ENABLE_PUSH is neither 0 nor 1 (RFC 9113, section 6.5.2).
    #[error("SETTINGS_ENABLE_PUSH is neither 0 nor 1")]
    EnablePush,
    /// SETTINGS_INITIAL_WINDOW_SIZE exceeds 2^31-1 (RFC 9113, section 6.5.2).
    #[error("SETTINGS_INITIAL_WINDOW_SIZE exceeds 2^31-1")]
    InitialWindowSize,
    /// SETTINGS_MAX_FRAME_SIZE is outside 2^14 to 2^24-1 (RFC 9113, section 6.5.2).
    #[error("SETTINGS_MAX_FRAME_SIZE is outside 2^14 to 2^24-1")]
    MaxFrameSize,
    /// SETTINGS_ENABLE_CONNECT_PROTOCOL is neither 0 nor 1, or 0 after 1 (RFC 8441, section 3).
    #[error("SETTINGS_ENABLE_CONNECT_PROTOCOL is neither 0 nor 1, or 0 after 1")]
    EnableConnectProtocol,
    /// SETTINGS_NO_RFC7540_PRIORITIES is neither 0 nor 1 (RFC 9218, section 2.1).
    #[error("SETTINGS_NO_RFC7540_PRIORITIES is neither 0 nor 1")]
    NoPriorities,
}

impl SettingsError {
    /// The code of the connection error that this setting causes.
    #[must_use]
    pub fn code(self) -> ErrorCode {
        match self {
            Self::InitialWindowSize => ErrorCode::FLOW_CONTROL_ERROR,
            _ => ErrorCode::PROTOCOL_ERROR,
        }
    }
}

const HEADER_TABLE_SIZE: u16 = 0x1;
const ENABLE_PUSH: u16 = 0x2;
const MAX_CONCURRENT_STREAMS: u16 = 0x3;
const INITIAL_WINDOW_SIZE: u16 = 0x4;
const MAX_FRAME_SIZE: u16 = 0x5;
const MAX_HEADER_LIST_SIZE: u16 = 0x6;
const ENABLE_CONNECT_PROTOCOL: u16 = 0x8;
const NO_RFC7540_PRIORITIES: u16 = 0x9;

/// The largest flow-control window (RFC 9113, section 6.9.1).
pub(crate) const MAX_WINDOW: u32 = (1 << 31) - 1;
const SMALLEST_MAX_FRAME_SIZE: u32 = 1 << 14;
const LARGEST_MAX_FRAME_SIZE: u32 = (1 << 24) - 1;

impl Default for Settings {
    fn default() -> Self {
        Self {
            header_table_size: 4096,
            enable_push: true,
            max_concurrent_streams: None,
            initial_window_size: 65_535,
            max_frame_size: SMALLEST_MAX_FRAME_SIZE,
            max_header_list_size: None,
            enable_connect_protocol: false,
            no_rfc7540_priorities: false,
        }
    }
}

impl Settings {
    /// Applies one received parameter; ignores unknown ones (RFC 9113, section 6.5.2).
    ///
    /// # Errors
    /// A value outside the parameter's range.
    pub fn apply(&mut self, id: u16, value: u32) -> Result<(), SettingsError> {
        match id {
            HEADER_TABLE_SIZE => self.header_table_size = value,
            ENABLE_PUSH => self.enable_push = flag(value).ok_or(SettingsError::EnablePush)?,
            MAX_CONCURRENT_STREAMS => self.max_concurrent_streams = Some(value),
            INITIAL_WINDOW_SIZE if value > MAX_WINDOW => return Err(SettingsError::InitialWindowSize),
            INITIAL_WINDOW_SIZE => self.initial_window_size = value,
            MAX_FRAME_SIZE if !(SMALLEST_MAX_FRAME_SIZE..=LARGEST_MAX_FRAME_SIZE).contains(&value) => {
                return Err(SettingsError::MaxFrameSize);
            }
            MAX_FRAME_SIZE => self.max_frame_size = value,
            MAX_HEADER_LIST_SIZE => self.max_header_list_size = Some(value),
            ENABLE_CONNECT_PROTOCOL => match flag(value) {
                Some(enabled) if enabled || !self.enable_connect_protocol => {
                    self.enable_connect_protocol = enabled;
                }
                _ => return Err(SettingsError::EnableConnectProtocol),
            },
            NO_RFC7540_PRIORITIES => {
                self.no_rfc7540_priorities = flag(value).ok_or(SettingsError::NoPriorities)?;
            }
            _ => {}
        }
        Ok(())
    }

    /// Appends a SETTINGS frame with the parameters that differ from the initial values.
    pub fn write(&self, out: &mut Vec<u8>) {
        let initial = Self::default();
        let parameters = [
            (HEADER_TABLE_SIZE, changed(self.header_table_size, initial.header_table_size)),
            (ENABLE_PUSH, changed(self.enable_push.into(), initial.enable_push.into())),
            (MAX_CONCURRENT_STREAMS, self.max_concurrent_streams),
            (INITIAL_WINDOW_SIZE, changed(self.initial_window_size, initial.initial_window_size)),
            (MAX_FRAME_SIZE, changed(self.max_frame_size, initial.max_frame_size)),
            (MAX_HEADER_LIST_SIZE, self.max_header_list_size),
            (ENABLE_CONNECT_PROTOCOL, changed(self.enable_connect_protocol.into(), 0)),
            (NO_RFC7540_PRIORITIES, changed(self.no_rfc7540_priorities.into(), 0)),
        ];
        let changed = parameters.into_iter().filter_map(|(id, value)| Some((id, value?)));
        frame::write_settings(changed, out);
    }
}

fn flag(value: u32) -> Option<bool> {
    match value {
        0 => Some(false),
        1 => Some(true),
        _ => None,
    }
}

fn changed(value: u32, initial: u32) -> Option<u32> {
    (value != initial).then_some(value)
}
