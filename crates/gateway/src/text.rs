//! Addresses as text, without an allocation.

use std::io::Write as _;
use std::net::IpAddr;

/// Appends an address as text. Writes an IPv6 address that contains an IPv4 address as IPv4.
pub(crate) fn ip(address: IpAddr, out: &mut Vec<u8>) {
    match address.to_canonical() {
        IpAddr::V4(address) => {
            for (at, octet) in address.octets().into_iter().enumerate() {
                if at > 0 {
                    out.push(b'.');
                }
                weir_http1::decimal(octet.into(), out);
            }
        }
        // Writing to a vector does not fail.
        IpAddr::V6(address) => drop(write!(out, "{address}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_written_as_they_are_read() {
        for (from, text) in
            [("192.0.2.1", "192.0.2.1"), ("::ffff:10.0.0.255", "10.0.0.255"), ("2001:db8::1", "2001:db8::1")]
        {
            let mut out = Vec::new();
            ip(from.parse().unwrap(), &mut out);
            assert_eq!(String::from_utf8(out).unwrap(), text);
        }
    }
}
