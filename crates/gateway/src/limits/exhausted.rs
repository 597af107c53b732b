//! Resources that can run out.

use std::io;

/// The resource that a new connection lacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exhausted {
    /// Clients have reached their maximum number of connections.
    Connections,
    Descriptors,
    /// The system denied a descriptor, although the gateway's own count left room.
    System,
    /// Connections use all memory that `limits.memory` allows.
    Memory,
}

/// The names of the variants of [`Exhausted`] in metrics, in order.
pub(crate) const EXHAUSTED: [&str; 4] = ["connections", "descriptors", "system", "memory"];

impl Exhausted {
    /// Whether an error means that the process or the system has no descriptor left.
    pub(crate) fn is(error: &io::Error) -> bool {
        let none = [rustix::io::Errno::MFILE, rustix::io::Errno::NFILE];
        error.raw_os_error().is_some_and(|code| none.iter().any(|errno| errno.raw_os_error() == code))
    }
}
