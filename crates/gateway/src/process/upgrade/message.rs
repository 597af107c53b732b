//! The messages between the two processes of an upgrade. The old process sends sockets, endpoints, certificates, servers, their end, and
//! the ticket secret if it has one; then the new one sends `Ready`, the old one `Go`, the new one `Serving`. The new process may send `Failed`
//! instead.
//! Each version rejects unknown fields and messages.

use crate::config::{Endpoints, Setting};
use serde::{Deserialize, Serialize};

/// The environment variable that makes a process the new one of an upgrade.
pub(super) const VARIABLE: &str = "WEIR_UPGRADE";

/// Its value, the version of these messages: incremented at each change that an older or newer program could misread.
pub(super) const VERSION: &str = "4";

/// Messages from the old process.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(super) enum FromOld {
    /// Listening sockets, with their descriptors in this order.
    Sockets(Vec<Handed>),
    /// Settings of servers that an operator changed.
    Servers(Vec<Setting>),
    /// Servers of a service that were set at run time, or the next part of them.
    Endpoints { service: String, part: Endpoints },
    /// A certificate that was set at run time. Its bytes follow, in packets of their own.
    Certificate(HandedCertificate),
    /// The end of sockets, endpoints, certificates and servers.
    End(State),
    /// The new process may begin.
    Go,
}

/// Messages from the new process.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(super) enum FromNew {
    /// It is ready. Its configuration has no address for the sockets with these numbers, from 0, and it closes them.
    Ready { left: Vec<usize> },
    /// It accepts from now on: it is the service. If it cannot send this message, it ends without having accepted.
    Serving,
    /// It gives up.
    Failed { why: String },
}

/// A listening socket, in words.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Handed {
    /// Whether it is an admin address, not a listener.
    pub admin: bool,
    /// The listener's name.
    pub name: String,
    /// The address as it is in the configuration, without a scheme.
    pub place: String,
    /// Another process keeps it, such as systemd.
    pub lent: bool,
    /// The file of a Unix socket that the gateway has made: device and inode.
    pub file: Option<(u64, u64)>,
}

/// A certificate without its bytes, so that no key is in a message.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct HandedCertificate {
    pub name: String,
    /// The fingerprint of the files that it replaces.
    pub replaces: u64,
    /// The number of its bytes.
    pub length: usize,
}

/// Further state that continues.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct State {
    /// Upgrades so far, by their result. `taken` includes the one in progress.
    pub taken: u64,
    pub refused: u64,
    /// A packet with the random ticket secret follows.
    pub has_secret: bool,
}
