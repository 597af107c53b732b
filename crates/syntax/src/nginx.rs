//! nginx's configuration as directives, with included files in place of their `include`.

mod lexer;
mod scope;

use crate::reader::{Reader, glob, is_pattern};
use crate::{At, SyntaxError};
use lexer::{Token, tokens};
pub use scope::Scope;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A directive, with its block if it has one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Directive {
    /// The first word.
    pub name: String,
    /// The other words, without quotes and escapes.
    pub args: Vec<String>,
    /// The directives in its braces.
    pub block: Option<Vec<Directive>>,
    /// The place of its name.
    pub at: At,
}

/// A file with its included files.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Parsed {
    /// The directives outside of all blocks.
    pub directives: Vec<Directive>,
    /// Each `include` of MIME types, parameters of other protocols, or modules, whose files are not read.
    pub skipped: Vec<Directive>,
    /// Each `include` of a file that cannot be read.
    pub missing: Vec<Directive>,
}

impl Directive {
    /// The first argument, or an empty text.
    pub fn arg(&self) -> &str {
        self.args.first().map_or("", String::as_str)
    }

    /// Whether it has this name.
    pub fn is(&self, name: &str) -> bool {
        self.name == name
    }

    /// Its block, or an empty one.
    pub fn block(&self) -> &[Directive] {
        self.block.as_deref().unwrap_or_default()
    }

    /// As written, for messages.
    pub fn text(&self) -> String {
        let mut text = self.name.clone();
        for arg in &self.args {
            text.push(' ');
            text.push_str(arg);
        }
        text
    }
}

/// Parses the text of the file `path`, and the files that it includes.
///
/// # Errors
/// A violation of nginx's syntax, or files that include each other.
pub fn parse(text: &str, path: &Path, reader: &dyn Reader) -> Result<Parsed, SyntaxError> {
    let mut parser = Parser { folders: folders(path), reader, parsed: Parsed::default(), included: 0 };
    let directives = parser.file(text, path, 0)?;
    Ok(Parsed { directives, ..parser.parsed })
}

/// The directories of relative names. nginx resolves them from its prefix: the main file's directory or, for a part of
/// `/etc/nginx`, a directory above.
fn folders(path: &Path) -> Vec<PathBuf> {
    let own = path.parent().unwrap_or(Path::new("")).to_path_buf();
    let mut folders = vec![own.clone()];
    let etc = Path::new("/etc/nginx");
    let names = ["sites-available", "sites-enabled", "conf.d", "snippets", "modules-enabled"];
    if own.starts_with(etc) && own != etc {
        folders.push(etc.to_path_buf());
    } else if own.file_name().is_some_and(|name| names.iter().any(|known| name == *known)) {
        folders.extend(own.parent().map(Path::to_path_buf));
    }
    folders
}

struct Parser<'a> {
    folders: Vec<PathBuf>,
    reader: &'a dyn Reader,
    /// Without directives.
    parsed: Parsed,
    included: usize,
}

/// Limit of nested includes, which ends recursion; nginx has none.
const DEEPEST: usize = 16;
/// The maximum number of included files, which stops runaway patterns; real sites include far fewer.
const MOST_FILES: usize = 10_000;

impl Parser<'_> {
    fn file(&mut self, text: &str, path: &Path, depth: usize) -> Result<Vec<Directive>, SyntaxError> {
        let file: Arc<str> = path.display().to_string().into();
        let mut tokens = tokens(text, &file)?.into_iter();
        // Open blocks: their directives so far, and the directive that began each.
        let mut open: Vec<(Vec<Directive>, Directive)> = Vec::new();
        let mut current: Vec<Directive> = Vec::new();
        let mut pending: Option<Directive> = None;
        let mut last = At { file, line: 1 };
        for (token, at) in tokens.by_ref() {
            last = at.clone();
            match (token, pending.take()) {
                (Token::Word(name), None) => {
                    pending = Some(Directive { name, args: Vec::new(), block: None, at });
                }
                (Token::Word(arg), Some(mut directive)) => {
                    directive.args.push(arg);
                    pending = Some(directive);
                }
                (Token::Semicolon, Some(directive)) if directive.is("include") => {
                    let included = self.include(&directive, depth)?;
                    current.extend(included);
                }
                (Token::Semicolon, Some(directive)) => current.push(directive),
                (Token::Open, Some(directive)) => {
                    if open.len() >= DEEPEST {
                        return Err(SyntaxError::new(&at, "blocks are nested too deeply"));
                    }
                    open.push((std::mem::take(&mut current), directive));
                }
                (Token::Close, None) => match open.pop() {
                    Some((outer, directive)) => {
                        let block = std::mem::replace(&mut current, outer);
                        current.push(Directive { block: Some(block), ..directive });
                    }
                    None => return Err(SyntaxError::new(&at, "unexpected `}`: no block is open")),
                },
                (Token::Close, Some(directive)) => {
                    let message = format!("unexpected `}}` after `{}`: expected `;`", directive.text());
                    return Err(SyntaxError::new(&at, message));
                }
                (Token::Semicolon, None) => {
                    return Err(SyntaxError::new(&at, "unexpected `;`: expected a directive"));
                }
                (Token::Open, None) => {
                    return Err(SyntaxError::new(&at, "unexpected `{`: expected a directive"));
                }
            }
        }
        if let Some(directive) = pending {
            let message =
                format!("unexpected end of the file after `{}`: expected `;` or `{{`", directive.text());
            return Err(SyntaxError::new(&last, message));
        }
        match open.pop() {
            Some((_, directive)) => {
                let message = format!("unexpected end of the file: expected `}}` of `{}`", directive.text());
                Err(SyntaxError::new(&directive.at, message))
            }
            None => Ok(current),
        }
    }

    fn include(&mut self, directive: &Directive, depth: usize) -> Result<Vec<Directive>, SyntaxError> {
        let name = directive.arg();
        let skipped =
            ["mime.types", "fastcgi_params", "fastcgi.conf", "uwsgi_params", "scgi_params", "proxy_temp"];
        if skipped.iter().any(|skipped| name.ends_with(skipped)) || name.contains("modules-enabled/") {
            self.parsed.skipped.push(directive.clone());
            return Ok(Vec::new());
        }
        if depth >= DEEPEST {
            return Err(SyntaxError::new(
                &directive.at,
                format!("`include {name}`: files include each other"),
            ));
        }
        let candidates = self.folders.iter().map(|folder| folder.join(name));
        let mut found: Vec<(PathBuf, String)> = Vec::new();
        for candidate in candidates {
            let paths = match is_pattern(name) {
                true => glob(&candidate, self.reader),
                false => vec![candidate],
            };
            for path in paths {
                if let Ok(text) = self.reader.read(&path) {
                    found.push((path, text));
                }
            }
            if !found.is_empty() {
                break;
            }
        }
        if found.is_empty() && !is_pattern(name) {
            self.parsed.missing.push(directive.clone());
        }
        let mut directives = Vec::new();
        for (path, text) in found {
            self.included += 1;
            if self.included > MOST_FILES {
                return Err(SyntaxError::new(&directive.at, "too many files are included"));
            }
            directives.extend(self.file(&text, &path, depth + 1)?);
        }
        Ok(directives)
    }
}

#[cfg(test)]
mod tests;
