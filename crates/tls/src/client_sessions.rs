//! The client's sessions: one store per core, so its lock (rustls asks for `Sync`) never has to wait.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::{Mutex, PoisonError};

use rustls::NamedGroup;
use rustls::client::{ClientSessionStore, Tls12ClientSessionValue, Tls13ClientSessionValue};
use rustls_pki_types::ServerName;

/// Names remembered; the oldest is forgotten first. A gateway has as many as it has upstream names.
const NAMES: usize = 1024;
/// Tickets kept per name, each used once (RFC 8446 C.4): as many connections as may start at the same moment on one
/// core. The newest is used first, the oldest dropped first.
const TICKETS_PER_NAME: usize = 64;

#[derive(Default)]
pub(crate) struct CoreSessions(Mutex<Names>);

/// `order` has each key of `names` once, oldest first.
#[derive(Default)]
struct Names {
    names: HashMap<ServerName<'static>, Remembered>,
    order: VecDeque<ServerName<'static>>,
}

#[derive(Default)]
struct Remembered {
    group: Option<NamedGroup>,
    tls12: Option<Tls12ClientSessionValue>,
    tls13: VecDeque<Tls13ClientSessionValue>,
}

impl CoreSessions {
    fn with<T>(&self, act: impl FnOnce(&mut Names) -> T) -> T {
        act(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Names {
    fn remember(&mut self, name: ServerName<'static>) -> &mut Remembered {
        if !self.names.contains_key(&name) {
            if self.order.len() == NAMES
                && let Some(oldest) = self.order.pop_front()
            {
                self.names.remove(&oldest);
            }
            self.order.push_back(name.clone());
        }
        self.names.entry(name).or_default()
    }
}

impl ClientSessionStore for CoreSessions {
    fn set_kx_hint(&self, name: ServerName<'static>, group: NamedGroup) {
        self.with(|names| names.remember(name).group = Some(group));
    }

    fn kx_hint(&self, name: &ServerName<'_>) -> Option<NamedGroup> {
        self.with(|names| names.names.get(name)?.group)
    }

    fn set_tls12_session(&self, name: ServerName<'static>, session: Tls12ClientSessionValue) {
        self.with(|names| names.remember(name).tls12 = Some(session));
    }

    fn tls12_session(&self, name: &ServerName<'_>) -> Option<Tls12ClientSessionValue> {
        self.with(|names| names.names.get(name)?.tls12.clone())
    }

    fn remove_tls12_session(&self, name: &ServerName<'static>) {
        self.with(|names| {
            if let Some(remembered) = names.names.get_mut(name) {
                remembered.tls12 = None;
            }
        });
    }

    fn insert_tls13_ticket(&self, name: ServerName<'static>, ticket: Tls13ClientSessionValue) {
        self.with(|names| {
            let tickets = &mut names.remember(name).tls13;
            if tickets.len() == TICKETS_PER_NAME {
                tickets.pop_front();
            }
            tickets.push_back(ticket);
        });
    }

    fn take_tls13_ticket(&self, name: &ServerName<'static>) -> Option<Tls13ClientSessionValue> {
        self.with(|names| names.names.get_mut(name)?.tls13.pop_back())
    }
}

impl fmt::Debug for CoreSessions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CoreSessions").finish_non_exhaustive()
    }
}
