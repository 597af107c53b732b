//! Generated input keeps the fuzzers' invariants.

use crate::invariants;
use proptest::collection::vec;
use proptest::prelude::*;

/// Frames with likely types, lengths and streams, and field blocks of likely bytes.
fn likely_frames() -> impl Strategy<Value = Vec<u8>> {
    let block = prop_oneof![
        Just(b"\x82\x86\x84\x41\x01a".to_vec()),
        Just(b"\x83\x86\x84\x41\x01a\x5c\x015".to_vec()),
        Just(b"\x88".to_vec()),
        Just(b"\x08\x03103".to_vec()),
        Just(b"\x40\x01a\x01b".to_vec()),
        vec(any::<u8>(), 0..20),
    ];
    let payload = prop_oneof![3 => block, 1 => Just(vec![0, 0, 0, 1]), 1 => Just(vec![0; 8]), 1 => vec(any::<u8>(), 0..40)];
    let flags = prop_oneof![Just(4u8), Just(5), Just(0), Just(1), any::<u8>()];
    let frame = (0u8..11, flags, 0u8..8, payload).prop_map(|(kind, flags, stream, payload)| {
        [&[0, 0, payload.len() as u8, kind, flags, 0, 0, 0, stream], &payload[..]].concat()
    });
    (any::<u8>(), vec(frame, 0..12)).prop_map(|(role, frames)| [&[role], &frames.concat()[..]].concat())
}

proptest! {
    #[test]
    fn likely_frames_break_nothing(input in likely_frames()) {
        invariants::frames(&input[1..]);
        invariants::connection(&input);
    }

    #[test]
    fn any_bytes_break_nothing(input in vec(any::<u8>(), 0..200)) {
        invariants::frames(&input);
        invariants::hpack(&input);
        invariants::connection(&input);
    }
}
