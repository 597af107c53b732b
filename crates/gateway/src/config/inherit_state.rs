//! The state that a new configuration inherits from the active one, so that a reload costs no connection and no session.

use super::files::{of_certificate, of_listener, of_service};
use super::snapshot::{Server, Service, Snapshot};
use super::{Checked, Overrides};
use crate::resolve::name_of;
use std::sync::Arc;

impl Checked {
    /// Inherits from `before`, whose active snapshot is `active`: TLS with its sessions and connections where settings and files are
    /// the same; the addresses of names, which are valid for their TTL; and the overrides of servers. Both have their listeners in
    /// the same order.
    pub(crate) fn inherit_state(&mut self, before: &Self, active: &Snapshot) {
        for (index, old) in active.listeners.iter().enumerate() {
            if self.has_listener_tls_of(before, index, &old.name)
                && let snapshot = Arc::make_mut(&mut self.snapshot)
                && let (Some(listener), Some(old)) = (snapshot.listeners.get_mut(index), &old.tls)
                && let Some(new) = listener.tls.replace(old.clone())
                && let Some(secrets) = new.ticket_secrets()
            {
                // Their file has been read again.
                old.replace_ticket_secrets(&secrets);
            }
        }
        for at in 0..self.snapshot.services.len() {
            let name = &self.snapshot.services[at].name;
            let Some(old) = active.service_named(name).map(|old| &active.services[old]) else { continue };
            let has_tls_of_old = self.has_service_tls_of(before, name);
            let place = &mut Arc::make_mut(&mut self.snapshot).services[at];
            let service = Arc::make_mut(place);
            if has_tls_of_old {
                service.tls.clone_from(&old.tls);
            }
            inherit_service_state(service, old);
            if service.is_same(old) {
                *place = Arc::clone(old);
            }
        }
        Arc::make_mut(&mut self.snapshot).take_overrides(active.overrides.clone());
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
            && now.http2 == old.http2
            && is_tls(&now.servers) == is_tls(&old.servers)
            && self.files.are_same(&before.files, of_service(&now.tls))
    }
}

impl Snapshot {
    /// Inherits the overrides of the servers that it has.
    pub(crate) fn take_overrides(&mut self, mut overrides: Overrides) {
        overrides.retain(self);
        self.overrides = overrides;
    }
}

/// Inherits the addresses of names.
pub(crate) fn inherit_service_state(service: &mut Service, old: &Service) {
    let is_named = |server: &&mut Server| name_of(&server.place).is_some();
    for server in service.servers.iter_mut().filter(is_named) {
        if let Some(old) = old.servers.iter().find(|old| old.place == server.place) {
            server.address.clone_from(&old.address);
        }
    }
}
