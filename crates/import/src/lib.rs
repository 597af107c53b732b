//! Translation of nginx and HAProxy configurations: text in, Weir's TOML and a list of losses out.
//!
//! Each dialect has a parser and a translation; both fill one `model`, which `write` prints as TOML. The translation
//! never drops a directive silently: it reports each one without a counterpart as a [`Loss`] with file and line.

mod haproxy;
mod model;
mod nginx;
mod note;
mod pattern;
mod reader;
mod regex;
mod secured;
mod tls;
mod values;
mod write;

pub use note::Loss;
pub use reader::{Files, Reader};

use note::{At, Notes};
use std::fmt;
use std::path::Path;
use std::str::FromStr;

/// The program that a configuration is for.
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
    /// Weir's configuration; comments at its top list the losses.
    pub toml: String,
    /// Directives that were not translated, in the order of the files.
    pub losses: Vec<Loss>,
}

/// A configuration that cannot be parsed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ImportError {
    /// The text violates its own language's syntax.
    #[error("{file}:{line}: {message}")]
    Syntax {
        /// The file, as given.
        file: String,
        /// The line, counted from 1.
        line: usize,
        /// The fault, and the expected syntax.
        message: String,
    },
    /// Neither nginx nor HAProxy.
    #[error(
        "{file}: neither nginx nor HAProxy: expected blocks in braces, or sections such as `frontend`; name it with --from"
    )]
    UnknownKind {
        /// The file, as given.
        file: String,
    },
}

/// Translates the configuration `text` of the file `name`. `reader` reads included files relative to `name`'s
/// directory. Without a kind, the content decides.
///
/// # Errors
/// The text does not parse, or is of neither kind.
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
    let mut document = match kind {
        Kind::Nginx => nginx::translate(text, name, reader, &mut notes)?,
        Kind::Haproxy => haproxy::translate(text, name, reader, &mut notes)?,
    };
    secured::listeners(&mut document);
    notes.sort();
    let toml = write::document(&document, &notes, &file);
    Ok(Imported { toml, losses: notes.into_losses() })
}

/// Recognizes a configuration's kind. HAProxy's begins with a section and its lines have no terminator; nginx's end
/// with `;` or a brace. Both know the word `listen`. Comments do not count.
fn recognized(text: &str) -> Option<Kind> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    // HAProxy alone has `.if` and similar lines.
    let lines =
        || text.lines().map(without_comment).filter(|line| !(line.is_empty() || line.starts_with('.')));
    let is_nginx = |line: &str| line.ends_with([';', '{']) || line == "}";
    let is_section = |line: &str| {
        let first = line.split_whitespace().next().unwrap_or_default();
        haproxy::SECTIONS.contains(&first) && !is_nginx(line)
    };
    // An nginx directive may continue on the next line.
    let goes_on = || lines().nth(1).is_some_and(|line| line.starts_with(['{', ';']));
    match lines().next() {
        Some(first) if is_section(first) && !goes_on() => Some(Kind::Haproxy),
        _ if lines().any(is_nginx) => Some(Kind::Nginx),
        _ if lines().any(is_section) => Some(Kind::Haproxy),
        _ => text.contains(['{', ';']).then_some(Kind::Nginx),
    }
}

/// A line without its comment, which starts at an unquoted `#` at the beginning of a word.
fn without_comment(line: &str) -> &str {
    let (mut quote, mut before) = (None, ' ');
    for (at, c) in line.char_indices() {
        match (c, quote) {
            ('#', None) if before.is_whitespace() || matches!(before, ';' | '{' | '}') => {
                return line[..at].trim();
            }
            (c, Some(open)) if c == open && before != '\\' => quote = None,
            ('"' | '\'', None) if before != '\\' => quote = Some(c),
            _ => {}
        }
        before = c;
    }
    line.trim()
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
