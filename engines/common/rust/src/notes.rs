//! Notes from a library's callbacks (verifier, signing key, stores, ticket keys) on this thread.
//!
//! A unit runs on one thread, so notes need no lock although configurations are shared.

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

/// State shared by the server's threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lock {
    /// The ticket keys.
    TicketKeys,
    /// The session store.
    SessionStore,
}

/// A side signs or verifies with this scheme.
pub fn signature(side: Side, scheme: u16) {
    note(|notes| match side {
        Side::Client => notes.client_signature = Some(scheme),
        _ => notes.server_signature = Some(scheme),
    });
}

/// The scheme with which a side signed or verified in this handshake, if any.
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

/// Times a part of a handshake.
pub fn span<T>(span: Span, work: impl FnOnce() -> T) -> T {
    let start = Instant::now();
    let result = work();
    let took = nanoseconds(start);
    note(|notes| notes.spans[span as usize].add(took));
    result
}

/// Times work inside the state shared by the server's threads.
pub fn held<T>(lock: Lock, work: impl FnOnce() -> T) -> T {
    let start = Instant::now();
    let result = work();
    let took = nanoseconds(start);
    note(|notes| notes.locks[lock as usize].add(took));
    result
}

/// Each span's sum, side and name in the report.
pub(crate) const SPANS: [(Span, Side, &str); 2] =
    [(Span::Sign, Side::Server, "sign"), (Span::Verify, Side::Client, "verify")];

/// Each lock's sum and name in the report.
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

/// Summed times.
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

/// Takes the notes since the last call.
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
