//! Connections that offer to resume a session in any case.

use std::sync::Arc;

use rustls::client::ClientConfig;
use rustls_pki_types::ServerName;

use crate::client_sessions::CoreSessions;
use crate::{Session, hello};

/// A configuration whose store lends in turn, and that store.
#[derive(Clone, Debug)]
pub(crate) struct Resuming {
    pub(crate) config: Arc<ClientConfig>,
    pub(crate) sessions: Arc<CoreSessions>,
}

impl Resuming {
    /// None if no session of `name` is remembered that has not expired.
    ///
    /// Only rustls knows when a session expires. It then makes a ClientHello without it and says nothing, so each
    /// ClientHello is looked at.
    pub(crate) fn connect(&self, name: &ServerName<'static>) -> Option<Session> {
        // Each turn but the last forgets a session: rustls has taken the ticket, or it was lent.
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
        // If it has failed already, the caller will be told.
        let Some(flight) = session.first_flight() else { return true };
        // A ClientHello longer than a record has a ticket that fills it.
        let Some(offer) = hello::offer(flight) else { return true };
        match session.lent() {
            _ if offer.psk || offer.ticket => true,
            // With TLS 1.3 enabled there is always an identifier (RFC 8446 D.4): a random one differs the next time.
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
