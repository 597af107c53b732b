//! The valid ranges of settings, and round trips of SETTINGS frames.

use weir_http2::frame::{Frame, HEADER_BYTES};
use weir_http2::{ErrorCode, Settings, SettingsError};

#[test]
fn ranges() {
    use SettingsError::*;
    for (id, value, expected) in [
        (0x1, u32::MAX, Ok(())),
        (0x2, 0, Ok(())),
        (0x2, 1, Ok(())),
        (0x2, 2, Err((EnablePush, ErrorCode::PROTOCOL_ERROR))),
        (0x3, 0, Ok(())),
        (0x4, (1 << 31) - 1, Ok(())),
        (0x4, 1 << 31, Err((InitialWindowSize, ErrorCode::FLOW_CONTROL_ERROR))),
        (0x5, 16_383, Err((MaxFrameSize, ErrorCode::PROTOCOL_ERROR))),
        (0x5, 16_384, Ok(())),
        (0x5, (1 << 24) - 1, Ok(())),
        (0x5, 1 << 24, Err((MaxFrameSize, ErrorCode::PROTOCOL_ERROR))),
        (0x6, 0, Ok(())),
        (0x7, u32::MAX, Ok(())),
        (0x8, 0, Ok(())),
        (0x8, 2, Err((EnableConnectProtocol, ErrorCode::PROTOCOL_ERROR))),
        (0x9, 1, Ok(())),
        (0x9, 2, Err((NoPriorities, ErrorCode::PROTOCOL_ERROR))),
        (0xffff, 7, Ok(())),
    ] {
        let applied = Settings::default().apply(id, value).map_err(|error| (error, error.code()));
        assert_eq!(applied, expected, "{id:#x} = {value}");
    }
}

#[test]
fn extended_connect_is_never_taken_back() {
    let mut settings = Settings::default();
    settings.apply(0x8, 1).unwrap();
    settings.apply(0x8, 1).unwrap();
    assert_eq!(settings.apply(0x8, 0), Err(SettingsError::EnableConnectProtocol));
}

#[test]
fn written_settings_are_read_back() {
    let all = Settings {
        header_table_size: 0,
        enable_push: false,
        max_concurrent_streams: Some(100),
        initial_window_size: 1 << 20,
        max_frame_size: 65_536,
        max_header_list_size: Some(32_768),
        enable_connect_protocol: true,
        no_rfc7540_priorities: true,
    };
    for (written, parameters) in [(all, 8), (Settings::default(), 0)] {
        let mut out = Vec::new();
        written.write(&mut out);
        assert_eq!(out.len(), HEADER_BYTES + 6 * parameters);
        let mut read = Settings::default();
        for (id, value) in Frame::parameters(&out[HEADER_BYTES..]) {
            read.apply(id, value).unwrap();
        }
        assert_eq!(read, written);
    }
}
