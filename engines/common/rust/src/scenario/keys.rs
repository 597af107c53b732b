//! The lines of a scenario, each consumed once.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::path::PathBuf;

use crate::error::Error;
use crate::names::Named;

/// The keys given and not yet consumed.
pub(super) struct Keys<'a> {
    left: BTreeMap<&'a str, &'a str>,
    asked: Vec<&'static str>,
}

/// All keys.
const KNOWN: &str = "do version resumption suite group certificate chain key ca tickets config threads warmup \
                     window_ms count record write bytes sessions operation locks";

/// The expected value of a file key.
const FILE: &str = "the path of a PEM file";

impl<'a> Keys<'a> {
    /// Parses keys and values; each must be known and occur once.
    pub(super) fn parse(text: &'a str) -> Result<Keys<'a>, Error> {
        let known: Vec<&str> = KNOWN.split(' ').collect();
        let mut left = BTreeMap::new();
        // A carriage return is part of the value, which makes it invalid.
        for (number, line) in (1..).zip(text.split_terminator('\n')) {
            let Some((key, value)) = line.split_once(' ') else {
                return Err(Error::scenario(format!(
                    "line {number} `{line}`: expected a key, a space and a value"
                )));
            };
            if !known.contains(&key) {
                return Err(Error::scenario(format!(
                    "unknown key `{key}`: expected one of {}",
                    list(&known)
                )));
            }
            if left.insert(key, value).is_some() {
                return Err(Error::scenario(format!("duplicate key `{key}`: expected once")));
            }
        }
        Ok(Keys { left, asked: Vec::new() })
    }

    /// Rejects unused keys.
    pub(super) fn finish(self) -> Result<(), Error> {
        match self.left.keys().next() {
            None => Ok(()),
            Some(key) => Err(Error::scenario(format!(
                "key `{key}` does not apply to this scenario: expected one of {}",
                list(&self.asked)
            ))),
        }
    }

    /// One of a few words.
    pub(super) fn word(
        &mut self,
        key: &'static str,
        expected: &'static [&'static str],
    ) -> Result<&'static str, Error> {
        self.optional_word(key, expected)?.ok_or_else(|| missing(key, &list(expected)))
    }

    /// One of a few words, if the key is given.
    pub(super) fn optional_word(
        &mut self,
        key: &'static str,
        expected: &'static [&'static str],
    ) -> Result<Option<&'static str>, Error> {
        let Some(value) = self.take(key) else { return Ok(None) };
        let word = expected.iter().copied().find(|word| *word == value);
        word.map(Some).ok_or_else(|| refused(key, value, &list(expected)))
    }

    /// A named value.
    pub(super) fn choice<T: Named>(&mut self, key: &'static str) -> Result<T, Error> {
        let names: Vec<&str> = T::NAMES.iter().map(|(_, name)| *name).collect();
        let value = self.take(key).ok_or_else(|| missing(key, &list(&names)))?;
        T::named(value).ok_or_else(|| refused(key, value, &list(&names)))
    }

    /// A file name.
    pub(super) fn path(&mut self, key: &'static str) -> Result<PathBuf, Error> {
        self.optional_path(key)?.ok_or_else(|| missing(key, FILE))
    }

    /// A file name, if the key is given.
    pub(super) fn optional_path(&mut self, key: &'static str) -> Result<Option<PathBuf>, Error> {
        match self.take(key) {
            Some("") => Err(refused(key, "", FILE)),
            path => Ok(path.map(PathBuf::from)),
        }
    }

    /// An integer.
    pub(super) fn number(&mut self, key: &'static str, expected: RangeInclusive<u64>) -> Result<u64, Error> {
        let limits = limits(&expected);
        self.optional_number(key, expected)?.ok_or_else(|| missing(key, &limits))
    }

    /// An integer, if the key is given.
    pub(super) fn optional_number(
        &mut self,
        key: &'static str,
        expected: RangeInclusive<u64>,
    ) -> Result<Option<u64>, Error> {
        let Some(value) = self.take(key) else { return Ok(None) };
        // `parse` alone would accept a sign and leading zeros.
        let is_plain = |number: &u64| number.to_string() == value;
        match value.parse() {
            Ok(number) if is_plain(&number) && expected.contains(&number) => Ok(Some(number)),
            _ => Err(refused(key, value, &limits(&expected))),
        }
    }

    fn take(&mut self, key: &'static str) -> Option<&'a str> {
        self.asked.push(key);
        self.left.remove(key)
    }
}

fn missing(key: &str, expected: &str) -> Error {
    Error::scenario(format!("missing key `{key}`: expected {expected}"))
}

fn refused(key: &str, value: &str, expected: &str) -> Error {
    Error::scenario(format!("{key} `{value}`: expected {expected}"))
}

fn limits(range: &RangeInclusive<u64>) -> String {
    if range.start() == range.end() {
        range.start().to_string()
    } else {
        format!("{} to {}", range.start(), range.end())
    }
}

fn list(words: &[&str]) -> String {
    words.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", ")
}
