//! What two processes of an upgrade say to each other. The order: sockets, servers, the end of them, the secret of tickets if
//! there is one; `Ready`; `Go`; `Serving`. In place of an answer there may be `Failed`. Fields and messages that a version does
//! not know are refused.

use crate::config::Setting;
use serde::{Deserialize, Serialize};

/// Tells a process that it is part of an upgrade, and by which version of these messages.
pub(super) const VARIABLE: &str = "WEIR_UPGRADE";

/// Its value: one more with each change that an older or newer program could misread.
pub(super) const VERSION: &str = "2";

/// From the process that runs.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(super) enum FromOld {
    /// Listening sockets, whose descriptors come along in this order.
    Sockets(Vec<Handed>),
    /// Servers as they were set at run time.
    Servers(Vec<Setting>),
    /// These were all.
    End(State),
    /// The new one may take its place.
    Go,
}

/// From the process that is to take its place.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(super) enum FromNew {
    /// All is prepared. The sockets with these numbers, from 0, have no place in its configuration, and are closed there.
    Ready { left: Vec<usize> },
    /// It listens, and accepts from now on: it is the service. If it cannot say so, it has accepted nothing, and ends.
    Serving,
    /// It ends.
    Failed { why: String },
}

/// A listening socket.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Handed {
    /// The admin address's, not a listener's.
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

/// What else goes on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct State {
    /// Upgrades so far, by their result. The one that is going on is among the first if it succeeds.
    pub taken: u64,
    pub refused: u64,
    /// The random secret of tickets follows in a packet of its own.
    pub has_secret: bool,
}
