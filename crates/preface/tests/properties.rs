//! Generated input violates no invariant.

use crate::invariants;
use proptest::collection::vec;
use proptest::prelude::*;
use std::net::SocketAddr;
use weir_preface::proxy::{Addresses, Version, write};

proptest! {
    #[test]
    fn any_bytes(bytes in vec(any::<u8>(), 0..200)) {
        invariants::proxy(&bytes);
        invariants::hello(&bytes);
    }

    #[test]
    fn headers_with_some_bytes_changed(
        source: SocketAddr,
        destination: SocketAddr,
        is_v2: bool,
        changes in vec((any::<prop::sample::Index>(), any::<u8>()), 0..3),
    ) {
        let mut bytes = Vec::new();
        let version = if is_v2 { Version::V2 } else { Version::V1 };
        write(version, Some(Addresses { source, destination }), &mut bytes);
        for (at, byte) in changes {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        invariants::proxy(&bytes);
    }

    #[test]
    fn bytes_behind_the_beginning_of_a_hello(rest in vec(any::<u8>(), 0..300), len in 0u8..=255) {
        let head = [22, 3, 1, 0, len, 1, 0, 0, len.saturating_sub(4)];
        invariants::hello(&[&head[..], &rest].concat());
    }
}
