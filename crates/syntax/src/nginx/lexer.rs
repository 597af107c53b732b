//! nginx's configuration as tokens.

use crate::{At, SyntaxError};
use std::sync::Arc;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Token {
    Word(String),
    Semicolon,
    Open,
    Close,
}

/// The tokens with their lines. Errors: an unterminated quote or code block.
pub(super) fn tokens(text: &str, file: &Arc<str>) -> Result<Vec<(Token, At)>, SyntaxError> {
    let mut lexer = Lexer { rest: text, line: 1, file };
    let mut found = Vec::new();
    // The current directive's name, to recognize blocks of Lua or JavaScript.
    let mut directive: Option<String> = None;
    while let Some((token, at)) = lexer.next()? {
        match (&token, &directive) {
            (Token::Word(word), None) => directive = Some(word.clone()),
            (Token::Open, Some(name)) if name.ends_with("_by_lua_block") => {
                lexer.skip_code(&at)?;
                found.push((Token::Semicolon, at));
                directive = None;
                continue;
            }
            (Token::Word(_), Some(_)) => {}
            _ => directive = None,
        }
        found.push((token, at));
    }
    Ok(found)
}

struct Lexer<'a> {
    rest: &'a str,
    line: usize,
    file: &'a Arc<str>,
}

impl Lexer<'_> {
    fn at(&self) -> At {
        At { file: Arc::clone(self.file), line: self.line }
    }

    fn take(&mut self) -> Option<char> {
        let c = self.rest.chars().next()?;
        self.rest = &self.rest[c.len_utf8()..];
        self.line += usize::from(c == '\n');
        Some(c)
    }

    fn peek(&self) -> Option<char> {
        self.rest.chars().next()
    }

    fn next(&mut self) -> Result<Option<(Token, At)>, SyntaxError> {
        loop {
            match self.peek() {
                None => return Ok(None),
                Some('#') => while self.peek().is_some_and(|c| c != '\n') && self.take().is_some() {},
                // A byte order mark is not part of the first word.
                Some(c) if c.is_whitespace() || c == '\u{feff}' => drop(self.take()),
                Some(_) => break,
            }
        }
        let at = self.at();
        let token = match self.peek() {
            Some(';') => Token::Semicolon,
            Some('{') => Token::Open,
            Some('}') => Token::Close,
            Some(quote @ ('"' | '\'')) => {
                self.take();
                return Ok(Some((Token::Word(self.quoted(quote, &at)?), at)));
            }
            _ => return Ok(Some((Token::Word(self.word()), at))),
        };
        self.take();
        Ok(Some((token, at)))
    }

    fn word(&mut self) -> String {
        let mut word = String::new();
        while let Some(c) = self.peek() {
            match c {
                c if c.is_whitespace() => break,
                ';' => break,
                // `${name}` is a variable.
                '{' if !word.ends_with('$') => break,
                '{' => {
                    word.push(c);
                    self.take();
                    while let Some(c) = self.peek().filter(|c| !c.is_whitespace() && *c != ';') {
                        word.push(c);
                        self.take();
                        if c == '}' {
                            break;
                        }
                    }
                    continue;
                }
                '}' if word.is_empty() => break,
                '\\' => {
                    self.take();
                    match self.peek() {
                        Some(next @ (' ' | '\t' | '"' | '\'' | ';' | '{' | '}')) => {
                            word.push(next);
                            self.take();
                        }
                        // A regular expression keeps its escapes.
                        Some(next) if !next.is_whitespace() => {
                            word.extend(['\\', next]);
                            self.take();
                        }
                        _ => word.push('\\'),
                    }
                    continue;
                }
                _ => {}
            }
            word.push(c);
            self.take();
        }
        word
    }

    fn quoted(&mut self, quote: char, at: &At) -> Result<String, SyntaxError> {
        let mut word = String::new();
        while let Some(c) = self.take() {
            match c {
                c if c == quote => return Ok(word),
                '\\' => match self.take() {
                    Some(next) if next == quote || next == '\\' => word.push(next),
                    Some('n') => word.push('\n'),
                    Some('t') => word.push('\t'),
                    Some('r') => word.push('\r'),
                    Some(next) => word.extend(['\\', next]),
                    None => break,
                },
                c => word.push(c),
            }
        }
        Err(SyntaxError::new(at, format!("unexpected end of the file in a quoted text: expected `{quote}`")))
    }

    /// Skips code in braces, which may contain braces and quotes.
    fn skip_code(&mut self, at: &At) -> Result<(), SyntaxError> {
        let mut depth = 1_usize;
        while let Some(c) = self.take() {
            match c {
                '{' => depth += 1,
                '}' => depth -= 1,
                _ => {}
            }
            if depth == 0 {
                return Ok(());
            }
        }
        Err(SyntaxError::new(at, "unexpected end of the file in a block: expected `}`"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> String {
        let tokens = tokens(text, &"a".into()).expect("is valid");
        let word = |(token, at): (Token, At)| match token {
            Token::Word(word) => format!("{word}@{}", at.line),
            Token::Semicolon => ";".into(),
            Token::Open => "{".into(),
            Token::Close => "}".into(),
        };
        tokens.into_iter().map(word).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn tokens_of_nginx() {
        for (text, expected) in [
            ("a b;\n# c;\nd{e 'f;\\'g' \"h\ni\";}", "a@1 b@1 ; d@3 { e@3 f;'g@3 h\ni@3 ; }"),
            ("a ${b}c;", "a@1 ${b}c@1 ;"),
            ("location ~ \\.php$ {}", "location@1 ~@1 \\.php$@1 { }"),
            ("a \\;b;", "a@1 ;b@1 ;"),
            ("x_by_lua_block { {} }\nb;", "x_by_lua_block@1 ; b@2 ;"),
            ("", ""),
        ] {
            assert_eq!(words(text), expected, "{text}");
        }
        assert!(tokens("a 'b", &"a".into()).is_err());
    }
}
