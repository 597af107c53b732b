//! Logs, and the addresses where state is served.

use super::listener::{Bind, Mode};
use super::values::{text, texts};
use serde::Deserialize;
use std::path::PathBuf;

/// The access log. Requests that end early are logged to stderr in any case.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Log {
    /// The file, or `-` for stdout; default: none.
    pub access: Option<PathBuf>,
    /// `json`, or a text with variables such as `{client} {method} {target} {status}`; default: `json`.
    pub format: Option<String>,
    /// What happens when the disk does not keep up.
    pub when_full: WhenFull,
}

/// What happens when the disk does not keep up, and 8 MiB wait.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WhenFull {
    /// Lines are lost, and counted.
    #[default]
    Drop,
    /// Requests wait.
    Wait,
}

/// Where metrics, health and state are served, and changed: `[admin]`; or served alone: `[metrics]`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Admin {
    /// The address; default: 127.0.0.1:9901, of `[metrics]` 127.0.0.1:9902. All that can connect can read it.
    #[serde(deserialize_with = "text")]
    pub bind: Option<Bind>,
    /// Permissions of a Unix socket, in octal; default: `660`.
    #[serde(deserialize_with = "text")]
    pub mode: Option<Mode>,
    /// Names that requests may be for, besides `localhost` and addresses; default: that of `bind`.
    #[serde(deserialize_with = "texts")]
    pub hosts: Vec<String>,
}

impl Admin {
    /// The address: where it is not set, for this machine alone.
    pub(crate) fn bind(&self, rights: Rights) -> Bind {
        let usual = || Bind::Tcp { host: "127.0.0.1".to_owned(), port: rights.port() };
        self.bind.clone().unwrap_or_else(usual)
    }

    /// The names that requests may be for; `None`: any, as no browser reaches a Unix socket.
    pub(crate) fn own_hosts(&self, rights: Rights) -> Option<Vec<String>> {
        match self.bind(rights) {
            Bind::Unix(_) => None,
            Bind::Tcp { host, .. } => Some([&self.hosts[..], &[host]].concat()),
        }
    }
}

/// What a client of such an address may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rights {
    /// Read, and change: `[admin]`.
    All,
    /// Read what monitoring needs: `[metrics]`.
    Read,
}

impl Rights {
    /// The name of the table, and of the socket.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::All => "admin",
            Self::Read => "metrics",
        }
    }

    fn port(self) -> u16 {
        match self {
            Self::All => 9901,
            Self::Read => 9902,
        }
    }
}
