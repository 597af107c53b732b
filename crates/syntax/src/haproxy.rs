//! HAProxy's configuration as sections of lines of words.

use crate::{At, SyntaxError};
use std::path::Path;
use std::sync::Arc;

/// Words that begin a section.
pub const SECTIONS: [&str; 17] = [
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

/// A line of a section.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// Its words, without quotes and escapes.
    pub words: Vec<String>,
    /// Its place.
    pub at: At,
}

impl Line {
    /// The word at this index, or an empty text.
    pub fn word(&self, index: usize) -> &str {
        self.words.get(index).map_or("", String::as_str)
    }

    /// Whether the line begins with these words.
    pub fn begins(&self, words: &[&str]) -> bool {
        self.words.len() >= words.len() && words.iter().zip(&self.words).all(|(a, b)| *a == b)
    }

    /// Whether the line contains this word.
    pub fn has(&self, word: &str) -> bool {
        self.words.iter().any(|one| one == word)
    }

    /// The word after this one.
    pub fn after(&self, word: &str) -> Option<&str> {
        let at = self.words.iter().position(|one| one == word)?;
        self.words.get(at + 1).map(String::as_str)
    }

    /// As written, for messages.
    pub fn text(&self) -> String {
        self.words.join(" ")
    }
}

/// A section.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Section {
    /// One of [`SECTIONS`].
    pub kind: String,
    /// The name, or an empty text.
    pub name: String,
    /// The lines below its head.
    pub lines: Vec<Line>,
    /// The place of its head.
    pub at: At,
    /// The index of the `defaults` section that it inherits.
    pub defaults: Option<usize>,
}

/// A file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Parsed {
    /// The sections, in their order.
    pub sections: Vec<Section>,
    /// The lines, as written, in which HAProxy expands a variable of the environment; their words have it unexpanded.
    pub expanding: Vec<(At, String)>,
}

/// Parses the text of the file `path`.
///
/// # Errors
/// A line outside of sections, a section without the name that it needs, or an unterminated quote.
pub fn parse(text: &str, path: &Path) -> Result<Parsed, SyntaxError> {
    let file: Arc<str> = path.display().to_string().into();
    let (mut sections, mut expanding) = (Vec::<Section>::new(), Vec::new());
    let mut defaults = None;
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    for (index, line) in text.lines().enumerate() {
        let at = At { file: Arc::clone(&file), line: index + 1 };
        let (words, expands) = words(line, &at)?;
        if expands {
            expanding.push((at.clone(), line.trim().to_owned()));
        }
        let Some(first) = words.first() else { continue };
        if !SECTIONS.contains(&first.as_str()) {
            match sections.last_mut() {
                Some(section) => section.lines.push(Line { words, at }),
                None => {
                    let message = format!(
                        "unexpected `{first}`: expected a section such as global, defaults or frontend"
                    );
                    return Err(SyntaxError::new(&at, message));
                }
            }
            continue;
        }
        let name = words.get(1).cloned().unwrap_or_default();
        if matches!(first.as_str(), "frontend" | "backend" | "listen") && name.is_empty() {
            return Err(SyntaxError::new(&at, format!("`{first}` without a name: expected `{first} NAME`")));
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
    Ok(Parsed { sections, expanding })
}

/// Splits a line into words and drops its comment. Environment variables, which HAProxy expands in double quotes, stay
/// as written; also returns whether there are any.
fn words(line: &str, at: &At) -> Result<(Vec<String>, bool), SyntaxError> {
    let (mut words, mut word, mut is_word) = (Vec::new(), String::new(), false);
    let mut chars = line.chars();
    let (mut quote, mut expands) = (None, false);
    while let Some(c) = chars.next() {
        expands |= (c, quote) == ('$', Some('"')) && is_variable(chars.as_str());
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
        return Err(SyntaxError::new(
            at,
            format!("unexpected end of the line in a quoted text: expected `{open}`"),
        ));
    }
    if is_word {
        words.push(word);
    }
    Ok((words, expands))
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
            let expected: Vec<_> = expected.into_iter().map(str::to_owned).collect();
            assert_eq!(words(line, &at), Ok((expected, false)), "{line}");
        }
        assert!(words("a 'b", &at).is_err());
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
            let (_, expands) = words(line, &at).expect("is valid");
            assert_eq!(expands, reported, "{line}");
        }
    }

    #[test]
    fn sections_have_lines_and_inherit_defaults() {
        let text = "global\n nbthread 2 # two\ndefaults\nlisten f :80\nbind :443 ssl crt 'a b.pem'\n\
                    defaults d from x\nbackend b from d\n log-format \"%ci ${A}\"\n";
        let found = parse(text, Path::new("x")).expect("is valid");
        let lines = |section: &Section| section.lines.iter().map(Line::text).collect::<Vec<_>>().join(", ");
        let sections: Vec<_> = found
            .sections
            .iter()
            .map(|section| (section.kind.as_str(), section.name.as_str(), lines(section), section.defaults))
            .collect();
        assert_eq!(
            sections,
            [
                ("global", "", "nbthread 2".to_owned(), None),
                ("defaults", "", String::new(), None),
                ("listen", "f", "bind :80, bind :443 ssl crt a b.pem".to_owned(), Some(1)),
                ("defaults", "d", String::new(), Some(1)),
                ("backend", "b", "log-format %ci ${A}".to_owned(), Some(3)),
            ]
        );
        let bind = &found.sections[2].lines[1];
        assert_eq!((bind.at.line, bind.has("ssl"), bind.after("crt")), (5, true, Some("a b.pem")));
        let expanding = [(At { file: "x".into(), line: 8 }, "log-format \"%ci ${A}\"".to_owned())];
        assert_eq!(found.expanding, expanding);
    }
}
