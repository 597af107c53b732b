//! A cell: a scenario and the engine that does it.

use super::key::{self, KEYS, Task};
use super::run;
use crate::experiment::{AGAIN, Level, Selector};
use crate::metric::Metric;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// What a runner is asked to do and under which conditions: a level for each key that its task has.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Scenario(BTreeMap<String, Level>);

/// A scenario with the engine that does it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct StackCell {
    /// The engine as the results name it: its own name, or that with `-again` for the second of the A/A pair.
    pub name: String,
    /// The engine's folder.
    pub engine: String,
    /// What it does.
    pub scenario: Scenario,
}

impl Scenario {
    pub(super) fn new(levels: BTreeMap<String, Level>) -> Self {
        Self(levels)
    }

    /// The level of a key, if its task has one.
    pub fn get(&self, key: &str) -> Option<&Level> {
        self.0.get(key)
    }

    /// The text of a key's level; empty where it has none.
    pub(crate) fn word(&self, key: &str) -> &str {
        self.get(key).map_or("", Level::as_str)
    }

    /// The number at a key.
    pub(super) fn number(&self, key: &str) -> Option<u64> {
        self.get(key)?.as_str().parse().ok()
    }

    /// Whether it makes full handshakes in one thread, with configurations made before.
    pub(super) fn is_full_handshake(&self) -> bool {
        let plain = [("resumption", "none"), ("config", "warm"), ("threads", "1")];
        self.task() == Some(Task::Handshake) && plain.iter().all(|(key, level)| self.word(key) == *level)
    }

    /// What is compared of it.
    pub(crate) fn compared(&self) -> &'static [Metric] {
        self.task().map_or(&[], run::compared)
    }

    pub(super) fn task(&self) -> Option<Task> {
        Task::of(self.word("do"))
    }

    /// The same without a key: what scenarios that differ in it alone have in common.
    pub(super) fn without(&self, key: &str) -> Self {
        let mut levels = self.0.clone();
        levels.remove(key);
        Self(levels)
    }

    /// Each key with its level, in the keys' order.
    pub fn levels(&self) -> impl Iterator<Item = (&'static str, &Level)> {
        KEYS.iter().filter_map(|key| Some((key.name, self.get(key.name)?)))
    }

    /// What a runner reads, but for the files that the lab makes.
    pub(super) fn lines(&self) -> String {
        let told = self.levels().filter(|(name, _)| key::find(name).is_some_and(|key| key.is_told));
        told.map(|(name, level)| format!("{name} {level}\n")).collect()
    }
}

impl fmt::Display for Scenario {
    /// What tells it from others: levels that are not the default's, by their words, with the key where a word does not say
    /// what it is.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut first = true;
        for (name, level) in self.levels().filter(|(name, _)| !matches!(*name, "warmup" | "window_ms")) {
            let key = key::find(name);
            let is_default = key.and_then(|key| key.default) == Some(level.as_str());
            let is_said = matches!(name, "do" | "operation" | "version" | "certificate" | "resumption");
            if is_default && !is_said {
                continue;
            }
            if !std::mem::take(&mut first) {
                formatter.write_str(".")?;
            }
            match (name, level.as_str()) {
                ("resumption", "none") => formatter.write_str("full")?,
                ("resumption", how) => write!(formatter, "resumed-{how}")?,
                ("do" | "operation" | "version" | "certificate" | "group" | "suite", word) => {
                    formatter.write_str(word)?;
                }
                (name, word) => write!(formatter, "{name}={word}")?,
            }
        }
        Ok(())
    }
}

impl fmt::Display for StackCell {
    /// The stable name of a cell.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}.{}", self.scenario, self.name)
    }
}

impl StackCell {
    /// Whether it is of the second in the A/A pair.
    pub fn is_again(&self) -> bool {
        self.name.ends_with(AGAIN)
    }

    /// Its level of a factor; the engine is one.
    pub fn level(&self, key: &str) -> Option<Level> {
        match key {
            "engine" => Some(Level::new(&self.engine)),
            _ => self.scenario.get(key).cloned(),
        }
    }

    /// Whether it has such levels.
    pub(super) fn has(&self, levels: &Selector) -> bool {
        levels.iter().all(|(key, level)| self.level(key).as_ref() == Some(level))
    }

    /// Whether another cell is this one but for such levels, which it has in place of this one's.
    pub(super) fn is_but_for(&self, other: &Self, levels: &Selector) -> bool {
        let same = |key: &str| match levels.get(key) {
            Some(level) => other.level(key).as_ref() == Some(level),
            None => other.level(key) == self.level(key),
        };
        !other.is_again() && std::iter::once("engine").chain(KEYS.iter().map(|key| key.name)).all(same)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scenario(levels: &[(&str, &str)]) -> Scenario {
        Scenario::new(levels.iter().map(|(key, level)| ((*key).to_owned(), Level::new(level))).collect())
    }

    #[test]
    fn a_name_has_what_tells_it_from_others() {
        let full = scenario(&[
            ("do", "handshake"),
            ("version", "1.3"),
            ("resumption", "none"),
            ("certificate", "rsa-2048"),
            ("group", "x25519"),
            ("tickets", "4"),
            ("threads", "1"),
            ("window_ms", "200"),
        ]);
        assert_eq!(full.to_string(), "handshake.1.3.full.rsa-2048.tickets=4");
        let cell = StackCell { name: "a-again".into(), engine: "a".into(), scenario: full };
        assert_eq!(cell.to_string(), "handshake.1.3.full.rsa-2048.tickets=4.a-again");
        assert!(cell.is_again());
    }

    #[test]
    fn the_runner_is_told_what_is_its_own() {
        let masked = scenario(&[("do", "primitive"), ("operation", "rsa-2048-sign"), ("mask", "no-ifma")]);
        assert_eq!(masked.lines(), "do primitive\noperation rsa-2048-sign\n");
    }

    #[test]
    fn what_is_compared_differs_in_what_is_asked_alone() {
        let cell = |engine: &str, tickets: &str| StackCell {
            name: engine.into(),
            engine: engine.into(),
            scenario: scenario(&[("do", "handshake"), ("tickets", tickets)]),
        };
        let to_two = Selector::from_iter([("tickets".to_owned(), Level::new("2"))]);
        assert!(cell("a", "4").is_but_for(&cell("a", "2"), &to_two));
        assert!(!cell("a", "4").is_but_for(&cell("b", "2"), &to_two));
        assert!(!cell("a", "4").is_but_for(&cell("a", "4"), &to_two));
    }
}
