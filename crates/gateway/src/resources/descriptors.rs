//! The descriptors of the process: how many connections may have, how many they have, and what is kept for the rest.

use super::Scarce;
use crate::config::Fault;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// The descriptors that all workers share. Touched when a connection begins or ends, never by a request on one that is open.
#[derive(Debug)]
pub(crate) struct Descriptors {
    /// The open-file limit of the process.
    limit: usize,
    /// How many of them connections and health checks may have.
    free: usize,
    /// How many of those connections may have.
    connections: AtomicUsize,
    /// Connections to servers may have as many more, so that none fails while other workers make room.
    more: usize,
    /// How many of them clients may have.
    most_clients: AtomicUsize,
    clients: AtomicUsize,
    upstreams: AtomicUsize,
    /// A listener rests until there is room.
    is_wanted: AtomicBool,
}

/// What a connection is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Client,
    Upstream,
}

/// The descriptor of one connection, given back when this is dropped.
#[derive(Debug)]
pub(crate) struct Descriptor {
    of: Arc<Descriptors>,
    kind: Kind,
}

/// How many there are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Open {
    pub limit: usize,
    /// What connections may have.
    pub connections: usize,
    /// What clients may have of that.
    pub most_clients: usize,
    pub clients: usize,
    pub upstreams: usize,
}

// Who gives a descriptor back looks after that whether one is wanted, and who wants one says so before it looks again. So one of
// them sees the other, which needs the order of all these operations.
impl Descriptors {
    /// `limit` is that of the process, of which `others` are in use by what is no connection.
    pub(crate) fn new(limit: usize, others: usize) -> Self {
        let spare = spare(limit);
        let free = limit.saturating_sub(others + spare).max(LEAST);
        Self {
            limit,
            free,
            connections: AtomicUsize::new(free),
            more: spare / 4,
            most_clients: AtomicUsize::new(of_clients(free)),
            clients: AtomicUsize::new(0),
            upstreams: AtomicUsize::new(0),
            is_wanted: AtomicBool::new(false),
        }
    }

    /// Sets how many connections clients may have (`None`: most of all), and how many health checks take a descriptor at one time.
    /// Returns what clients have now: not more than there are.
    pub(crate) fn allow(&self, clients: Option<u32>, checks: usize) -> usize {
        let connections = self.beside(checks);
        let most = clients.map_or(of_clients(connections), |most| connections.min(most as usize));
        self.connections.store(connections, Ordering::SeqCst);
        self.most_clients.store(most, Ordering::SeqCst);
        most
    }

    /// What is wrong with a number of connections that clients may have, beside so many health checks.
    pub(crate) fn fault(&self, clients: Option<u32>, checks: usize) -> Option<Fault> {
        let (connections, limit) = (self.beside(checks), self.limit);
        let clients = clients.filter(|most| *most as usize > connections)?;
        Some(Fault {
            key: "limits.connections".to_owned(),
            message: format!(
                "`{clients}`, and an open-file limit of {limit} leaves connections {connections}, which clients and \
                 servers share: raise the limit to twice `{clients}` and some more"
            ),
        })
    }

    /// What connections have beside so many health checks.
    fn beside(&self, checks: usize) -> usize {
        self.free.saturating_sub(checks).max(LEAST)
    }

    /// The descriptor of a client that is about to be accepted. Errors: why there is none.
    pub(crate) fn client(self: &Arc<Self>) -> Result<Descriptor, Scarce> {
        self.room()?;
        let descriptor = self.forced(Kind::Client);
        // Another worker may have taken the last one meanwhile.
        match self.clients.load(Ordering::SeqCst) > self.most_clients.load(Ordering::SeqCst) {
            true => Err(Scarce::Connections),
            false => Ok(descriptor),
        }
    }

    /// The descriptor of a connection to a server. Errors: connections have all that are theirs.
    pub(crate) fn upstream(self: &Arc<Self>) -> Result<Descriptor, Scarce> {
        match self.in_use() < self.connections() {
            true => Ok(self.forced(Kind::Upstream)),
            false => Err(Scarce::Descriptors),
        }
    }

    /// Likewise, of those that are kept for this.
    pub(crate) fn one_more(self: &Arc<Self>) -> Result<Descriptor, Scarce> {
        match self.in_use() < self.connections() + self.more {
            true => Ok(self.forced(Kind::Upstream)),
            false => Err(Scarce::Descriptors),
        }
    }

    /// A descriptor whose connection is there already.
    pub(crate) fn forced(self: &Arc<Self>, kind: Kind) -> Descriptor {
        self.count(kind).fetch_add(1, Ordering::SeqCst);
        Descriptor { of: Arc::clone(self), kind }
    }

