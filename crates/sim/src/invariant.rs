//! The invariants listed in the crate's documentation.

use std::fmt;

/// An invariant, with its number and name in the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Invariant {
    Bytes = 1,
    Messages = 2,
    Owner = 3,
    Once = 4,
    Outcome = 5,
    Reason = 6,
    AccessLine = 7,
    Servers = 8,
    Limits = 9,
    Configuration = 10,
    Leftovers = 11,
    Progress = 12,
    Calm = 13,
    Counters = 14,
    Windows = 15,
    Neighbours = 16,
    GoAway = 17,
    Streams = 18,
}

impl fmt::Display for Invariant {
    /// The number and the name.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "invariant {} ({self:?})", *self as u8)
    }
}
