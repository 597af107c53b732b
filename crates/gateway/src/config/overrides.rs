//! Servers as they were set while the gateway runs, beside the configuration: kept by reloads and upgrades, lost by a restart.

use super::snapshot::Service;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What was set for one server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Override {
    /// It gets no new requests but those of clients that its cookie leads to it.
    pub is_drained: bool,
    /// 0 to 1000, in place of the configured weight; 0: no requests at all.
    pub weight: Option<u32>,
}

/// What was set, by service and server as they are configured, not by address: a name that moves keeps it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Overrides(BTreeMap<(String, u64), Override>);

/// What was set for a server, in words that another process understands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Setting {
    pub service: String,
    /// Its id, the same in every process.
    pub server: u64,
    pub set: Override,
}

impl FromIterator<Setting> for Overrides {
    fn from_iter<I: IntoIterator<Item = Setting>>(settings: I) -> Self {
        let settings = settings.into_iter();
        Self(settings.map(|Setting { service, server, set }| ((service, server), set)).collect())
    }
}

impl Overrides {
    /// All of them.
    pub(crate) fn settings(&self) -> Vec<Setting> {
        let all = self.0.iter();
        all.map(|((service, server), set)| Setting { service: service.clone(), server: *server, set: *set })
            .collect()
    }

    /// What was set for the server of this id; by default nothing.
    pub(crate) fn of(&self, service: &str, server: u64) -> Override {
        match self.0.is_empty() {
            true => Override::default(),
            false => self.0.get(&(service.to_owned(), server)).copied().unwrap_or_default(),
        }
    }

    /// Replaces what was set for a server.
    pub(crate) fn set(&mut self, service: &str, server: u64, to: Override) {
        let key = (service.to_owned(), server);
        match to == Override::default() {
            true => self.0.remove(&key),
            false => self.0.insert(key, to),
        };
    }

    /// Drops what is about servers that these services do not have.
    pub(crate) fn retain(&mut self, services: &[Service]) {
        self.0.retain(|(name, id), _| {
            let mut named = services.iter().filter(|service| service.name == *name);
            named.any(|service| service.servers.iter().any(|server| server.id == *id))
        });
    }
}
