//! A cell: a subject under one combination of the factors' levels.

pub use crate::experiment::Levels;

use crate::experiment::{AGAIN, Level, SUBJECTS, canonical, is_setting};
use serde::{Deserialize, Serialize};
use std::fmt;

/// The unit of a block: run once in every block.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Cell {
    /// Its stable name, which contains its subject and its levels.
    pub id: String,
    /// The subject as results name it: its name with its settings, or that with `-again` for the second of the A/A
    /// pair.
    pub name: String,
    /// The subject: a target, an engine, a command.
    pub subject: String,
    /// The levels of the factors.
    pub levels: Levels,
}

impl fmt::Display for Cell {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(&self.id)
    }
}

impl Cell {
    /// The place that it shares with its counterparts: its levels without its subject's own settings.
    pub fn place(&self) -> Levels {
        let mut place = self.levels.clone();
        place.retain(|key, _| !is_setting(key));
        place
    }

    /// Whether it is the second of the A/A pair.
    pub fn is_again(&self) -> bool {
        self.name.ends_with(AGAIN)
    }

    /// Its name; for the second of the A/A pair, the first one's.
    pub fn first_name(&self) -> &str {
        self.name.strip_suffix(AGAIN).unwrap_or(&self.name)
    }

    /// Its level of a factor; its subject is one.
    pub fn level(&self, key: &str) -> Option<Level> {
        match canonical(key) {
            key if SUBJECTS.contains(&key) => Some(Level::new(&self.subject)),
            key => self.levels.get(key).cloned(),
        }
    }

    /// Whether it has these levels.
    pub(crate) fn has(&self, levels: &Levels) -> bool {
        levels.iter().all(|(key, level)| self.level(key).as_ref() == Some(level))
    }

    /// Whether another cell is the same but for these levels, which replace this one's.
    pub(crate) fn is_but_for(&self, other: &Self, levels: &Levels) -> bool {
        let other_subject = levels.iter().any(|(key, _)| SUBJECTS.contains(&key));
        // Another subject has its own settings.
        let is_own = |key: &str| {
            other_subject && is_setting(key) && (self.level(key).is_none() || other.level(key).is_none())
        };
        // Whether handshakes are full or resumed follows from the load.
        let follows = |key: &str| key == "case" && levels.iter().any(|(key, _)| key.starts_with("load."));
        let same = |key: &str| match levels.get(key) {
            Some(level) => other.level(key).as_ref() == Some(level),
            None => is_own(key) || follows(key) || other.level(key) == self.level(key),
        };
        let all = [&self.levels, &other.levels, levels];
        let keys = all.into_iter().flat_map(Levels::iter).map(|(key, _)| key);
        let subject = (!other_subject).then_some(SUBJECTS[0]);
        !other.is_again() && keys.chain(subject).all(same)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cell(name: &str, subject: &str, levels: &[(&str, &str)]) -> Cell {
        let levels = levels.iter().map(|(key, level)| ((*key).to_owned(), Level::new(level))).collect();
        Cell { id: String::new(), name: name.into(), subject: subject.into(), levels }
    }

    fn but_for(levels: &[(&str, &str)]) -> Levels {
        levels.iter().map(|(key, level)| ((*key).to_owned(), Level::new(level))).collect()
    }

    #[test]
    fn another_cell_differs_only_in_the_named_levels() {
        let a = cell("a", "a", &[("tickets", "2"), ("version", "1.3")]);
        let b = cell("b", "b", &[("tickets", "2"), ("version", "1.3")]);
        let b_without = cell("b", "b", &[("tickets", "0"), ("version", "1.3")]);
        assert!(a.is_but_for(&b, &but_for(&[("engine", "b")])));
        assert!(!a.is_but_for(&b_without, &but_for(&[("engine", "b")])));
        assert!(a.is_but_for(&b_without, &but_for(&[("engine", "b"), ("tickets", "0")])));
        assert!(!a.is_but_for(&b, &but_for(&[("version", "1.3")])), "another subject");
        let again = cell("b-again", "b", &[("tickets", "2"), ("version", "1.3")]);
        assert!(again.is_again() && !a.is_but_for(&again, &but_for(&[("engine", "b")])));
    }

    /// Regression test: a claim on resumed against full handshakes found no counterpart, as the two differ in a level
    /// that no experiment names.
    #[test]
    fn the_case_follows_from_the_load() {
        let resumed =
            cell("a", "a", &[("case", "handshake-resumed"), ("load.resume", "100"), ("tickets", "2")]);
        let full = cell("a", "a", &[("case", "handshake-full"), ("load.resume", "0"), ("tickets", "2")]);
        let without = cell("a", "a", &[("case", "handshake-full"), ("load.resume", "0"), ("tickets", "0")]);
        assert!(resumed.is_but_for(&full, &but_for(&[("load.resume", "0")])));
        assert!(!resumed.is_but_for(&without, &but_for(&[("load.resume", "0")])));
        assert!(
            !resumed.is_but_for(&without, &but_for(&[("tickets", "0")])),
            "nothing says that the case may differ"
        );
    }

    #[test]
    fn another_subject_has_settings_of_its_own() {
        let a = cell("a", "a", &[("bytes", "1")]);
        let b = cell("b+pool=2", "b", &[("bytes", "1"), ("settings.pool", "2")]);
        assert!(a.is_but_for(&b, &but_for(&[("target", "b")])));
        assert!(!b.is_but_for(&cell("b", "b", &[("bytes", "1")]), &but_for(&[("bytes", "1")])));
        assert_eq!(a.place(), b.place());
    }
}
