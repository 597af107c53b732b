//! The process's descriptors: the budget for connections, its use, and the reserve for everything else.

use super::Exhausted;
use crate::config::Fault;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// The descriptors that all workers share. Opening or closing a connection updates the counts; a request on an open
/// connection does not.
#[derive(Debug)]
pub(crate) struct Descriptors {
    /// The open-file limit of the process.
    limit: usize,
    /// Descriptors for everything but connections and health checks, including the reserve.
    others: AtomicUsize,
    /// The budget for connections from clients and to servers.
    connections: AtomicUsize,
    /// A reserve for connections to servers beyond `connections`, so that connecting succeeds while other workers close
    /// idle connections.
    more: usize,
    /// The part of `connections` that clients may use.
    most_clients: AtomicUsize,
    clients: AtomicUsize,
    upstreams: AtomicUsize,
    /// Whether a listener has paused until a descriptor is free.
    is_wanted: AtomicBool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Client,
    Upstream,
}

/// The descriptor of one connection, released on drop.
#[derive(Debug)]
pub(crate) struct Descriptor {
    of: Arc<Descriptors>,
    kind: Kind,
}

/// Limits and use, as metrics show them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Open {
    pub limit: usize,
    pub connections: usize,
    /// The part of `connections` that clients may use.
    pub most_clients: usize,
    pub clients: usize,
    pub upstreams: usize,
}

// A worker that frees a descriptor checks `is_wanted` afterwards; a worker that needs one sets `is_wanted` before it
// checks again. With sequential consistency, at least one of the two workers observes the other's update.
impl Descriptors {
    /// The state of a process with this open-file limit. `others`: descriptors in use for everything but connections.
    pub(crate) fn new(limit: usize, others: usize) -> Self {
        let spare = spare(limit);
        let others = others + spare;
        let free = limit.saturating_sub(others).max(LEAST);
        Self {
            limit,
            others: AtomicUsize::new(others),
            connections: AtomicUsize::new(free),
            more: spare / 4,
            most_clients: AtomicUsize::new(of_clients(free)),
            clients: AtomicUsize::new(0),
            upstreams: AtomicUsize::new(0),
            is_wanted: AtomicBool::new(false),
        }
    }

    /// Sets the maximum of clients' connections (`None`: three quarters of all), and the number of concurrent health
    /// checks. Returns the maximum in effect, which never exceeds the budget for connections.
    pub(crate) fn allow(&self, clients: Option<u32>, checks: usize) -> usize {
        let connections = self.beside(checks);
        let most = clients.map_or(of_clients(connections), |most| connections.min(most as usize));
        self.connections.store(connections, Ordering::SeqCst);
        self.most_clients.store(most, Ordering::SeqCst);
        most
    }

    /// The fault in a configured maximum of clients' connections, beside this number of health checks.
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

    /// Counts the descriptors of added and removed listeners. [`Descriptors::allow`] applies the change.
    pub(crate) fn listen(&self, more: usize, fewer: usize) {
        self.others.fetch_add(more, Ordering::SeqCst);
        self.others.fetch_sub(fewer, Ordering::SeqCst);
    }

    /// The budget for connections beside this number of health checks.
    fn beside(&self, checks: usize) -> usize {
        self.limit.saturating_sub(self.others.load(Ordering::SeqCst) + checks).max(LEAST)
    }

    /// Counts the descriptor of a client before its accept. Errors: the resource that is exhausted.
    pub(crate) fn client(self: &Arc<Self>) -> Result<Descriptor, Exhausted> {
        self.room()?;
        let descriptor = self.forced(Kind::Client);
        // Other workers may have counted clients since the check.
        match self.clients.load(Ordering::SeqCst) > self.most_clients.load(Ordering::SeqCst) {
            true => Err(Exhausted::Connections),
            false => Ok(descriptor),
        }
    }

    /// Counts the descriptor of a connection to a server. Errors: connections use their whole budget.
    pub(crate) fn upstream(self: &Arc<Self>) -> Result<Descriptor, Exhausted> {
        match self.in_use() < self.connections() {
            true => Ok(self.forced(Kind::Upstream)),
            false => Err(Exhausted::Descriptors),
        }
    }

    /// As [`Descriptors::upstream`], but may use the reserve for connections to servers.
    pub(crate) fn one_more(self: &Arc<Self>) -> Result<Descriptor, Exhausted> {
        match self.in_use() < self.connections() + self.more {
            true => Ok(self.forced(Kind::Upstream)),
            false => Err(Exhausted::Descriptors),
        }
    }

    /// Counts the descriptor of an open connection, regardless of limits.
    pub(crate) fn forced(self: &Arc<Self>, kind: Kind) -> Descriptor {
        self.count(kind).fetch_add(1, Ordering::SeqCst);
        Descriptor { of: Arc::clone(self), kind }
    }

    /// Whether a worker may accept another client. Errors: the resource that is exhausted.
    pub(crate) fn room(&self) -> Result<(), Exhausted> {
        let most = self.most_clients.load(Ordering::SeqCst);
        if most < self.connections() && self.clients.load(Ordering::SeqCst) >= most {
            return Err(Exhausted::Connections);
        }
        match self.in_use() < self.connections() {
            true => Ok(()),
            false => Err(Exhausted::Descriptors),
        }
    }

    /// Records that a listener has paused until a descriptor is free.
    pub(crate) fn want(&self) {
        self.is_wanted.store(true, Ordering::SeqCst);
    }

    /// Whether listeners wait for a descriptor. If so, the caller must wake them, since further calls return `false`.
    /// Call this after freeing a descriptor.
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
    /// No limit, for a worker over a simulated network.
    fn default() -> Self {
        Self::new(usize::MAX, 0)
    }
}

impl Drop for Descriptor {
    fn drop(&mut self) {
        self.of.count(self.kind).fetch_sub(1, Ordering::SeqCst);
    }
}

/// The reserve out of `limit` descriptors for the admin address, files of a reload, name servers and similar uses,
/// besides the descriptors in use at startup.
pub(crate) fn spare(limit: usize) -> usize {
    (limit / 8).clamp(16, 64)
}

/// The minimum budget for connections: one on each side. If even fewer descriptors are left, the system's error
/// explains the failure.
const LEAST: usize = 2;

/// The default part for clients: three quarters. Most clients are idle at any time, and only a request in flight needs
/// a connection to a server.
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
    fn new_listeners_take_from_connections_and_give_back() {
        let descriptors = Descriptors::new(64, 12);
        for (more, fewer, connections) in [(8, 0, 28), (4, 8, 32), (0, 4, 36)] {
            descriptors.listen(more, fewer);
            descriptors.allow(None, 0);
            assert_eq!(descriptors.open().connections, connections);
        }
    }

    #[test]
    fn each_side_is_told_what_it_lacks_and_servers_have_some_more() {
        let descriptors = Arc::new(Descriptors::new(64, 12));
        let clients: Vec<_> = (0..27).map(|_| descriptors.client().unwrap()).collect();
        assert_eq!(descriptors.client().unwrap_err(), Exhausted::Connections);
        descriptors.allow(Some(36), 0);
        assert!(descriptors.client().is_ok());
        let mut upstreams: Vec<_> = (0..9).map(|_| descriptors.upstream().unwrap()).collect();
        assert_eq!(descriptors.client().unwrap_err(), Exhausted::Descriptors);
        assert_eq!(descriptors.upstream().unwrap_err(), Exhausted::Descriptors);
        upstreams.extend((0..4).map(|_| descriptors.one_more().unwrap()));
        assert_eq!(descriptors.one_more().unwrap_err(), Exhausted::Descriptors);
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
