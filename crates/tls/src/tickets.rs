//! Tickets that any core can open without shared state.
//!
//! HKDF (RFC 5869) derives the ticket key of an identity and a wall-clock epoch from a secret: a random one
//! per process, or one from a file that all machines of a fleet have. So all cores agree on the keys without
//! shared mutable state, a ticket of one identity is useless for another, and rotation needs no coordination.
//! A core issues tickets with the key of the current epoch. It also opens tickets of the previous epoch, for
//! returning clients, and of the next one, since a wall clock may step back.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use aws_lc_rs::aead::{AES_256_GCM_SIV, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use aws_lc_rs::{digest, hkdf, rand};
use rustls::server::ProducesTickets;
use rustls::time_provider::TimeProvider;

use crate::notes::{self, Origin};
use crate::ticket_secrets::{InUse, TicketSecrets};

/// The default time for which a key issues tickets. A ticket is valid for at least this time and less than
/// twice this time. rustls and most others use 12 hours; RFC 5077 5.5 and RFC 8446 4.6.1 (7 days) allow more.
pub(crate) const LIFETIME: Duration = Duration::from_secs(12 * 60 * 60);

type Name = [u8; NAME_LEN];
const NAME_LEN: usize = 16;
/// The number of past epochs whose tickets count as expired rather than foreign.
const EXPIRED: u64 = 14;
/// The length of the AEAD tag, reserved so that sealing in place does not reallocate.
const TAG_LEN: usize = 16;

/// The key space of one identity: the secrets from which its epoch keys are derived. Cheap to clone; clones
/// share their secrets.
#[derive(Clone, Debug)]
pub(crate) struct KeySpace {
    secrets: Arc<InUse>,
    identity: digest::Digest,
    epoch_seconds: u64,
}

impl KeySpace {
    /// The key space of the identity described by `parts`, from `secrets` or else from the process's secret.
    /// None if the system has no randomness.
    pub(crate) fn of_identity<'a>(
        parts: impl IntoIterator<Item = &'a [u8]>,
        secrets: Option<TicketSecrets>,
        lifetime: Duration,
    ) -> Option<Self> {
        let mut identity = digest::Context::new(&digest::SHA256);
        for part in parts {
            // Length-prefixed, so that different lists produce different bytes.
            identity.update(&(part.len() as u64).to_be_bytes());
            identity.update(part);
        }
        let secrets = match secrets {
            Some(secrets) => secrets,
            None => TicketSecrets::of_process()?,
        };
        let secrets = Arc::new(InUse::new(secrets));
        Some(Self { secrets, identity: identity.finish(), epoch_seconds: lifetime.as_secs().max(1) })
    }

    /// The current secrets.
    pub(crate) fn secrets(&self) -> &InUse {
        &self.secrets
    }

    fn key(&self, secret: &hkdf::Prk, epoch: u64) -> Option<EpochKey> {
        let name = self.name(secret, epoch)?;
        let mut key = [0; 32];
        self.derive(secret, b"weir ticket key", epoch, &mut key)?;
        let sealed = UnboundKey::new(&AES_256_GCM_SIV, &key);
        key.fill(0);
        Some(EpochKey { name, key: LessSafeKey::new(sealed.ok()?) })
    }

    fn name(&self, secret: &hkdf::Prk, epoch: u64) -> Option<Name> {
        let mut name = [0; NAME_LEN];
        self.derive(secret, b"weir ticket name", epoch, &mut name)?;
        Some(name)
    }

    fn derive(&self, secret: &hkdf::Prk, label: &[u8], epoch: u64, out: &mut [u8]) -> Option<()> {
        let info = [label, self.identity.as_ref(), &epoch.to_be_bytes()];
        secret.expand(&info, Length(out.len())).and_then(|okm| okm.fill(out)).ok()
    }

    fn snapshot(&self, epoch: u64) -> Option<Snapshot> {
        let (replacements, secrets) = self.secrets.get();
        let issuing = secrets.keys().first()?;
        let (mut opening, mut expired) = (Vec::new(), Vec::new());
        for secret in secrets.keys() {
            for near in [Some(epoch), epoch.checked_sub(1), epoch.checked_add(1)].into_iter().flatten() {
                opening.push(self.key(secret, near)?);
            }
            for gone in (2..2 + EXPIRED).map_while(|ago| epoch.checked_sub(ago)) {
                expired.push(self.name(secret, gone)?);
            }
        }
        Some(Snapshot { epoch, replacements, current: self.key(issuing, epoch)?, opening, expired })
    }
}

