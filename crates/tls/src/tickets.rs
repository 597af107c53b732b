//! One core's tickets: sealed, opened, counted.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use rustls::server::ProducesTickets;
use rustls::time_provider::TimeProvider;

use crate::notes::{self, Origin};
use crate::ticket_keys::{Binding, KeySpace, NAME_LEN, Refusal, Snapshot};

/// The binding of clients whose server name a certificate covers.
const COVERED: Binding = [0; NAME_LEN];

/// One core's tickets: a snapshot of the keys of three epochs.
///
/// The mutex only satisfies rustls's `Sync` bound; no other core locks it.
#[derive(Debug)]
pub(crate) struct CoreTickets {
    space: KeySpace,
    /// The binding of clients whose server name no certificate covers.
    uncovered: Binding,
    time: Arc<dyn TimeProvider>,
    snapshot: Mutex<Option<Snapshot>>,
    tally: Tally,
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
    /// Tickets rejected because their key is unknown or belongs to another policy, or because no certificate covers the
    /// client's server name any longer.
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

impl CoreTickets {
    pub(crate) fn new(space: KeySpace, uncovered: Binding, time: Arc<dyn TimeProvider>) -> Self {
        Self { space, uncovered, time, snapshot: Mutex::new(None), tally: Tally::default() }
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

    /// The binding of the current handshake. rustls compares the server names at a resumption. So if a certificate
    /// covers the client's server name, every server with the same policy and a certificate for that name accepts the
    /// ticket. Otherwise the ticket is bound to the names of the default certificate.
    fn binding(&self) -> Binding {
        if notes::current().covered { COVERED } else { self.uncovered }
    }

    fn with_keys<T>(&self, use_keys: impl FnOnce(&Snapshot) -> Option<T>) -> Option<T> {
        let epoch = self.time.current_time()?.as_secs() / self.space.epoch_seconds;
        let replacements = self.space.secrets().replacements();
        let mut snapshot = self.snapshot.lock().unwrap_or_else(PoisonError::into_inner);
        let is_current =
            |snapshot: &Snapshot| snapshot.epoch == epoch && snapshot.replacements == replacements;
        if !snapshot.as_ref().is_some_and(is_current) {
            *snapshot = Some(self.space.snapshot(epoch)?);
        }
        use_keys(snapshot.as_ref()?)
    }
}

/// Adds one to a count. Only one core writes the count, so no addition is lost.
fn add_one(count: &AtomicU64) {
    count.store(count.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
}

impl ProducesTickets for CoreTickets {
    fn enabled(&self) -> bool {
        true
    }

    fn lifetime(&self) -> u32 {
        u32::try_from(self.space.epoch_seconds).unwrap_or(u32::MAX)
    }

    fn encrypt(&self, plain: &[u8]) -> Option<Vec<u8>> {
        let ticket = self.with_keys(|keys| keys.current.seal(plain, &self.binding()))?;
        add_one(&self.tally.issued);
        Some(ticket)
    }

    fn decrypt(&self, ticket: &[u8]) -> Option<Vec<u8>> {
        let opened = self.with_keys(|keys| Some(keys.open(ticket, &self.binding())));
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
    use crate::ticket_keys::{LIFETIME, bound_to, digest_of};
    use crate::ticket_secrets::TicketSecrets;
    use aws_lc_rs::aead::NONCE_LEN;
    use std::time::Duration;

    #[derive(Debug)]
    struct At(u64);

    impl TimeProvider for At {
        fn current_time(&self) -> Option<UnixTime> {
            Some(UnixTime::since_unix_epoch(Duration::from_secs(self.0)))
        }
    }

    fn tickets(policy: &[&[u8]], seconds: u64) -> CoreTickets {
        of(policy, None, seconds)
    }

    fn of(policy: &[&[u8]], secrets: Option<&[&[u8]]>, seconds: u64) -> CoreTickets {
        let secrets = secrets.map(|secrets| TicketSecrets::of(secrets.iter().copied()));
        let space = KeySpace::of_policy(digest_of(policy.iter().copied()), secrets, LIFETIME).unwrap();
        CoreTickets::new(space, bound_to([&b"a.test"[..]]), Arc::new(At(seconds)))
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
        let second = CoreTickets::new(first.space.clone(), first.uncovered, Arc::new(At(0)));
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
    fn a_policy_is_its_list_of_parts_and_not_their_bytes() {
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
