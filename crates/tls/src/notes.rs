//! What rustls knows during a handshake and does not tell afterwards.
//!
//! rustls calls our verifier, signing key, stores and ticketer on the thread that drives the session, inside the call
//! that drives it. So these leave a note in a thread-local cell that [`recorded`] sets before the call and reads
//! after it: no allocation per session, no lock, and no per-session copy of the configuration.

use std::cell::Cell;

use rustls::SignatureScheme;

/// Where a TLS 1.2 session that might be resumed came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    SessionId,
    Ticket,
}

/// A TLS 1.2 session that a client's store has lent to a connection, which offers it unless it has expired.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Lent {
    /// A number of its own within the store.
    pub(crate) number: u64,
    /// When its full handshake was, in seconds of the wall clock.
    pub(crate) since: u64,
}

/// The notes of one session's handshake so far.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Notes {
    /// The scheme by which the server signed the handshake.
    pub(crate) signature: Option<SignatureScheme>,
    /// The latest hit in a store or ticket.
    pub(crate) origin: Option<Origin>,
    /// What the client's store has lent.
    pub(crate) lent: Option<Lent>,
}

thread_local! {
    static NOTES: Cell<Notes> = const { Cell::new(Notes { signature: None, origin: None, lent: None }) };
}

/// Runs `drive` with `notes` as the current ones, and brings them up to date with what it noted.
pub(crate) fn recorded<T>(notes: &mut Notes, drive: impl FnOnce() -> T) -> T {
    NOTES.set(*notes);
    let result = drive();
    *notes = NOTES.take();
    result
}

/// What has been noted so far in the handshake that is being driven.
pub(crate) fn current() -> Notes {
    NOTES.get()
}

/// Notes the scheme by which the server signs.
pub(crate) fn signature(scheme: SignatureScheme) {
    NOTES.set(Notes { signature: Some(scheme), ..NOTES.get() });
}

/// Notes that a session was found and where.
pub(crate) fn origin(origin: Origin) {
    NOTES.set(Notes { origin: Some(origin), ..NOTES.get() });
}

/// Notes what the client's store lends.
pub(crate) fn lent(lent: Lent) {
    NOTES.set(Notes { lent: Some(lent), ..NOTES.get() });
}
