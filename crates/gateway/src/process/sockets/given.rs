//! A listening socket that another process has opened.

use super::matching::Candidate;
use weir_reactor::{Address, Listener};

/// A listening socket from outside.
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

/// The facts about such a socket beside its address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Label {
    /// From systemd, with the name in `FileDescriptorName=`, by default that of the socket unit.
    Named(String),
    /// From the old process: for the admin address or the listener of this name, and the address as configured there.
    Handed { admin: bool, name: String, place: String },
}
