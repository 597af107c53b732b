//! The tables `[log]`, `[admin]` and `[metrics]`.

use super::listener::{Bind, Mode};
use super::value_schemas;
use super::values::{text, texts};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// The access log. Requests that end early are reported on stderr, too.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Log {
    /// The file, opened for appending, or `"-"` for stdout. A FIFO needs its reader at startup. Default: none.
    #[schemars(schema_with = "value_schemas::path")]
    pub access: Option<PathBuf>,
    /// `"json"`, or a string with [variables](monitoring.md#access-log), such as `"{client} {method} {target}
    /// {status}"`.
    #[schemars(extend("default" = Log::JSON))]
    pub format: Option<String>,
    /// The treatment of lines when 8 MiB wait for the disk.
    pub when_full: WhenFull,
}

/// The treatment of lines when 8 MiB wait for the disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum WhenFull {
    /// Drops lines and counts them.
    #[default]
    Drop,
    /// Delays requests.
    Wait,
}

/// The address of `[admin]`, which serves metrics, health and state and accepts changes, or of the read-only
/// `[metrics]`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Admin {
    /// The address, or a Unix socket. Every client that can connect can read the state and, on
    /// `[admin]`, change it.
    #[serde(deserialize_with = "text")]
    #[schemars(transform = value_schemas::otherwise(Rights::usual_binds()))]
    pub bind: Option<Bind>,
    /// Permissions of a Unix socket.
    #[serde(deserialize_with = "text")]
    #[schemars(extend("default" = Mode::default().to_string()))]
    pub mode: Option<Mode>,
    /// Further host names that requests may use, besides `localhost` and addresses, such as `["weir.internal"]`.
    /// Default: the name in `bind`.
    #[serde(deserialize_with = "texts")]
    #[schemars(schema_with = "value_schemas::one_or_many::<String>")]
    pub hosts: Vec<String>,
}

impl Log {
    /// The name of the only format that is not a template.
    pub(crate) const JSON: &str = "json";
}

impl Admin {
    /// The address; by default one that only this machine can reach.
    pub(crate) fn bind(&self, rights: Rights) -> Bind {
        self.bind.clone().unwrap_or_else(|| rights.usual_bind())
    }

    /// The host names that requests may use; `None`: any, since browsers cannot connect to a Unix socket.
    pub(crate) fn own_hosts(&self, rights: Rights) -> Option<Vec<String>> {
        match self.bind(rights) {
            Bind::Unix(_) => None,
            Bind::Tcp { host, .. } => Some([&self.hosts[..], &[host]].concat()),
        }
    }
}

/// The rights of an admin or metrics client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rights {
    /// To read and change everything: `[admin]`.
    All,
    /// To read what monitoring needs: `[metrics]`.
    Read,
}

impl Rights {
    /// The name of the table, and of its listening socket.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::All => "admin",
            Self::Read => "metrics",
        }
    }

    /// The default address, which only this machine can reach.
    fn usual_bind(self) -> Bind {
        let port = match self {
            Self::All => 9901,
            Self::Read => 9902,
        };
        Bind::Tcp { host: "127.0.0.1".to_owned(), port }
    }

    fn usual_binds() -> String {
        let [all, read] = [Self::All, Self::Read].map(|rights| (rights.name(), rights.usual_bind()));
        format!("`\"{}\"` of `[{}]`, `\"{}\"` of `[{}]`", all.1, all.0, read.1, read.0)
    }
}
