//! Facts about the active configuration and the outcome of reloads, for the admin address.

use super::watch::SecretsFile;
use crate::config::{Checked, Snapshot};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};
use weir_tls::{RevocationList, Staple};

/// The status that threads share: the reload and clock threads write it, and the admin threads read it.
#[derive(Debug)]
pub(crate) struct ConfigStatus {
    current: Mutex<Current>,
    taken: AtomicU64,
    refused: AtomicU64,
    is_stale: AtomicBool,
    clock_steps: AtomicU64,
}

#[derive(Clone, Debug)]
pub(crate) struct Current {
    pub checked: Arc<Checked>,
    /// The files of certificates, and their expiry in seconds since 1970.
    pub expiry: Arc<[(String, i64)]>,
    pub lists: Arc<[RevocationList]>,
    pub staples: Arc<[Staple]>,
    /// The files of ticket secrets.
    pub secrets: Arc<[Arc<SecretsFile>]>,
    /// The time at which the configuration became active, in seconds since 1970.
    pub since: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Reloads {
    pub taken: u64,
    pub refused: u64,
    /// Whether the last reload was refused, so that the active configuration is older than the files.
    pub is_stale: bool,
}

impl ConfigStatus {
    pub(crate) fn new(checked: &Arc<Checked>, secrets: Arc<[Arc<SecretsFile>]>) -> Self {
        Self {
            current: Mutex::new(Current::of(checked, secrets)),
            taken: AtomicU64::new(0),
            refused: AtomicU64::new(0),
            is_stale: AtomicBool::new(false),
            clock_steps: AtomicU64::new(0),
        }
    }

    pub(crate) fn current(&self) -> Current {
        self.lock().clone()
    }

    pub(crate) fn reloads(&self) -> Reloads {
        Reloads {
            taken: self.taken.load(Ordering::Acquire),
            refused: self.refused.load(Ordering::Relaxed),
            is_stale: self.is_stale.load(Ordering::Relaxed),
        }
    }

    pub(crate) fn take(&self, checked: &Arc<Checked>, secrets: Arc<[Arc<SecretsFile>]>) {
        let now = Current::of(checked, secrets);
        // Frees the old configuration without the lock, since a large one takes a while.
        let before = std::mem::replace(&mut *self.lock(), now);
        drop(before);
        // Release: a thread that observes the new count also observes the messages to the workers.
        self.taken.fetch_add(1, Ordering::Release);
        self.is_stale.store(false, Ordering::Relaxed);
    }

    /// Updates the facts about certificates from this snapshot, after a change at run time.
    pub(crate) fn change_certificates(&self, snapshot: &Snapshot) {
        let (expiry, staples) = (expiry(snapshot), staples(snapshot));
        let mut current = self.lock();
        (current.expiry, current.staples) = (expiry, staples);
    }

    pub(crate) fn refuse(&self) {
        self.refused.fetch_add(1, Ordering::Relaxed);
        self.is_stale.store(true, Ordering::Relaxed);
    }

    pub(crate) fn clock_was_set(&self) {
        self.clock_steps.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn clock_steps(&self) -> u64 {
        self.clock_steps.load(Ordering::Relaxed)
    }

    fn lock(&self) -> MutexGuard<'_, Current> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Current {
    fn of(checked: &Arc<Checked>, secrets: Arc<[Arc<SecretsFile>]>) -> Self {
        let servers = checked.snapshot.listeners.iter().filter_map(|listener| listener.tls.as_ref());
        let mut lists: Vec<RevocationList> = Vec::new();
        for list in servers.flat_map(|server| &server.revocation().lists) {
            if !lists.contains(list) {
                lists.push(list.clone());
            }
        }
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self {
            checked: Arc::clone(checked),
            expiry: expiry(&checked.snapshot),
            lists: lists.into(),
            staples: staples(&checked.snapshot),
            secrets,
            since: since.as_secs(),
        }
    }
}

fn expiry(snapshot: &Snapshot) -> Arc<[(String, i64)]> {
    let certificates = snapshot.certificates.iter();
    certificates.map(|served| (served.file.to_string(), served.certificate.presented().not_after)).collect()
}

fn staples(snapshot: &Snapshot) -> Arc<[Staple]> {
    let certificates = snapshot.certificates.iter();
    certificates.filter_map(|served| served.certificate.presented().ocsp.clone()).collect()
}
