//! HAProxy.

use crate::ImportError;
use crate::model::Document;
use crate::note::Notes;
use crate::reader::Reader;
use std::path::Path;

/// Words that begin a section.
pub(crate) const SECTIONS: [&str; 17] = [
    "backend",
    "cache",
    "crt-store",
    "defaults",
    "fcgi-app",
    "frontend",
    "global",
    "http-errors",
    "listen",
    "log-forward",
    "mailers",
    "peers",
    "program",
    "resolvers",
    "ring",
    "traces",
    "userlist",
];

pub(crate) fn translate(
    _text: &str,
    _path: &Path,
    _reader: &dyn Reader,
    _notes: &mut Notes,
) -> Result<Document, ImportError> {
    Ok(Document::default())
}
