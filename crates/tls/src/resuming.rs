//! Connections that must offer a session.

use std::sync::Arc;

use rustls::client::ClientConfig;
use rustls_pki_types::ServerName;

use crate::client_sessions::CoreSessions;
use crate::{Session, hello};

/// A configuration with a store that offers sessions in turn, and that store.
#[derive(Clone, Debug)]
pub(crate) struct Resuming {
    pub(crate) config: Arc<ClientConfig>,
    pub(crate) sessions: Arc<CoreSessions>,
}

impl Resuming {
    /// Starts a connection that offers a session of `name`; `None` if the store has no unexpired session of `name`.
    ///
    /// Only rustls knows when a session expires, and it then silently creates a ClientHello without the session. So
    /// this function inspects each ClientHello.
    pub(crate) fn connect(&self, name: &ServerName<'static>) -> Option<Session> {
        // Each iteration except the last removes a session: rustls takes a TLS 1.3 ticket out of the store, and a TLS
        // 1.2 session missing from the ClientHello is removed below.
        for _ in 0..self.sessions.count(name) {
            let session = self.start(name);
            if self.offers(&session, name) {
                return Some(session);
            }
            if let Some(lent) = session.lent() {
                self.sessions.forget(name, lent);
            }
        }
        None
    }

    fn start(&self, name: &ServerName<'static>) -> Session {
        let mut session = Session::client(self.config.clone(), name.clone());
        session.start();
        session
    }

    fn offers(&self, session: &Session, name: &ServerName<'static>) -> bool {
        // On failure, return the session, so that the caller sees the error.
        let Some(flight) = session.first_flight() else { return true };
        // A ClientHello that spans several records contains a large ticket, so it offers a session.
        let Some(offer) = hello::offer(flight) else { return true };
        match session.lent() {
            _ if offer.psk || offer.ticket => true,
            // With TLS 1.3 enabled there is always a session ID (RFC 8446 D.4); a random one differs in the
            // next ClientHello.
            Some(lent) if !offer.session_id.is_empty() => {
                self.sessions.lend_again(name, lent);
                let again = self.start(name);
                let again = again.first_flight().and_then(hello::offer);
                again.is_some_and(|again| again.session_id == offer.session_id)
            }
            _ => false,
        }
    }
}
