//! A listening socket that another process has opened.

use super::matching::Candidate;
use weir_reactor::{Address, Listener};

/// A listening socket from systemd or an old process.
#[derive(Debug)]
pub(crate) struct Given {
    pub listener: Listener,
    pub label: Label,
}

impl Candidate for Given {
    fn label(&self) -> &Label {
        &self.label
    }

    fn address(&self) -> &Address {
        self.listener.address()
    }
}

/// The origin and name of a given socket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Label {
    /// From systemd, with the name in `FileDescriptorName=`, by default the name of the socket unit.
    Named(String),
    /// From the old process, for an admin address or the listener with this name; `place` is the address in the old
    /// configuration.
    Handed { admin: bool, name: String, place: String },
}
