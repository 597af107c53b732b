//! What a library's callbacks (verifier, signing key, stores, ticket keys) see of the handshake on this thread.
//!
//! One unit runs on one thread from its beginning to its end, so notes need no lock, though configurations are shared.

use std::cell::RefCell;
use std::time::Instant;

use crate::calls::nanoseconds;
use crate::names::Side;

/// A part of a handshake's time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Span {
    /// The server signs.
    Sign,
    /// The client verifies chain and signature.
    Verify,
}

/// What the server's threads share.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lock {
    /// The keys of tickets.
    TicketKeys,
    /// The sessions that are resumed by id.
    SessionStore,
}

/// An end signs or verifies with this scheme.
pub fn signature(side: Side, scheme: u16) {
    note(|notes| match side {
        Side::Client => notes.client_signature = Some(scheme),
        _ => notes.server_signature = Some(scheme),
    });
}

/// The scheme that an end has signed or verified with in this handshake; none if it did neither.
pub fn signed(side: Side) -> Option<u16> {
    NOTES.with_borrow(|notes| match side {
        Side::Client => notes.client_signature,
        _ => notes.server_signature,
    })
}

/// The client has read a ticket of TLS 1.3.
pub fn ticket() {
    note(|notes| notes.tickets += 1);
}

/// Does a part of a handshake, and notes how long it takes.
pub fn span<T>(span: Span, work: impl FnOnce() -> T) -> T {
    let start = Instant::now();
    let result = work();
    let took = nanoseconds(start);
    note(|notes| notes.spans[span as usize].add(took));
    result
}

/// Does what is inside of what the server's threads share, and notes how long it takes.
pub fn held<T>(lock: Lock, work: impl FnOnce() -> T) -> T {
    let start = Instant::now();
    let result = work();
    let took = nanoseconds(start);
    note(|notes| notes.locks[lock as usize].add(took));
    result
}

/// Where each span's sum is, whose it is, and its name in the report.
pub(crate) const SPANS: [(Span, Side, &str); 2] =
    [(Span::Sign, Side::Server, "sign"), (Span::Verify, Side::Client, "verify")];

/// Where each lock's sum is, and its name in the report.
pub(crate) const LOCKS: [(Lock, &str); 2] =
    [(Lock::TicketKeys, "ticket-keys"), (Lock::SessionStore, "session-store")];

/// The notes of one unit.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Notes {
    pub(crate) client_signature: Option<u16>,
    pub(crate) server_signature: Option<u16>,
    pub(crate) tickets: u32,
    pub(crate) spans: [Sum; SPANS.len()],
    pub(crate) locks: [Sum; LOCKS.len()],
}

/// Times, added up.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Sum {
    pub(crate) ns: u64,
    pub(crate) count: u64,
}

impl Sum {
    /// Adds one time.
    pub(crate) fn add(&mut self, ns: u64) {
        self.ns += ns;
        self.count += 1;
    }

    /// Adds all of another's.
    pub(crate) fn merge(&mut self, other: Sum) {
        self.ns += other.ns;
        self.count += other.count;
    }
}

/// The notes since the last call, which are then forgotten.
pub(crate) fn take() -> Notes {
    NOTES.take()
}

thread_local! {
    static NOTES: RefCell<Notes> = const { RefCell::new(Notes::EMPTY) };
}

impl Notes {
    const EMPTY: Notes = {
        let zero = Sum { ns: 0, count: 0 };
        Notes {
            client_signature: None,
            server_signature: None,
            tickets: 0,
            spans: [zero; SPANS.len()],
            locks: [zero; LOCKS.len()],
        }
    };
}

fn note(change: impl FnOnce(&mut Notes)) {
    NOTES.with_borrow_mut(change);
}
