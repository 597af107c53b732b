//! The texts of the configuration file and of the files that it includes, with the file and line of each byte.

use super::{include, of_environment};
use crate::config::finding::{Findings, Location};
use std::fs;
use std::path::{Path, PathBuf};
use weir_toml::line_at;

/// The configuration file and the included files, in order.
#[derive(Clone, Debug, Default)]
pub(crate) struct Texts(pub(super) Vec<Text>);

/// A file and its text.
#[derive(Clone, Debug)]
pub(super) struct Text {
    pub(super) path: PathBuf,
    pub(super) text: String,
    /// The offset of the text's first byte in the joined texts.
    pub(super) start: usize,
}

impl Texts {
    /// Reads a configuration file and the files that it includes.
    pub(crate) fn read(path: &Path, findings: &mut Findings) -> Self {
        let mut texts = Self::default();
        texts.add(path, findings);
        for included in include::of(&texts, &of_environment, findings) {
            texts.add(&included, findings);
        }
        texts
    }

    fn add(&mut self, path: &Path, findings: &mut Findings) {
        // A gap of one byte gives the end of a file and the beginning of the next different offsets.
        let start = self.0.last().map_or(0, |last| last.start + last.text.len() + 1);
        match fs::read_to_string(path) {
            Ok(text) => self.0.push(Text { path: path.to_owned(), text, start }),
            Err(error) => {
                let location = Location { file: path.display().to_string(), line: None };
                findings.fault_at(location, "", format!("cannot read: {error}"));
            }
        }
    }

    /// The file and line of an offset.
    pub(super) fn at(&self, offset: usize) -> Location {
        match self.0.iter().rev().find(|text| text.start <= offset) {
            Some(Text { path, text, start }) => {
                Location { file: path.display().to_string(), line: Some(line_at(text, offset - start)) }
            }
            None => Location { file: String::new(), line: None },
        }
    }

    /// The line with this offset.
    pub(super) fn line(&self, offset: usize) -> &str {
        let text = self.0.iter().rev().find(|text| text.start <= offset);
        let line =
            text.and_then(|Text { text, start, .. }| text.lines().nth(line_at(text, offset - start) - 1));
        line.unwrap_or_default()
    }

    /// The files and their texts.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&Path, &str)> {
        self.0.iter().map(|text| (text.path.as_path(), text.text.as_str()))
    }

    /// The path of the configuration file itself; `None` if it could not be read.
    pub(crate) fn path(&self) -> Option<&Path> {
        self.0.first().map(|text| text.path.as_path())
    }
}

impl From<&[(&str, &str)]> for Texts {
    fn from(files: &[(&str, &str)]) -> Self {
        let mut texts = Self::default();
        for (path, text) in files {
            let start = texts.0.last().map_or(0, |last| last.start + last.text.len() + 1);
            texts.0.push(Text { path: path.into(), text: (*text).to_owned(), start });
        }
        texts
    }
}
