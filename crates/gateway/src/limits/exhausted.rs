//! Resources that can run out.

use std::io;

/// Why a new connection has no room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exhausted {
    /// Clients have their maximum of connections.
    Connections,
    /// Connections use their whole share of the descriptors.
    Descriptors,
    /// The system refused a descriptor below the process's limit.
    System,
    /// Connections use all memory that `limits.memory` allows.
    Memory,
}

/// The names of all of [`Exhausted`] in metrics, in its order.
pub(crate) const EXHAUSTED: [&str; 4] = ["connections", "descriptors", "system", "memory"];

impl Exhausted {
    /// Whether an error says that the process, or the system, has no descriptor left.
    pub(crate) fn is(error: &io::Error) -> bool {
        let none = [rustix::io::Errno::MFILE, rustix::io::Errno::NFILE];
        error.raw_os_error().is_some_and(|code| none.iter().any(|errno| errno.raw_os_error() == code))
    }
}
