//! Translation of nginx and HAProxy configurations: text in, Weir's TOML and a list of losses out.
//!
//! `weir-syntax` parses both dialects. One module per dialect translates to the common `model`, and `write` prints the
//! model as TOML. The translation never drops a directive silently: it reports each one without a counterpart as a
//! [`Loss`] with file and line.

mod access;
mod certificates;
mod haproxy;
mod model;
mod nginx;
mod note;
mod pattern;
mod regex;
mod secured;
mod tls;
mod values;
mod write;

pub use note::Loss;
pub use weir_syntax::{Files, Kind, Reader};

use note::Notes;
use std::path::Path;

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
    /// The text violates the syntax of nginx or HAProxy.
    #[error(transparent)]
    Syntax(#[from] weir_syntax::SyntaxError),
    /// The text is neither an nginx nor an HAProxy configuration.
    #[error(
        "{file}: neither nginx nor HAProxy: expected blocks in braces, or sections such as `frontend`; name it with --from"
    )]
    UnknownKind {
        /// The file, as given.
        file: String,
    },
}

/// Translates the configuration `text` of the file `name`. `reader` reads included files relative to `name`'s
/// directory. Without a `kind`, the content determines it.
///
/// # Errors
/// The text does not parse, or is neither an nginx nor an HAProxy configuration.
pub fn import(
    text: &str,
    name: &Path,
    kind: Option<Kind>,
    reader: &dyn Reader,
) -> Result<Imported, ImportError> {
    let file = name.display().to_string();
    let kind =
        kind.or_else(|| Kind::of(text)).ok_or_else(|| ImportError::UnknownKind { file: file.clone() })?;
    let mut notes = Notes::default();
    let mut document = match kind {
        Kind::Nginx => nginx::translate(text, name, reader, &mut notes)?,
        Kind::Haproxy => haproxy::translate(text, name, reader, &mut notes)?,
    };
    secured::listeners(&mut document);
    certificates::by_listener(&mut document, &mut notes);
    notes.sort();
    let toml = write::document(&document, &notes, &file);
    Ok(Imported { toml, losses: notes.into_losses() })
}
