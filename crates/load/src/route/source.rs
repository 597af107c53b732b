//! Source addresses of connections.

use crate::usage::Usage;
use std::collections::HashSet;
use std::iter::Cycle;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, UdpSocket};
use std::str::FromStr;
use std::vec;
use weir_transport::Address;

/// Local addresses, written `127.0.0.1-127.0.0.16,127.0.0.40`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sources(pub Vec<IpAddr>);

const MOST: usize = 65_536;

impl FromStr for Sources {
    type Err = String;

    /// # Errors
    /// An invalid address or range, a reversed range or one across families, a duplicate address, or
    /// more than 65536 addresses.
    fn from_str(text: &str) -> Result<Self, String> {
        let mut all = Vec::new();
        for part in text.split(',') {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let (first, last) = (address(first)?, address(last)?);
            let room = MOST - all.len();
            all.extend(range(first, last, room).map_err(|why| format!("`{part}`: {why}"))?);
        }
        let mut seen = HashSet::new();
        match all.iter().find(|address| !seen.insert(**address)) {
            Some(twice) => Err(format!("duplicate address `{twice}`")),
            None => Ok(Self(all)),
        }
    }
}

fn address(text: &str) -> Result<IpAddr, String> {
    let wrong =
        || format!("invalid address `{text}`: expected such as 127.0.0.1-127.0.0.16,127.0.0.40 or fd00::1");
    let address: IpAddr = text.trim().parse().map_err(|_| wrong())?;
    if address.is_unspecified() || address.is_multicast() {
        return Err(format!("`{text}` cannot be a source address"));
    }
    Ok(address)
}

fn range(first: IpAddr, last: IpAddr, room: usize) -> Result<Vec<IpAddr>, String> {
    let (from, to) = match (first, last) {
        (IpAddr::V4(from), IpAddr::V4(to)) => (u128::from(from.to_bits()), u128::from(to.to_bits())),
        (IpAddr::V6(from), IpAddr::V6(to)) => (from.to_bits(), to.to_bits()),
        _ => return Err("expected both ends IPv4 or both IPv6".to_string()),
    };
    if from > to {
        return Err("the first address is above the last".to_string());
    }
    if to - from >= room as u128 {
        return Err(format!("expected 1 to {MOST} addresses in total"));
    }
    let address = |bits: u128| match first {
        IpAddr::V4(_) => IpAddr::V4(Ipv4Addr::from_bits(bits as u32)),
        IpAddr::V6(_) => IpAddr::V6(Ipv6Addr::from_bits(bits)),
    };
    Ok((from..=to).map(address).collect())
}

/// Cycles through the sources, each worker from a different position; always `None` without sources.
pub(crate) fn in_turn(sources: &[IpAddr], worker: usize, workers: usize) -> Cycle<vec::IntoIter<IpAddr>> {
    let mut sources = sources.to_vec();
    let start = sources.len() * worker / workers.max(1);
    sources.rotate_left(start);
    sources.into_iter().cycle()
}

