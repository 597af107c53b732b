//! TOML for people: an error names the file, the line, the key, the value, and what was expected.

mod nearest_name;
mod parser_messages;
mod place;

pub use nearest_name::nearest;
pub use parser_messages::message_of;
pub use place::{key_at, line_at, offset_of};
use std::fmt;
use toml::de::DeTable;

/// An error in a file or an option: its place, the fault, and what was expected.
#[derive(Debug, PartialEq, Eq)]
pub struct ConfigError {
    /// The file, or the command-line option.
    pub source: String,
    /// The line, counted from 1, if known.
    pub line: Option<usize>,
    /// The fault, and what was expected.
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
    /// An error without a line.
    pub fn new(source: impl fmt::Display, message: impl Into<String>) -> Self {
        Self { source: source.to_string(), line: None, message: message.into() }
    }

    /// An error of the TOML parser, on the line where its span begins.
    pub fn toml(source: impl fmt::Display, text: &str, error: &toml::de::Error) -> Self {
        let line = error.span().map(|span| line_at(text, span.start));
        Self { source: source.to_string(), line, message: message_of(error) }
    }

    /// An error about the value of `key`, on the line of `text` that sets the key.
    pub fn key(source: impl fmt::Display, text: &str, key: &str, message: impl fmt::Display) -> Self {
        Self::one_of_keys(source, text, &[key.to_owned()], key, message)
    }

    /// An error about the value of `key`, located by the first of `places` that `text` contains.
    pub fn one_of_keys(
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
