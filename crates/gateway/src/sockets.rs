//! The sockets of a process: bound by it, or taken from another one, and each worker's share of them.

use crate::admin::claim;
use crate::config::{Fault, Listener as Site, document, restart};
use crate::inherited::{Given, Label, Matched, Wanted, matched};
use crate::serve::GatewayError;
use crate::upgrade::Handed;
use document::{Bind, Rights};
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::thread;
use std::time::{Duration, Instant};
use weir_reactor::Listener;
use weir_reactor::listener::{BindError, Hold};
use weir_transport::{Address, Endpoint, Place};

/// All of them.
#[derive(Debug)]
pub(crate) struct Sockets {
    /// Where the listeners listen, in their order.
    pub places: Vec<Place>,
    /// For each worker, sockets and the numbers of their listeners. Each socket has a worker that accepts from it.
    pub shares: Vec<Vec<(usize, Listener)>>,
    /// Where state is served.
    pub watched: Vec<(Rights, Listener)>,
    /// A handle on each.
    pub kept: Vec<Kept>,
    /// The numbers of inherited sockets that the configuration has no address for, which are closed.
    pub left: Vec<usize>,
}

/// A handle on a socket, which keeps it open.
#[derive(Debug)]
pub(crate) struct Kept {
    /// The number of its listener; None: state is served there.
    pub site: Option<usize>,
    pub listener: Listener,
    /// Its address has other sockets, of the process before, so clients come to it as soon as it listens.
    pub joins: bool,
    name: String,
    place: String,
    /// Permissions of a Unix socket.
    mode: u32,
}

impl Sockets {
    /// Takes what is inherited and binds the rest, so that nobody can connect to that yet. Errors: an address is in use, or a
    /// socket from outside has no address.
    pub(crate) fn new(
        sites: &[Site],
        watched: &[(Rights, &document::Admin)],
        workers: usize,
        inherited: Vec<Given>,
    ) -> Result<Self, GatewayError> {
        let mut wanted: Vec<Wanted> = sites.iter().map(wanted).collect::<Result<_, _>>()?;
        for (rights, admin) in watched {
            wanted.push(wanted_admin(*rights, admin)?);
        }
        let Matched { taken, left } = matched(&wanted, inherited);
        if let Some((_, given)) = left.iter().find(|(_, given)| matches!(given.label, Label::Named(_))) {
            return Err(without_place(given, &wanted).into());
        }
        let left = left.into_iter().map(|(number, _)| number).collect();
        let shares = (0..workers).map(|_| Vec::new()).collect();
        let mut sockets = Self { places: Vec::new(), shares, watched: Vec::new(), kept: Vec::new(), left };
        for (number, (wanted, taken)) in wanted.into_iter().zip(taken).enumerate() {
            let taken: Vec<_> = taken.into_iter().map(|given| given.listener).collect();
            let there = taken.len();
            let rights = number.checked_sub(sites.len()).and_then(|at| watched.get(at)).copied();
            let (site, mode, workers) = match (sites.get(number), rights) {
                (Some(site), _) => (Some(number), site.mode, workers),
                (None, rights) => (None, rights.and_then(|(_, admin)| admin.mode).unwrap_or_default().0, 1),
            };
            let bind = |taken| found(&wanted.address, mode, workers, taken);
            let found = match bind(taken) {
                Err(BindError::InUse { .. }) if site.is_none() && claim::ask(&wanted.address) => {
                    bind_soon(|| bind(Vec::new()))
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
                sockets.kept.push(Kept { site, listener: listener.handle()?, joins, name, place, mode });
            }
            match site.and_then(|number| sites.get(number)) {
                Some(site) => {
                    sockets.places.push(in_fact(&site.place, &found));
                    for (worker, listener) in spread(found, workers)? {
                        sockets.shares[worker].push((number, listener));
                    }
                }
                None => sockets.watched.extend(rights.map(|(rights, _)| rights).into_iter().zip(found)),
            }
        }
        Ok(sockets)
    }
}

impl Kept {
    /// Lets clients connect. Errors: as listen(2), or another process has the path of a Unix socket by now.
    pub(crate) fn begin(&self) -> Result<(), BindError> {
        self.listener
            .begin()
            .map_err(|source| BindError::Refused { address: self.listener.address().clone(), source })
    }

    /// Makes the file of a Unix socket this process's. Errors: in words, it is gone, or its permissions cannot be set.
    pub(crate) fn claim(&self) -> Result<(), String> {
        let claimed = self.listener.claim_file(self.mode);
        claimed.map_err(|error| {
            format!(
                "{}: {error}: to make it anew, restart; other clients are served",
                self.listener.address()
            )
        })
    }

    /// For another process. Errors: as dup(2).
    pub(crate) fn handed(&self) -> io::Result<(Handed, OwnedFd)> {
        let Self { site, listener, name, place, .. } = self;
        let handed = Handed {
            admin: site.is_none(),
            name: name.clone(),
            place: place.clone(),
            lent: listener.hold() == Hold::Lent,
            file: listener.file(),
        };
        Ok((handed, listener.as_fd().try_clone_to_owned()?))
    }
}

fn wanted(site: &Site) -> Result<Wanted, Fault> {
    let address =
        site.place.resolve().map_err(|error| Fault { key: site.key.clone(), message: error.to_string() })?;
    Ok(Wanted { admin: false, name: site.name.to_string(), place: restart::address(site), address })
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

fn without_place(given: &Given, wanted: &[Wanted]) -> Fault {
    let (Label::Named(name) | Label::Handed { name, .. }) = &given.label;
    let address = given.listener.address();
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

/// The sockets of an address: those that are there, and what is missing to one for each worker, if that can be added.
fn found(
    address: &Address,
    mode: u32,
    workers: usize,
    mut there: Vec<Listener>,
) -> Result<Vec<Listener>, BindError> {
    let Some(first) = there.first() else {
        return match address {
            Address::Tcp(at) => Listener::reserve(*at, workers),
            // All workers have one.
            Address::Unix(path) => Listener::reserve_unix(path, mode, 1),
        };
    };
    if let (true, Some(at)) = (first.is_in_group(), first.address().tcp()) {
        // Who has no right to the port any more, as below 1024 without root, shares what is there.
        there.extend((there.len()..workers).map_while(|_| Listener::join(at).ok()));
    }
    Ok(there)
}

/// Binds an address that another process has just left: a child that it was about to start may have it for a moment longer.
fn bind_soon(bind: impl Fn() -> Result<Vec<Listener>, BindError>) -> Result<Vec<Listener>, BindError> {
    let by = Instant::now() + SOON;
    loop {
        match bind() {
            Err(BindError::InUse { .. }) if Instant::now() < by => thread::sleep(SOON / 100),
            found => return found,
        }
    }
}

const SOON: Duration = Duration::from_secs(2);

/// Gives each socket to a worker, and each worker a socket. Errors: as dup(2).
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

/// With the port that was bound.
fn in_fact(place: &Place, sockets: &[Listener]) -> Place {
    let port = sockets.first().and_then(|first| first.address().tcp()).map(|at| at.port());
    match (place, port) {
        (Place::Url(endpoint), Some(port)) => Endpoint { port, ..endpoint.clone() }.into(),
        (place, _) => place.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::SocketAddr;

    fn group(count: usize) -> Vec<Listener> {
        Listener::bind(SocketAddr::from(([127, 0, 0, 1], 0)), count).unwrap()
    }

    /// The numbers of the sockets that each worker accepts from, by their inodes.
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
