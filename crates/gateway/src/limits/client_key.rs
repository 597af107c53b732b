//! The identity of a client for limits.

use crate::network::mapped;
use std::net::IpAddr;

/// One client: an IPv4 address, or an IPv6 network of 64 bits, since a host chooses its interface ID freely (RFC 4291
/// section 2.5.1). All clients of Unix sockets count as one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ClientKey(u128);

impl ClientKey {
    /// The client's site, for limits that cannot count every client: a network of 24 bits (IPv4) or 48 bits (IPv6).
    pub(super) fn network(self) -> Self {
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
        let of = |text: &str| ClientKey::of(Some(text.parse().unwrap()));
        assert_eq!(of("192.0.2.1"), of("::ffff:192.0.2.1"));
        assert_ne!(of("192.0.2.1"), of("192.0.2.2"));
        assert_eq!(of("2001:db8:1:2::1"), of("2001:db8:1:2:ffff::"));
        assert_ne!(of("2001:db8:1:2::1"), of("2001:db8:1:3::1"));
        assert_ne!(ClientKey::of(None), of("0.0.0.0"));
    }

    #[test]
    fn clients_of_one_site_have_one_network() {
        let of = |text: &str| ClientKey::of(Some(text.parse().unwrap())).network();
        assert_eq!(of("192.0.2.1"), of("192.0.2.255"));
        assert_ne!(of("192.0.2.1"), of("192.0.3.1"));
        assert_eq!(of("2001:db8:1:2::1"), of("2001:db8:1:ffff::1"));
        assert_ne!(of("2001:db8:1::1"), of("2001:db8:2::1"));
    }
}
