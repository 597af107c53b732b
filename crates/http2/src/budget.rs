//! Budgets for frames that take the receiver more work than the sender. `connection/control.rs` counts most of these
//! frames, and forgives some; `connection/body.rs`, `heads.rs`, `priority.rs` and `feed.rs` count the others.

use thiserror::Error;

/// The kind of frame that a peer sent too many of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Abuse {
    /// Requests that the client reset (CVE-2023-44487).
    #[error("too many streams reset by the peer")]
    Reset,
    /// Streams that we reset or refused because of the peer's frames (CVE-2025-8671).
    #[error("too many streams reset because of the peer's frames")]
    ProvokedReset,
    /// DATA frames of at most one byte that do not end the body (CVE-2019-9518).
    #[error("too many DATA frames of at most one byte")]
    EmptyData,
    /// SETTINGS frames, each of which is acknowledged (CVE-2019-9515).
    #[error("too many SETTINGS frames")]
    Settings,
    /// PING frames, each of which is acknowledged (CVE-2019-9512).
    #[error("too many PING frames")]
    Ping,
    /// PRIORITY and PRIORITY_UPDATE frames, frames of unknown types, and a client's HEADERS on a stream that we have
    /// reset (CVE-2019-9513).
    #[error("too many frames without effect")]
    NoEffect,
    /// WINDOW_UPDATE frames beyond [`UPDATES_PER_DATA`] for each DATA frame that we sent.
    #[error("too many WINDOW_UPDATE frames")]
    WindowUpdate,
}

/// The maximum number of frames of each kind in a burst. Each [second](crate::Connection::elapse) forgives a tenth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budgets {
    /// The budget for [`Abuse::Reset`]. Each stream that ends regularly forgives one reset.
    pub resets: u32,
    /// The budget for [`Abuse::ProvokedReset`]. Each stream that ends regularly forgives one reset.
    pub provoked_resets: u32,
    /// The budget for [`Abuse::EmptyData`].
    pub empty_data: u32,
    /// The budget for [`Abuse::Settings`].
    pub settings: u32,
    /// The budget for [`Abuse::Ping`].
    pub pings: u32,
    /// The budget for [`Abuse::NoEffect`]. Each stream that ends regularly forgives four frames.
    pub no_effect: u32,
    /// The budget for [`Abuse::WindowUpdate`]. Each DATA frame that we send forgives [`UPDATES_PER_DATA`] updates.
    pub window_updates: u32,
}

/// The number of WINDOW_UPDATE frames that each of our DATA frames forgives. Peers send at most one for the stream and
/// one for the connection; rounding adds a few.
pub const UPDATES_PER_DATA: u32 = 3;

impl Default for Budgets {
    fn default() -> Self {
        Self {
            // A browser that leaves a page cancels all streams of the connection, 100 by default.
            resets: 400,
            provoked_resets: 200,
            empty_data: 1000,
            settings: 200,
            // gRPC measures the bandwidth with a PING for each round trip, which is short in a data centre.
            pings: 10_000,
            no_effect: 1000,
            window_updates: 10_000,
        }
    }
}

impl Budgets {
    fn of(&self, kind: Abuse) -> u32 {
        match kind {
            Abuse::Reset => self.resets,
            Abuse::ProvokedReset => self.provoked_resets,
            Abuse::EmptyData => self.empty_data,
            Abuse::Settings => self.settings,
            Abuse::Ping => self.pings,
            Abuse::NoEffect => self.no_effect,
            Abuse::WindowUpdate => self.window_updates,
        }
    }
}

/// All kinds, in the order of their numbers.
const KINDS: [Abuse; 7] = [
    Abuse::Reset,
    Abuse::ProvokedReset,
    Abuse::EmptyData,
    Abuse::Settings,
    Abuse::Ping,
    Abuse::NoEffect,
    Abuse::WindowUpdate,
];

/// The number of frames of each kind that a peer has sent, minus the forgiven ones.
#[derive(Debug, Default)]
pub(crate) struct Spent([u32; KINDS.len()]);

impl Spent {
    /// Spends one frame of the budget. Fails with `kind` once the budget is exceeded.
    #[inline]
    pub(crate) fn spend(&mut self, kind: Abuse, budgets: &Budgets) -> Result<(), Abuse> {
        let spent = &mut self.0[kind as usize];
        *spent += 1;
        if *spent > budgets.of(kind) { Err(kind) } else { Ok(()) }
    }

    #[inline]
    pub(crate) fn of(&self, kind: Abuse) -> u32 {
        self.0[kind as usize]
    }

    #[inline]
    pub(crate) fn forgive(&mut self, kind: Abuse, number: u32) {
        let spent = &mut self.0[kind as usize];
        *spent = spent.saturating_sub(number);
    }

    pub(crate) fn elapse(&mut self, seconds: u32, budgets: &Budgets) {
        for kind in KINDS {
            self.forgive(kind, (budgets.of(kind) / 10).max(1).saturating_mul(seconds));
        }
    }
}
