//! The levels of every cell of gateways, typed.

use super::{Case, Load, Mode};
use crate::experiment::{Level, is_setting};
use crate::planning::cell::{Cell, Levels};
use serde::de::value::{Error, StrDeserializer};
use serde::de::{DeserializeOwned, IntoDeserializer as _};
use std::fmt::Display;

/// A cell of gateways, or its place shared with its counterparts.
pub(crate) trait Place {
    fn levels(&self) -> &Levels;

    fn case(&self) -> Case {
        read(self.levels().word("case")).unwrap_or(Case::Request)
    }

    /// Client side, upstream side.
    fn mode(&self) -> Mode {
        read(self.levels().word("mode")).unwrap_or(Mode::H1c)
    }

    fn load(&self) -> Load {
        read(self.levels().word("load_model")).unwrap_or(Load::Saturated)
    }

    /// Users, which are connections with HTTP/1.1; with new connections, the maximum at once.
    fn connections(&self) -> u32 {
        self.levels().number("connections").and_then(|number| u32::try_from(number).ok()).unwrap_or_default()
    }

    /// Streams per connection; 1 with HTTP/1.1.
    fn streams(&self) -> u32 {
        self.levels().number("streams").and_then(|number| u32::try_from(number).ok()).unwrap_or(1)
    }

    /// Body bytes of a response.
    fn bytes(&self) -> u64 {
        self.levels().number("bytes").unwrap_or_default()
    }

    /// Its further levels, the target's settings included.
    fn further(&self) -> impl Iterator<Item = (&str, &Level)> {
        self.levels().iter().filter(|(key, _)| !FIELDS.contains(key))
    }

    /// Its further levels except its target's settings.
    fn conditions(&self) -> impl Iterator<Item = (&str, &Level)> {
        self.further().filter(|(key, _)| !is_setting(key))
    }

    /// The same under this load.
    fn at(&self, load: Load) -> Levels {
        self.levels().with("load_model", Level::new(load))
    }
}

/// The keys of the levels that each cell has.
pub(crate) const FIELDS: [&str; 5] = ["case", "mode", "connections", "bytes", "load_model"];

impl Place for Levels {
    fn levels(&self) -> &Levels {
        self
    }
}

impl Place for Cell {
    fn levels(&self) -> &Levels {
        &self.levels
    }
}

/// The value with this name in a file.
pub(super) fn read<T: DeserializeOwned>(name: &str) -> Option<T> {
    let name: StrDeserializer<'_, Error> = name.into_deserializer();
    T::deserialize(name).ok()
}

/// A list for the user.
pub(super) fn listed(items: impl IntoIterator<Item = impl Display>) -> String {
    items.into_iter().map(|item| item.to_string()).collect::<Vec<_>>().join(", ")
}

/// The stable name of a cell, its factors in a fixed order; its target's settings are in the target's name.
pub(super) fn id(levels: &Levels, name: &str) -> String {
    let (case, mode, load) = (levels.case(), levels.mode(), levels.load());
    let mut id = format!("{case}.{mode}.c{}.b{}.{load}.", levels.connections(), levels.bytes());
    for (key, level) in levels.conditions() {
        id.push_str(&format!("{key}={}.", level.file_name()));
    }
    id + name
}
