//! Facts that rustls knows during a handshake but does not expose afterwards.
//!
//! rustls calls Weir's verifier, signing key, stores and ticketer on the thread that drives the session, inside the
//! driving call. These callbacks record notes in a thread-local cell, which [`recorded`] sets before the call and reads
//! after it. This needs no allocation per session, no lock, and no per-session copy of the configuration.

use std::cell::Cell;

use rustls::SignatureScheme;

use crate::early_data::EarlyData;

/// The origin of a TLS 1.2 session that a connection may resume.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    SessionId,
    Ticket,
}

/// A TLS 1.2 session from a client's store, which the connection offers unless it has expired.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Lent {
    /// The session's unique number within the store.
    pub(crate) number: u64,
    /// The time of the session's full handshake, in wall-clock seconds.
    pub(crate) since: u64,
}

/// The notes of one session's handshake so far.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Notes {
    /// The signature scheme of the handshake.
    pub(crate) signature: Option<SignatureScheme>,
    /// The source of the latest TLS 1.2 session to resume: a session store or a ticket.
    pub(crate) origin: Option<Origin>,
    /// The TLS 1.2 session from the client's store, if the connection offers one.
    pub(crate) lent: Option<Lent>,
    /// Whether the peer may be sending early data.
    pub(crate) early_data: EarlyData,
    /// The number of the certificate selected by the client's server name; `None` without a name.
    pub(crate) named: Option<u32>,
    /// Whether that certificate covers the client's server name.
    pub(crate) covered: bool,
}

thread_local! {
    static NOTES: Cell<Notes> = const {
        Cell::new(Notes {
            signature: None,
            origin: None,
            lent: None,
            early_data: EarlyData::Over,
            named: None,
            covered: false,
        })
    };
}

/// Runs `drive` with `notes` as the current notes, then updates `notes`.
pub(crate) fn recorded<T>(notes: &mut Notes, drive: impl FnOnce() -> T) -> T {
    NOTES.set(*notes);
    let result = drive();
    *notes = NOTES.take();
    result
}

/// The current handshake's notes so far.
pub(crate) fn current() -> Notes {
    NOTES.get()
}

/// Records the server's signature scheme.
pub(crate) fn signature(scheme: SignatureScheme) {
    NOTES.set(Notes { signature: Some(scheme), ..NOTES.get() });
}

/// Records the origin of a session to resume.
pub(crate) fn origin(origin: Origin) {
    NOTES.set(Notes { origin: Some(origin), ..NOTES.get() });
}

/// Records the session from the client's store.
pub(crate) fn lent(lent: Lent) {
    NOTES.set(Notes { lent: Some(lent), ..NOTES.get() });
}

/// Records whether the peer may be sending early data.
pub(crate) fn early_data(early_data: EarlyData) {
    NOTES.set(Notes { early_data, ..NOTES.get() });
}

/// Records the number of the certificate that the server selects by the client's server name, and whether it covers
/// that name.
pub(crate) fn named(certificate: u32, covered: bool) {
    NOTES.set(Notes { named: Some(certificate), covered, ..NOTES.get() });
}