struct Length(usize);

impl hkdf::KeyType for Length {
    fn len(&self) -> usize {
        self.0
    }
}

/// One core's tickets: a snapshot of the keys of three epochs.
///
/// The mutex only satisfies rustls's `Sync` bound; no other core locks it.
#[derive(Debug)]
pub(crate) struct CoreTickets {
    space: KeySpace,
    time: Arc<dyn TimeProvider>,
    snapshot: Mutex<Option<Snapshot>>,
    tally: Tally,
}

#[derive(Debug)]
struct Snapshot {
    epoch: u64,
    /// The number of replacements of the secrets at the time of the snapshot.
    replacements: u64,
    current: EpochKey,
    /// The keys of the current, previous and next epoch, for every secret.
    opening: Vec<EpochKey>,
    /// The names of older keys, to distinguish an expired ticket from a foreign one.
    expired: Vec<Name>,
}

/// One core's ticket counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TicketCounts {
    /// Tickets sealed for clients.
    pub issued: u64,
    /// Tickets opened. The handshake may still be full, if the client offers another version, suite or name.
    pub opened: u64,
    /// Tickets rejected because their key is too old.
    pub expired: u64,
    /// Tickets rejected because their key is unknown or belongs to another identity.
    pub unknown_key: u64,
    /// Tickets rejected because they were modified after sealing.
    pub damaged: u64,
}

/// The counts of one core, which only that core writes.
#[derive(Debug, Default)]
struct Tally {
    issued: AtomicU64,
    opened: AtomicU64,
    expired: AtomicU64,
    unknown_key: AtomicU64,
    damaged: AtomicU64,
}

/// AES-256-GCM-SIV (RFC 8452) rather than plain GCM: at 100 000 tickets per second over all cores, an epoch's
/// random nonces would reach plain GCM's limit of 2^32 per key (NIST SP 800-38D 8.3). SIV survives a repeated
/// nonce, and its second pass over the 200 bytes of a ticket has no measurable cost.
#[derive(Debug)]
struct EpochKey {
    name: Name,
    key: LessSafeKey,
}

impl CoreTickets {
    pub(crate) fn new(space: KeySpace, time: Arc<dyn TimeProvider>) -> Self {
        Self { space, time, snapshot: Mutex::new(None), tally: Tally::default() }
    }

    /// The counts so far.
    pub(crate) fn counts(&self) -> TicketCounts {
        let of = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let Tally { issued, opened, expired, unknown_key, damaged } = &self.tally;
        TicketCounts {
            issued: of(issued),
            opened: of(opened),
            expired: of(expired),
            unknown_key: of(unknown_key),
            damaged: of(damaged),
        }
    }

    fn with_keys<T>(&self, use_keys: impl FnOnce(&Snapshot) -> Option<T>) -> Option<T> {
        let epoch = self.time.current_time()?.as_secs() / self.space.epoch_seconds;
        let replacements = self.space.secrets.replacements();
        let mut snapshot = self.snapshot.lock().unwrap_or_else(PoisonError::into_inner);
        let is_current =
            |snapshot: &Snapshot| snapshot.epoch == epoch && snapshot.replacements == replacements;
        if !snapshot.as_ref().is_some_and(is_current) {
            *snapshot = Some(self.space.snapshot(epoch)?);
        }
        use_keys(snapshot.as_ref()?)
    }
}

/// The reason for rejecting a ticket.
enum Refusal {
    Expired,
    UnknownKey,
    Damaged,
}

