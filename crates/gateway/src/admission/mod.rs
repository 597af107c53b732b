//! Who may connect and ask, and how often: what one client may take of what all share.

mod crowd;
mod rate;

pub(crate) use crowd::{Crowd, Present};
pub(crate) use rate::Rate;

use std::net::IpAddr;

/// What counts as one client: an IPv4 address, or an IPv6 network of 64 bits, within which a host has all the addresses that it
/// wants (RFC 4291 section 2.5.1). Those on a Unix socket are one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Origin(u128);

impl Origin {
    pub(crate) fn of(address: Option<IpAddr>) -> Self {
        Self(match address.map(|address| address.to_canonical()) {
            Some(IpAddr::V4(address)) => address.to_ipv6_mapped().to_bits(),
            Some(IpAddr::V6(address)) => address.to_bits() >> 64 << 64,
            None => 0,
        })
    }

    /// Which of so many maps it is in.
    fn shard(self, shards: usize) -> usize {
        // Neighbours come together: the low bits of an IPv4 address and those of an IPv6 network.
        let mixed = ((self.0 >> 64) as u64 ^ self.0 as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        (mixed >> 32) as usize % shards
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_is_an_ipv4_address_or_an_ipv6_network() {
        let of = |text: &str| Origin::of(Some(text.parse().unwrap()));
        assert_eq!(of("192.0.2.1"), of("::ffff:192.0.2.1"));
        assert_ne!(of("192.0.2.1"), of("192.0.2.2"));
        assert_eq!(of("2001:db8:1:2::1"), of("2001:db8:1:2:ffff::"));
        assert_ne!(of("2001:db8:1:2::1"), of("2001:db8:1:3::1"));
        assert_ne!(Origin::of(None), of("0.0.0.0"));
        let shards: std::collections::BTreeSet<_> =
            (0..=255).map(|last| of(&format!("192.0.2.{last}")).shard(16)).collect();
        assert_eq!(shards.len(), 16, "neighbours do not crowd in one map");
    }
}
