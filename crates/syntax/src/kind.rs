//! Recognition of the program that a configuration is for.

use crate::haproxy::SECTIONS;
use std::fmt;
use std::str::FromStr;

/// The program that a configuration is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// nginx.
    Nginx,
    /// HAProxy.
    Haproxy,
}

impl Kind {
    /// Recognizes a configuration; `None`: it belongs to neither program. HAProxy's begins with a section, and its
    /// lines have no terminator; nginx's lines end with `;` or a brace. Both have the word `listen`. Comments do not
    /// count.
    pub fn of(text: &str) -> Option<Self> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        // HAProxy alone has `.if` and similar lines.
        let lines =
            || text.lines().map(without_comment).filter(|line| !(line.is_empty() || line.starts_with('.')));
        let is_nginx = |line: &str| line.ends_with([';', '{']) || line == "}";
        let is_section = |line: &str| {
            let first = line.split_whitespace().next().unwrap_or_default();
            SECTIONS.contains(&first) && !is_nginx(line)
        };
        // An nginx directive may continue on the next line.
        let goes_on = || lines().nth(1).is_some_and(|line| line.starts_with(['{', ';']));
        match lines().next() {
            Some(first) if is_section(first) && !goes_on() => Some(Self::Haproxy),
            _ if lines().any(is_nginx) => Some(Self::Nginx),
            _ if lines().any(is_section) => Some(Self::Haproxy),
            _ => text.contains(['{', ';']).then_some(Self::Nginx),
        }
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
