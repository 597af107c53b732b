//! What a new configuration takes over from the one in force, so that a reload costs nobody a connection or a session.

use super::files::{of_certificate, of_listener, of_service};
use super::snapshot::{Server, Service, Snapshot};
use super::{Checked, Overrides};
use crate::resolve::name_of;
use std::sync::Arc;

impl Checked {
    /// Takes over, from `before` as it is in force now: TLS whose settings and files are the same, with its sessions and
    /// connections; the addresses of names, which are kept by their TTL; the servers' limits with what counts for them; and
    /// what was set for servers at run time.
    /// The listeners of both are in one order.
    pub(crate) fn inherit_state(&mut self, before: &Self, in_force: &Snapshot) {
        for (index, old) in in_force.listeners.iter().enumerate() {
            if self.has_listener_tls_of(before, index, &old.name)
                && let (Some(listener), Some(old)) = (self.snapshot.listeners.get_mut(index), &old.tls)
                && let Some(new) = listener.tls.replace(old.clone())
                && let Some(secrets) = new.ticket_secrets()
            {
                // They are read anew.
                old.replace_ticket_secrets(&secrets);
            }
        }
        for at in 0..self.snapshot.services.len() {
            let name = &self.snapshot.services[at].name;
            let Some(old) = in_force.services.iter().find(|old| old.name == *name) else { continue };
            if self.has_service_tls_of(before, name) {
                self.snapshot.services[at].tls.clone_from(&old.tls);
            }
            inherit_service_state(&mut self.snapshot.services[at], old);
        }
        self.snapshot.take_overrides(in_force.overrides.clone());
    }

    fn has_listener_tls_of(&self, before: &Self, index: usize, old: &str) -> bool {
        let Some(listener) = self.snapshot.listeners.get(index) else { return false };
        let tls = self.config.listeners.get(&*listener.name).and_then(|listener| listener.tls.as_ref());
        let old = before.config.listeners.get(old).and_then(|listener| listener.tls.as_ref());
        let Some(tls) = tls.filter(|tls| Some(*tls) == old) else { return false };
        self.config.certificates == before.config.certificates
            && self.files.are_same(&before.files, self.config.certificates.iter().flat_map(of_certificate))
            && self.files.are_same(&before.files, of_listener(tls))
    }

    fn has_service_tls_of(&self, before: &Self, name: &str) -> bool {
        let (Some(now), Some(old)) = (self.config.services.get(name), before.config.services.get(name))
        else {
            return false;
        };
        let is_tls = |servers: &[super::document::Server]| servers.first().map(|server| server.url.tls());
        now.tls == old.tls
            && is_tls(&now.servers) == is_tls(&old.servers)
            && self.files.are_same(&before.files, of_service(&now.tls))
    }
}

impl Snapshot {
    /// Takes over what was set for servers at run time, as far as it has them.
    pub(crate) fn take_overrides(&mut self, mut overrides: Overrides) {
        overrides.retain(&self.services);
        self.overrides = overrides;
    }
}

/// Takes the addresses of names over, and the limits with what counts for them.
pub(crate) fn inherit_service_state(service: &mut Service, old: &Service) {
    for server in &mut service.servers {
        let is_same = |old: &&Server| old.place == server.place;
        let Some(old) = old.servers.iter().find(is_same) else { continue };
        if name_of(&server.place).is_some() {
            server.address.clone_from(&old.address);
        }
        if let (Some(slots), Some(old)) = (&mut server.slots, &old.slots)
            && *slots == *old
        {
            *slots = Arc::clone(old);
        }
    }
}
