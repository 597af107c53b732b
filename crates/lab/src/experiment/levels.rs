//! Levels by factor: those of a cell, or those that select cells.

use super::Level;
use super::factor::{canonical, leaves};
use serde::{Deserialize, Deserializer, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use toml::Table;

/// Levels by the keys of their factors, ordered by key.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Levels(BTreeMap<String, Level>);

impl Levels {
    /// The level of a key.
    pub fn get(&self, key: &str) -> Option<&Level> {
        self.0.get(key)
    }

    /// The text of a key's level; empty if there is none.
    pub fn word(&self, key: &str) -> &str {
        self.get(key).map_or("", Level::as_str)
    }

    /// The level of a key as a whole number.
    pub fn number(&self, key: &str) -> Option<u64> {
        self.word(key).parse().ok()
    }

    /// Whether there are no levels.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Each key with its level.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Level)> {
        self.0.iter().map(|(key, level)| (key.as_str(), level))
    }

    /// Keeps some of them.
    pub(crate) fn retain(&mut self, keep: impl Fn(&str, &Level) -> bool) {
        self.0.retain(|key, level| keep(key, level));
    }

    /// The same without a key: the levels common to cells that differ only in that key.
    #[must_use]
    pub fn without(&self, key: &str) -> Self {
        let mut levels = self.clone();
        levels.0.remove(key);
        levels
    }

    /// The same with another level of a key.
    #[must_use]
    pub fn with(&self, key: &str, level: Level) -> Self {
        let mut levels = self.clone();
        levels.0.insert(key.to_owned(), level);
        levels
    }
}

impl fmt::Display for Levels {
    /// `load.resume=100, tls.tickets=0`
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words: Vec<String> = self.iter().map(|(key, level)| format!("{key}={level}")).collect();
        formatter.write_str(&words.join(", "))
    }
}

impl FromIterator<(String, Level)> for Levels {
    fn from_iter<I: IntoIterator<Item = (String, Level)>>(levels: I) -> Self {
        Self(levels.into_iter().map(|(key, level)| (canonical(&key).to_owned(), level)).collect())
    }
}

impl<'de> Deserialize<'de> for Levels {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let table = Table::deserialize(deserializer)?;
        Ok(leaves(&table).into_iter().map(|(key, value)| (key, Level::of(value))).collect())
    }
}
