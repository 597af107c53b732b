//! Tickets that any core can open on its own.
//!
//! One random secret per process; from it, HKDF (RFC 5869) derives the key of an identity and an epoch of the wall
//! clock. So all cores agree on the keys without sharing anything that changes, a ticket of one identity is useless to
//! another, and rotation needs no coordination. Tickets are issued under the current epoch; those of the previous and
//! the next one open too: the previous for the clients, the next because a wall clock may step back.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use aws_lc_rs::aead::{AES_256_GCM_SIV, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use aws_lc_rs::{digest, hkdf, rand};
use rustls::server::ProducesTickets;
use rustls::time_provider::TimeProvider;

use crate::notes::{self, Origin};

/// How long a key issues tickets, in seconds. A ticket is valid for at least that long and less than twice as long.
/// rustls and most others use 12 hours; RFC 5077 5.5 and RFC 8446 4.6.1 (7 days) leave room.
pub(crate) const EPOCH_SECONDS: u64 = 12 * 60 * 60;

const NAME_LEN: usize = 16;
/// Room for the AEAD's tag, so that sealing in place does not reallocate.
const TAG_LEN: usize = 16;

static PROCESS_SECRET: OnceLock<hkdf::Prk> = OnceLock::new();

/// The key space of one identity: the secret from which its epoch keys are derived. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct KeySpace {
    secret: hkdf::Prk,
    identity: digest::Digest,
}

impl KeySpace {
    /// The key space of the identity described by `parts`, in this process. None if the system has no randomness.
    pub(crate) fn of_identity<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> Option<Self> {
        let mut identity = digest::Context::new(&digest::SHA256);
        for part in parts {
            // Length-prefixed, so that different lists have different bytes.
            identity.update(&(part.len() as u64).to_be_bytes());
            identity.update(part);
        }
        Some(Self { secret: process_secret()?, identity: identity.finish() })
    }

    fn key(&self, epoch: u64) -> Option<EpochKey> {
        let mut name = [0; NAME_LEN];
        self.derive(b"weir ticket name", epoch, &mut name)?;
        let mut key = [0; 32];
        self.derive(b"weir ticket key", epoch, &mut key)?;
        let sealed = UnboundKey::new(&AES_256_GCM_SIV, &key);
        key.fill(0);
        Some(EpochKey { name, key: LessSafeKey::new(sealed.ok()?) })
    }

    fn derive(&self, label: &[u8], epoch: u64, out: &mut [u8]) -> Option<()> {
        let info = [label, self.identity.as_ref(), &epoch.to_be_bytes()];
        self.secret.expand(&info, Length(out.len())).and_then(|okm| okm.fill(out)).ok()
    }
}

fn process_secret() -> Option<hkdf::Prk> {
    if PROCESS_SECRET.get().is_none() {
        let mut secret = [0; 32];
        rand::fill(&mut secret).ok()?;
        let prk = hkdf::Salt::new(hkdf::HKDF_SHA256, b"weir tickets").extract(&secret);
        secret.fill(0);
        // Another thread may have been first; then its secret is the process's.
        let _ = PROCESS_SECRET.set(prk);
    }
    PROCESS_SECRET.get().cloned()
}

struct Length(usize);

impl hkdf::KeyType for Length {
    fn len(&self) -> usize {
        self.0
    }
}

/// One core's tickets: a snapshot of the keys of three epochs.
///
/// The mutex is only for rustls's `Sync` bound; only the owning core locks it.
#[derive(Debug)]
pub(crate) struct CoreTickets {
    space: KeySpace,
    time: Arc<dyn TimeProvider>,
    snapshot: Mutex<Option<Snapshot>>,
}

#[derive(Debug)]
struct Snapshot {
    epoch: u64,
    current: EpochKey,
    previous: Option<EpochKey>,
    next: EpochKey,
}

/// AES-256-GCM-SIV (RFC 8452) rather than plain GCM: with 100 000 tickets per second over all cores, an epoch's
/// random nonces reach the 2^32 limit of plain GCM per key (NIST SP 800-38D 8.3). SIV survives a
/// repeated nonce, and its second pass over the 200 bytes of a ticket has no measurable cost.
#[derive(Debug)]
struct EpochKey {
    name: [u8; NAME_LEN],
    key: LessSafeKey,
}

impl CoreTickets {
    pub(crate) fn new(space: KeySpace, time: Arc<dyn TimeProvider>) -> Self {
        Self { space, time, snapshot: Mutex::new(None) }
    }

    fn with_keys<T>(&self, use_keys: impl FnOnce(&Snapshot) -> Option<T>) -> Option<T> {
        let epoch = self.time.current_time()?.as_secs() / EPOCH_SECONDS;
        let mut snapshot = self.snapshot.lock().unwrap_or_else(PoisonError::into_inner);
        if snapshot.as_ref().is_none_or(|snapshot| snapshot.epoch != epoch) {
            *snapshot = Some(Snapshot {
                epoch,
                current: self.space.key(epoch)?,
                previous: epoch.checked_sub(1).and_then(|previous| self.space.key(previous)),
                next: self.space.key(epoch.checked_add(1)?)?,
            });
        }
        use_keys(snapshot.as_ref()?)
    }
}

