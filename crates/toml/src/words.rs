//! Messages of the TOML and JSON parsers, without the names of Rust types, and with the nearest name for an unknown one.

/// The message of a TOML error, without the names of Rust types.
pub fn message_of(error: &toml::de::Error) -> String {
    in_words(error.message())
}

/// Rewrites the message of a TOML or JSON parser without the names of Rust types: `expected a list, found 5`.
fn in_words(message: &str) -> String {
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

/// Adds the nearest known name to the message about an unknown field or variant. For a field, it replaces the list of
/// all fields, which is long. `None` if no name is near.
fn with_nearest(message: &str) -> Option<String> {
    let at = message.find("unknown field `").or_else(|| message.find("unknown variant `"))?;
    let (before, unknown) = message.split_at(at);
    let (what, rest) = unknown.split_once('`')?;
    let (name, rest) = rest.split_once('`')?;
    // Names are quoted, so every second part is a name.
    let nearest = nearest(name, rest.split('`').skip(1).step_by(2))?;
    let all = if what.contains("variant") {
        message.trim_end_matches(": ")
    } else {
        &format!("{before}{what}`{name}`")
    };
    Some(format!("{all}; did you mean `{nearest}`?"))
}

/// The known name that is most similar to a mistyped one; `None` if none is similar enough. Ignores case, and treats
/// `_` as `-`.
pub fn nearest<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let plain = |name: &str| name.to_ascii_lowercase().replace('_', "-");
    let name = plain(name);
    let distances = known.map(|known| (strsim::damerau_levenshtein(&name, &plain(known)), known));
    let (distance, nearest) = distances.min_by_key(|(distance, _)| *distance)?;
    // A third of the characters may differ, but at least one: beyond that, most words resemble some other word.
    (distance <= (name.chars().count() / 3).max(1) && name.len() > 1).then_some(nearest)
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

    #[test]
    fn a_mistyped_name_is_known_again() {
        let known = ["workers", "listener", "service", "servers", "timeouts", "max_body", "x"];
        for (name, nearest) in [
            ("workres", Some("workers")),
            ("listeners", Some("listener")),
            ("services", Some("service")),
            ("server", Some("servers")),
            ("timeout", Some("timeouts")),
            ("Max-Body", Some("max_body")),
            ("wrokers", Some("workers")),
            ("backend", None),
            ("port", None),
            ("y", None),
            ("", None),
        ] {
            assert_eq!(super::nearest(name, known.into_iter()), nearest, "{name}");
        }
        assert_eq!(
            in_words("unknown field `hots`, expected one of `host`, `path`"),
            "unknown field `hots`; did you mean `host`?"
        );
        assert_eq!(
            in_words("unknown variant `hsah`, expected `hash` or `random`"),
            "unknown variant `hsah`, expected `hash` or `random`; did you mean `hash`?"
        );
        let other = "unknown field `backend`, expected one of `host`, `path`";
        assert_eq!(in_words(other), other);
    }

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
