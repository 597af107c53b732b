//! Local addresses that connections come from.

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
    /// What is no address or range, a range that runs backwards or from one family to the other, an address twice, or
    /// more than 65536 of them.
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
            Some(twice) => Err(format!("`{twice}` comes twice; each address once")),
            None => Ok(Self(all)),
        }
    }
}

fn address(text: &str) -> Result<IpAddr, String> {
    let wrong =
        || format!("`{text}` is no address; write such as 127.0.0.1-127.0.0.16,127.0.0.40 or fd00::1");
    let address: IpAddr = text.trim().parse().map_err(|_| wrong())?;
    if address.is_unspecified() || address.is_multicast() {
        return Err(format!("`{text}` is no address that a connection can come from"));
    }
    Ok(address)
}

fn range(first: IpAddr, last: IpAddr, room: usize) -> Result<Vec<IpAddr>, String> {
    let (from, to) = match (first, last) {
        (IpAddr::V4(from), IpAddr::V4(to)) => (u128::from(from.to_bits()), u128::from(to.to_bits())),
        (IpAddr::V6(from), IpAddr::V6(to)) => (from.to_bits(), to.to_bits()),
        _ => return Err("the ends must be both IPv4 or both IPv6".to_string()),
    };
    if from > to {
        return Err("the first address is above the last".to_string());
    }
    if to - from >= room as u128 {
        return Err(format!("more than {MOST} addresses in all; allowed: 1 to {MOST}"));
    }
    let address = |bits: u128| match first {
        IpAddr::V4(_) => IpAddr::V4(Ipv4Addr::from_bits(bits as u32)),
        IpAddr::V6(_) => IpAddr::V6(Ipv6Addr::from_bits(bits)),
    };
    Ok((from..=to).map(address).collect())
}

/// The sources in turn, each worker from another place on: `None` for ever where there are none.
pub(crate) fn in_turn(sources: &[IpAddr], worker: usize, workers: usize) -> Cycle<vec::IntoIter<IpAddr>> {
    let mut sources = sources.to_vec();
    let start = sources.len() * worker / workers.max(1);
    sources.rotate_left(start);
    sources.into_iter().cycle()
}

/// Sees that each source can be bound, and keeps the destinations that all of them can reach by their family.
pub(crate) fn check(sources: &[IpAddr], destinations: Vec<Address>) -> Result<Vec<Address>, Usage> {
    let Some(first) = sources.first() else { return Ok(destinations) };
    if let Some(other) = sources.iter().find(|source| source.is_ipv4() != first.is_ipv4()) {
        let allowed = format!("addresses of one family, as the first, {first}");
        return Err(Usage::new("--source", &other.to_string(), &allowed));
    }
    let fits = |address: &Address| matches!(address, Address::Tcp(to) if to.is_ipv4() == first.is_ipv4());
    let (fitting, others): (Vec<_>, Vec<_>) = destinations.into_iter().partition(fits);
    if fitting.is_empty() {
        let family = if first.is_ipv4() { "IPv6" } else { "IPv4" };
        let shown: Vec<String> = others.iter().map(ToString::to_string).collect();
        let allowed = format!("{family} addresses, as the destination is {}", shown.join(", "));
        return Err(Usage::new("--source", &first.to_string(), &allowed));
    }
    for source in sources {
        // A datagram socket: its ports are not those that the run needs.
        if let Err(error) = UdpSocket::bind((*source, 0)) {
            let allowed = format!("addresses that this machine has ({error}; `ip address` lists them)");
            return Err(Usage::new("--source", &source.to_string(), &allowed));
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
    fn what_is_no_list_is_told() {
        for (text, why) in [
            ("", "`` is no address"),
            ("localhost", "`localhost` is no address; write such as 127.0.0.1-127.0.0.16"),
            ("127.0.0.1,", "`` is no address"),
            ("127.0.0.1-", "`` is no address"),
            ("127.0.0.0/8", "`127.0.0.0/8` is no address"),
            ("0.0.0.0", "that a connection can come from"),
            ("ff02::1", "that a connection can come from"),
            ("127.0.0.2-127.0.0.1", "`127.0.0.2-127.0.0.1`: the first address is above the last"),
            ("127.0.0.1-::1", "both IPv4 or both IPv6"),
            ("127.0.0.1-127.1.0.1", "more than 65536"),
            ("::1-fd00::1", "more than 65536"),
            ("127.0.0.1-127.1.0.0,127.2.0.1", "more than 65536"),
            ("127.0.0.1,127.0.0.0-127.0.0.3", "`127.0.0.1` comes twice"),
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
                "--source: `::1` cannot be used; allowed: IPv4 addresses, as the destination is 127.",
            ),
            ("127.0.0.1", &both[..1], "--source: `127.0.0.1` cannot be used; allowed: IPv6 addresses"),
            ("127.0.0.1,::1", &both[..], "--source: `::1` cannot be used; allowed: addresses of one family"),
            // RFC 5737: nobody has it.
            (
                "127.0.0.1,192.0.2.1",
                &both[..],
                "--source: `192.0.2.1` cannot be used; allowed: addresses that this",
            ),
        ] {
            let error = check(&ip(sources), destinations.to_vec()).unwrap_err().to_string();
            assert!(error.contains(message), "{error}");
        }
    }
}
