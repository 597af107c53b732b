//! The listening sockets at a reload: kept, new and removed ones. `matching.rs` finds the open socket for an address.

use super::matching::{Candidate, Matched, Wanted, matched};
use super::{Label, OpenSocket, SOON, Shares, bind_until, found, in_fact, spread, without_place};
use crate::config::{Fault, Findings, Listener as Site, ListenerId};
use std::fmt::Display;
use std::time::Instant;
use weir_reactor::Listener;
use weir_reactor::listener::{BindError, Hold};
use weir_transport::{Address, Place};

/// The addresses that this process listens on.
#[derive(Debug)]
pub(crate) struct Rebinder {
    in_use: Vec<InUse>,
    admin: Vec<Address>,
    workers: usize,
    next: u32,
    /// The time until which workers may hold the addresses of removed listeners, to accept the connections in their
    /// queues.
    leaving_until: Option<Instant>,
}

/// A listener's address on which this process listens.
#[derive(Clone, Debug)]
struct InUse {
    id: ListenerId,
    key: String,
    name: String,
    /// The address in the configuration, without a scheme.
    place: String,
    url: Place,
    mode: u32,
    label: Label,
    address: Address,
    hold: Hold,
    /// The number of descriptors of the address's sockets: the handles, and the workers' sockets.
    descriptors: usize,
}

/// The addresses of another configuration, with the sockets of new addresses, to which clients cannot connect yet.
/// Dropping this value changes nothing.
#[derive(Debug)]
pub(crate) struct Rebinding {
    next: Vec<InUse>,
    gone: Vec<InUse>,
    /// The sockets whose permissions change.
    modes: Vec<Permissions>,
    /// New sockets, each with the key of its address.
    new: Vec<(String, OpenSocket)>,
    change: Rebound,
}

#[derive(Debug)]
struct Permissions {
    id: ListenerId,
    key: String,
    before: u32,
    now: u32,
}

#[derive(Debug, Default)]
pub(crate) struct Rebound {
    pub shares: Shares,
    pub opened: Vec<Place>,
    pub closed: Vec<Place>,
    /// The number of descriptors for new sockets.
    pub more: usize,
    /// The number of descriptors that are no longer needed.
    pub fewer: usize,
}

impl Rebinder {
    /// The state for these listeners and this number of workers. `kept` contains the sockets.
    pub(crate) fn new(sites: &[Site], kept: &[OpenSocket], workers: usize) -> Self {
        let in_use = sites.iter().filter_map(|site| {
            let mut sockets = kept.iter().filter(|kept| kept.site == Some(site.id));
            let first = sockets.next()?;
            Some(InUse::new(site, first, 1 + sockets.count(), workers))
        });
        let admin = kept.iter().filter(|kept| kept.site.is_none());
        Self {
            in_use: in_use.collect(),
            admin: admin.map(|kept| kept.listener.address().clone()).collect(),
            workers,
            next: sites.iter().map(|site| site.id.0 + 1).max().unwrap_or_default(),
            leaving_until: None,
        }
    }

    /// Sets the IDs of `sites`, the listeners of another configuration, and binds new addresses. Errors: an address
    /// does not resolve or cannot be bound, or a systemd socket no longer has a listener.
    pub(crate) fn prepare(&mut self, sites: &mut [Site]) -> Result<Rebinding, Findings> {
        let mut findings = Findings::default();
        let wanted: Vec<_> = sites.iter().filter_map(|site| findings.keep(super::wanted(site))).collect();
        if wanted.len() < sites.len() {
            return Err(findings);
        }
        let Matched { taken, left } = matched(&wanted, self.in_use.clone());
        let gone: Vec<_> = left.into_iter().map(|(_, in_use)| in_use).collect();
        // systemd keeps a socket open that it has passed, so clients would wait in its queue indefinitely.
        if let Some(lent) = gone.iter().find(|in_use| in_use.hold == Hold::Lent) {
            findings.fault(without_place(lent, &wanted));
            return Err(findings);
        }
        let shares = (0..self.workers).map(|_| Vec::new()).collect();
        let change = Rebound { shares, ..Rebound::default() };
        let mut rebinding = Rebinding { next: Vec::new(), gone, modes: Vec::new(), new: Vec::new(), change };
        for ((site, wanted), taken) in sites.iter_mut().zip(&wanted).zip(taken) {
            match taken.into_iter().next() {
                Some(in_use) => rebinding.keep(in_use, site),
                None => {
                    site.id = ListenerId(self.next);
                    self.next += 1;
                    findings.keep(self.add(site, wanted, &mut rebinding));
                }
            }
        }
        if findings.faults().next().is_some() { Err(findings) } else { Ok(rebinding) }
    }

    fn add(&self, site: &Site, wanted: &Wanted, rebinding: &mut Rebinding) -> Result<(), Fault> {
        let fault = |error: &dyn Display| Fault { key: site.key.clone(), message: error.to_string() };
        let sockets = self.bind(site, &wanted.address).map_err(|error| fault(&error))?;
        let count = sockets.len();
        for (nth, socket) in sockets.iter().enumerate() {
            let listener = socket.handle().map_err(|error| fault(&error))?;
            let Wanted { name, place, .. } = wanted.clone();
            let (site_id, mode) = (Some(site.id), site.mode);
            let kept = OpenSocket { site: site_id, listener, joins: false, name, place, systemd: None, mode };
            if nth == 0 {
                let in_use = InUse::new(site, &kept, count, self.workers);
                rebinding.change.opened.push(in_use.url.clone());
                rebinding.change.more += in_use.descriptors;
                rebinding.next.push(in_use);
            }
            rebinding.new.push((site.key.clone(), kept));
        }
        for (worker, socket) in spread(sockets, self.workers).map_err(|error| fault(&error))? {
            rebinding.change.shares[worker].push((site.id, socket));
        }
        Ok(())
    }

