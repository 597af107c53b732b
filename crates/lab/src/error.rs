//! The lab's errors.

use std::fmt;
use std::path::PathBuf;
use toml::de::{DeTable, DeValue};

/// Why the lab stopped.
#[derive(Debug, thiserror::Error)]
pub enum LabError {
    /// An invalid experiment, target description or option: for the user to correct.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// A file or directory could not be read or written.
    #[error("{}: {action}: {source}", path.display())]
    File {
        /// The path.
        path: PathBuf,
        /// The operation that failed.
        action: &'static str,
        /// The system's error.
        source: std::io::Error,
    },
    /// A path given as a result is not one.
    #[error("{}: {why}", path.display())]
    NoResult {
        /// The path.
        path: PathBuf,
        /// The reason.
        why: &'static str,
    },
    /// A stored result does not have the expected schema.
    #[error("{}: not a result of this program: {message}", path.display())]
    Stored {
        /// The file.
        path: PathBuf,
        /// The fault.
        message: String,
    },
    /// The machine denies a resource that every run needs.
    #[error("{action}: {source}")]
    System {
        /// The operation that failed.
        action: &'static str,
        /// The system's error.
        source: std::io::Error,
    },
    /// The requested network cannot be created, or failed.
    #[error(transparent)]
    Network(#[from] weir_netem::NetError),
    /// A target or an engine named on the command line cannot run on this machine.
    #[error("{target} cannot run: {why}; {option} names it, so nothing was run")]
    Absent {
        /// Its name.
        target: String,
        /// The reason.
        why: String,
        /// The option that names it.
        option: &'static str,
    },
    /// No cell is left to run.
    #[error("nothing to run: {0}")]
    Nothing(String),
    /// No run of a mode measured a rate that the equal rate could be derived from.
    #[error("calibration: {0}")]
    Calibration(String),
    /// A target failed in every run of the first blocks.
    #[error("{0}")]
    Broken(String),
    /// No certificate could be issued.
    #[error("certificate: {0}")]
    Certificate(String),
    /// An install script failed.
    #[error("{target}: {message}")]
    Install {
        /// The target.
        target: String,
        /// The failure.
        message: String,
    },
    /// SIGINT or SIGTERM. Stored runs are kept.
    #[error("interrupted; finished runs are kept; resume with --continue {}", directory.display())]
    Interrupted {
        /// The results directory.
        directory: PathBuf,
    },
}

impl LabError {
    /// The exit code of the program: 2 for usage and configuration, 1 for the rest.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Config(_) => 2,
            _ => 1,
        }
    }

    pub(crate) fn file(
        path: impl Into<PathBuf>,
        action: &'static str,
    ) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.into();
        move |source| Self::File { path, action, source }
    }
}

/// An invalid value, where it is and what was expected.
#[derive(Debug, PartialEq, Eq)]
pub struct ConfigError {
    /// The file, or the option of the command line.
    pub source: String,
    /// The line, counted from 1, if known.
    pub line: Option<usize>,
    /// The fault and what was expected.
    pub message: String,
}

impl fmt::Display for ConfigError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(formatter, "{}:{line}: {}", self.source, self.message),
            None => write!(formatter, "{}: {}", self.source, self.message),
        }
    }
}

impl std::error::Error for ConfigError {}

impl ConfigError {
    pub(crate) fn new(source: impl fmt::Display, message: impl Into<String>) -> Self {
        Self { source: source.to_string(), line: None, message: message.into() }
    }

    /// An error of the TOML parser: its span becomes a line.
    pub(crate) fn toml(source: impl fmt::Display, text: &str, error: &toml::de::Error) -> Self {
        let line = error.span().map(|span| line_at(text, span.start));
        Self { source: source.to_string(), line, message: message_of(error) }
    }

    /// An error about the value of `key`, on the line of `text` that sets the key.
    pub(crate) fn key(source: impl fmt::Display, text: &str, key: &str, message: impl fmt::Display) -> Self {
        Self::one_of_keys(source, text, &[key.to_owned()], key, message)
    }

    /// An error about the value of `key`, located by the first of `places` that `text` contains.
    pub(crate) fn one_of_keys(
        source: impl fmt::Display,
        text: &str,
        places: &[String],
        key: &str,
        message: impl fmt::Display,
    ) -> Self {
        let table = DeTable::parse(text).ok();
        let offset = table.and_then(|table| places.iter().find_map(|key| offset_of(table.get_ref(), key)));
        let line = offset.map(|offset| line_at(text, offset));
        Self { source: source.to_string(), line, message: format!("{key}: {message}") }
    }
}

/// The message of the TOML parser.
pub(crate) fn message_of(error: &toml::de::Error) -> String {
    in_words(error.message())
}

/// The message of a TOML or JSON parser without Rust's type names: `expected a list, found 5`.
pub(crate) fn in_words(message: &str) -> String {
    let message = message.replace('\n', ": ");
    let kinds = ["invalid type: ", "invalid value: ", "invalid length "];
    let Some((at, kind)) = kinds.iter().find_map(|kind| Some((message.find(kind)?, kind))) else {
        return message;
    };
    let (before, wrong) = (&message[..at], &message[at + kind.len()..]);
    let Some((found, expected)) = wrong.split_once(", expected ") else { return message.clone() };
    format!("{before}expected {}, found {}", expected_in_words(expected), found_in_words(found))
}

/// A Rust type as the kind of value expected in the file.
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

/// A value as written, or its kind.
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

/// The offset of a key; `tls.group` reaches into a table, `claims.2.cell` into a list of tables.
fn offset_of(table: &DeTable<'_>, key: &str) -> Option<usize> {
    let (first, rest) = key.split_once('.').map_or((key, None), |(first, rest)| (first, Some(rest)));
    let (found, value) = table.iter().find(|(found, _)| found.get_ref() == first)?;
    match (rest, value.get_ref()) {
        (None, _) => Some(found.span().start),
        (Some(rest), DeValue::Table(inner)) => offset_of(inner, rest),
        (Some(rest), DeValue::Array(items)) => {
            let (index, rest) = rest.split_once('.').unwrap_or((rest, ""));
            let item = items.get(index.parse::<usize>().ok()?)?;
            let inside = item.get_ref().as_table().and_then(|table| offset_of(table, rest));
            Some(inside.unwrap_or(item.span().start))
        }
        (Some(_), _) => None,
    }
}

/// The line of a byte offset, counted from 1.
pub(crate) fn line_at(text: &str, offset: usize) -> usize {
    text.as_bytes().iter().take(offset).filter(|byte| **byte == b'\n').count() + 1
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
