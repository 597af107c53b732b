//! The client's sessions: one store per core. rustls requires a lock (`Sync`), which is therefore never contended.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use rustls::NamedGroup;
use rustls::client::{ClientSessionStore, Tls12ClientSessionValue, Tls13ClientSessionValue};
use rustls::time_provider::TimeProvider;
use rustls_pki_types::ServerName;

use crate::notes::{self, Lent};

/// The maximum number of server names; the oldest is evicted first.
const NAMES: usize = 1024;
/// The maximum age of a TLS 1.2 session, counted from its full handshake, that a client offers: the maximum that RFC
/// 5246 F.1.4 suggests. A ticket may have a shorter lifetime, which rustls enforces; a session ID has none.
const TLS12_LIFETIME_SECONDS: u64 = 24 * 60 * 60;

/// One core's store of sessions.
pub(crate) struct CoreSessions {
    names: Mutex<Names>,
    /// The maximum number of TLS 1.3 tickets per name, and of TLS 1.2 sessions. At least 1.
    per_name: usize,
    time: Arc<dyn TimeProvider>,
}

/// The stored session that a connection offers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lending {
    /// No session; new ones are stored.
    Nothing,
    /// The newest session.
    Newest,
    /// The newest TLS 1.3 ticket, which is then removed, since each is used once (RFC 8446 C.4). Without a ticket, the
    /// TLS 1.2 session that was offered least recently, so that the client uses all sessions of a server.
    InTurn,
}

/// A core's store as rustls uses it, with the choice of the session to offer.
#[derive(Debug)]
pub(crate) struct Lender {
    pub(crate) sessions: Arc<CoreSessions>,
    pub(crate) lending: Lending,
}

/// The sessions and the key exchange groups of servers, by name. `order` contains each key of `names` once, oldest
/// first.
#[derive(Default)]
struct Names {
    names: HashMap<ServerName<'static>, Remembered>,
    order: VecDeque<ServerName<'static>>,
    /// The number of TLS 1.2 sessions stored so far.
    numbered: u64,
}

#[derive(Default)]
struct Remembered {
    group: Option<NamedGroup>,
    /// The TLS 1.2 sessions in the order of offering; new ones go last.
    tls12: VecDeque<Tls12>,
    /// The TLS 1.3 tickets in order of arrival, the oldest first.
    tls13: VecDeque<Tls13ClientSessionValue>,
}

#[derive(Clone)]
struct Tls12 {
    /// Identifies the session in a handshake's notes while a connection offers it.
    lent: Lent,
    value: Tls12ClientSessionValue,
}

impl CoreSessions {
    pub(crate) fn new(per_name: usize, time: Arc<dyn TimeProvider>) -> Self {
        Self { names: Mutex::default(), per_name, time }
    }

    /// The number of stored sessions of `name`, including expired ones.
    pub(crate) fn count(&self, name: &ServerName<'_>) -> usize {
        self.with(|names| names.names.get(name).map_or(0, |known| known.tls12.len() + known.tls13.len()))
    }

    /// Makes an offered TLS 1.2 session the next to offer.
    pub(crate) fn lend_again(&self, name: &ServerName<'static>, lent: Lent) {
        self.with(|names| {
            let Some(known) = names.names.get_mut(name) else { return };
            if let Some(taken) = known.take_tls12(lent) {
                known.tls12.push_front(taken);
            }
        });
    }

    /// Removes an offered TLS 1.2 session.
    pub(crate) fn forget(&self, name: &ServerName<'static>, lent: Lent) {
        self.with(|names| names.names.get_mut(name)?.take_tls12(lent));
    }

    fn with<T>(&self, act: impl FnOnce(&mut Names) -> T) -> T {
        act(&mut self.names.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn now(&self) -> Option<u64> {
        Some(self.time.current_time()?.as_secs())
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

impl Lent {
    fn is_valid(self, now: u64) -> bool {
        now < self.since.saturating_add(TLS12_LIFETIME_SECONDS)
    }
}

impl Remembered {
    fn newest_tls12(&self, now: u64) -> Option<Tls12> {
        self.tls12.back().filter(|session| session.lent.is_valid(now)).cloned()
    }

    fn next_tls12(&mut self, now: u64) -> Option<Tls12> {
        self.tls12.retain(|session| session.lent.is_valid(now));
        let next = self.tls12.pop_front()?;
        self.tls12.push_back(next.clone());
        Some(next)
    }

    fn take_tls12(&mut self, lent: Lent) -> Option<Tls12> {
        let at = self.tls12.iter().position(|session| session.lent == lent)?;
        self.tls12.remove(at)
    }
}

impl ClientSessionStore for Lender {
    fn set_kx_hint(&self, name: ServerName<'static>, group: NamedGroup) {
        self.sessions.with(|names| names.remember(name).group = Some(group));
    }

    fn kx_hint(&self, name: &ServerName<'_>) -> Option<NamedGroup> {
        self.sessions.with(|names| names.names.get(name)?.group)
    }

    /// rustls calls this after each handshake. A resumed session replaces the offered one. After a full
    /// handshake the session is new, and the rejected one is removed.
    fn set_tls12_session(&self, name: ServerName<'static>, value: Tls12ClientSessionValue) {
        let notes = notes::current();
        let Some(now) = self.sessions.now() else { return };
        self.sessions.with(|names| {
            names.numbered += 1;
            let new = Lent { number: names.numbered, since: now };
            let known = names.remember(name);
            let lent = match (notes.lent, notes.signature) {
                (Some(lent), None) => match known.tls12.iter_mut().find(|known| known.lent == lent) {
                    Some(known) => {
                        known.value = value;
                        return;
                    }
                    None => lent,
                },
                (Some(lent), Some(_)) => {
                    known.take_tls12(lent);
                    new
                }
                (None, _) => new,
            };
            if known.tls12.len() >= self.sessions.per_name {
                known.tls12.pop_front();
            }
            known.tls12.push_back(Tls12 { lent, value });
        });
    }

    fn tls12_session(&self, name: &ServerName<'_>) -> Option<Tls12ClientSessionValue> {
        let now = self.sessions.now()?;
        let session = self.sessions.with(|names| match self.lending {
            Lending::Nothing => None,
            Lending::Newest => names.names.get(name)?.newest_tls12(now),
            Lending::InTurn => names.names.get_mut(&name.to_owned())?.next_tls12(now),
        })?;
        notes::lent(session.lent);
        Some(session.value)
    }

    /// Removes the offered TLS 1.2 session, or all of them if none was offered. rustls calls this after a failed
    /// resumption, and after a TLS 1.3 handshake.
    fn remove_tls12_session(&self, name: &ServerName<'static>) {
        match notes::current().lent {
            Some(lent) => self.sessions.forget(name, lent),
            None => self.sessions.with(|names| {
                if let Some(known) = names.names.get_mut(name) {
                    known.tls12.clear();
                }
            }),
        }
    }

    fn insert_tls13_ticket(&self, name: ServerName<'static>, ticket: Tls13ClientSessionValue) {
        self.sessions.with(|names| {
            let tickets = &mut names.remember(name).tls13;
            if tickets.len() >= self.sessions.per_name {
                tickets.pop_front();
            }
            tickets.push_back(ticket);
        });
    }

    fn take_tls13_ticket(&self, name: &ServerName<'static>) -> Option<Tls13ClientSessionValue> {
        if self.lending == Lending::Nothing {
            return None;
        }
        self.sessions.with(|names| names.names.get_mut(name)?.tls13.pop_back())
    }
}

impl fmt::Debug for CoreSessions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CoreSessions").finish_non_exhaustive()
    }
}
