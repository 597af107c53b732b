//! Messages of the TOML and JSON parsers, without the names of Rust types. `nearest_name.rs` adds the nearest known
//! name to the message about an unknown one.

use crate::nearest_name::with_nearest;

/// The message of a TOML error, without the names of Rust types.
pub fn message_of(error: &toml::de::Error) -> String {
    in_words(error.message())
}

/// Rewrites the message of a TOML or JSON parser without the names of Rust types: `expected a list, found 5`.
pub(crate) fn in_words(message: &str) -> String {
    let message = message.replace('\n', ": ");
    if let Some(message) = with_nearest(&message) {
        return message;
    }
    let kinds = ["invalid type: ", "invalid value: ", "invalid length "];
    let Some((at, kind)) = kinds.iter().find_map(|kind| Some((message.find(kind)?, kind))) else {
        return message;
    };
    let (before, wrong) = (&message[..at], &message[at + kind.len()..]);
    let Some((found, expected)) = wrong.split_once(", expected ") else { return message.clone() };
    format!("{before}expected {}, found {}", expected_in_words(expected), found_in_words(found))
}

/// The kind of value that a Rust type stands for, in TOML's words.
fn expected_in_words(expected: &str) -> String {
    match expected {
        "u8" | "u16" | "u32" | "u64" | "usize" => "a whole number from 0".into(),
        "i8" | "i16" | "i32" | "i64" | "isize" => "a whole number".into(),
        "f32" | "f64" => "a number".into(),
        "a boolean" | "bool" => "true or false".into(),
        "a string" | "a borrowed string" => "a quoted string".into(),
        "a sequence" => "a list".into(),
        "a map" | "map" => "a table".into(),
        table if table.starts_with("struct ") => "a table".into(),
        other => other.replace("sequence", "list"),
    }
}

/// The value that the parser found: as written, or its kind.
fn found_in_words(found: &str) -> String {
    let written = ["integer `", "floating point `", "boolean `"];
    let value = written.iter().find_map(|kind| found.strip_prefix(kind)?.strip_suffix('`'));
    match (value, found) {
        (Some(value), _) => value.to_owned(),
        (None, "sequence") => "a list".into(),
        (None, "map") => "a table".into(),
        (None, other) => other.replacen("string ", "the string ", 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;

    /// Regression test: an error said `invalid type: string "x", expected u64`, with Rust's type names.
    #[test]
    fn wrong_kinds_are_reported_without_rust_type_names() {
        #[derive(Debug, Deserialize)]
        #[allow(dead_code)]
        struct Some {
            number: Option<u32>,
            share: Option<f64>,
            list: Option<Vec<String>>,
            table: Option<toml::Table>,
            is_such: Option<bool>,
            pair: Option<(u8, u8)>,
        }
        for (text, message) in [
            ("number = 'x'", "expected a whole number from 0, found the string \"x\""),
            ("number = -1", "expected a whole number from 0, found -1"),
            ("number = [1]", "expected a whole number from 0, found a list"),
            ("share = true", "expected a number, found true"),
            ("list = 5", "expected a list, found 5"),
            ("list = [5]", "expected a quoted string, found 5"),
            ("table = 1.5", "expected a table, found 1.5"),
            ("is_such = {}", "expected true or false, found a table"),
            ("pair = 'x'", "expected a tuple of size 2, found the string \"x\""),
        ] {
            let error = toml::from_str::<Some>(text).expect_err("is rejected");
            assert_eq!(message_of(&error), message, "{text}");
        }
    }
}
