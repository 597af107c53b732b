//! What can go wrong, and whose fault it was.

use std::fmt;
use std::path::PathBuf;
use toml::de::{DeTable, DeValue};

/// Why the lab stopped.
#[derive(Debug, thiserror::Error)]
pub enum LabError {
    /// The experiment, a target's description or an option is wrong: the user's to mend.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// A file or directory could not be read or written.
    #[error("{}: {action}: {source}", path.display())]
    File {
        /// Which one.
        path: PathBuf,
        /// What was being done.
        action: &'static str,
        /// What the system said.
        source: std::io::Error,
    },
    /// A stored result does not have the form that it was written in.
    #[error("{}: not a result of this program: {message}", path.display())]
    Stored {
        /// Which file.
        path: PathBuf,
        /// What is wrong with it.
        message: String,
    },
    /// The machine refuses what every run needs.
    #[error("{action}: {source}")]
    System {
        /// What was being done.
        action: &'static str,
        /// What the system said.
        source: std::io::Error,
    },
    /// The network that was asked for cannot be made, or broke.
    #[error("network: {0}")]
    Network(String),
    /// No cell is left to run.
    #[error("nothing to run: {0}")]
    Nothing(String),
    /// No run of a mode gave a rate from which the equal rate could be taken.
    #[error("calibration: {0}")]
    Calibration(String),
    /// No certificate could be issued.
    #[error("certificate: {0}")]
    Certificate(String),
    /// An install script did not do its work.
    #[error("{target}: {message}")]
    Install {
        /// The target.
        target: String,
        /// What happened.
        message: String,
    },
    /// SIGINT or SIGTERM. What was stored stays.
    #[error("interrupted; the runs so far are kept: continue with --continue {}", directory.display())]
    Interrupted {
        /// Where the results are.
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

/// A wrong value, where it stands and what is allowed.
#[derive(Debug, PartialEq, Eq)]
pub struct ConfigError {
    /// The file, or the option of the command line.
    pub source: String,
    /// The line, counted from 1, where it is known.
    pub line: Option<usize>,
    /// What is wrong and what is allowed.
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

    /// An error of the TOML reader: its span becomes a line.
    pub(crate) fn toml(source: impl fmt::Display, text: &str, error: &toml::de::Error) -> Self {
        let line = error.span().map(|span| line_at(text, span.start));
        Self { source: source.to_string(), line, message: error.message().replace('\n', ": ") }
    }

    /// An error about the value of `key`: the line on which the key is given in `text`.
    pub(crate) fn key(source: impl fmt::Display, text: &str, key: &str, message: impl fmt::Display) -> Self {
        Self::one_of_keys(source, text, &[key.to_owned()], key, message)
    }

    /// An error about the value of `key`, which stands at the first of `places` that `text` has.
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

/// Where a key stands; `tls.group` reaches into a table, `claims.2.cell` into a list of tables.
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