/// Checks that each source can be bound, and keeps the destinations of the same address family.
pub(crate) fn check(sources: &[IpAddr], destinations: Vec<Address>) -> Result<Vec<Address>, Usage> {
    let Some(first) = sources.first() else { return Ok(destinations) };
    if let Some(other) = sources.iter().find(|source| source.is_ipv4() != first.is_ipv4()) {
        let expected = format!("addresses of the same family as the first, {first}");
        return Err(Usage::new("--source", &other.to_string(), &expected));
    }
    let fits = |address: &Address| matches!(address, Address::Tcp(to) if to.is_ipv4() == first.is_ipv4());
    let (fitting, others): (Vec<_>, Vec<_>) = destinations.into_iter().partition(fits);
    if fitting.is_empty() {
        let family = if first.is_ipv4() { "IPv6" } else { "IPv4" };
        let shown: Vec<String> = others.iter().map(ToString::to_string).collect();
        let expected = format!("{family} addresses, as the destination is {}", shown.join(", "));
        return Err(Usage::new("--source", &first.to_string(), &expected));
    }
    for source in sources {
        // A UDP socket, whose ports the run does not need.
        if let Err(error) = UdpSocket::bind((*source, 0)) {
            let expected = format!("local addresses ({error}; `ip address` lists them)");
            return Err(Usage::new("--source", &source.to_string(), &expected));
        }
    }
    Ok(fitting)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_and_ranges() {
        for (text, shown) in [
            ("127.0.0.1", "127.0.0.1"),
            ("127.0.0.254-127.0.1.1,127.0.0.40", "127.0.0.254 127.0.0.255 127.0.1.0 127.0.1.1 127.0.0.40"),
            ("::1, fd00::ffff-fd00::1:1", "::1 fd00::ffff fd00::1:0 fd00::1:1"),
            ("10.0.0.1-10.0.0.1", "10.0.0.1"),
        ] {
            let sources: Sources = text.parse().unwrap();
            let all: Vec<String> = sources.0.iter().map(ToString::to_string).collect();
            assert_eq!(all.join(" "), shown);
        }
        assert_eq!("127.0.0.1-127.1.0.0".parse::<Sources>().unwrap().0.len(), MOST);
    }

    #[test]
    fn invalid_lists_are_rejected() {
        for (text, why) in [
            ("", "invalid address ``"),
            ("localhost", "invalid address `localhost`: expected such as 127.0.0.1-127.0.0.16"),
            ("127.0.0.1,", "invalid address ``"),
            ("127.0.0.1-", "invalid address ``"),
            ("127.0.0.0/8", "invalid address `127.0.0.0/8`"),
            ("0.0.0.0", "`0.0.0.0` cannot be a source address"),
            ("ff02::1", "`ff02::1` cannot be a source address"),
            ("127.0.0.2-127.0.0.1", "`127.0.0.2-127.0.0.1`: the first address is above the last"),
            ("127.0.0.1-::1", "expected both ends IPv4 or both IPv6"),
            ("127.0.0.1-127.1.0.1", "expected 1 to 65536 addresses"),
            ("::1-fd00::1", "expected 1 to 65536 addresses"),
            ("127.0.0.1-127.1.0.0,127.2.0.1", "expected 1 to 65536 addresses"),
            ("127.0.0.1,127.0.0.0-127.0.0.3", "duplicate address `127.0.0.1`"),
        ] {
            let error = text.parse::<Sources>().unwrap_err();
            assert!(error.contains(why), "{text}: {error}");
        }
    }

    #[test]
    fn workers_begin_at_different_sources() {
        let sources = "127.0.0.1-127.0.0.4".parse::<Sources>().unwrap().0;
        let first = |worker| -> Vec<String> {
            in_turn(&sources, worker, 2).take(5).map(|source| source.to_string()).collect()
        };
        assert_eq!(first(0), ["127.0.0.1", "127.0.0.2", "127.0.0.3", "127.0.0.4", "127.0.0.1"]);
        assert_eq!(first(1), ["127.0.0.3", "127.0.0.4", "127.0.0.1", "127.0.0.2", "127.0.0.3"]);
        assert_eq!(in_turn(&[], 1, 2).next(), None);
    }

    #[test]
    fn sources_fit_the_machine_and_the_destination() {
        let tcp = |text: &str| Address::Tcp(text.parse().unwrap());
        let both = vec![tcp("[::1]:80"), tcp("127.0.0.1:80")];
        let ip = |text: &str| -> Vec<IpAddr> { text.parse::<Sources>().unwrap().0 };
        assert_eq!(check(&[], both.clone()), Ok(both.clone()));
        assert_eq!(check(&ip("127.0.0.1-127.0.0.9"), both.clone()), Ok(vec![both[1].clone()]));
        for (sources, destinations, message) in [
            (
                "::1",
                &both[1..],
                "--source: invalid value `::1`: expected IPv4 addresses, as the destination is 127.",
            ),
            ("127.0.0.1", &both[..1], "--source: invalid value `127.0.0.1`: expected IPv6 addresses"),
            (
                "127.0.0.1,::1",
                &both[..],
                "--source: invalid value `::1`: expected addresses of the same family",
            ),
            // RFC 5737: reserved for documentation.
            (
                "127.0.0.1,192.0.2.1",
                &both[..],
                "--source: invalid value `192.0.2.1`: expected local addresses",
            ),
        ] {
            let error = check(&ip(sources), destinations.to_vec()).unwrap_err().to_string();
            assert!(error.contains(message), "{error}");
        }
    }
}
