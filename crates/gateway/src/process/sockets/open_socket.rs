//! Handles on the listening sockets. With them, a process starts to listen, and passes the sockets to another process.
//! `rebinding.rs` decides which ones a reload keeps.

use super::Label;
use crate::config::ListenerId;
use crate::process::upgrade::Handed;
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use weir_reactor::Listener;
use weir_reactor::listener::{BindError, Hold};

/// A handle that keeps a listening socket open.
#[derive(Debug)]
pub(crate) struct OpenSocket {
    /// The ID of the listener; `None` for an admin address.
    pub site: Option<ListenerId>,
    pub listener: Listener,
    /// Whether the old process has other sockets of this address, so that clients arrive as soon as this socket
    /// listens.
    pub joins: bool,
    pub name: String,
    pub place: String,
    /// The name under which systemd passed the socket; `None` for a socket from another source.
    pub systemd: Option<String>,
    pub mode: u32,
}

impl OpenSocket {
    /// The label by which another configuration finds the socket.
    pub(crate) fn label(&self) -> Label {
        match &self.systemd {
            Some(name) => Label::Named(name.clone()),
            None => Label::Handed {
                admin: self.site.is_none(),
                name: self.name.clone(),
                place: self.place.clone(),
            },
        }
    }

    /// Lets clients connect. Errors: as listen(2), or another process has taken the path of a Unix socket.
    pub(crate) fn begin(&self) -> Result<(), BindError> {
        self.listener
            .begin()
            .map_err(|source| BindError::Refused { address: self.listener.address().clone(), source })
    }

    /// Takes over the file of a Unix socket. Errors: a message that the file does not exist, or its permissions cannot
    /// be set.
    pub(crate) fn claim(&self) -> Result<(), String> {
        let claimed = self.listener.claim_file(self.mode);
        claimed.map_err(|error| {
            format!(
                "{}: {error}: to make it anew, restart; other clients are served",
                self.listener.address()
            )
        })
    }

    /// The socket as a message to another process. Errors: as dup(2).
    pub(crate) fn handed(&self) -> io::Result<(Handed, OwnedFd)> {
        let Self { site, listener, name, place, .. } = self;
        let handed = Handed {
            admin: site.is_none(),
            name: name.clone(),
            place: place.clone(),
            lent: listener.hold() == Hold::Lent,
            file: listener.file(),
        };
        Ok((handed, listener.as_fd().try_clone_to_owned()?))
    }
}
