//! Values in Weir's notation: durations, sizes, names, networks, hosts.

use std::net::IpAddr;
use weir_http::FieldName;
pub(crate) use weir_syntax::{bytes, time};

/// Formats a duration; `None` outside Weir's range of 1 ms to a year.
pub(crate) fn duration(ms: u64) -> Option<String> {
    const YEAR: u64 = 365 * 86_400_000;
    (1..=YEAR).contains(&ms).then(|| match ms {
        ms if ms % 86_400_000 == 0 => format!("{}d", ms / 86_400_000),
        ms if ms % 3_600_000 == 0 => format!("{}h", ms / 3_600_000),
        ms if ms % 60_000 == 0 => format!("{}min", ms / 60_000),
        ms if ms % 1000 == 0 => format!("{}s", ms / 1000),
        ms => format!("{ms}ms"),
    })
}

/// Formats a number of bytes in the largest unit that divides it.
pub(crate) fn size(bytes: u64) -> String {
    for (unit, name) in [(1 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")] {
        if bytes > 0 && bytes.is_multiple_of(unit) {
            return format!("{}{name}", bytes / unit);
        }
    }
    format!("{bytes}B")
}

/// Shortens a text to a name for a listener or service: letters, digits, `-` and `_`, at most 48 characters, which
/// leaves room for a number.
pub(crate) fn name(text: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '_' { c } else { '-' };
    let name: String = text.chars().map(plain).take(48).collect();
    let name = name.trim_matches('-');
    if name.is_empty() { "service".to_owned() } else { name.to_owned() }
}

/// The wanted name or, if it is taken, the first free name with a number appended.
pub(crate) fn unique(wanted: &str, is_taken: impl Fn(&str) -> bool) -> String {
    if !is_taken(wanted) {
        return wanted.to_owned();
    }
    (2_u32..).map(|number| format!("{wanted}-{number}")).find(|name| !is_taken(name)).unwrap_or_default()
}

/// Parses a network, and clears its host bits, as Weir requires.
pub(crate) fn network(text: &str) -> Option<String> {
    if matches!(text, "unix" | "unix:") {
        return Some("unix".to_owned());
    }
    let (address, length) = match text.split_once('/') {
        Some((address, length)) => (address, Some(length)),
        None => (text, None),
    };
    let address: IpAddr = address.trim_matches(['[', ']']).parse().ok()?;
    let Some(length) = length else { return Some(address.to_string()) };
    match address {
        IpAddr::V4(address) => {
            // HAProxy accepts a netmask in place of a prefix length.
            let mask = length.parse::<std::net::Ipv4Addr>().ok().map(|mask| mask.to_bits().leading_ones());
            let length = mask.or_else(|| length.parse().ok()).filter(|length| *length <= 32)?;
            let mask = u32::MAX.checked_shl(32 - length).unwrap_or(0);
            Some(format!("{}/{length}", std::net::Ipv4Addr::from_bits(address.to_bits() & mask)))
        }
        IpAddr::V6(address) => {
            let length = length.parse().ok().filter(|length: &u32| *length <= 128)?;
            let mask = u128::MAX.checked_shl(128 - length).unwrap_or(0);
            Some(format!("{}/{length}", std::net::Ipv6Addr::from_bits(address.to_bits() & mask)))
        }
    }
}

/// The narrower of two networks, if one contains the other.
pub(crate) fn narrower(a: &str, b: &str) -> Option<String> {
    let split = |text: &str| {
        let (address, length) = text.split_once('/').unwrap_or((text, ""));
        let (bits, width) = match address.parse().ok()? {
            IpAddr::V4(address) => (u128::from(address.to_bits()) << 96, 32),
            IpAddr::V6(address) => (address.to_bits(), 128),
        };
        Some((bits, width, length.parse::<u32>().unwrap_or(width)))
    };
    if a == b {
        return Some(a.to_owned());
    }
    let ((a_bits, a_width, a_length), (b_bits, b_width, b_length)) = (split(a)?, split(b)?);
    let shorter = a_length.min(b_length);
    let differing = (a_bits ^ b_bits).leading_zeros();
    (a_width == b_width && differing >= shorter).then(|| if a_length >= b_length { a } else { b }.to_owned())
}

/// Whether Weir accepts `host` as a route's host: a name, optionally preceded by `*.`, or an IPv6 address in brackets.
pub(crate) fn is_host(host: &str) -> bool {
    let name = host.strip_prefix("*.").unwrap_or(host);
    let label = |label: &str| {
        !label.is_empty() && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
    };
    let is_ipv6 = || Some(host.strip_prefix('[')?.strip_suffix(']')?.parse::<std::net::Ipv6Addr>().is_ok());
    (name.len() <= 253 && name.split('.').all(label)) || is_ipv6() == Some(true)
}

/// Whether `host` matches all names that `own` matches.
pub(crate) fn host_covers(host: &str, own: &str) -> bool {
    match host.strip_prefix("*.") {
        None => host == own,
        Some(domain) => {
            let own = own.strip_prefix("*.").map_or_else(|| own.to_owned(), |own| format!("x.{own}"));
            own.strip_suffix(domain).is_some_and(|rest| rest.ends_with('.'))
        }
    }
}

/// Whether this is a valid field name (RFC 9110 section 5.1).
pub(crate) fn is_token(text: &str) -> bool {
    weir_http::is_token(text.as_bytes())
}

/// Whether the gateway accepts this as the gRPC service of a health check.
pub(crate) fn is_grpc_service(name: &str) -> bool {
    name.len() <= 256 && name.bytes().all(|byte| byte.is_ascii_graphic())
}

/// Whether this is a framing or hop-by-hop field, which no route may change.
pub(crate) fn is_framing(name: &str) -> bool {
    let name = FieldName::of(name.as_bytes());
    name.is_hop_by_hop() || matches!(name, FieldName::ContentLength | FieldName::Expect)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_change_their_spelling() {
        for (text, plain, spelled) in [
            ("60", 1000, "1min"),
            ("5000", 1, "5s"),
            ("1h 30m", 1000, "90min"),
            ("500ms", 1000, "500ms"),
            ("1d", 1000, "1d"),
        ] {
            assert_eq!(time(text, plain).and_then(duration).as_deref(), Some(spelled), "{text}");
        }
        assert_eq!(["", "x", "1q"].map(|text| time(text, 1)), [None; 3]);
        assert_eq!(duration(0), None);
        for (text, spelled) in
            [("1m", "1MiB"), ("1500", "1500B"), ("8k", "8KiB"), ("10G", "10GiB"), ("0", "0B")]
        {
            assert_eq!(bytes(text).map(size).as_deref(), Some(spelled), "{text}");
        }
        for (text, spelled) in [
            ("10.1.2.3/8", Some("10.0.0.0/8")),
            ("10.0.0.0/255.255.0.0", Some("10.0.0.0/16")),
            ("2001:db8::1/32", Some("2001:db8::/32")),
            ("0.0.0.0/0", Some("0.0.0.0/0")),
            ("192.0.2.1", Some("192.0.2.1")),
            ("unix:", Some("unix")),
            ("host", None),
            ("10.0.0.0/33", None),
        ] {
            assert_eq!(network(text).as_deref(), spelled, "{text}");
        }
        for (a, b, narrower_one) in [
            ("10.0.0.0/8", "10.1.0.0/16", Some("10.1.0.0/16")),
            ("10.1.2.3", "10.0.0.0/8", Some("10.1.2.3")),
            ("0.0.0.0/0", "10.0.0.0/8", Some("10.0.0.0/8")),
            ("10.0.0.0/8", "11.0.0.0/8", None),
            ("::/0", "10.0.0.0/8", None),
        ] {
            assert_eq!(narrower(a, b).as_deref(), narrower_one, "{a} {b}");
        }
        assert_eq!(name("http://a.b:80/"), "http---a-b-80");
        assert_eq!(name("_"), "_");
        assert_eq!(unique("a", |name| name == "a" || name == "a-2"), "a-3");
    }

    #[test]
    fn domains_cover_names_and_domains() {
        for (host, own, covers) in [
            ("a.org", "a.org", true),
            ("*.a.org", "b.a.org", true),
            ("*.a.org", "a.org", false),
            ("*.a.org", "*.a.org", true),
            ("*.a.org", "*.b.a.org", true),
            ("*.b.a.org", "*.a.org", false),
            ("a.org", "*.a.org", false),
            ("*.a.org", "xa.org", false),
        ] {
            assert_eq!(host_covers(host, own), covers, "{host} {own}");
        }
    }
}
