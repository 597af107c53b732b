//! What a translation says beside its result: losses, remarks, and what needs no counterpart.

use std::collections::BTreeSet;
use std::fmt;
use std::rc::Rc;

/// Where something is written.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct At {
    pub file: Rc<str>,
    /// Counted from 1.
    pub line: usize,
}

/// Something that was not translated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loss {
    /// The file, as named.
    pub file: String,
    /// The line, counted from 1.
    pub line: usize,
    /// The directive, as written, shortened.
    pub directive: String,
    /// Why, and what to do instead.
    pub message: String,
}

/// What a translation says beside its result.
#[derive(Debug, Default)]
pub(crate) struct Notes {
    losses: Vec<Loss>,
    /// Losses that are said once, however often they occur.
    said: BTreeSet<String>,
    /// Differences that hold for the whole configuration.
    pub remarks: Vec<String>,
    /// Directives without a counterpart that none misses.
    pub quiet: BTreeSet<String>,
}

impl Notes {
    /// Something is not translated.
    pub(crate) fn loss(&mut self, at: &At, directive: impl fmt::Display, message: impl Into<String>) {
        let loss = Loss {
            file: at.file.to_string(),
            line: at.line,
            directive: shortened(&directive.to_string()),
            message: one_line(&message.into()),
        };
        if !self.losses.contains(&loss) {
            self.losses.push(loss);
        }
    }

    /// As [`Notes::loss`], for the first directive of its kind.
    pub(crate) fn loss_once(&mut self, kind: &str, at: &At, directive: impl fmt::Display, message: &str) {
        if self.said.insert(kind.to_owned()) {
            self.loss(at, directive, message);
        }
    }

    /// A difference, said once.
    pub(crate) fn remark(&mut self, text: impl Into<String>) {
        let text = one_line(&text.into());
        if !self.remarks.contains(&text) {
            self.remarks.push(text);
        }
    }

    pub(crate) fn quiet(&mut self, name: &str) {
        self.quiet.insert(one_line(name));
    }

    /// The losses in the order of the files, and of their lines.
    pub(crate) fn sort(&mut self) {
        let mut files: Vec<String> = Vec::new();
        for loss in &self.losses {
            if !files.contains(&loss.file) {
                files.push(loss.file.clone());
            }
        }
        self.losses.sort_by_key(|loss| (files.iter().position(|file| *file == loss.file), loss.line));
    }

    pub(crate) fn losses(&self) -> &[Loss] {
        &self.losses
    }

    pub(crate) fn into_losses(self) -> Vec<Loss> {
        self.losses
    }
}

/// Comments and messages are lines: what comes from a file may not end them.
pub(crate) fn one_line(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

fn shortened(text: &str) -> String {
    const LONGEST: usize = 60;
    let text = one_line(text);
    match text.char_indices().nth(LONGEST) {
        Some((at, _)) => format!("{}..", &text[..at]),
        None => text,
    }
}

impl fmt::Display for At {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.line)
    }
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}: {}", one_line(&self.file), self.line, self.directive, self.message)
    }
}
