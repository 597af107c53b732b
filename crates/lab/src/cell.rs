//! A cell: one combination of the factors' levels, and the group of those that are compared with each other.

use crate::experiment::{AGAIN, Case, Level, Load, Mode, OWN, Selector, is_setting};
use serde::{Deserialize, Serialize, Serializer};
use std::collections::BTreeMap;
use std::fmt;
use weir_load::plural;

/// One combination of factors.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Cell {
    /// The target as the results name it: its own name, or that with `-again` for the second of the A/A pair.
    pub name: String,
    /// The folder that describes it.
    pub target: String,
    /// What a client does: it follows from the mode and the experiment's `[load]`.
    pub case: Case,
    /// Client side, upstream side.
    pub mode: Mode,
    /// Connections held open; with new connections, at once at most.
    pub connections: u32,
    /// Body bytes of an answer.
    pub bytes: u64,
    /// How requests arrive.
    pub load: Load,
    /// Its levels of the experiment's further factors, by their keys.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub factors: BTreeMap<String, Level>,
}

impl fmt::Display for Cell {
    /// The stable name of a cell, its factors in a fixed order; the settings of its target are in the target's name.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, case, mode, connections, bytes, load, .. } = self;
        write!(formatter, "{case}.{mode}.c{connections}.b{bytes}.{load}.")?;
        for (key, level) in self.conditions() {
            write!(formatter, "{key}={}.", file_name(level))?;
        }
        formatter.write_str(name)
    }
}

/// Further factors beside the fields of a summary, one of which is the rate.
pub(crate) fn further<S: Serializer>(
    factors: &BTreeMap<String, Level>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_map(factors.iter().filter(|(key, _)| *key != "rate"))
}

/// A level as a part of a file's name.
pub(crate) fn file_name(level: &Level) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || "-_.,%".contains(c) { c } else { '_' };
    level.as_str().chars().map(plain).collect()
}

impl Cell {
    /// The factors that two cells of one comparison share.
    pub fn group(&self) -> Group {
        let Self { case, mode, connections, bytes, load, .. } = *self;
        let factors = self.conditions().map(|(key, level)| (key.clone(), level.clone())).collect();
        Group { case, mode, connections, bytes, load, factors }
    }

    /// The further factors that are not settings of its target.
    pub fn conditions(&self) -> impl Iterator<Item = (&String, &Level)> {
        self.factors.iter().filter(|(key, _)| !is_setting(key))
    }

    /// Whether it is of the second in the A/A pair.
    pub fn is_again(&self) -> bool {
        self.name.ends_with(AGAIN)
    }

    /// Its name, or for the second in the A/A pair that of the first.
    pub fn subject(&self) -> &str {
        self.name.strip_suffix(AGAIN).unwrap_or(&self.name)
    }

    /// Whether it has such levels.
    pub(crate) fn has(&self, levels: &Selector) -> bool {
        levels.iter().all(|(key, level)| self.level(key).as_ref() == Some(level))
    }

    /// Whether another cell is this one but for such levels, which it has in place of this one's.
    pub(crate) fn is_but_for(&self, other: &Self, levels: &Selector) -> bool {
        let further = self.factors.keys().chain(other.factors.keys()).map(String::as_str);
        // Another target has settings of its own.
        let is_own = |key: &str| {
            let theirs = self.level(key).is_none() || other.level(key).is_none();
            levels.get("target").is_some() && is_setting(key) && theirs
        };
        let same = |key: &str| match levels.get(key) {
            Some(level) => other.level(key).as_ref() == Some(level),
            None => is_own(key) || other.level(key) == self.level(key),
        };
        !other.is_again() && OWN.into_iter().chain(further).all(same)
    }

    /// Its level of a factor, by the factor's key.
    pub fn level(&self, key: &str) -> Option<Level> {
        Some(match key {
            "target" => Level::new(&self.target),
            "mode" => Level::new(self.mode),
            "load_model" => Level::new(self.load),
            "connections" => Level::new(self.connections),
            "bytes" => Level::new(self.bytes),
            _ => return self.factors.get(key).cloned(),
        })
    }
}

/// The factors of a cell but its target and that one's settings: what is compared is compared within one group.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Group {
    /// See [`Cell::case`].
    pub case: Case,
    /// See [`Cell::mode`].
    pub mode: Mode,
    /// See [`Cell::connections`].
    pub connections: u32,
    /// See [`Cell::bytes`].
    pub bytes: u64,
    /// See [`Cell::load`].
    pub load: Load,
    /// See [`Cell::conditions`].
    pub factors: BTreeMap<String, Level>,
}

impl fmt::Display for Group {
    /// What is loaded with, in words; the mode stands elsewhere.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { case, connections, bytes, .. } = self;
        let (connections, bytes) = (plural((*connections).into(), "connection"), plural(*bytes, "byte"));
        match case.is_handshake() {
            false => write!(formatter, "{connections}, {bytes}"),
            true => write!(formatter, "{case}, {connections} at once, {bytes}"),
        }?;
        self.factors.iter().try_for_each(|(key, level)| write!(formatter, ", {key} {level}"))
    }
}
