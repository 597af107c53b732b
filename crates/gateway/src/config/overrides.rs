//! Servers as they were set while the gateway runs, beside the configuration: kept by reloads, lost with the process.

use std::collections::BTreeMap;

/// What was set for one server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Override {
    /// It gets no new requests but those of clients that its cookie leads to it.
    pub is_drained: bool,
    /// 0 to 1000, in place of the configured weight; 0: no requests at all.
    pub weight: Option<u32>,
}

/// What was set, by service and server as they are configured, not by address: a name that moves keeps it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Overrides(BTreeMap<(String, u64), Override>);

impl Overrides {
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

    /// Drops what is about servers that are gone.
    pub(crate) fn retain(&mut self, is_there: impl Fn(&str, u64) -> bool) {
        self.0.retain(|(service, server), _| is_there(service, *server));
    }
}
