//! What the whole process has of what the system lends it, and what becomes of it when there is no more.

mod descriptors;
mod memory;

pub(crate) use descriptors::{Descriptor, Descriptors, Kind, Open, spare};
pub(crate) use memory::Memory;

use std::io;

/// Why a new connection has no room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scarce {
    /// Clients have as many connections as they may have.
    Connections,
    /// Connections have all descriptors that are theirs.
    Descriptors,
    /// The system gives no descriptor, though there should be some.
    System,
    /// Connections have as much memory as they may have.
    Memory,
}

/// All of [`Scarce`], in its order, by the names that metrics have.
pub(crate) const SCARCE: [&str; 4] = ["connections", "descriptors", "system", "memory"];

impl Scarce {
    /// Whether an error says that the process, or the system, has no descriptor left.
    pub(crate) fn is(error: &io::Error) -> bool {
        let none = [rustix::io::Errno::MFILE, rustix::io::Errno::NFILE];
        error.raw_os_error().is_some_and(|code| none.iter().any(|errno| errno.raw_os_error() == code))
    }
}