    fn bind(&self, site: &Site, address: &Address) -> Result<Vec<Listener>, BindError> {
        let mut in_use = self.in_use.iter().map(|in_use| &in_use.address).chain(&self.admin);
        let is_beside = in_use.any(|in_use| overlap(in_use, address));
        let bind = || match address {
            Address::Tcp(at) if is_beside => Listener::reserve_beside(*at, self.workers),
            address => found(address, site.mode, self.workers, Vec::new()),
        };
        match self.leaving_until {
            Some(until) => bind_until(until, bind),
            None => bind(),
        }
    }
}

impl Rebinding {
    /// The key of an address that is new, removed, or changes its permissions; `None` if no socket changes.
    pub(crate) fn changed(&self) -> Option<&str> {
        let new = self.new.iter().map(|(key, _)| key);
        let modes = self.modes.iter().map(|mode| &mode.key);
        let gone = self.gone.iter().map(|gone| &gone.key);
        new.chain(modes).chain(gone).next().map(String::as_str)
    }

    /// Sets permissions, lets clients connect to the new addresses, and replaces the handles in `kept`. Errors: the
    /// system denies one of these steps; then nothing has changed.
    pub(crate) fn commit(
        self,
        kept: &mut Vec<OpenSocket>,
        rebinder: &mut Rebinder,
    ) -> Result<Rebound, Fault> {
        if let Err(fault) = self.set_modes(kept).and_then(|()| self.begin()) {
            self.restore_modes(kept);
            return Err(fault);
        }
        let Self { next, gone, new, mut change, .. } = self;
        kept.retain_mut(|kept| match kept.site {
            Some(id) => next.iter().find(|next| next.id == id).map(|next| next.describe(kept)).is_some(),
            None => true,
        });
        kept.extend(new.into_iter().map(|(_, kept)| kept));
        if !gone.is_empty() {
            rebinder.leaving_until = Some(Instant::now() + SOON);
        }
        rebinder.in_use = next;
        change.fewer = gone.iter().map(|gone| gone.descriptors).sum();
        change.closed = gone.into_iter().map(|gone| gone.url).collect();
        Ok(change)
    }

    /// Records that an address stays, with the settings of `site`.
    fn keep(&mut self, in_use: InUse, site: &mut Site) {
        site.id = in_use.id;
        let (name, place) = (site.name.to_string(), site.address());
        let label = match in_use.label {
            Label::Named(name) => Label::Named(name),
            Label::Handed { admin, .. } => Label::Handed { admin, name: name.clone(), place: place.clone() },
        };
        if matches!(in_use.address, Address::Unix(_)) && site.mode != in_use.mode {
            let key = format!("listener.{name}.mode");
            self.modes.push(Permissions { id: site.id, key, before: in_use.mode, now: site.mode });
        }
        let url = in_fact(&site.place, &in_use.address);
        let (key, mode) = (site.key.clone(), site.mode);
        self.next.push(InUse { key, name, place, url, mode, label, ..in_use });
    }

    fn set_modes(&self, kept: &[OpenSocket]) -> Result<(), Fault> {
        self.modes.iter().try_for_each(|Permissions { id, key, now, .. }| {
            let mut sockets = kept.iter().filter(|kept| kept.site == Some(*id));
            sockets.try_for_each(|kept| kept.listener.claim_file(*now)).map_err(|error| Fault {
                key: key.clone(),
                message: format!("cannot set the permissions `{now:o}`: {error}"),
            })
        })
    }

    fn restore_modes(&self, kept: &[OpenSocket]) {
        for Permissions { id, before, .. } in &self.modes {
            for kept in kept.iter().filter(|kept| kept.site == Some(*id)) {
                // An error here has the same cause as the failed change: the file of the socket is missing.
                let _ = kept.listener.claim_file(*before);
            }
        }
    }

    fn begin(&self) -> Result<(), Fault> {
        self.new.iter().try_for_each(|(key, kept)| {
            kept.begin().map_err(|error| Fault { key: key.clone(), message: error.to_string() })
        })
    }
}

impl InUse {
    /// The address of a listener with `count` sockets, of which `kept` is one.
    fn new(site: &Site, kept: &OpenSocket, count: usize, workers: usize) -> Self {
        Self {
            id: site.id,
            key: site.key.clone(),
            name: kept.name.clone(),
            place: kept.place.clone(),
            url: in_fact(&site.place, kept.listener.address()),
            mode: site.mode,
            label: kept.label(),
            address: kept.listener.address().clone(),
            hold: kept.listener.hold(),
            descriptors: count + count.max(workers),
        }
    }

    /// Updates `kept`, a handle on a socket of this address, with the facts that an upgrade passes on.
    fn describe(&self, kept: &mut OpenSocket) {
        (kept.name, kept.place, kept.mode) = (self.name.clone(), self.place.clone(), self.mode);
    }
}

impl Candidate for InUse {
    fn label(&self) -> &Label {
        &self.label
    }

    fn address(&self) -> &Address {
        &self.address
    }
}

/// Whether two different addresses conflict in bind(2) while one of them listens, since one is a wildcard.
fn overlap(one: &Address, other: &Address) -> bool {
    let (Address::Tcp(one), Address::Tcp(other)) = (one, other) else { return false };
    (one.port(), one.is_ipv4()) == (other.port(), other.is_ipv4())
        && one.ip() != other.ip()
        && (one.ip().is_unspecified() || other.ip().is_unspecified())
}

#[cfg(test)]
mod tests;
