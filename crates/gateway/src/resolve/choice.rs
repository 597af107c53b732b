//! The choice of a server's address among those of its name.

use super::{Family, Found, Prefer};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Choice {
    /// The lookup found the server's current address again.
    Stays,
    /// The lookup did not find the address, but its family is unknown for this reason.
    StaysUnknown(String),
    /// The name no longer has the address; the server moves to this one.
    Moves(IpAddr),
}

/// Chooses the server's next address. An address in use stays, wherever it is in the list, since name servers rotate
/// the order.
pub(crate) fn choose(now: IpAddr, found: &Found, prefer: Prefer) -> Choice {
    if found.addresses.contains(&now) {
        return Choice::Stays;
    }
    match (&found.unknown, first(Some(now), &found.addresses, prefer, is_routed)) {
        (Some((family, why)), _) if *family == Family::of(now) => Choice::StaysUnknown(why.clone()),
        (_, Some(next)) => Choice::Moves(next),
        (_, None) => Choice::Stays,
    }
}

/// The address that a server starts with.
pub(crate) fn begin(found: &Found, prefer: Prefer) -> Option<IpAddr> {
    first(None, &found.addresses, prefer, is_routed)
}

/// The best address: one with a route, then one of the preferred family, then the first in the response.
fn first(
    now: Option<IpAddr>,
    addresses: &[IpAddr],
    prefer: Prefer,
    is_routed: impl Fn(IpAddr) -> bool,
) -> Option<IpAddr> {
    let family = match prefer {
        Prefer::Any => now.map_or(Family::Ipv6, Family::of),
        Prefer::Ipv4 => Family::Ipv4,
        Prefer::Ipv6 => Family::Ipv6,
    };
    // `min_by_key` returns the first of several equal ones.
    addresses.iter().copied().min_by_key(|address| (!is_routed(*address), Family::of(*address) != family))
}

/// Whether the kernel has a route to the address. Connecting a UDP socket sends nothing.
fn is_routed(address: IpAddr) -> bool {
    let any = match address {
        IpAddr::V4(_) => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
        IpAddr::V6(_) => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
    };
    let socket = UdpSocket::bind(SocketAddr::new(any, 0));
    socket.and_then(|socket| socket.connect(SocketAddr::new(address, DISCARD))).is_ok()
}

/// The port for [`is_routed`]; its value does not matter.
const DISCARD: u16 = 9;

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn at(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    fn found(addresses: &[&str], unknown: Option<Family>) -> Found {
        let addresses = addresses.iter().map(|text| at(text)).collect();
        let unknown = unknown.map(|family| (family, "trouble".to_owned()));
        Found { addresses, ttl: Duration::ZERO, unknown }
    }

    #[test]
    fn an_address_stays_as_long_as_it_is_among_the_answers() {
        let now = at("127.0.0.1");
        for prefer in [Prefer::Any, Prefer::Ipv4, Prefer::Ipv6] {
            assert_eq!(choose(now, &found(&["::1", "127.0.0.2", "127.0.0.1"], None), prefer), Choice::Stays);
            assert_eq!(choose(now, &found(&[], None), prefer), Choice::Stays);
            let gone = found(&["127.0.0.3", "127.0.0.2"], None);
            assert_eq!(choose(now, &gone, prefer), Choice::Moves(at("127.0.0.3")));
        }
    }

    #[test]
    fn an_address_whose_family_could_not_be_asked_about_stays() {
        let now = at("127.0.0.1");
        let other = |unknown| found(&["::1"], unknown);
        assert_eq!(
            choose(now, &other(Some(Family::Ipv4)), Prefer::Any),
            Choice::StaysUnknown("trouble".to_owned())
        );
        assert_eq!(choose(now, &other(None), Prefer::Any), Choice::Moves(at("::1")));
        let gone = found(&["127.0.0.2"], Some(Family::Ipv6));
        assert_eq!(choose(now, &gone, Prefer::Any), Choice::Moves(at("127.0.0.2")));
    }

    #[test]
    fn what_can_be_reached_comes_before_what_is_preferred() {
        let all = ["2001:db8::1", "192.0.2.1", "192.0.2.2"].map(at);
        let first = |now: Option<&str>, prefer, routed: &[&str]| {
            let is_routed = |address| routed.iter().any(|text| at(text) == address);
            first(now.map(at), &all, prefer, is_routed).unwrap().to_string()
        };
        let everything = ["2001:db8::1", "192.0.2.1", "192.0.2.2"];
        let ipv4 = ["192.0.2.1", "192.0.2.2"];
        assert_eq!(first(None, Prefer::Any, &everything), "2001:db8::1");
        assert_eq!(first(Some("192.0.2.9"), Prefer::Any, &everything), "192.0.2.1");
        assert_eq!(first(Some("2001:db8::9"), Prefer::Any, &everything), "2001:db8::1");
        assert_eq!(first(None, Prefer::Ipv4, &everything), "192.0.2.1");
        assert_eq!(first(Some("192.0.2.9"), Prefer::Ipv6, &everything), "2001:db8::1");
        for prefer in [Prefer::Any, Prefer::Ipv4, Prefer::Ipv6] {
            assert_eq!(first(None, prefer, &ipv4), "192.0.2.1");
        }
        assert_eq!(first(None, Prefer::Ipv6, &[]), "2001:db8::1");
    }

    #[test]
    fn this_machine_can_be_reached() {
        assert!(is_routed(at("127.0.0.2")));
    }
}
