//! The listening sockets of a process, bound or inherited, and each worker's share of them.

mod given;
mod matching;
mod open_socket;
mod rebinding;
pub(super) mod systemd;

pub(super) use given::{Given, Label};
pub(super) use open_socket::OpenSocket;
pub(super) use rebinding::{Rebinder, Rebinding, Rebound};

use super::admin_listener::claim;
use super::error::GatewayError;
use crate::config::{Fault, Listener as Site, ListenerId, document};
use document::{Bind, Rights};
use matching::{Candidate, Matched, Wanted, matched};
use std::io;
use std::thread;
use std::time::{Duration, Instant};
use weir_reactor::Listener;
use weir_reactor::listener::BindError;
use weir_transport::{Address, Endpoint, Place};

/// The sockets of each worker, with the IDs of their listeners.
pub(crate) type Shares = Vec<Vec<(ListenerId, Listener)>>;

#[derive(Debug)]
pub(crate) struct Sockets {
    pub places: Vec<Place>,
    /// The sockets of each worker. Each socket has at least one worker.
    pub shares: Shares,
    pub admin: Vec<(Rights, Listener)>,
    pub kept: Vec<OpenSocket>,
    /// The numbers of inherited sockets without an address in the configuration. This process closes them.
    pub left: Vec<usize>,
}

impl Sockets {
    /// Takes over the inherited sockets and binds the other addresses, without listening yet. Errors: an address does
    /// not resolve or cannot be bound, or a systemd socket matches no address in the configuration.
    pub(crate) fn new(
        sites: &[Site],
        admins: &[(Rights, &document::Admin)],
        workers: usize,
        inherited: Vec<Given>,
    ) -> Result<Self, GatewayError> {
        let mut wanted: Vec<Wanted> = sites.iter().map(wanted).collect::<Result<_, _>>()?;
        for (rights, admin) in admins {
            wanted.push(wanted_admin(*rights, admin)?);
        }
        let Matched { taken, left } = matched(&wanted, inherited);
        if let Some((_, given)) = left.iter().find(|(_, given)| matches!(given.label, Label::Named(_))) {
            return Err(without_place(given, &wanted).into());
        }
        let left = left.into_iter().map(|(number, _)| number).collect();
        let shares = (0..workers).map(|_| Vec::new()).collect();
        let mut sockets = Self { places: Vec::new(), shares, admin: Vec::new(), kept: Vec::new(), left };
        for (number, (wanted, taken)) in wanted.into_iter().zip(taken).enumerate() {
            let systemd = taken.iter().find_map(|given| match &given.label {
                Label::Named(name) => Some(name.clone()),
                Label::Handed { .. } => None,
            });
            let taken: Vec<_> = taken.into_iter().map(|given| given.listener).collect();
            let there = taken.len();
            let rights = number.checked_sub(sites.len()).and_then(|at| admins.get(at)).copied();
            let (site, mode, workers) = match (sites.get(number), rights) {
                (Some(site), _) => (Some(site.id), site.mode, workers),
                (None, rights) => (None, rights.and_then(|(_, admin)| admin.mode).unwrap_or_default().0, 1),
            };
            let bind = |taken| found(&wanted.address, mode, workers, taken);
            let found = match bind(taken) {
                Err(BindError::InUse { .. }) if site.is_none() && claim::ask(&wanted.address) => {
                    bind_until(Instant::now() + SOON, || bind(Vec::new()))
                }
                found => found,
            };
            let found = found.map_err(|error| match site {
                Some(_) => GatewayError::from(error),
                None => Fault { key: format!("{}.bind", wanted.name), message: error.to_string() }.into(),
            })?;
            for (nth, listener) in found.iter().enumerate() {
                let Wanted { name, place, .. } = wanted.clone();
                let joins = there > 0 && nth >= there;
                let systemd = systemd.clone();
                let listener = listener.handle()?;
                sockets.kept.push(OpenSocket { site, listener, joins, name, place, systemd, mode });
            }
            match sites.get(number) {
                Some(site) => {
                    sockets.places.extend(found.first().map(|first| in_fact(&site.place, first.address())));
                    for (worker, listener) in spread(found, workers)? {
                        sockets.shares[worker].push((site.id, listener));
                    }
                }
                None => sockets.admin.extend(rights.map(|(rights, _)| rights).into_iter().zip(found)),
            }
        }
        Ok(sockets)
    }
}

fn wanted(site: &Site) -> Result<Wanted, Fault> {
    let address =
        site.place.resolve().map_err(|error| Fault { key: site.key.clone(), message: error.to_string() })?;
    Ok(Wanted { admin: false, name: site.name.to_string(), place: site.address(), address })
}

fn wanted_admin(rights: Rights, admin: &document::Admin) -> Result<Wanted, Fault> {
    let (name, bind) = (rights.name().to_owned(), admin.bind(rights));
    let place = bind.to_string();
    let found = match bind {
        Bind::Unix(path) => Ok(Address::Unix(path)),
        Bind::Tcp { host, port } => Endpoint { tls: false, host, port }.resolve().map(Address::Tcp),
    };
    let address = found.map_err(|error| Fault { key: format!("{name}.bind"), message: error.to_string() })?;
    Ok(Wanted { admin: true, name, place, address })
}

