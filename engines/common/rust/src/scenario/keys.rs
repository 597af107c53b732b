//! The lines of a scenario, each taken once by what understands it.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::path::PathBuf;

use crate::error::Error;
use crate::names::Named;

/// The keys that were given and not yet taken.
pub(super) struct Keys<'a> {
    left: BTreeMap<&'a str, &'a str>,
    asked: Vec<&'static str>,
}

/// Every key there is.
const KNOWN: &str = "do version resumption suite group certificate chain key ca tickets config threads warmup \
                     window_ms count record write bytes sessions operation locks";

/// What a file is, where it is asked for.
const FILE: &str = "the path of a PEM file";

impl<'a> Keys<'a> {
    /// The keys and values of a text, if each is known and comes once.
    pub(super) fn parse(text: &'a str) -> Result<Keys<'a>, Error> {
        let known: Vec<&str> = KNOWN.split(' ').collect();
        let mut left = BTreeMap::new();
        // A carriage return is part of a value, and so of none that is allowed.
        for (number, line) in (1..).zip(text.split_terminator('\n')) {
            let Some((key, value)) = line.split_once(' ') else {
                return Err(Error::scenario(format!(
                    "line {number} `{line}`: a key, a space and a value are allowed"
                )));
            };
            if !known.contains(&key) {
                return Err(Error::scenario(format!(
                    "key `{key}` is unknown; these are allowed: {}",
                    list(&known)
                )));
            }
            if left.insert(key, value).is_some() {
                return Err(Error::scenario(format!("key `{key}` comes twice; once is allowed")));
            }
        }
        Ok(Keys { left, asked: Vec::new() })
    }

    /// Refuses keys that nothing has taken.
    pub(super) fn finish(self) -> Result<(), Error> {
        match self.left.keys().next() {
            None => Ok(()),
            Some(key) => Err(Error::scenario(format!(
                "key `{key}` means nothing in this scenario; these are allowed: {}",
                list(&self.asked)
            ))),
        }
    }

    /// One of a few words.
    pub(super) fn word(
        &mut self,
        key: &'static str,
        allowed: &'static [&'static str],
    ) -> Result<&'static str, Error> {
        self.optional_word(key, allowed)?.ok_or_else(|| missing(key, &list(allowed)))
    }

    /// One of a few words, if the key is given.
    pub(super) fn optional_word(
        &mut self,
        key: &'static str,
        allowed: &'static [&'static str],
    ) -> Result<Option<&'static str>, Error> {
        let Some(value) = self.take(key) else { return Ok(None) };
        let word = allowed.iter().copied().find(|word| *word == value);
        word.map(Some).ok_or_else(|| refused(key, value, &list(allowed)))
    }

    /// A value that has a name.
    pub(super) fn choice<T: Named>(&mut self, key: &'static str) -> Result<T, Error> {
        let names: Vec<&str> = T::NAMES.iter().map(|(_, name)| *name).collect();
        let value = self.take(key).ok_or_else(|| missing(key, &list(&names)))?;
        T::named(value).ok_or_else(|| refused(key, value, &list(&names)))
    }

    /// A file's name.
    pub(super) fn path(&mut self, key: &'static str) -> Result<PathBuf, Error> {
        self.optional_path(key)?.ok_or_else(|| missing(key, FILE))
    }

    /// A file's name, if the key is given.
    pub(super) fn optional_path(&mut self, key: &'static str) -> Result<Option<PathBuf>, Error> {
        match self.take(key) {
            Some("") => Err(refused(key, "", FILE)),
            path => Ok(path.map(PathBuf::from)),
        }
    }

    /// A whole number.
    pub(super) fn number(&mut self, key: &'static str, allowed: RangeInclusive<u64>) -> Result<u64, Error> {
        let limits = limits(&allowed);
        self.optional_number(key, allowed)?.ok_or_else(|| missing(key, &limits))
    }

    /// A whole number, if the key is given.
    pub(super) fn optional_number(
        &mut self,
        key: &'static str,
        allowed: RangeInclusive<u64>,
    ) -> Result<Option<u64>, Error> {
        let Some(value) = self.take(key) else { return Ok(None) };
        // `parse` alone would take a sign, and zeros in front.
        let is_plain = |number: &u64| number.to_string() == value;
        match value.parse() {
            Ok(number) if is_plain(&number) && allowed.contains(&number) => Ok(Some(number)),
            _ => Err(refused(key, value, &limits(&allowed))),
        }
    }

    fn take(&mut self, key: &'static str) -> Option<&'a str> {
        self.asked.push(key);
        self.left.remove(key)
    }
}

fn missing(key: &str, allowed: &str) -> Error {
    Error::scenario(format!("key `{key}` is missing; allowed: {allowed}"))
}

fn refused(key: &str, value: &str, allowed: &str) -> Error {
    Error::scenario(format!("{key} `{value}`: allowed here: {allowed}"))
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