    /// Whether another client may be accepted. Errors: what is missing.
    pub(crate) fn room(&self) -> Result<(), Scarce> {
        let most = self.most_clients.load(Ordering::SeqCst);
        if most < self.connections() && self.clients.load(Ordering::SeqCst) >= most {
            return Err(Scarce::Connections);
        }
        match self.in_use() < self.connections() {
            true => Ok(()),
            false => Err(Scarce::Descriptors),
        }
    }

    /// A listener rests until there is room.
    pub(crate) fn want(&self) {
        self.is_wanted.store(true, Ordering::SeqCst);
    }

    /// Call after a descriptor was given back: whether listeners wait for it, who are to be told now.
    #[inline]
    pub(crate) fn is_wanted(&self) -> bool {
        self.is_wanted.load(Ordering::SeqCst) && self.is_wanted.swap(false, Ordering::SeqCst)
    }

    pub(crate) fn open(&self) -> Open {
        Open {
            limit: self.limit,
            connections: self.connections(),
            most_clients: self.most_clients.load(Ordering::SeqCst),
            clients: self.clients.load(Ordering::SeqCst),
            upstreams: self.upstreams.load(Ordering::SeqCst),
        }
    }

    fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }

    fn in_use(&self) -> usize {
        self.clients.load(Ordering::SeqCst) + self.upstreams.load(Ordering::SeqCst)
    }

    fn count(&self, kind: Kind) -> &AtomicUsize {
        match kind {
            Kind::Client => &self.clients,
            Kind::Upstream => &self.upstreams,
        }
    }
}

impl Default for Descriptors {
    /// Any number, for a worker without a system.
    fn default() -> Self {
        Self::new(usize::MAX, 0)
    }
}

impl Drop for Descriptor {
    fn drop(&mut self) {
        self.of.count(self.kind).fetch_sub(1, Ordering::SeqCst);
    }
}

/// How many of `limit` descriptors are kept for the admin address, files that are read at a reload or opened anew, name servers and
/// the like, beside those that are in use for such things at the start.
pub(crate) fn spare(limit: usize) -> usize {
    (limit / 8).clamp(16, 64)
}

/// A gateway that cannot have one connection on each side is none: better that the system says so.
const LEAST: usize = 2;

/// What clients have of all connections unless that is set: three quarters, as at one time most of them ask nothing, and a request
/// in flight has its connection to a server.
fn of_clients(connections: usize) -> usize {
    connections - connections / 4
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_connections_have_is_what_others_leave() {
        for (limit, others, connections) in
            [(64, 12, 36), (1024, 20, 940), (1 << 20, 100, (1 << 20) - 164), (20, 12, 2)]
        {
            let open = Descriptors::new(limit, others).open();
            assert_eq!(
                (open.connections, open.most_clients),
                (connections, connections - connections / 4),
                "{limit}"
            );
        }
    }

    #[test]
    fn clients_have_most_or_what_is_set_and_never_more_than_all() {
        let descriptors = Descriptors::new(64, 12);
        for (set, most) in [(None, 27), (Some(5), 5), (Some(30), 30), (Some(1000), 36)] {
            assert_eq!(descriptors.allow(set, 0), most);
        }
    }

    #[test]
    fn health_checks_have_theirs_as_long_as_there_are_some() {
        let descriptors = Descriptors::new(64, 12);
        for (checks, connections) in [(0, 36), (20, 16), (100, LEAST), (0, 36)] {
            assert_eq!(descriptors.allow(None, checks), of_clients(connections));
            assert_eq!(descriptors.open().connections, connections);
        }
        assert!(descriptors.fault(Some(30), 6).is_none());
        assert!(descriptors.fault(Some(30), 7).is_some_and(|fault| fault.message.contains("connections 29")));
    }

    #[test]
    fn each_side_is_told_what_it_lacks_and_servers_have_some_more() {
        let descriptors = Arc::new(Descriptors::new(64, 12));
        let clients: Vec<_> = (0..27).map(|_| descriptors.client().unwrap()).collect();
        assert_eq!(descriptors.client().unwrap_err(), Scarce::Connections);
        descriptors.allow(Some(36), 0);
        assert!(descriptors.client().is_ok());
        let mut upstreams: Vec<_> = (0..9).map(|_| descriptors.upstream().unwrap()).collect();
        assert_eq!(descriptors.client().unwrap_err(), Scarce::Descriptors);
        assert_eq!(descriptors.upstream().unwrap_err(), Scarce::Descriptors);
        upstreams.extend((0..4).map(|_| descriptors.one_more().unwrap()));
        assert_eq!(descriptors.one_more().unwrap_err(), Scarce::Descriptors);
        drop((clients, upstreams));
        assert_eq!((descriptors.open().clients, descriptors.open().upstreams), (0, 0));
    }

    #[test]
    fn who_waits_is_told_once() {
        let descriptors = Descriptors::new(64, 12);
        assert!(!descriptors.is_wanted());
        descriptors.want();
        assert!(descriptors.is_wanted() && !descriptors.is_wanted());
    }
}
