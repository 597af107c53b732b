//! The by-products of a translation: losses, remarks, and directives that need no counterpart.

use std::collections::BTreeSet;
use std::fmt;
use weir_syntax::At;

/// A directive that was not translated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loss {
    /// The file, as given.
    pub file: String,
    /// The line, counted from 1.
    pub line: usize,
    /// The directive, as written but shortened.
    pub directive: String,
    /// The reason, and what to do instead.
    pub message: String,
}

/// The reports of a translation, besides the configuration.
#[derive(Debug, Default)]
pub(crate) struct Notes {
    losses: Vec<Loss>,
    /// Kinds of losses that were reported and must not be repeated.
    said: BTreeSet<String>,
    /// Differences that apply to the whole configuration.
    pub remarks: Vec<String>,
    /// Directives that need no counterpart.
    pub quiet: BTreeSet<String>,
}

impl Notes {
    /// Reports a directive that is not translated.
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

    /// Like [`Notes::loss`], but reports only the first loss of this kind.
    pub(crate) fn loss_once(&mut self, kind: &str, at: &At, directive: impl fmt::Display, message: &str) {
        if self.said.insert(kind.to_owned()) {
            self.loss(at, directive, message);
        }
    }

    /// Reports a difference that applies to the whole configuration, unless it was reported already.
    pub(crate) fn remark(&mut self, text: impl Into<String>) {
        let text = one_line(&text.into());
        if !self.remarks.contains(&text) {
            self.remarks.push(text);
        }
    }

    pub(crate) fn quiet(&mut self, name: &str) {
        self.quiet.insert(one_line(name));
    }

    /// Sorts the losses by file, in order of appearance, and line.
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

/// Replaces control characters: a comment or message must stay on one line, even with text from a file.
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

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}: {}", one_line(&self.file), self.line, self.directive, self.message)
    }
}
