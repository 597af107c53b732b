//! Configurations of nginx and HAProxy, translated into Weir's: text in, TOML and a list of losses out.
//!
//! Each dialect has a parser and a translation of its own; both fill one `model`, which `write` turns into TOML. What cannot
//! be translated is never dropped silently: it is a [`Loss`] with its file and line.

mod haproxy;
mod model;
mod nginx;
mod note;
mod pattern;
mod reader;
mod tls;
mod values;
mod write;

pub use note::Loss;
pub use reader::{Files, Reader};

use note::{At, Notes};
use std::fmt;
use std::path::Path;
use std::str::FromStr;

/// Whose configuration it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// nginx.
    Nginx,
    /// HAProxy.
    Haproxy,
}

/// A translated configuration.
#[derive(Clone, Debug)]
pub struct Imported {
    /// Weir's configuration; the losses are comments at its top.
    pub toml: String,
    /// What was not translated, in the order of the files.
    pub losses: Vec<Loss>,
}

/// A configuration that cannot be parsed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ImportError {
    /// It breaks the rules of its own language.
    #[error("{file}:{line}: {message}")]
    Syntax {
        /// The file, as named.
        file: String,
        /// The line, counted from 1.
        line: usize,
        /// The fault and what was expected.
        message: String,
    },
    /// It is of neither kind.
    #[error(
        "{file}: neither nginx nor HAProxy: expected blocks in braces, or sections such as `frontend`; name it with --from"
    )]
    UnknownKind {
        /// The file, as named.
        file: String,
    },
}

/// Translates the configuration `text` of the file `name`; included files are read through `reader`, relative to `name`'s
/// directory. Without a kind it is recognized by its content.
///
/// # Errors
/// It cannot be parsed, or is of neither kind.
pub fn import(
    text: &str,
    name: &Path,
    kind: Option<Kind>,
    reader: &dyn Reader,
) -> Result<Imported, ImportError> {
    let file = name.display().to_string();
    let kind =
        kind.or_else(|| recognized(text)).ok_or_else(|| ImportError::UnknownKind { file: file.clone() })?;
    let mut notes = Notes::default();
    let document = match kind {
        Kind::Nginx => nginx::translate(text, name, reader, &mut notes)?,
        Kind::Haproxy => haproxy::translate(text, name, reader, &mut notes)?,
    };
    notes.sort();
    let toml = write::document(&document, &notes, &file);
    Ok(Imported { toml, losses: notes.into_losses() })
}

/// The kind of a configuration: HAProxy's sections are lines that begin with one of a few words, nginx has braces.
fn recognized(text: &str) -> Option<Kind> {
    let lines = || text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    let is_section = |line: &str| {
        let first = line.split_whitespace().next().unwrap_or_default();
        haproxy::SECTIONS.contains(&first) && !line.ends_with(['{', ';'])
    };
    match lines().next() {
        None => None,
        Some(_) if lines().any(is_section) => Some(Kind::Haproxy),
        Some(_) if text.contains(['{', ';']) => Some(Kind::Nginx),
        Some(_) => None,
    }
}

impl ImportError {
    fn syntax(at: &At, message: impl Into<String>) -> Self {
        Self::Syntax { file: at.file.to_string(), line: at.line, message: message.into() }
    }
}

impl FromStr for Kind {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "nginx" => Ok(Self::Nginx),
            "haproxy" => Ok(Self::Haproxy),
            _ => Err("expected nginx or haproxy".to_owned()),
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Nginx => "nginx",
            Self::Haproxy => "haproxy",
        })
    }
}
