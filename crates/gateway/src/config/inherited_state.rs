//! The state that a new configuration inherits from the active one, so that a reload drops no connection and no
//! session. Workers keep a server's connections, health and ejection (`Service::new` in `upstream/service.rs`), and the
//! health check thread keeps its checks (`health/mod.rs`), for each server that `Server::continues`.

use super::named_files::{of_listener, of_service};
use super::snapshot::{Listener, Server, Service, Snapshot};
use super::{Checked, Overrides};
use crate::resolve::name_of;
use std::sync::Arc;
use weir_transport::Place;

impl Checked {
    /// Inherits state from `before`, whose active snapshot is `active`: TLS state with its sessions and connections,
    /// where settings and files are the same; the resolved addresses of names; and the overrides of servers.
    pub(crate) fn inherit_state(&mut self, before: &Self, active: &Snapshot) {
        for at in 0..self.snapshot.listeners.len() {
            let old = self.tls_to_inherit(before, active, &self.snapshot.listeners[at]).cloned();
            if let Some(old) = old
                && let Some(new) = Arc::make_mut(&mut self.snapshot).listeners[at].tls.replace(old.clone())
                && let Some(secrets) = new.ticket_secrets()
            {
                // The inherited TLS state keeps its sessions, but takes the secrets just read from the file.
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

    /// The TLS state to inherit if its settings are the same: that of the active listener with the address of
    /// `listener`, or else of the active listener with the same name.
    fn tls_to_inherit<'a>(
        &self,
        before: &Self,
        active: &'a Snapshot,
        listener: &Listener,
    ) -> Option<&'a weir_tls::Server> {
        let of_address = active.listeners.iter().filter(|old| old.id == listener.id);
        let of_name = active.listeners.iter().filter(|old| old.name == listener.name);
        let mut olds = of_address.chain(of_name);
        let is_same = |old: &&Listener| {
            self.has_listener_tls_of(before, &listener.name, &old.name) && has_certificates_of(listener, old)
        };
        olds.find(is_same)?.tls.as_ref()
    }

    fn has_listener_tls_of(&self, before: &Self, name: &str, old: &str) -> bool {
        let (now, old) = (self.config.listeners.get(name), before.config.listeners.get(old));
        let (Some(now), Some(old)) = (now, old) else { return false };
        let Some(tls) = &now.tls else { return false };
        old.tls.as_ref() == Some(tls)
            && (now.http2, now.tcp.is_some()) == (old.http2, old.tcp.is_some())
            && self.files.are_same(&before.files, of_listener(tls))
    }

    fn has_service_tls_of(&self, before: &Self, name: &str) -> bool {
        let (Some(now), Some(old)) = (self.config.services.get(name), before.config.services.get(name))
        else {
            return false;
        };
        let scheme = |servers: &[super::document::Server]| {
            servers.first().map(|server| (server.url.tls(), matches!(server.url, Place::Stream(_))))
        };
        now.tls == old.tls
            && now.http2 == old.http2
            && scheme(&now.servers) == scheme(&old.servers)
            && self.files.are_same(&before.files, of_service(&now.tls))
    }
}

/// Whether both listeners present the same certificates in the same order.
fn has_certificates_of(listener: &Listener, old: &Listener) -> bool {
    let (Some(now), Some(old)) = (&listener.tls, &old.tls) else { return false };
    let (now, old) = (now.certificates(), old.certificates());
    now.len() == old.len() && now.iter().zip(old).all(|(now, old)| now.is_clone_of(old))
}

impl Snapshot {
    /// Inherits the overrides of the servers that are in this snapshot.
    pub(crate) fn take_overrides(&mut self, mut overrides: Overrides) {
        overrides.retain(self);
        self.overrides = overrides;
    }
}

/// Inherits the resolved addresses of server names.
pub(crate) fn inherit_service_state(service: &mut Service, old: &Service) {
    let is_named = |server: &&mut Server| name_of(&server.place).is_some();
    for server in service.servers.iter_mut().filter(is_named) {
        if let Some(old) = old.servers.iter().find(|old| old.place == server.place) {
            server.address.clone_from(&old.address);
        }
    }
}
