//! Ticket secrets, from which ticket keys are derived, and their replacement at run time.

use std::fmt;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use aws_lc_rs::{digest, hkdf, rand};

use crate::SettingsError;
use crate::identity;

/// The random secret of this process. Stores the secret rather than the extracted key, so that the process can pass the
/// secret to its successor.
static OF_PROCESS: OnceLock<[u8; SECRET_LEN]> = OnceLock::new();

/// The length of a process's random secret, in bytes.
pub const SECRET_LEN: usize = 32;

/// Ticket secrets, at least one: those of a file that all machines of a fleet share, or the random one of this process.
/// The first one issues tickets; all of them open tickets.
#[derive(Clone)]
pub struct TicketSecrets {
    keys: Arc<[hkdf::Prk]>,
    /// A digest of all secrets: lists with equal digests are equal.
    digest: [u8; 32],
}

impl TicketSecrets {
    /// Reads hexadecimal secrets from a file, one per line, of at least 32 bytes each; lines with `#` are comments.
    /// Fails if the file cannot be read, a line is invalid, or there is no secret.
    pub fn read(path: &Path) -> Result<Self, SettingsError> {
        let mut secrets = identity::load_secrets(path)?;
        let read = Self::of(secrets.iter().map(Vec::as_slice));
        for secret in &mut secrets {
            secret.fill(0);
        }
        Ok(read)
    }

    pub(crate) fn of<'a>(secrets: impl IntoIterator<Item = &'a [u8]>) -> Self {
        let salt = hkdf::Salt::new(hkdf::HKDF_SHA256, b"weir fleet tickets");
        let mut all = digest::Context::new(&digest::SHA256);
        let mut keys = Vec::new();
        for secret in secrets {
            // Length-prefixed, so that different lists produce different bytes.
            all.update(&(secret.len() as u64).to_be_bytes());
            all.update(secret);
            keys.push(salt.extract(secret));
        }
        let mut digest = [0; 32];
        digest.copy_from_slice(all.finish().as_ref());
        Self { keys: keys.into(), digest }
    }

    /// The random secret of this process; `None` if the system has no randomness.
    pub fn of_process() -> Option<Self> {
        let prk = hkdf::Salt::new(hkdf::HKDF_SHA256, b"weir tickets").extract(&secret_of_process()?);
        Some(Self { keys: [prk].into(), digest: [0; 32] })
    }

    /// The number of secrets.
    pub fn count(&self) -> usize {
        self.keys.len()
    }

    /// Numbers derived from `what`, one per secret, unpredictable without the secrets.
    pub fn derive(&self, what: &[&[u8]]) -> Vec<u64> {
        let number = |secret: &hkdf::Prk| {
            let mut bytes = [0; 8];
            secret.expand(what, Number).and_then(|okm| okm.fill(&mut bytes)).ok()?;
            Some(u64::from_be_bytes(bytes))
        };
        self.keys.iter().filter_map(number).collect()
    }

    pub(crate) fn keys(&self) -> &[hkdf::Prk] {
        &self.keys
    }
}

/// The output length of a derivation from a secret to a `u64`.
struct Number;

impl hkdf::KeyType for Number {
    fn len(&self) -> usize {
        size_of::<u64>()
    }
}

/// The random secret from which this process derives its ticket keys without a file of secrets; `None` if the system
/// has no randomness. The process that succeeds this one needs the secret to accept this process's tickets.
pub fn secret_of_process() -> Option<[u8; SECRET_LEN]> {
    if OF_PROCESS.get().is_none() {
        let mut secret = [0; SECRET_LEN];
        rand::fill(&mut secret).ok()?;
        // If another thread was first, use its secret.
        let _ = OF_PROCESS.set(secret);
    }
    OF_PROCESS.get().copied()
}

/// Takes over the secret of another process; call this before creating the first server. Returns false, without effect,
/// if this process already has a secret.
pub fn take_secret_of_process(secret: [u8; SECRET_LEN]) -> bool {
    OF_PROCESS.set(secret).is_ok()
}

impl PartialEq for TicketSecrets {
    fn eq(&self, other: &Self) -> bool {
        self.digest == other.digest
    }
}

impl fmt::Debug for TicketSecrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TicketSecrets").field("count", &self.count()).finish_non_exhaustive()
    }
}

/// The current secrets of all cores.
///
/// Before a core issues or opens a ticket, it compares the number of replacements with that of its snapshot, and takes
/// the lock only if the number has changed.
#[derive(Debug)]
pub(crate) struct InUse {
    replacements: AtomicU64,
    secrets: Mutex<TicketSecrets>,
}

impl InUse {
    pub(crate) fn new(secrets: TicketSecrets) -> Self {
        Self { replacements: AtomicU64::new(0), secrets: Mutex::new(secrets) }
    }

    /// The number of replacements so far.
    pub(crate) fn replacements(&self) -> u64 {
        self.replacements.load(Ordering::Acquire)
    }

    /// The secrets and their number of replacements.
    pub(crate) fn get(&self) -> (u64, TicketSecrets) {
        let secrets = self.secrets.lock().unwrap_or_else(PoisonError::into_inner);
        // The number changes only under the lock.
        (self.replacements.load(Ordering::Relaxed), secrets.clone())
    }

    /// Replaces the secrets, unless they are the current ones.
    pub(crate) fn replace(&self, with: &TicketSecrets) {
        let mut secrets = self.secrets.lock().unwrap_or_else(PoisonError::into_inner);
        if *secrets != *with {
            *secrets = with.clone();
            self.replacements.fetch_add(1, Ordering::Release);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_the_same_if_their_list_is() {
        let of = |secrets: &[&[u8]]| TicketSecrets::of(secrets.iter().copied());
        assert_eq!(of(&[b"ab", b"c"]), of(&[b"ab", b"c"]));
        for other in [of(&[b"c", b"ab"]), of(&[b"a", b"bc"]), of(&[b"abc"]), of(&[b"ab"])] {
            assert_ne!(of(&[b"ab", b"c"]), other);
        }
    }

    #[test]
    fn what_is_derived_depends_on_the_secret_and_on_all_of_what_it_is_for() {
        let of = |secrets: &[&[u8]], what: &[&[u8]]| TicketSecrets::of(secrets.iter().copied()).derive(what);
        let both = of(&[b"new", b"old"], &[b"cookie", b"a"]);
        assert_eq!(both, [of(&[b"new"], &[b"cookie", b"a"]), of(&[b"old"], &[b"cookie", b"a"])].concat());
        assert!(both[0] != both[1] && both != of(&[b"new", b"old"], &[b"cookie", b"b"]));
        let ours = TicketSecrets::of_process().unwrap();
        assert_eq!(ours.derive(&[b"a"]), TicketSecrets::of_process().unwrap().derive(&[b"a"]));
    }

    #[test]
    fn the_same_secrets_again_replace_nothing() {
        let [old, new] = [b"old", b"new"].map(|secret| TicketSecrets::of([&secret[..]]));
        let in_use = InUse::new(old.clone());
        in_use.replace(&old);
        assert_eq!(in_use.replacements(), 0);
        in_use.replace(&new);
        assert_eq!(in_use.get(), (1, new));
    }
}
