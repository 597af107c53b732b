//! Conversion of a document to typed settings. It reports each wrong key, up to [`MOST`], and removes it to check the
//! remaining keys.

use super::{Document, advice};
use crate::config::document::{Config, RouteDefaults};
use crate::config::finding::{Finding, Findings};
use serde::de::DeserializeOwned;
use toml::Spanned;
use toml::de::{DeTable, DeValue, Deserializer};
use weir_toml::key_at;

/// The removed wrong keys, each by its first two parts, such as `service.api`. Errors that only follow from the removal
/// are not reported.
#[derive(Debug, Default)]
pub(crate) struct Doubts(Vec<String>);

impl Doubts {
    /// Whether a finding may follow from a removed key.
    pub(crate) fn cover(&self, finding: &Finding) -> bool {
        let is_about = |part: &String| {
            finding
                .key
                .strip_prefix(part.as_str())
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        };
        self.0.iter().any(is_about)
    }
}

/// The settings, and the removed keys. Returns `None` if a fault prevents further checks.
pub(crate) fn config(document: &Document<'_>, findings: &mut Findings) -> Option<(Config, Doubts)> {
    let mut doubts = Doubts::default();
    if let Some(DeValue::Table(defaults)) = document.table.get("defaults").map(Spanned::get_ref) {
        let _: Option<RouteDefaults> = collected(document, || defaults.clone(), findings, &mut doubts);
    }
    let all_but_defaults = || {
        let mut table = document.table.clone();
        table.remove("defaults");
        table
    };
    let config = collected(document, all_but_defaults, findings, &mut doubts)?;
    Some((config, doubts))
}

/// The maximum number of wrong keys to report, since each one takes another pass over the document.
const MOST: usize = 50;

/// Converts a table to settings. Each pass consumes a copy, without the keys that earlier passes found wrong.
fn collected<'a, T: DeserializeOwned>(
    document: &Document<'_>,
    copy: impl Fn() -> DeTable<'a>,
    findings: &mut Findings,
    doubts: &mut Doubts,
) -> Option<T> {
    let mut left_out = Vec::new();
    for _ in 0..MOST {
        let mut table = copy();
        if !left_out.iter().all(|offset| leave_out(&mut table, *offset)) {
            return None;
        }
        let all = 0..0;
        let error = match T::deserialize(Deserializer::from(Spanned::new(all, table))) {
            Ok(value) => return Some(value),
            Err(error) => error,
        };
        let offset = error.span().map_or(0, |span| span.start);
        let key = key_at(&document.table, offset).unwrap_or_default();
        let parts: Vec<_> = key.splitn(3, '.').take(2).collect();
        let part = parts.join(".");
        if error.message().starts_with("missing field") && doubts.0.contains(&part) {
            // The field is missing because an earlier pass removed it.
            return None;
        }
        let why = advice::of_value(&document.table, &key, &error);
        let location = document.texts.at(offset);
        // The fault may be reported already, such as an unset variable or a key from `[defaults]`.
        let is_known = |known: &Finding| known.key == key && known.location.as_ref() == Some(&location);
        if !findings.faults().any(is_known) {
            findings.fault_at(location, &key, why);
        }
        doubts.0.push(part);
        left_out.push(offset);
    }
    None
}

/// Removes the innermost key whose name or value is at the offset. Returns false if there is no such key, or only a
/// table that other keys may refer to.
fn leave_out(table: &mut DeTable<'_>, offset: usize) -> bool {
    for (_, value) in table.iter_mut() {
        let is_left_out = match value.get_mut() {
            DeValue::Table(table) => leave_out(table, offset),
            DeValue::Array(items) => items.iter_mut().any(|item| match item.get_mut() {
                DeValue::Table(table) => leave_out(table, offset),
                _ => false,
            }),
            _ => false,
        };
        if is_left_out {
            return true;
        }
    }
    let holds_tables = |value: &DeValue<'_>| match value {
        DeValue::Table(_) => true,
        DeValue::Array(items) => items.iter().any(|item| item.get_ref().is_table()),
        _ => false,
    };
    let found = table.iter().find(|(key, value)| {
        key.span().contains(&offset) || value.span().contains(&offset) && !holds_tables(value.get_ref())
    });
    match found.map(|(key, _)| key.get_ref().to_string()) {
        Some(key) => table.remove(key.as_str()).is_some(),
        None => false,
    }
}
