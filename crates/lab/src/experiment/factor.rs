//! Factors, their levels, and all combinations of levels.

use super::Level;
use serde::{Deserialize, Serialize};
use toml::{Table, Value};

/// The factors that name the subject of a measurement; each instrument has one of them.
pub const SUBJECTS: [&str; 2] = ["target", "engine"];

/// The study's names for two factors.
const ALIASES: [(&str, &str); 2] = [("users", "connections"), ("size", "bytes")];

/// Tables of conditions; each of their keys is a factor.
const TABLES: [&str; 5] = ["tls", "cores", "load", "settings", "net"];

/// A factor and its levels, in the file's order.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Factor {
    /// Its key; `tls.group` reaches into a table.
    pub key: String,
    /// Its levels as given in the file: at least one, no duplicates.
    pub levels: Vec<Value>,
}

impl Factor {
    /// The names of its levels.
    pub fn names(&self) -> Vec<Level> {
        self.levels.iter().map(Level::of).collect()
    }
}

/// Whether a key belongs to the subject of a measurement, not to its conditions.
pub(crate) fn is_of_subjects(key: &str) -> bool {
    SUBJECTS.contains(&key) || is_setting(key)
}

/// Whether a key is one of a subject's own settings.
pub fn is_setting(key: &str) -> bool {
    key.starts_with("settings.")
}

/// The lab's name of a key.
pub fn canonical(key: &str) -> &str {
    ALIASES.iter().find(|(alias, _)| *alias == key).map_or(key, |(_, key)| key)
}

/// The other name of a key, if it has one.
pub(crate) fn alias(key: &str) -> Option<&'static str> {
    ALIASES.iter().find(|(_, known)| *known == key).map(|(alias, _)| *alias)
}

/// The keys with their values; those of inner tables have the table's name and a dot in front.
pub(crate) fn leaves(table: &Table) -> Vec<(String, &Value)> {
    let mut leaves = Vec::new();
    for (key, value) in table {
        match value {
            Value::Table(inner) if TABLES.contains(&key.as_str()) => {
                leaves.extend(inner.iter().map(|(name, value)| (format!("{key}.{name}"), value)));
            }
            value => leaves.push((key.clone(), value)),
        }
    }
    leaves
}

/// Sets the value of a key, in its inner table if it has one.
pub(crate) fn insert(table: &mut Table, key: &str, value: Value) {
    match inner(key) {
        Some((name, rest)) => {
            let entry = table.entry(name).or_insert_with(|| Value::Table(Table::new()));
            if let Value::Table(inner) = entry {
                inner.insert(rest.to_owned(), value);
            }
        }
        None => {
            table.insert(key.to_owned(), value);
        }
    }
}

/// Removes a key.
pub(crate) fn remove(table: &mut Table, key: &str) -> Option<Value> {
    match inner(key) {
        Some((name, rest)) => table.get_mut(name)?.as_table_mut()?.remove(rest),
        None => table.remove(key),
    }
}

/// The value of a key.
pub(crate) fn get<'a>(table: &'a Table, key: &str) -> Option<&'a Value> {
    match inner(key) {
        Some((name, rest)) => table.get(name)?.as_table()?.get(rest),
        None => table.get(key),
    }
}

/// Whether a value is a list of levels of this key, rather than one level that is itself a list.
pub(crate) fn is_levels(key: &str, value: &Value) -> bool {
    let Value::Array(items) = value else { return false };
    let takes_lists = key.starts_with("cores.") || key.starts_with("load.");
    !takes_lists || (!items.is_empty() && items.iter().all(Value::is_array))
}

fn inner(key: &str) -> Option<(&str, &str)> {
    key.split_once('.').filter(|(name, _)| TABLES.contains(name))
}

/// All combinations of an item of each list, with the list's name; the first list varies slowest.
pub(crate) fn combinations<N: Copy, T: Clone>(lists: &[(N, Vec<T>)]) -> Vec<Vec<(N, T)>> {
    lists.iter().fold(vec![Vec::new()], |heads, (name, items)| {
        let with = |head: &[(N, T)], item: &T| [head, &[(*name, item.clone())]].concat();
        heads.iter().flat_map(|head| items.iter().map(move |item| with(head, item))).collect()
    })
}
