//! The messages between the two processes of an upgrade. The old process sends `Sockets`, `Endpoints`, `Certificate`,
//! `Servers` and `End` messages, and the ticket secret if it has one. Then the new process sends `Ready`, the old one
//! `Go`, and the new one `Serving`. At any time, the new process may send `Failed` instead. Each version rejects
//! unknown fields and messages.

use crate::config::{Endpoints, Setting};
use serde::{Deserialize, Serialize};

/// The environment variable by which the old process tells the program it starts that it is the new process of an
/// upgrade.
pub(super) const VARIABLE: &str = "WEIR_UPGRADE";

/// The value of [`VARIABLE`]: the version of these messages, incremented with each change that an older or newer
/// program could misread.
pub(super) const VERSION: &str = "4";

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(super) enum FromOld {
    /// Listening sockets, with their descriptors in this order.
    Sockets(Vec<Handed>),
    /// Overrides of servers.
    Servers(Vec<Setting>),
    /// Servers of a service set at run time, or the next part of them.
    Endpoints { service: String, part: Endpoints },
    /// A certificate set at run time. Its bytes follow in separate packets.
    Certificate(HandedCertificate),
    /// The end of the messages above.
    End(State),
    /// The new process may begin.
    Go,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(super) enum FromNew {
    /// The process is ready. It closes the sockets with these numbers, counted from 0, since its configuration has no
    /// address for them.
    Ready { left: Vec<usize> },
    /// The process is the service, and accepts from now on. If sending this message fails, the process exits without
    /// having accepted.
    Serving,
    /// The process gives up.
    Failed { why: String },
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Handed {
    /// Whether this is the socket of an admin address, not of a listener.
    pub admin: bool,
    pub name: String,
    /// The address in the configuration, without a scheme.
    pub place: String,
    /// Whether another process, such as systemd, keeps the socket open.
    pub lent: bool,
    /// The file of a Unix socket that the gateway has created: device and inode.
    pub file: Option<(u64, u64)>,
}

/// A certificate without its bytes, so that no message contains a key.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct HandedCertificate {
    pub name: String,
    /// The fingerprint of the files that the certificate replaces.
    pub replaces: u64,
    pub length: usize,
}

/// The contents of [`FromOld::End`]: the upgrade counts, which the new process continues, and whether the ticket secret
/// follows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct State {
    /// The number of upgrades so far, by result. `taken` includes the one in progress.
    pub taken: u64,
    pub refused: u64,
    /// Whether a packet with the random ticket secret follows.
    pub has_secret: bool,
}
