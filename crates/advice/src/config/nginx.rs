//! nginx configurations: directives, blocks and includes.
//!
//! The crates that parse them are dormant or change their interface each month, and advice needs only names, arguments
//! and lines.

use super::ConfigError;
use std::fs;
use std::path::Path;
use std::rc::Rc;
use wildmatch::WildMatch;

/// A directive, with its block if it has one.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Directive {
    pub(crate) name: String,
    pub(crate) args: Vec<String>,
    /// `nginx.conf:12`.
    pub(crate) place: String,
    pub(crate) block: Vec<Directive>,
}

/// Files that include each other would not end.
const MOST_NESTED: usize = 16;

/// Parses a file and the files that it includes.
pub(super) fn parse(file: &Path) -> Result<Vec<Directive>, ConfigError> {
    parse_nested(file, file.parent().unwrap_or(Path::new("")), 0)
}

fn parse_nested(file: &Path, prefix: &Path, depth: usize) -> Result<Vec<Directive>, ConfigError> {
    let text = super::read(file)?;
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    let mut reader = Reader { rest: &text, line: 1, file, name: name.into(), prefix, depth };
    let directives = reader.directives()?;
    match reader.token()? {
        Token::End => Ok(directives),
        _ => Err(reader.wrong("`}` without its `{`")),
    }
}

struct Reader<'a> {
    rest: &'a str,
    line: usize,
    file: &'a Path,
    name: Rc<str>,
    /// Included names are relative to it.
    prefix: &'a Path,
    depth: usize,
}

enum Token {
    Word(String),
    Semicolon,
    Open,
    Close,
    End,
}

impl Reader<'_> {
    /// Up to the end, or up to and without a closing brace.
    fn directives(&mut self) -> Result<Vec<Directive>, ConfigError> {
        let mut all = Vec::new();
        loop {
            self.skip_space();
            if self.rest.is_empty() || self.rest.starts_with('}') {
                return Ok(all);
            }
            let place = format!("{}:{}", self.name, self.line);
            let Token::Word(name) = self.token()? else { return Err(self.wrong("expected a directive")) };
            let mut args = Vec::new();
            let block = loop {
                match self.token()? {
                    Token::Word(word) => args.push(word),
                    Token::Semicolon => break Vec::new(),
                    Token::Open if name.ends_with("_by_lua_block") => break self.skip_code()?,
                    Token::Open => {
                        let block = self.directives()?;
                        let Token::Close = self.token()? else { return Err(self.wrong("expected `}`")) };
                        break block;
                    }
                    Token::Close | Token::End => {
                        return Err(self.wrong(&format!("`{name}`: expected `;` or `{{`")));
                    }
                }
            };
            match (name.as_str(), args.as_slice()) {
                ("include", [pattern]) => all.extend(self.include(pattern)?),
                _ => all.push(Directive { name, args, place, block }),
            }
        }
    }

    fn include(&self, pattern: &str) -> Result<Vec<Directive>, ConfigError> {
        if self.depth == MOST_NESTED {
            return Err(self.wrong(&format!("`include {pattern}`: more than {MOST_NESTED} files deep")));
        }
        let path = self.prefix.join(pattern);
        let (folder, last) = (path.parent().unwrap_or(Path::new("")), path.file_name().unwrap_or_default());
        let last = last.to_string_lossy();
        if !last.contains(['*', '?']) {
            return parse_nested(&path, self.prefix, self.depth + 1);
        }
        let entries = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
        let matches = |path: &std::path::PathBuf| {
            path.file_name().is_some_and(|name| WildMatch::new(&last).matches(&name.to_string_lossy()))
        };
        let mut files: Vec<_> = entries.filter(matches).collect();
        files.sort();
        let parsed = files.iter().map(|file| parse_nested(file, self.prefix, self.depth + 1));
        Ok(parsed.collect::<Result<Vec<_>, _>>()?.concat())
    }

    fn token(&mut self) -> Result<Token, ConfigError> {
        self.skip_space();
        let Some(first) = self.rest.chars().next() else { return Ok(Token::End) };
        if let Some(token) = match first {
            ';' => Some(Token::Semicolon),
            '{' => Some(Token::Open),
            '}' => Some(Token::Close),
            _ => None,
        } {
            self.advance(1);
            return Ok(token);
        }
        let mut word = String::new();
        let quote = Some(first).filter(|first| matches!(first, '"' | '\''));
        let mut chars = self.rest.char_indices().skip(usize::from(quote.is_some())).peekable();
        let end = loop {
            let Some((at, c)) = chars.next() else {
                if quote.is_some() {
                    return Err(self.wrong("a quoted word without its end"));
                }
                break self.rest.len();
            };
            match (c, quote) {
                ('\\', _) => word.extend(chars.next().map(|(_, c)| c)),
                (c, Some(quote)) if c == quote => break at + 1,
                // A variable's own braces, as in ${name}.
                ('{', None) if word.ends_with('$') => {
                    word.push('{');
                    for (_, c) in chars.by_ref() {
                        word.push(c);
                        if c == '}' {
                            break;
                        }
                    }
                }
                (';' | '{', None) => break at,
                (c, None) if c.is_whitespace() => break at,
                (c, _) => word.push(c),
            }
        };
        self.advance(end);
        Ok(Token::Word(word))
    }

    fn skip_space(&mut self) {
        loop {
            let space = self.rest.len() - self.rest.trim_start().len();
            self.advance(space);
            if !self.rest.starts_with('#') {
                return;
            }
            let end = self.rest.find('\n').unwrap_or(self.rest.len());
            self.advance(end);
        }
    }

    /// A block of another language, up to its closing brace.
    fn skip_code(&mut self) -> Result<Vec<Directive>, ConfigError> {
        let mut depth = 1;
        let end = self.rest.find(|c| {
            depth += match c {
                '{' => 1,
                '}' => -1,
                _ => 0,
            };
            depth == 0
        });
        let end = end.ok_or_else(|| self.wrong("expected `}`"))?;
        self.advance(end + 1);
        Ok(Vec::new())
    }

    fn advance(&mut self, bytes: usize) {
        let (read, rest) = self.rest.split_at(bytes);
        self.line += read.matches('\n').count();
        self.rest = rest;
    }

    fn wrong(&self, detail: &str) -> ConfigError {
        ConfigError::Invalid { file: self.file.into(), line: self.line, detail: detail.into() }
    }
}
