//! The source of a configuration: its file and the files it includes, merged into one document, with environment
//! variables expanded.

mod advice;
mod defaults_table;
mod environment;
mod include;
mod paths;
mod texts;
mod typed;

pub(crate) use texts::Texts;
pub(super) use typed::config;

use super::finding::{Findings, Location};
use std::ffi::OsString;
use std::ops::Range;
use texts::Text;
use toml::Spanned;
use toml::de::{DeTable, DeValue};
use weir_toml::offset_of;

/// The merged contents of all texts. Spans are offsets in the joined texts, as [`Texts`] counts them.
#[derive(Debug)]
pub(crate) struct Document<'a> {
    texts: &'a Texts,
    table: DeTable<'a>,
}

/// A lookup of environment variables.
pub(crate) type Variables<'a> = &'a dyn Fn(&str) -> Option<OsString>;

fn of_environment(name: &str) -> Option<OsString> {
    std::env::var_os(name)
}

impl<'a> Document<'a> {
    /// Parses and merges all files. Returns `None` if there is no file, or one is not valid TOML, since the document
    /// would be incomplete.
    pub(crate) fn of(texts: &'a Texts, findings: &mut Findings) -> Option<Self> {
        Self::with(texts, &of_environment, findings)
    }

    /// As [`Document::of`], with other variables in place of the environment.
    pub(crate) fn with(texts: &'a Texts, variables: Variables<'_>, findings: &mut Findings) -> Option<Self> {
        let mut document = Self { texts, table: DeTable::new() };
        let mut is_whole = !texts.0.is_empty();
        for (number, Text { path, text, start }) in texts.0.iter().enumerate() {
            let table = match DeTable::parse(text) {
                Ok(table) => table.into_inner(),
                Err(error) => {
                    let offset = start + error.span().map_or(0, |span| span.start);
                    let why = advice::of_syntax(&error, texts.line(offset));
                    findings.fault_at(texts.at(offset), "", why);
                    is_whole = false;
                    continue;
                }
            };
            let mut table = if *start == 0 { table } else { shifted(table, *start) };
            let include = table.remove_entry("include");
            if let Some((key, _)) = include.filter(|_| number > 0) {
                let why = "an included file includes no others; move it to the configuration file".to_owned();
                findings.fault_at(texts.at(key.span().start), "include", why);
            }
            environment::substitute(&mut table, variables, &mut |offset, key, why| {
                findings.fault_at(texts.at(offset), &key, why);
            });
            if let Some(directory) = path.parent() {
                paths::resolve(&mut table, directory);
            }
            document.merge(table, findings);
        }
        defaults_table::apply(&mut document.table);
        is_whole.then_some(document)
    }

    /// Adds the contents of another file: appends to lists such as `[[route]]`, and merges tables. A key of a table,
    /// such as `web` in `[listener.web]`, must be in one file only.
    fn merge(&mut self, other: DeTable<'a>, findings: &mut Findings) {
        let mut duplicates = Vec::new();
        for (key, value) in other {
            let name = key.get_ref().to_string();
            let Some(known) = self.table.get_mut(name.as_str()) else {
                self.table.insert(key, value);
                continue;
            };
            let span = value.span();
            match (known.get_mut(), value.into_inner()) {
                (DeValue::Table(known), DeValue::Table(other)) => {
                    for (key, value) in other {
                        match known.get_key_value(key.get_ref().as_ref()) {
                            Some((first, _)) => {
                                let key_in_words = format!("{name}.{}", key.get_ref());
                                duplicates.push((key.span(), first.span(), key_in_words));
                            }
                            None => drop(known.insert(key, value)),
                        }
                    }
                }
                (DeValue::Array(known), DeValue::Array(other)) => {
                    other.into_iter().for_each(|item| known.push(item));
                }
                (_, _) => {
                    let first = self.table.get_key_value(name.as_str());
                    duplicates.push((key.span(), first.map_or(span, |(first, _)| first.span()), name));
                }
            }
        }
        for (second, first, key) in duplicates {
            let why = format!("duplicate key: it is set in {}, too; keep one", self.texts.at(first.start));
            findings.fault_at(self.texts.at(second.start), &key, why);
        }
    }

    /// The location of a key, or of the innermost table that should contain it.
    pub(crate) fn locate(&self, key: &str) -> Location {
        let mut places = std::iter::successors(Some(key), |key| Some(key.rsplit_once('.')?.0));
        match places.find_map(|key| offset_of(&self.table, key)) {
            Some(offset) => self.texts.at(offset),
            None => Location { line: None, ..self.texts.at(0) },
        }
    }
}

/// Moves all spans of an included file by its offset in the joined text.
fn shifted(table: DeTable<'_>, by: usize) -> DeTable<'_> {
    let entry = |(key, value): (Spanned<_>, Spanned<_>)| {
        let span = further(&key.span(), by);
        (Spanned::new(span, key.into_inner()), shifted_value(value, by))
    };
    table.into_iter().map(entry).collect()
}

fn shifted_value(value: Spanned<DeValue<'_>>, by: usize) -> Spanned<DeValue<'_>> {
    let span = further(&value.span(), by);
    let value = match value.into_inner() {
        DeValue::Table(table) => DeValue::Table(shifted(table, by)),
        DeValue::Array(items) => {
            DeValue::Array(items.into_iter().map(|item| shifted_value(item, by)).collect())
        }
        other => other,
    };
    Spanned::new(span, value)
}

fn further(span: &Range<usize>, by: usize) -> Range<usize> {
    span.start + by..span.end + by
}
