//! Authorities: a host with an optional port.

use std::net::Ipv6Addr;

use crate::scan::is_host_byte;

/// A host with an optional port, as in `Host`, in an absolute target or in the target of CONNECT.
///
/// Narrower than RFC 3986, section 3.2. A name contains no user information, no percent-encoding and no sub-delimiters:
/// resolvable names need none of these, and two recipients may parse a host that contains them differently. A port has
/// one to five digits and fits into 16 bits. An address literal is an IPv6 address without a zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Authority<'a> {
    /// The name or address as written, in any case; an IPv6 address with its brackets. Never empty.
    pub host: &'a [u8],
    /// The port, if present.
    pub port: Option<u16>,
}

impl<'a> Authority<'a> {
    /// Parses all of `bytes`; `None` if they are not a host with an optional port.
    #[must_use]
    pub fn parse(bytes: &'a [u8]) -> Option<Self> {
        let host_end = if bytes.first() == Some(&b'[') {
            let close = bytes.iter().position(|&b| b == b']')?;
            let address = std::str::from_utf8(&bytes[1..close]).ok()?;
            address.parse::<Ipv6Addr>().ok()?;
            close + 1
        } else {
            bytes.iter().position(|&b| !is_host_byte(b)).unwrap_or(bytes.len())
        };
        let (host, rest) = bytes.split_at(host_end);
        if host.is_empty() {
            return None;
        }
        let port = match rest {
            [] => None,
            [b':', digits @ ..] => Some(port(digits)?),
            _ => return None,
        };
        Some(Self { host, port })
    }
}

fn port(digits: &[u8]) -> Option<u16> {
    if digits.is_empty() || digits.len() > 5 {
        return None;
    }
    let mut port = 0;
    for digit in digits {
        if !digit.is_ascii_digit() {
            return None;
        }
        port = port * 10 + u32::from(digit - b'0');
    }
    u16::try_from(port).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn authorities() {
        let good: [(&str, &str, Option<u16>); 7] = [
            ("example.com", "example.com", None),
            ("a_b-c~d.E", "a_b-c~d.E", None),
            ("localhost:0", "localhost", Some(0)),
            ("127.0.0.1:65535", "127.0.0.1", Some(65535)),
            ("[::1]", "[::1]", None),
            ("[2001:db8::1]:8443", "[2001:db8::1]", Some(8443)),
            ("h:00080", "h", Some(80)),
        ];
        for (text, host, port) in good {
            assert_eq!(
                Authority::parse(text.as_bytes()),
                Some(Authority { host: host.as_bytes(), port }),
                "{text}"
            );
        }
        let bad = [
            "",
            ":80",
            "a:",
            "a:65536",
            "a:000080",
            "a:+1",
            "a:8x",
            "a:1:2",
            "u@a",
            "a/",
            "a?b",
            "a b",
            "a,b",
            "a%41",
            "[::1",
            "[::1]x",
            "[]",
            "[fe80::1%25eth0]",
            "[v1.a]",
            "::1",
            "a\\b",
            "h\u{f6}st",
            "[::1]:",
        ];
        for text in bad {
            assert_eq!(Authority::parse(text.as_bytes()), None, "{text}");
        }
    }
}
