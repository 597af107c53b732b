//! Ticket keys, which each core derives by itself.
//!
//! HKDF (RFC 5869) derives the ticket key of a policy for clients and a wall-clock epoch from a secret: a random one
//! per process, or one from a file shared by all machines of a fleet. So all cores agree on the keys without shared
//! mutable state, a ticket of one policy is useless under another, and rotation needs no coordination. A core issues
//! tickets with the key of the current epoch. The core also opens tickets of the previous epoch, for returning clients,
//! and of the next epoch, since a wall clock may step back.

use std::sync::Arc;
use std::time::Duration;

use aws_lc_rs::aead::{AES_256_GCM_SIV, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use aws_lc_rs::{digest, hkdf, rand};

use crate::ticket_secrets::{InUse, TicketSecrets};

/// The default time for which a server issues tickets with one key. A ticket is valid for at least this time and less
/// than twice this time. rustls and most other servers use 12 hours; RFC 5077 5.5 and RFC 8446 4.6.1 (7 days) allow
/// more.
pub(crate) const LIFETIME: Duration = Duration::from_secs(12 * 60 * 60);

type Name = [u8; NAME_LEN];
/// The names of certificates that a ticket is bound to, in addition to its policy: a server with another binding treats
/// the ticket as unknown. The binding is XORed with the key's name, so no extra key needs to be derived.
pub(crate) type Binding = [u8; NAME_LEN];
/// The length of a key's name, the first part of a ticket.
pub(crate) const NAME_LEN: usize = 16;
/// The number of past epochs whose tickets count as expired rather than foreign.
const EXPIRED: u64 = 14;
/// The length of the AEAD tag, reserved so that sealing in place does not reallocate.
const TAG_LEN: usize = 16;

/// Derives the ticket keys of one policy, one for each secret and epoch. Cheap to clone; clones share the secrets, so a
/// replacement applies to all of them.
#[derive(Clone, Debug)]
pub(crate) struct KeySpace {
    secrets: Arc<InUse>,
    policy: digest::Digest,
    /// The time for which the server issues tickets with one key, in seconds; at least 1.
    pub(crate) epoch_seconds: u64,
}

impl KeySpace {
    /// The key space of the policy with this digest, from `secrets` or else from the process's secret; `None` if the
    /// system has no randomness.
    pub(crate) fn of_policy(
        policy: digest::Digest,
        secrets: Option<TicketSecrets>,
        lifetime: Duration,
    ) -> Option<Self> {
        let secrets = match secrets {
            Some(secrets) => secrets,
            None => TicketSecrets::of_process()?,
        };
        let secrets = Arc::new(InUse::new(secrets));
        Some(Self { secrets, policy, epoch_seconds: lifetime.as_secs().max(1) })
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
        let info = [label, self.policy.as_ref(), &epoch.to_be_bytes()];
        secret.expand(&info, Length(out.len())).and_then(|okm| okm.fill(out)).ok()
    }

    /// The keys around this epoch, from the current secrets; `None` if a key cannot be derived.
    pub(crate) fn snapshot(&self, epoch: u64) -> Option<Snapshot> {
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

/// The binding of clients to a server with these names.
pub(crate) fn bound_to<'a>(names: impl IntoIterator<Item = &'a [u8]>) -> Binding {
    let mut binding = [0; NAME_LEN];
    binding.copy_from_slice(&digest_of(names).as_ref()[..NAME_LEN]);
    binding
}

/// The digest of a list of byte strings.
pub(crate) fn digest_of<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> digest::Digest {
    let mut digest = digest::Context::new(&digest::SHA256);
    for part in parts {
        // Length-prefixed, so that different lists produce different bytes.
        digest.update(&(part.len() as u64).to_be_bytes());
        digest.update(part);
    }
    digest.finish()
}

/// Converts a key's name to the bound name in a ticket for `binding`, and back.
fn bind(mut name: Name, binding: &Binding) -> Name {
    name.iter_mut().zip(binding).for_each(|(byte, bound)| *byte ^= bound);
    name
}

struct Length(usize);

impl hkdf::KeyType for Length {
    fn len(&self) -> usize {
        self.0
    }
}

/// The keys of three epochs.
#[derive(Debug)]
pub(crate) struct Snapshot {
    pub(crate) epoch: u64,
    /// The number of replacements of the secrets at the time of the snapshot.
    pub(crate) replacements: u64,
    pub(crate) current: EpochKey,
    /// The keys of the current, previous and next epoch, for every secret.
    opening: Vec<EpochKey>,
    /// The names of older keys, to distinguish an expired ticket from a foreign one.
    expired: Vec<Name>,
}

/// The key of one epoch. It uses AES-256-GCM-SIV (RFC 8452) rather than plain GCM: at 100 000 tickets per second over
/// all cores, an epoch's random nonces would reach plain GCM's limit of 2^32 per key (NIST SP 800-38D 8.3). SIV
/// survives a repeated nonce, and its second pass over the 200 bytes of a ticket takes no measurable time.
#[derive(Debug)]
pub(crate) struct EpochKey {
    name: Name,
    key: LessSafeKey,
}

/// The reason for rejecting a ticket.
pub(crate) enum Refusal {
    Expired,
    UnknownKey,
    Damaged,
}

impl Snapshot {
    /// Decrypts the state in a ticket that was sealed for this binding. Errors: the reason for rejecting the ticket.
    pub(crate) fn open(&self, ticket: &[u8], binding: &Binding) -> Result<Vec<u8>, Refusal> {
        let (bound, rest) = ticket.split_first_chunk::<NAME_LEN>().ok_or(Refusal::UnknownKey)?;
        let name = bind(*bound, binding);
        let Some(key) = self.opening.iter().find(|key| key.name == name) else {
            let is_old = self.expired.contains(&name);
            return Err(if is_old { Refusal::Expired } else { Refusal::UnknownKey });
        };
        let (nonce, sealed) = rest.split_first_chunk::<NONCE_LEN>().ok_or(Refusal::Damaged)?;
        key.open(bound, *nonce, sealed).ok_or(Refusal::Damaged)
    }
}

impl EpochKey {
    /// Returns bound name, nonce, sealed state and tag; `None` if the system has no randomness, or sealing fails. The
    /// tag covers the bound name, so a modified ticket does not open under another binding.
    pub(crate) fn seal(&self, state: &[u8], binding: &Binding) -> Option<Vec<u8>> {
        let bound = bind(self.name, binding);
        let mut nonce = [0; NONCE_LEN];
        rand::fill(&mut nonce).ok()?;
        let mut ticket = Vec::with_capacity(NAME_LEN + NONCE_LEN + state.len() + TAG_LEN);
        ticket.extend_from_slice(&bound);
        ticket.extend_from_slice(&nonce);
        ticket.extend_from_slice(state);
        let tag = self
            .key
            .seal_in_place_separate_tag(
                Nonce::assume_unique_for_key(nonce),
                Aad::from(bound),
                &mut ticket[NAME_LEN + NONCE_LEN..],
            )
            .ok()?;
        ticket.extend_from_slice(tag.as_ref());
        Some(ticket)
    }

    fn open(&self, bound: &Name, nonce: [u8; NONCE_LEN], sealed: &[u8]) -> Option<Vec<u8>> {
        let mut state = sealed.to_vec();
        let nonce = Nonce::assume_unique_for_key(nonce);
        let len = self.key.open_in_place(nonce, Aad::from(bound), &mut state).ok()?.len();
        state.truncate(len);
        Some(state)
    }
}
