//! HAProxy's configuration as sections of lines of words.

use super::SECTIONS;
use crate::ImportError;
use crate::note::{At, Notes};
use std::path::Path;
use std::rc::Rc;

/// A line of a section.
#[derive(Clone, Debug)]
pub(super) struct Line {
    pub words: Vec<String>,
    pub at: At,
}

impl Line {
    pub(super) fn word(&self, index: usize) -> &str {
        self.words.get(index).map_or("", String::as_str)
    }

    /// Whether the line begins with these words.
    pub(super) fn begins(&self, words: &[&str]) -> bool {
        self.words.len() >= words.len() && words.iter().zip(&self.words).all(|(a, b)| *a == b)
    }

    /// As written, for messages.
    pub(super) fn text(&self) -> String {
        self.words.join(" ")
    }
}

/// A section.
#[derive(Clone, Debug)]
pub(super) struct Section {
    pub kind: String,
    pub name: String,
    pub lines: Vec<Line>,
    pub at: At,
    /// The index of the `defaults` section that it inherits.
    pub defaults: Option<usize>,
}

/// Parses a file. Errors: a line outside of sections, or an unterminated quote.
pub(super) fn parse(text: &str, path: &Path, notes: &mut Notes) -> Result<Vec<Section>, ImportError> {
    let file: Rc<str> = path.display().to_string().into();
    let mut sections: Vec<Section> = Vec::new();
    let mut defaults = None;
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    for (index, line) in text.lines().enumerate() {
        let at = At { file: Rc::clone(&file), line: index + 1 };
        let words = words(line, &at, notes)?;
        let Some(first) = words.first() else { continue };
        if !SECTIONS.contains(&first.as_str()) {
            match sections.last_mut() {
                Some(section) => section.lines.push(Line { words, at }),
                None => {
                    let message = format!(
                        "unexpected `{first}`: expected a section such as global, defaults or frontend"
                    );
                    return Err(ImportError::syntax(&at, message));
                }
            }
            continue;
        }
        let name = words.get(1).cloned().unwrap_or_default();
        if matches!(first.as_str(), "frontend" | "backend" | "listen") && name.is_empty() {
            return Err(ImportError::syntax(
                &at,
                format!("`{first}` without a name: expected `{first} NAME`"),
            ));
        }
        let named = words.iter().position(|word| word == "from").and_then(|from| words.get(from + 1));
        let is_named = |section: &Section| section.kind == "defaults" && Some(&section.name) == named;
        let inherited = sections.iter().position(is_named).or(defaults);
        let kind = first.clone();
        let is_defaults = kind == "defaults";
        let inherits = !is_defaults || named.is_some();
        let mut lines = Vec::new();
        // The obsolete syntax has the address next to the name.
        if kind == "listen" && words.len() > 2 && words[2].contains(':') {
            let mut bind = vec!["bind".to_owned()];
            bind.extend(words.iter().skip(2).cloned());
            lines.push(Line { words: bind, at: at.clone() });
        }
        sections.push(Section { kind, name, lines, at, defaults: inherited.filter(|_| inherits) });
        if is_defaults {
            defaults = Some(sections.len() - 1);
        }
    }
    Ok(sections)
}

/// Splits a line into words and drops its comment. Environment variables, which HAProxy expands in double quotes, stay
/// as written.
fn words(line: &str, at: &At, notes: &mut Notes) -> Result<Vec<String>, ImportError> {
    let (mut words, mut word, mut is_word) = (Vec::new(), String::new(), false);
    let mut chars = line.chars();
    let mut quote = None;
    while let Some(c) = chars.next() {
        if (c, quote) == ('$', Some('"')) && is_variable(chars.as_str()) {
            let message = "HAProxy takes a variable of the environment there; write ${NAME} where the result has its name";
            notes.loss(at, line.trim(), message);
        }
        match (c, quote) {
            ('#', None) => break,
            ('\\', None | Some('"')) => {
                is_word = true;
                match chars.next() {
                    Some('n') => word.push('\n'),
                    Some('r') => word.push('\r'),
                    Some('t') => word.push('\t'),
                    Some(next @ (' ' | '#' | '\\' | '"' | '\'')) => word.push(next),
                    Some('$') if quote.is_some() => word.push('$'),
                    // Regular expressions keep their backslashes.
                    Some(next) => word.extend(['\\', next]),
                    None => {}
                }
            }
            (c, Some(open)) if c == open => quote = None,
            ('"' | '\'', None) => {
                quote = Some(c);
                is_word = true;
            }
            (c, None) if c.is_whitespace() => {
                if is_word {
                    words.push(std::mem::take(&mut word));
                }
                is_word = false;
            }
            (c, _) => {
                word.push(c);
                is_word = true;
            }
        }
    }
    if let Some(open) = quote {
        return Err(ImportError::syntax(
            at,
            format!("unexpected end of the line in a quoted text: expected `{open}`"),
        ));
    }
    if is_word {
        words.push(word);
    }
    Ok(words)
}

/// Whether the text after `$` is a variable name, or one in braces.
fn is_variable(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic() || "_.{".contains(c))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_have_words() {
        let at = At { file: "a".into(), line: 1 };
        for (line, expected) in [
            ("  a b # c", vec!["a", "b"]),
            ("a\\ b 'c d' \"e \\\" f\"", vec!["a b", "c d", "e \" f"]),
            ("a '' b\\#c", vec!["a", "", "b#c"]),
            ("# nothing", vec![]),
            ("reg ^/a\\.b", vec!["reg", "^/a\\.b"]),
            ("\"\\$A \\${A}\" '\\$A' \\$A", vec!["$A ${A}", "\\$A", "\\$A"]),
        ] {
            let mut notes = Notes::default();
            assert_eq!(words(line, &at, &mut notes).expect("is valid"), expected, "{line}");
            assert!(notes.losses().is_empty(), "{line}");
        }
        assert!(words("a 'b", &at, &mut Notes::default()).is_err());
    }

    #[test]
    fn variables_of_the_environment_are_reported() {
        let at = At { file: "a".into(), line: 1 };
        for (line, reported) in [
            ("server s \"${HOST}:80\"", true),
            ("server s \"$HOST\"", true),
            ("a \"b ${C-d}\"", true),
            ("a \"$.LINE\"", true),
            ("a '${B}' ${B} $B", false),
            ("a \"\\${B} ^/$ $1\"", false),
            ("# \"${B}\"", false),
        ] {
            let mut notes = Notes::default();
            words(line, &at, &mut notes).expect("is valid");
            assert_eq!(!notes.losses().is_empty(), reported, "{line}");
        }
    }
}
