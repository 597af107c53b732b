//! HAProxy configurations: sections of lines of words.

use super::ConfigError;
use std::path::Path;

/// A section, such as `frontend web`, and its lines.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Section {
    pub(crate) kind: String,
    pub(crate) lines: Vec<Line>,
}

/// The words of a line.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Line {
    pub(crate) words: Vec<String>,
    /// `haproxy.cfg:12`.
    pub(crate) place: String,
}

/// The sections that advice reads.
const SECTIONS: [&str; 5] = ["global", "defaults", "frontend", "backend", "listen"];

/// Whether a line starts a section.
pub(super) fn starts_section(line: &str) -> bool {
    !line.contains(['{', ';']) && line.split_whitespace().next().is_some_and(|word| SECTIONS.contains(&word))
}

/// Parses a file.
pub(super) fn parse(file: &Path) -> Result<Vec<Section>, ConfigError> {
    let text = super::read(file)?;
    let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let mut sections: Vec<Section> = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let words = words(line);
        let Some(first) = words.first() else { continue };
        // Other sections, such as `resolvers`, also start at the margin.
        let is_new = SECTIONS.contains(&first.as_str()) || !line.starts_with([' ', '\t']) && words.len() <= 2;
        match sections.last_mut() {
            Some(section) if !is_new => {
                section.lines.push(Line { words, place: format!("{name}:{}", index + 1) });
            }
            _ => sections.push(Section { kind: first.clone(), lines: Vec::new() }),
        }
    }
    Ok(sections)
}

/// Words of a line, up to a comment; quotes and backslashes keep spaces in a word.
fn words(line: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let (mut quote, mut is_in_word) = (None, false);
    let mut chars = line.chars();
    while let Some(c) = chars.next() {
        match (c, quote) {
            ('#', None) => break,
            ('"' | '\'', None) => quote = Some(c),
            (c, Some(open)) if c == open => quote = None,
            (c, None) if c.is_whitespace() => {
                is_in_word = false;
                continue;
            }
            _ => {
                if !is_in_word {
                    words.push(String::new());
                    is_in_word = true;
                }
                let c = if c == '\\' && quote != Some('\'') { chars.next().unwrap_or(c) } else { c };
                if let Some(word) = words.last_mut() {
                    word.push(c);
                }
            }
        }
    }
    words
}
