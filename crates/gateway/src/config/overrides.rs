//! Changes to servers at run time, on top of the configuration. Reloads and upgrades keep them; a restart loses them.

use super::snapshot::Snapshot;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// The changes to one server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Override {
    /// The server gets no new requests, except from clients with its sticky cookie.
    pub is_drained: bool,
    /// A weight of 0 to 1000 in place of the configured one; 0 means no requests at all.
    pub weight: Option<u32>,
}

/// The changes by service and server. The key is the configured server, not its address: a server keeps its changes
/// when its name resolves to another address.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Overrides(BTreeMap<(String, u64), Override>);

/// The changes to a server, as an upgrade passes them to the new process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Setting {
    pub service: String,
    /// The server's ID, the same in every process.
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
    /// All changes, as an upgrade passes them to the new process.
    pub(crate) fn settings(&self) -> Vec<Setting> {
        let all = self.0.iter();
        all.map(|((service, server), set)| Setting { service: service.clone(), server: *server, set: *set })
            .collect()
    }

    /// The changes to the server with this ID, or the default if there are none.
    pub(crate) fn of(&self, service: &str, server: u64) -> Override {
        match self.0.is_empty() {
            true => Override::default(),
            false => self.0.get(&(service.to_owned(), server)).copied().unwrap_or_default(),
        }
    }

    /// Replaces the changes to a server; the default removes them.
    pub(crate) fn set(&mut self, service: &str, server: u64, to: Override) {
        let key = (service.to_owned(), server);
        match to == Override::default() {
            true => self.0.remove(&key),
            false => self.0.insert(key, to),
        };
    }

    /// The services whose servers have different changes in `other`.
    pub(crate) fn differing<'a>(&'a self, other: &'a Self) -> BTreeSet<&'a str> {
        let in_one = |one: &'a Self, other: &'a Self| {
            one.0
                .iter()
                .filter(|(key, set)| other.0.get(*key) != Some(*set))
                .map(|((service, _), _)| &**service)
        };
        in_one(self, other).chain(in_one(other, self)).collect()
    }

    /// Removes the changes to servers that are not in a snapshot.
    pub(crate) fn retain(&mut self, snapshot: &Snapshot) {
        self.0.retain(|(name, id), _| {
            let service = snapshot.service_named(name).map(|at| &snapshot.services[at]);
            service.is_some_and(|service| service.servers.iter().any(|server| server.id == *id))
        });
    }
}
