//! Networks: addresses with a prefix length, or all clients on Unix sockets.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

/// A network such as `10.0.0.0/8` or `2001:db8::/32`, a single address, or `unix`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Network {
    /// A range of addresses. IPv4 addresses are mapped into IPv6, so that one type represents both.
    Addresses {
        /// The bits of the prefix, followed by zeros.
        bits: u128,
        /// A one for each bit of the prefix, followed by zeros.
        mask: u128,
    },
    /// Clients that connect over a Unix socket, and therefore have no address.
    Unix,
}

impl Network {
    /// Whether the address is in the network. Also accepts an IPv4 address mapped into IPv6.
    pub fn contains(self, address: Option<IpAddr>) -> bool {
        match (self, address) {
            (Self::Addresses { bits, mask }, Some(address)) => mapped(address) & mask == bits,
            (Self::Unix, None) => true,
            (Self::Addresses { .. }, None) | (Self::Unix, Some(_)) => false,
        }
    }

    /// Whether the network contains all of `other`.
    pub(crate) fn includes(self, other: Self) -> bool {
        match (self, other) {
            (Self::Addresses { bits, mask }, Self::Addresses { bits: inner, mask: longer }) => {
                longer & mask == mask && inner & mask == bits
            }
            (Self::Unix, Self::Unix) => true,
            (Self::Addresses { .. }, Self::Unix) | (Self::Unix, Self::Addresses { .. }) => false,
        }
    }

    /// The name of an address family whose unicast addresses are all in the union of these networks; `None` if there is
    /// no such family.
    pub(crate) fn internet_in(networks: &[Self]) -> Option<&'static str> {
        let v4 = |a, b, c, d| mapped(IpAddr::V4(Ipv4Addr::new(a, b, c, d)));
        // Includes private and reserved addresses: an operator who means the whole Internet would not exclude them.
        let families =
            [("IPv4", v4(1, 0, 0, 0), v4(223, 255, 255, 255)), ("IPv6", 0x2000 << 112, (0x4000 << 112) - 1)];
        let mut ranges: Vec<_> = networks
            .iter()
            .filter_map(|network| match network {
                Self::Addresses { bits, mask } => Some((*bits, *bits | !*mask)),
                Self::Unix => None,
            })
            .collect();
        ranges.sort_unstable();
        let is_covered = |first: u128, last: u128| {
            let mut next = first;
            for (from, to) in &ranges {
                if *from <= next && *to >= next {
                    match to.checked_add(1) {
                        Some(behind) if behind <= last => next = behind,
                        _ => return true,
                    }
                }
            }
            false
        };
        families.into_iter().find(|(_, first, last)| is_covered(*first, *last)).map(|(family, ..)| family)
    }

    /// Whether the address is in any of these networks.
    #[inline]
    pub(crate) fn any_contains(networks: &[Self], address: Option<IpAddr>) -> bool {
        networks.iter().any(|network| network.contains(address))
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self::Addresses { bits, mask } = *self else { return f.write_str("unix") };
        let address = Ipv6Addr::from_bits(bits);
        let host_bits = mask.trailing_zeros();
        match (address.to_ipv4_mapped(), host_bits) {
            (Some(address), 0) => write!(f, "{address}"),
            (Some(address), 1..=32) => write!(f, "{address}/{}", 32 - host_bits),
            (_, 0) => write!(f, "{address}"),
            _ => write!(f, "{address}/{}", 128 - host_bits),
        }
    }
}

