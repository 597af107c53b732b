//! Repeated resumption attempts: servers whose workers or hosts do not share keys resume only some of
//! the time.

use crate::ProbeError;
use crate::dial::Dialer;
use crate::handshake::{Setup, config, handshake};
use crate::trust::Trust;
use rustls::client::{
    ClientSessionStore, Resumption, Tls12ClientSessionValue, Tls12Resumption, Tls13ClientSessionValue,
};
use rustls::{HandshakeKind, NamedGroup};
use rustls_pki_types::ServerName;
use serde::Serialize;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use weir_tls::HandshakeKind as Kind;

/// How often a server resumed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Resumed {
    /// `resume-1.2-id`, `resume-1.2-ticket` or `resume-1.3-psk`.
    pub kind: &'static str,
    /// Connections that offered a session.
    pub tries: u32,
    /// How many were resumed.
    pub resumed: u32,
    /// How many failed.
    pub failed: u32,
    /// Why there were fewer attempts than requested.
    pub not_tried: Option<String>,
}

impl Resumed {
    /// Nothing attempted.
    pub(crate) fn not(kind: Kind, why: impl Into<String>) -> Self {
        Self { kind: kind.name(), tries: 0, resumed: 0, failed: 0, not_tried: Some(why.into()) }
    }
}

/// Does a full handshake, then `tries` connections that each offer the newest session.
pub(crate) fn resume(
    trust: &Trust,
    dialer: &mut Dialer,
    kind: Kind,
    tries: u32,
) -> Result<Resumed, ProbeError> {
    let (version, means) = match kind {
        Kind::Resume12Id => (&rustls::version::TLS12, Tls12Resumption::SessionIdOnly),
        Kind::Resume12Ticket => (&rustls::version::TLS12, Tls12Resumption::SessionIdOrTickets),
        Kind::Resume13Psk | Kind::Full => (&rustls::version::TLS13, Tls12Resumption::Disabled),
    };
    let store = Arc::new(Store::default());
    let resumption = Resumption::store(store.clone()).tls12_resumption(means);
    let setup = Setup { version: Some(version), ..Setup::default() };
    let config = config(trust, &trust.witness(&[]), setup, resumption)?;
    // One connection, closed cleanly; its sessions are in the store.
    let mut connect = || -> Result<HandshakeKind, String> {
        let mut session = handshake(dialer, &config, &trust.name).map_err(|why| why.to_string())?;
        let resumed = session.tls.handshake_kind().unwrap_or(HandshakeKind::Full);
        if kind == Kind::Resume13Psk {
            session.read_until(|| store.has(kind));
        }
        session.finish();
        Ok(resumed)
    };
    let mut outcome = Resumed { kind: kind.name(), tries: 0, resumed: 0, failed: 0, not_tried: None };
    while outcome.tries < tries {
        if !store.has(kind) {
            match connect() {
                Err(why) => outcome.not_tried = Some(why),
                Ok(_) if store.has(kind) => {}
                Ok(_) => outcome.not_tried = Some("the server issued no session or ticket".to_owned()),
            }
            if outcome.not_tried.is_some() {
                break;
            }
        }
        outcome.tries += 1;
        match connect() {
            Ok(HandshakeKind::Resumed) => outcome.resumed += 1,
            Ok(_) => {}
            Err(_) => outcome.failed += 1,
        }
    }
    Ok(outcome)
}

/// The sessions with one server.
#[derive(Default)]
struct Store(Mutex<Sessions>);

#[derive(Default)]
struct Sessions {
    tls12: Option<Tls12ClientSessionValue>,
    tls13: Vec<Tls13ClientSessionValue>,
}

/// A server may send tickets endlessly.
const MAX_TICKETS: usize = 64;

impl Store {
    fn has(&self, kind: Kind) -> bool {
        let sessions = self.sessions();
        if kind == Kind::Resume13Psk { !sessions.tls13.is_empty() } else { sessions.tls12.is_some() }
    }

    fn sessions(&self) -> MutexGuard<'_, Sessions> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ClientSessionStore for Store {
    fn set_kx_hint(&self, _name: ServerName<'static>, _group: NamedGroup) {}

    fn kx_hint(&self, _name: &ServerName<'_>) -> Option<NamedGroup> {
        None
    }

    fn set_tls12_session(&self, _name: ServerName<'static>, session: Tls12ClientSessionValue) {
        self.sessions().tls12 = Some(session);
    }

    fn tls12_session(&self, _name: &ServerName<'_>) -> Option<Tls12ClientSessionValue> {
        self.sessions().tls12.clone()
    }

    fn remove_tls12_session(&self, _name: &ServerName<'static>) {
        self.sessions().tls12 = None;
    }

    fn insert_tls13_ticket(&self, _name: ServerName<'static>, ticket: Tls13ClientSessionValue) {
        let tickets = &mut self.sessions().tls13;
        if tickets.len() < MAX_TICKETS {
            tickets.push(ticket);
        }
    }

    fn take_tls13_ticket(&self, _name: &ServerName<'static>) -> Option<Tls13ClientSessionValue> {
        self.sessions().tls13.pop()
    }
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Store").finish_non_exhaustive()
    }
}
