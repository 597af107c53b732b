//! Advice on TOML errors for operators who know YAML, JSON, or the files of nginx and HAProxy. The crate `weir_toml`
//! suggests the nearest name for an unknown key (`nearest_name.rs`).

use crate::config::document::Config;
use std::iter;
use toml::Spanned;
use toml::de::{DeTable, DeValue, Error};
use weir_toml::message_of;

/// Tables in a list, such as `[[route]]`.
const LISTS: &[&str] = &["certificate", "route"];

/// Tables with a name, such as `[listener.web]`.
const NAMED: &[&str] = &["listener", "service"];

/// The message for a line that is not valid TOML, with the correct form.
pub(super) fn of_syntax(error: &Error, line: &str) -> String {
    let message = message_of(error);
    let line = line.trim();
    let next = match line.split_once('=') {
        _ if line.ends_with(['{', ';']) && !line.contains('=') => {
            "settings are TOML, `key = \"value\"` under a [table]; `weir import FILE` translates files of nginx and HAProxy"
                .to_owned()
        }
        None if line.starts_with('{') => {
            "settings are TOML, not JSON: `key = \"value\"` under a [table]".to_owned()
        }
        None if line.starts_with("- ") || is_yaml(line) => {
            "settings are TOML, not YAML: write `key = \"value\"`, and [table] in place of an indented section".to_owned()
        }
        Some((key, value)) if is_word(value.trim()) => {
            format!("a text has quotes: write {} = \"{}\"", key.trim(), value.trim())
        }
        Some((_, value)) if value.contains(['\u{201c}', '\u{201d}', '\u{2018}', '\u{2019}']) => {
            "quotes are plain ones: \" or '".to_owned()
        }
        None if !line.is_empty() && !line.starts_with('[') => {
            "expected `key = \"value\"`, or a [table]".to_owned()
        }
        _ => return message,
    };
    format!("{message}; {next}")
}

/// Whether a line has the form `key:`, with or without a value.
fn is_yaml(line: &str) -> bool {
    line.split_once(':').is_some_and(|(key, value)| {
        !key.is_empty()
            && key.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c))
            && (value.is_empty() || value.starts_with(' '))
    })
}

/// Whether a value is a string without its quotes.
fn is_word(value: &str) -> bool {
    !value.is_empty()
        && !value.starts_with(['"', '\'', '[', '{'])
        && !value.contains(['"', '\'', '#', '\u{201c}', '\u{201d}', '\u{2018}', '\u{2019}'])
}

/// The message for a value of the wrong type, or for an unknown key.
pub(super) fn of_value(table: &DeTable<'_>, key: &str, error: &Error) -> String {
    let message = message_of(error);
    // For a table in place of a list, the parser reports its first entry.
    let key = key.strip_suffix(".0").unwrap_or(key);
    let (parent, own) = key.rsplit_once('.').unwrap_or(("", key));
    let top = key.split('.').next().unwrap_or_default();
    let value = table.get(top).map(Spanned::get_ref);
    if error.message().starts_with("unknown field") {
        // A value with its own parser reports errors in its fields under the key of the whole value.
        let is_own = error.message().starts_with(&format!("unknown field `{own}`"));
        return match of_top_level(parent, own).filter(|_| is_own) {
            Some(next) => format!("unknown field `{own}` here; {next}"),
            None => message,
        };
    }
    let next = match value {
        Some(DeValue::Table(_)) if LISTS.contains(&key) => {
            format!("write two brackets, [[{key}]], once for each {key}")
        }
        Some(DeValue::Array(_)) if NAMED.contains(&key) => {
            format!("write one bracket and a name, [{key}.NAME]")
        }
        Some(DeValue::Table(_)) if NAMED.contains(&parent) && !message.contains("missing") => {
            format!("write [{top}.NAME]: each {top} has a name of its own")
        }
        Some(DeValue::Array(_)) if !key.contains('.') => format!("write one bracket, [{key}]"),
        _ if key.ends_with(".passthrough") && message.contains("found a table") => {
            format!("write two brackets, [[{key}]]")
        }
        _ => return message,
    };
    format!("{message}; {next}")
}

/// Advice for a key that is valid only at the top level.
fn of_top_level(parent: &str, own: &str) -> Option<String> {
    if parent.is_empty() || !top_level().any(|known| known == own) {
        return None;
    }
    let is_table = toml::from_str::<Config>(&format!("{own} = {{}}")).is_ok();
    Some(match is_table || LISTS.contains(&own) || NAMED.contains(&own) {
        true => {
            let (open, close) = if LISTS.contains(&own) { ("[[", "]]") } else { ("[", "]") };
            format!("`{own}` is a table of the top level: write {open}{own}{close} on a line of its own")
        }
        false => format!("`{own}` is a key of the top level: write it before the first [table]"),
    })
}

/// The top-level keys, taken from the parser's error message.
fn top_level() -> impl Iterator<Item = String> {
    let error = toml::from_str::<Config>("'' = 0").err();
    let listed = error.map(|error| error.message().to_owned()).unwrap_or_default();
    let known = listed.split('`').map(str::to_owned).collect::<Vec<_>>();
    // Every second part is a quoted key; the first of these is the unknown key.
    known
        .into_iter()
        .skip(3)
        .step_by(2)
        .chain(iter::once("include".to_owned()))
        .chain(iter::once("defaults".to_owned()))
}
