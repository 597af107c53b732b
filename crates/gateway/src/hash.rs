//! A hash that is the same in every worker, process and version, for server IDs and request keys.

/// FNV-1a, with a finalizer that spreads similar inputs.
pub(crate) fn hash_of(bytes: &[u8]) -> u64 {
    let fold = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
    mix(bytes.iter().fold(0xcbf2_9ce4_8422_2325, fold))
}

/// The finalizer of SplitMix64.
pub(crate) fn mix(hash: u64) -> u64 {
    let hash = (hash ^ (hash >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let hash = (hash ^ (hash >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    hash ^ (hash >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All workers, and an upgraded process, must map a key to the same server.
    #[test]
    fn the_hash_does_not_change() {
        assert_eq!(hash_of(b""), 0xf52a_15e9_a9b5_e89b);
        assert_eq!(hash_of(b"http://10.0.0.1"), hash_of(b"http://10.0.0.1"));
        assert_ne!(hash_of(b"http://10.0.0.1"), hash_of(b"http://10.0.0.2"));
    }
}