/// Only one core writes the count, so no addition is lost.
fn add_one(count: &AtomicU64) {
    count.store(count.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
}

impl Snapshot {
    fn open(&self, ticket: &[u8]) -> Result<Vec<u8>, Refusal> {
        let (name, rest) = ticket.split_at_checked(NAME_LEN).ok_or(Refusal::UnknownKey)?;
        let Some(key) = self.named(name) else {
            let is_old = self.expired.iter().any(|expired| expired == name);
            return Err(if is_old { Refusal::Expired } else { Refusal::UnknownKey });
        };
        let (nonce, sealed) = rest.split_first_chunk::<NONCE_LEN>().ok_or(Refusal::Damaged)?;
        key.open(*nonce, sealed).ok_or(Refusal::Damaged)
    }

    fn named(&self, name: &[u8]) -> Option<&EpochKey> {
        self.opening.iter().find(|key| key.name == name)
    }
}

impl EpochKey {
    /// Returns name, nonce, sealed state and tag.
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
        u32::try_from(self.space.epoch_seconds).unwrap_or(u32::MAX)
    }

    fn encrypt(&self, plain: &[u8]) -> Option<Vec<u8>> {
        let ticket = self.with_keys(|keys| keys.current.seal(plain))?;
        add_one(&self.tally.issued);
        Some(ticket)
    }

    fn decrypt(&self, ticket: &[u8]) -> Option<Vec<u8>> {
        let opened = self.with_keys(|keys| Some(keys.open(ticket)));
        let opened = opened.unwrap_or(Err(Refusal::UnknownKey));
        add_one(match &opened {
            Ok(_) => &self.tally.opened,
            Err(Refusal::Expired) => &self.tally.expired,
            Err(Refusal::UnknownKey) => &self.tally.unknown_key,
            Err(Refusal::Damaged) => &self.tally.damaged,
        });
        let state = opened.ok()?;
        notes::origin(Origin::Ticket);
        Some(state)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::UnixTime;
    #[derive(Debug)]
    struct At(u64);

    impl TimeProvider for At {
        fn current_time(&self) -> Option<UnixTime> {
            Some(UnixTime::since_unix_epoch(Duration::from_secs(self.0)))
        }
    }

    fn tickets(identity: &[&[u8]], seconds: u64) -> CoreTickets {
        of(identity, None, seconds)
    }

    fn of(identity: &[&[u8]], secrets: Option<&[&[u8]]>, seconds: u64) -> CoreTickets {
        let secrets = secrets.map(|secrets| TicketSecrets::of(secrets.iter().copied()));
        let space = KeySpace::of_identity(identity.iter().copied(), secrets, LIFETIME).unwrap();
        CoreTickets::new(space, Arc::new(At(seconds)))
    }

    const EPOCH_SECONDS: u64 = LIFETIME.as_secs();

    #[test]
    fn machines_with_one_secret_open_each_others_tickets() {
        let ticket = of(&[b"a"], Some(&[b"old"]), 0).encrypt(b"state").unwrap();
        let opens = |secrets| of(&[b"a"], secrets, 0).decrypt(&ticket).is_some();
        assert!(opens(Some(&[b"old"])) && opens(Some(&[b"new", b"old"])));
        assert!(!opens(Some(&[b"new"])) && !opens(Some(&[b"etc"])) && !opens(None));
        let issued = of(&[b"a"], Some(&[b"new", b"old"]), 0).encrypt(b"state").unwrap();
        assert!(of(&[b"a"], Some(&[b"new"]), 0).decrypt(&issued).is_some(), "the first one issues");
    }

    #[test]
    fn replaced_secrets_hold_at_once_on_all_cores() {
        let first = of(&[b"a"], Some(&[b"old"]), 0);
        let second = CoreTickets::new(first.space.clone(), Arc::new(At(0)));
        let ticket = first.encrypt(b"state").unwrap();
        first.space.secrets().replace(&TicketSecrets::of([&b"new"[..], b"old"]));
        let issued = second.encrypt(b"state").unwrap();
        assert!(of(&[b"a"], Some(&[b"new"]), 0).decrypt(&issued).is_some(), "the new one issues");
        for core in [&first, &second] {
            assert!(core.decrypt(&ticket).is_some() && core.decrypt(&issued).is_some());
        }
        first.space.secrets().replace(&TicketSecrets::of([&b"new"[..]]));
        for core in [&first, &second] {
            assert!(core.decrypt(&ticket).is_none() && core.decrypt(&issued).is_some());
        }
    }

    #[test]
    fn refusals_are_counted_by_their_reason() {
        let core = tickets(&[b"a"], 20 * EPOCH_SECONDS);
        let ticket = core.encrypt(b"state").unwrap();
        let old = tickets(&[b"a"], 10 * EPOCH_SECONDS).encrypt(b"state").unwrap();
        let foreign = tickets(&[b"b"], 20 * EPOCH_SECONDS).encrypt(b"state").unwrap();
        let mut damaged = ticket.clone();
        damaged[NAME_LEN + NONCE_LEN] ^= 1;
        for ticket in [&ticket, &ticket, &old, &foreign, &damaged, &Vec::new()] {
            core.decrypt(ticket);
        }
        let counts = TicketCounts { issued: 1, opened: 2, expired: 1, unknown_key: 2, damaged: 1 };
        assert_eq!(core.counts(), counts);
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
