//! Assigns existing sockets to addresses of the configuration.

use super::Label;
use weir_transport::Address;

#[derive(Clone, Debug)]
pub(crate) struct Wanted {
    /// Whether this is the admin or metrics address, rather than a listener's.
    pub admin: bool,
    pub name: String,
    /// The address as written in the configuration, without a scheme.
    pub place: String,
    pub address: Address,
}

/// A socket that an address may take.
pub(crate) trait Candidate {
    fn label(&self) -> &Label;
    fn address(&self) -> &Address;
}

/// The sockets of each address, and the unassigned ones, each with its index in the given list.
#[derive(Debug)]
pub(crate) struct Matched<C> {
    pub taken: Vec<Vec<C>>,
    pub left: Vec<(usize, C)>,
}

/// Assigns sockets to `wanted` addresses, the closest matches first. Sockets of one address stay together, in order.
pub(crate) fn matched<C: Candidate>(wanted: &[Wanted], given: Vec<C>) -> Matched<C> {
    let mut taken: Vec<Vec<C>> = wanted.iter().map(|_| Vec::new()).collect();
    let mut left: Vec<(usize, C)> = given.into_iter().enumerate().collect();
    // With weaker matches first, a socket could go to the wrong address: several listeners may have port 0, and an
    // address may have moved to another listener.
    for fits in [is_same, has_same_place, has_same_address, has_same_name] {
        for (wanted, taken) in wanted.iter().zip(&mut taken).filter(|(_, taken)| taken.is_empty()) {
            let first = left.iter().find(|(_, given)| fits(wanted, given));
            let Some(address) = first.map(|(_, given)| given.address().clone()) else { continue };
            let of_it = |(_, given): &(usize, C)| *given.address() == address && fits(wanted, given);
            let (of_it, others) = left.into_iter().partition(of_it);
            left = others;
            taken.extend(Vec::from_iter::<Vec<_>>(of_it).into_iter().map(|(_, given)| given));
        }
    }
    Matched { taken, left }
}

fn is_same<C: Candidate>(wanted: &Wanted, given: &C) -> bool {
    matches!(given.label(), Label::Handed { name, .. } if *name == wanted.name)
        && has_same_place(wanted, given)
}

fn has_same_place<C: Candidate>(wanted: &Wanted, given: &C) -> bool {
    matches!(given.label(), Label::Handed { admin, place, .. } if (*admin, place) == (wanted.admin, &wanted.place))
}

fn has_same_address<C: Candidate>(wanted: &Wanted, given: &C) -> bool {
    let is_meant = match given.label() {
        Label::Handed { admin, .. } => *admin == wanted.admin,
        Label::Named(_) => true,
    };
    is_meant && *given.address() == wanted.address
}

/// Matches a systemd socket by the name of the listener, since its address may differ from the configured one.
fn has_same_name<C: Candidate>(wanted: &Wanted, given: &C) -> bool {
    matches!(given.label(), Label::Named(name) if *name == wanted.name)
}

#[cfg(test)]
mod tests {
    use super::super::Given;
    use super::*;
    use std::net::SocketAddr;
    use weir_reactor::Listener;

    /// `count` sockets of one address.
    fn group(label: &Label, count: usize) -> Vec<Given> {
        let group = Listener::bind(SocketAddr::from(([127, 0, 0, 1], 0)), count).unwrap();
        group.into_iter().map(|listener| Given { listener, label: label.clone() }).collect()
    }

    fn handed(admin: bool, name: &str, place: &str) -> Label {
        Label::Handed { admin, name: name.to_owned(), place: place.to_owned() }
    }

    fn wanted(admin: bool, name: &str, place: &str) -> Wanted {
        let address = Address::Tcp(place.parse().unwrap());
        Wanted { admin, name: name.to_owned(), place: place.to_owned(), address }
    }

    const ANY: &str = "127.0.0.1:0";

    /// The numbers of the sockets that each of `wanted` gets, and of the unassigned ones.
    fn numbers(wanted: &[Wanted], given: Vec<Vec<Given>>) -> (Vec<Vec<usize>>, Vec<usize>) {
        let given: Vec<Given> = given.into_iter().flatten().collect();
        let inodes: Vec<u64> = given.iter().map(inode).collect();
        let number = |given: &Given| inodes.iter().position(|known| *known == inode(given)).unwrap();
        let Matched { taken, left } = matched(wanted, given);
        let taken = taken.iter().map(|taken| taken.iter().map(number).collect()).collect();
        (taken, left.into_iter().map(|(index, _)| index).collect())
    }

    fn inode(given: &Given) -> u64 {
        rustix::fs::fstat(&given.listener).unwrap().st_ino
    }

    #[test]
    fn names_tell_listeners_with_port_0_apart() {
        let given = [handed(false, "b", ANY), handed(false, "a", ANY), handed(true, "admin", ANY)];
        let given = given.iter().map(|label| group(label, 2)).collect();
        let wanted = [wanted(false, "a", ANY), wanted(false, "b", ANY), wanted(true, "admin", ANY)];
        assert_eq!(numbers(&wanted, given), (vec![vec![2, 3], vec![0, 1], vec![4, 5]], vec![]));
    }

    #[test]
    fn one_listener_may_have_port_0_twice() {
        let given = vec![group(&handed(false, "a", ANY), 2), group(&handed(false, "a", ANY), 2)];
        let wanted = [wanted(false, "a", ANY), wanted(false, "a", ANY)];
        assert_eq!(numbers(&wanted, given), (vec![vec![0, 1], vec![2, 3]], vec![]));
    }

    #[test]
    fn a_listener_with_another_name_keeps_its_sockets_and_addresses_that_are_gone_are_left() {
        let given = vec![group(&handed(false, "a", "127.0.0.2:0"), 1), group(&handed(false, "a", ANY), 2)];
        let wanted = [wanted(false, "other", ANY), wanted(false, "new", "127.0.0.3:0")];
        assert_eq!(numbers(&wanted, given), (vec![vec![1, 2], vec![]], vec![0]));
    }

    #[test]
    fn an_address_that_is_written_in_another_way_is_the_same() {
        let given = group(&handed(false, "a", "localhost:0"), 1);
        let place = given[0].listener.address().to_string();
        assert_eq!(numbers(&[wanted(true, "a", &place)], vec![given]).1, [0], "not the admin address");
        let given = group(&handed(false, "a", "localhost:0"), 1);
        let place = given[0].listener.address().to_string();
        assert_eq!(numbers(&[wanted(false, "b", &place)], vec![given]).0, [[0]]);
    }

    #[test]
    fn sockets_of_systemd_go_by_address_and_then_by_name() {
        let named = |name: &str| group(&Label::Named(name.to_owned()), 1);
        let given = vec![named("b"), named("weir.socket"), named("c")];
        let place = given[1][0].listener.address().to_string();
        let wanted = [wanted(false, "a", &place), wanted(false, "b", ANY)];
        assert_eq!(numbers(&wanted, given), (vec![vec![1], vec![0]], vec![2]));
    }
}