impl FromStr for Network {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || {
            format!(
                "invalid network `{text}`: expected an address, one with a prefix, such as 10.0.0.0/8 or 2001:db8::/32, or `unix`"
            )
        };
        if text == "unix" {
            return Ok(Self::Unix);
        }
        let (address, length) = match text.split_once('/') {
            Some((address, length)) => (address, Some(length)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().map_err(|_| wrong())?;
        let most: u32 = if address.is_ipv4() { 32 } else { 128 };
        let length = match length {
            Some(length) => length.parse().ok().filter(|length| *length <= most).ok_or_else(wrong)?,
            None => most,
        };
        let host_bits = most - length;
        let mask = if host_bits == 128 { 0 } else { u128::MAX << host_bits };
        let bits = mapped(address);
        match bits & mask == bits {
            true => Ok(Self::Addresses { bits, mask }),
            false => Err(format!("invalid network `{text}`: it has bits beyond its prefix of {length}")),
        }
    }
}

/// The address, mapped into IPv6.
pub(crate) fn mapped(address: IpAddr) -> u128 {
    let address = match address {
        IpAddr::V4(address) => address.to_ipv6_mapped(),
        IpAddr::V6(address) => address,
    };
    Ipv6Addr::to_bits(address)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_is_written_as_it_is_read() {
        for text in ["10.0.0.0/8", "192.0.2.1", "0.0.0.0/0", "2001:db8::/32", "::1", "::/0", "unix"] {
            assert_eq!(text.parse::<Network>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn addresses_are_in_their_networks() {
        for (network, inside, outside) in [
            ("10.0.0.0/8", "10.255.0.1", "11.0.0.1"),
            ("10.0.0.0/8", "::ffff:10.1.2.3", "::10.1.2.3"),
            ("192.0.2.7", "192.0.2.7", "192.0.2.8"),
            ("2001:db8::/32", "2001:db8:ffff::1", "2001:db9::1"),
            ("0.0.0.0/0", "203.0.113.9", "2001:db8::1"),
            ("fd00::/127", "fd00::1", "fd00::2"),
        ] {
            let parsed: Network = network.parse().unwrap();
            assert!(parsed.contains(inside.parse().ok()), "{inside} in {network}");
            assert!(!parsed.contains(outside.parse().ok()), "{outside} in {network}");
        }
        let all: Network = "::/0".parse().unwrap();
        assert!(all.contains("192.0.2.1".parse().ok()) && all.contains("::1".parse().ok()));
        assert!(!all.contains(None));
        let unix: Network = "unix".parse().unwrap();
        assert!(unix.contains(None) && !unix.contains("::1".parse().ok()));
    }

    #[test]
    fn the_whole_internet_is_seen_in_any_union() {
        for (networks, family) in [
            ("0.0.0.0/0", Some("IPv4")),
            ("::/0", Some("IPv4")),
            ("2000::/3", Some("IPv6")),
            ("::ffff:0:0/96", Some("IPv4")),
            ("0.0.0.0/1 128.0.0.0/1", Some("IPv4")),
            ("128.0.0.0/1 10.0.0.0/8 0.0.0.0/1", Some("IPv4")),
            ("0.0.0.0/2 64.0.0.0/2 128.0.0.0/2 192.0.0.0/2", Some("IPv4")),
            (
                "1.0.0.0/8 2.0.0.0/7 4.0.0.0/6 8.0.0.0/5 16.0.0.0/4 32.0.0.0/3 64.0.0.0/2 128.0.0.0/2 192.0.0.0/3",
                Some("IPv4"),
            ),
            ("2000::/4 3000::/4", Some("IPv6")),
            ("::/1", Some("IPv4")),
            ("", None),
            ("unix", None),
            ("0.0.0.0/1", None),
            ("128.0.0.0/1", None),
            ("0.0.0.0/1 192.0.0.0/2", None),
            ("10.0.0.0/8 172.16.0.0/12 192.168.0.0/16 fd00::/8", None),
            ("2000::/4", None),
            ("fe80::/10 8000::/1", None),
        ] {
            let parsed: Vec<Network> =
                networks.split_whitespace().map(|network| network.parse().unwrap()).collect();
            assert_eq!(Network::internet_in(&parsed), family, "{networks}");
        }
    }

    #[test]
    fn what_is_no_network_is_refused() {
        for text in ["", "10.0.0.0/33", "10.0.0.0/", "10.0.0.0/-1", "10.0.0.1/8", "::/129", "host", "10.0.0"]
        {
            let error = text.parse::<Network>().unwrap_err();
            assert!(error.starts_with(&format!("invalid network `{text}`")), "{error}");
        }
    }
}