impl Snapshot {
    fn named(&self, name: &[u8]) -> Option<&EpochKey> {
        [Some(&self.current), self.previous.as_ref(), Some(&self.next)]
            .into_iter()
            .flatten()
            .find(|key| key.name == name)
    }
}

impl EpochKey {
    /// name, nonce, sealed state and tag.
    fn seal(&self, state: &[u8]) -> Option<Vec<u8>> {
        let mut nonce = [0; NONCE_LEN];
        rand::fill(&mut nonce).ok()?;
        let mut ticket = Vec::with_capacity(NAME_LEN + NONCE_LEN + state.len() + TAG_LEN);
        ticket.extend_from_slice(&self.name);
        ticket.extend_from_slice(&nonce);
        ticket.extend_from_slice(state);
        let tag = self
            .key
            .seal_in_place_separate_tag(
                Nonce::assume_unique_for_key(nonce),
                Aad::from(self.name),
                &mut ticket[NAME_LEN + NONCE_LEN..],
            )
            .ok()?;
        ticket.extend_from_slice(tag.as_ref());
        Some(ticket)
    }

    fn open(&self, nonce: [u8; NONCE_LEN], sealed: &[u8]) -> Option<Vec<u8>> {
        let mut state = sealed.to_vec();
        let nonce = Nonce::assume_unique_for_key(nonce);
        let len = self.key.open_in_place(nonce, Aad::from(self.name), &mut state).ok()?.len();
        state.truncate(len);
        Some(state)
    }
}

impl ProducesTickets for CoreTickets {
    fn enabled(&self) -> bool {
        true
    }

    fn lifetime(&self) -> u32 {
        EPOCH_SECONDS as u32
    }

    fn encrypt(&self, plain: &[u8]) -> Option<Vec<u8>> {
        self.with_keys(|keys| keys.current.seal(plain))
    }

    fn decrypt(&self, ticket: &[u8]) -> Option<Vec<u8>> {
        let (name, rest) = ticket.split_at_checked(NAME_LEN)?;
        let (nonce, sealed) = rest.split_first_chunk::<NONCE_LEN>()?;
        let state = self.with_keys(|keys| keys.named(name)?.open(*nonce, sealed))?;
        notes::origin(Origin::Ticket);
        Some(state)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::UnixTime;
    use std::time::Duration;

    #[derive(Debug)]
    struct At(u64);

    impl TimeProvider for At {
        fn current_time(&self) -> Option<UnixTime> {
            Some(UnixTime::since_unix_epoch(Duration::from_secs(self.0)))
        }
    }

    fn tickets(identity: &[&[u8]], seconds: u64) -> CoreTickets {
        CoreTickets::new(KeySpace::of_identity(identity.iter().copied()).unwrap(), Arc::new(At(seconds)))
    }

    #[test]
    fn what_one_core_seals_another_opens() {
        let ticket = tickets(&[b"a"], 5 * EPOCH_SECONDS).encrypt(b"state").unwrap();
        assert_eq!(tickets(&[b"a"], 5 * EPOCH_SECONDS).decrypt(&ticket).unwrap(), b"state");
        assert!(!ticket.windows(5).any(|window| window == b"state"));
    }

    #[test]
    fn the_same_state_never_gives_the_same_ticket() {
        let core = tickets(&[b"a"], 0);
        assert_ne!(core.encrypt(b"state"), core.encrypt(b"state"));
    }

    #[test]
    fn an_identity_is_its_list_of_parts_and_not_their_bytes() {
        let ticket = tickets(&[b"ab", b"c"], 0).encrypt(b"state").unwrap();
        assert!(tickets(&[b"ab", b"c"], 0).decrypt(&ticket).is_some());
        for other in [&[&b"a"[..], b"bc"][..], &[b"abc"], &[b"c", b"ab"], &[b"ab", b"c", b""], &[]] {
            assert_eq!(tickets(other, 0).decrypt(&ticket), None, "{other:?}");
        }
    }

    #[test]
    fn the_previous_the_current_and_the_next_epoch_open() {
        let ticket = tickets(&[b"a"], 10 * EPOCH_SECONDS).encrypt(b"state").unwrap();
        let opening: Vec<u64> = (7..14)
            .filter(|epoch| tickets(&[b"a"], epoch * EPOCH_SECONDS).decrypt(&ticket).is_some())
            .collect();
        assert_eq!(opening, [9, 10, 11]);
    }

    #[test]
    fn changed_or_cut_tickets_do_not_open() {
        let core = tickets(&[b"a"], 0);
        let ticket = core.encrypt(b"state").unwrap();
        for at in 0..ticket.len() {
            let mut changed = ticket.clone();
            changed[at] ^= 0x80;
            assert_eq!(core.decrypt(&changed), None, "changed at {at}");
            assert_eq!(core.decrypt(&ticket[..at]), None, "cut to {at}");
        }
    }
}
