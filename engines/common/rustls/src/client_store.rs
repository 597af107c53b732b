//! The client's session store, which counts tickets.

use rustls::NamedGroup;
use rustls::client::{
    ClientSessionMemoryCache, ClientSessionStore, Tls12ClientSessionValue, Tls13ClientSessionValue,
};
use weir_engine::notes;

use crate::generation::{GivenName, KnownName, Name};

/// rustls's store, or none.
#[cfg_attr(not(feature = "until-0-21"), derive(Debug))]
pub(crate) struct ClientStore {
    kept: Option<ClientSessionMemoryCache>,
}

/// Servers per store, rustls's default.
const SERVERS: usize = 256;

impl ClientStore {
    /// Keeps sessions.
    pub(crate) fn keeping() -> ClientStore {
        ClientStore { kept: Some(ClientSessionMemoryCache::new(SERVERS)) }
    }

    /// Accepts and discards sessions.
    pub(crate) fn forgetting() -> ClientStore {
        ClientStore { kept: None }
    }
}

impl ClientSessionStore for ClientStore {
    fn set_kx_hint(&self, server: GivenName<'_>, group: NamedGroup) {
        if let Some(kept) = &self.kept {
            kept.set_kx_hint(server, group);
        }
    }

    fn kx_hint(&self, server: &KnownName<'_>) -> Option<NamedGroup> {
        self.kept.as_ref()?.kx_hint(server)
    }

    fn set_tls12_session(&self, server: GivenName<'_>, session: Tls12ClientSessionValue) {
        if let Some(kept) = &self.kept {
            kept.set_tls12_session(server, session);
        }
    }

    fn tls12_session(&self, server: &KnownName<'_>) -> Option<Tls12ClientSessionValue> {
        self.kept.as_ref()?.tls12_session(server)
    }

    fn remove_tls12_session(&self, server: &Name) {
        if let Some(kept) = &self.kept {
            kept.remove_tls12_session(server);
        }
    }

    fn insert_tls13_ticket(&self, server: GivenName<'_>, ticket: Tls13ClientSessionValue) {
        notes::ticket();
        if let Some(kept) = &self.kept {
            kept.insert_tls13_ticket(server, ticket);
        }
    }

    fn take_tls13_ticket(&self, server: &Name) -> Option<Tls13ClientSessionValue> {
        self.kept.as_ref()?.take_tls13_ticket(server)
    }
}
