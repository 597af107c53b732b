//! Who may connect and ask, and how often: what one client may take of what all share.

mod crowd;
mod rate;
mod shards;

pub(crate) use crowd::{Crowd, Present};
pub(crate) use rate::Rate;

use crate::config::mapped;
use std::net::IpAddr;

/// What counts as one client: an IPv4 address, or an IPv6 network of 64 bits, within which a host has all the addresses that it
/// wants (RFC 4291 section 2.5.1). Those on a Unix socket are one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Origin(u128);

impl Origin {
    /// The network that it is in, if all cannot be told apart: of 24 bits for IPv4, of 48 for IPv6, as sites have them.
    fn network(self) -> Self {
        let is_ipv4 = self.0 >> 32 == 0xffff;
        let host = if is_ipv4 { 8 } else { 80 };
        Self(self.0 >> host << host)
    }

    pub(crate) fn of(address: Option<IpAddr>) -> Self {
        Self(match address.map(|address| address.to_canonical()) {
            Some(address @ IpAddr::V4(_)) => mapped(address),
            Some(address @ IpAddr::V6(_)) => mapped(address) >> 64 << 64,
            None => 0,
        })
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
    }

    #[test]
    fn clients_of_one_site_have_one_network() {
        let of = |text: &str| Origin::of(Some(text.parse().unwrap())).network();
        assert_eq!(of("192.0.2.1"), of("192.0.2.255"));
        assert_ne!(of("192.0.2.1"), of("192.0.3.1"));
        assert_eq!(of("2001:db8:1:2::1"), of("2001:db8:1:ffff::1"));
        assert_ne!(of("2001:db8:1::1"), of("2001:db8:2::1"));
    }
}
