//! The client's session store, which counts tickets.

use rustls::client::{
    ClientSessionMemoryCache, ClientSessionStore, Tls12ClientSessionValue, Tls13ClientSessionValue,
};
use rustls::{NamedGroup, ServerName};
use weir_engine::notes;

use crate::CLIENT_SESSIONS;

/// rustls's store, or none.
pub(super) struct ClientStore {
    kept: Option<ClientSessionMemoryCache>,
}

impl ClientStore {
    /// Keeps sessions.
    pub(super) fn keeping() -> ClientStore {
        ClientStore { kept: Some(ClientSessionMemoryCache::new(CLIENT_SESSIONS)) }
    }

    /// Takes sessions and forgets them.
    pub(super) fn forgetting() -> ClientStore {
        ClientStore { kept: None }
    }
}

impl ClientSessionStore for ClientStore {
    fn set_kx_hint(&self, server: &ServerName, group: NamedGroup) {
        if let Some(kept) = &self.kept {
            kept.set_kx_hint(server, group);
        }
    }

    fn kx_hint(&self, server: &ServerName) -> Option<NamedGroup> {
        self.kept.as_ref()?.kx_hint(server)
    }

    fn set_tls12_session(&self, server: &ServerName, session: Tls12ClientSessionValue) {
        if let Some(kept) = &self.kept {
            kept.set_tls12_session(server, session);
        }
    }

    fn tls12_session(&self, server: &ServerName) -> Option<Tls12ClientSessionValue> {
        self.kept.as_ref()?.tls12_session(server)
    }

    fn remove_tls12_session(&self, server: &ServerName) {
        if let Some(kept) = &self.kept {
            kept.remove_tls12_session(server);
        }
    }

    fn insert_tls13_ticket(&self, server: &ServerName, ticket: Tls13ClientSessionValue) {
        notes::ticket();
        if let Some(kept) = &self.kept {
            kept.insert_tls13_ticket(server, ticket);
        }
    }

    fn take_tls13_ticket(&self, server: &ServerName) -> Option<Tls13ClientSessionValue> {
        self.kept.as_ref()?.take_tls13_ticket(server)
    }
}