fn without_place(given: &impl Candidate, wanted: &[Wanted]) -> Fault {
    let (Label::Named(name) | Label::Handed { name, .. }) = given.label();
    let address = given.address();
    let expected: Vec<_> =
        wanted.iter().map(|wanted| format!("`{}` at {}", wanted.name, wanted.address)).collect();
    Fault {
        key: "listener".to_owned(),
        message: format!(
            "nothing is configured for the socket `{name}` at {address} from systemd (LISTEN_FDS): expected the address, or as \
             FileDescriptorName= the name, of one of {}",
            expected.join(", ")
        ),
    }
}

/// The sockets of an address: those in `there`, and new ones up to one per worker. Workers share a Unix socket, and
/// inherited sockets to which [`Listener::join`] can add none.
fn found(
    address: &Address,
    mode: u32,
    workers: usize,
    mut there: Vec<Listener>,
) -> Result<Vec<Listener>, BindError> {
    let Some(first) = there.first() else {
        return match address {
            Address::Tcp(at) => Listener::reserve(*at, workers),
            // All workers share one Unix socket.
            Address::Unix(path) => Listener::reserve_unix(path, mode, 1),
        };
    };
    if let (true, Some(at)) = (first.is_in_group(), first.address().tcp()) {
        // A process that may no longer bind the port, such as one below 1024 without root, shares the sockets that it
        // inherited.
        there.extend((there.len()..workers).map_while(|_| Listener::join(at).ok()));
    }
    Ok(there)
}

/// Binds an address, and retries until `by`: a child of another process may still hold the address until its exec, or
/// workers until they have accepted the connections in its queue.
fn bind_until(
    by: Instant,
    bind: impl Fn() -> Result<Vec<Listener>, BindError>,
) -> Result<Vec<Listener>, BindError> {
    loop {
        // A failed attempt also searches for the owner, which may take longer than the owner keeps the address. So make
        // one more attempt after `by`.
        let is_last = Instant::now() >= by;
        match bind() {
            Err(BindError::InUse { .. }) if !is_last => thread::sleep(SOON / 100),
            found => return found,
        }
    }
}

const SOON: Duration = Duration::from_secs(2);

/// Assigns every socket to a worker, and at least one socket to every worker. Errors: as dup(2).
fn spread(sockets: Vec<Listener>, workers: usize) -> io::Result<Vec<(usize, Listener)>> {
    let count = sockets.len();
    if count >= workers {
        return Ok(sockets
            .into_iter()
            .enumerate()
            .map(|(number, socket)| (number % workers, socket))
            .collect());
    }
    (0..workers).map(|worker| Ok((worker, sockets[worker % count].share()?))).collect()
}

/// A listener's place, with the port that the system chose for port 0.
fn in_fact(place: &Place, address: &Address) -> Place {
    match address.tcp() {
        Some(at) => place.at_port(at.port()),
        None => place.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::SocketAddr;
    use weir_reactor::listener::Hold;

    fn group(count: usize) -> Vec<Listener> {
        Listener::bind(SocketAddr::from(([127, 0, 0, 1], 0)), count).unwrap()
    }

    /// The numbers of each worker's sockets, by their inodes.
    fn shares(sockets: Vec<Listener>, workers: usize) -> Vec<Vec<usize>> {
        let inode = |listener: &Listener| rustix::fs::fstat(listener).unwrap().st_ino;
        let inodes: Vec<u64> = sockets.iter().map(inode).collect();
        let mut shares = vec![Vec::new(); workers];
        for (worker, socket) in spread(sockets, workers).unwrap() {
            shares[worker].push(inodes.iter().position(|known| *known == inode(&socket)).unwrap());
        }
        shares
    }

    #[test]
    fn each_socket_has_a_worker_and_each_worker_a_socket() {
        assert_eq!(shares(group(2), 2), [[0], [1]]);
        assert_eq!(shares(group(5), 2), [vec![0, 2, 4], vec![1, 3]]);
        assert_eq!(shares(group(2), 5), [[0], [1], [0], [1], [0]]);
    }

    #[test]
    fn a_group_grows_to_the_number_of_workers_and_never_shrinks() {
        for (there, workers, expected) in [(1, 3, 3), (3, 1, 3), (2, 2, 2)] {
            let there = group(there);
            let address = there[0].address().clone();
            let found = found(&address, 0, workers, there).unwrap();
            assert_eq!(found.len(), expected);
            assert!(found.iter().all(|listener| *listener.address() == address));
        }
    }

    #[test]
    fn a_socket_without_a_group_stays_alone() {
        let alone = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let alone = Listener::inherit(alone.into(), Hold::Lent).unwrap();
        let address = alone.address().clone();
        assert_eq!(found(&address, 0, 4, vec![alone]).unwrap().len(), 1);
    }
}
