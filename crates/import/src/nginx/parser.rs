//! nginx's configuration as directives, with included files inlined.

use super::lexer::{Token, tokens};
use crate::ImportError;
use crate::note::{At, Notes};
use crate::reader::{Reader, glob, is_pattern};
use std::path::{Path, PathBuf};
use std::rc::Rc;

/// A directive, with its block if it has one.
#[derive(Clone, Debug)]
pub(super) struct Directive {
    pub name: String,
    pub args: Vec<String>,
    pub block: Option<Vec<Directive>>,
    pub at: At,
}

impl Directive {
    /// The first argument, or an empty text.
    pub(super) fn arg(&self) -> &str {
        self.args.first().map_or("", String::as_str)
    }

    pub(super) fn is(&self, name: &str) -> bool {
        self.name == name
    }

    pub(super) fn block(&self) -> &[Directive] {
        self.block.as_deref().unwrap_or_default()
    }

    /// As written, for messages.
    pub(super) fn text(&self) -> String {
        let mut text = self.name.clone();
        for arg in &self.args {
            text.push(' ');
            text.push_str(arg);
        }
        text
    }
}

/// Parses a file and its includes. Errors: a violation of nginx's syntax.
pub(super) fn parse(
    text: &str,
    path: &Path,
    reader: &dyn Reader,
    notes: &mut Notes,
) -> Result<Vec<Directive>, ImportError> {
    let mut parser = Parser { folders: folders(path), reader, notes, included: 0 };
    parser.file(text, path, 0)
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
    notes: &'a mut Notes,
    included: usize,
}

/// Limit of nested includes, which ends recursion; nginx has none.
const DEEPEST: usize = 16;
/// Far more files than a real site includes.
const MOST_FILES: usize = 10_000;

impl Parser<'_> {
    fn file(&mut self, text: &str, path: &Path, depth: usize) -> Result<Vec<Directive>, ImportError> {
        let file: Rc<str> = path.display().to_string().into();
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
                        return Err(ImportError::syntax(&at, "blocks are nested too deeply"));
                    }
                    open.push((std::mem::take(&mut current), directive));
                }
                (Token::Close, None) => match open.pop() {
                    Some((outer, directive)) => {
                        let block = std::mem::replace(&mut current, outer);
                        current.push(Directive { block: Some(block), ..directive });
                    }
                    None => return Err(ImportError::syntax(&at, "unexpected `}`: no block is open")),
                },
                (Token::Close, Some(directive)) => {
                    let message = format!("unexpected `}}` after `{}`: expected `;`", directive.text());
                    return Err(ImportError::syntax(&at, message));
                }
                (Token::Semicolon, None) => {
                    return Err(ImportError::syntax(&at, "unexpected `;`: expected a directive"));
                }
                (Token::Open, None) => {
                    return Err(ImportError::syntax(&at, "unexpected `{`: expected a directive"));
                }
            }
        }
        if let Some(directive) = pending {
            let message =
                format!("unexpected end of the file after `{}`: expected `;` or `{{`", directive.text());
            return Err(ImportError::syntax(&last, message));
        }
        match open.pop() {
            Some((_, directive)) => {
                let message = format!("unexpected end of the file: expected `}}` of `{}`", directive.text());
                Err(ImportError::syntax(&directive.at, message))
            }
            None => Ok(current),
        }
    }

    fn include(&mut self, directive: &Directive, depth: usize) -> Result<Vec<Directive>, ImportError> {
        let name = directive.arg();
        // MIME types, FastCGI parameters and modules have no counterpart.
        let quiet =
            ["mime.types", "fastcgi_params", "fastcgi.conf", "uwsgi_params", "scgi_params", "proxy_temp"];
        if quiet.iter().any(|quiet| name.ends_with(quiet)) || name.contains("modules-enabled/") {
            self.notes.quiet("include of types and parameters");
            return Ok(Vec::new());
        }
        if depth >= DEEPEST {
            return Err(ImportError::syntax(
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
            let message = "the file cannot be read; import it where it is, or with a copy beside this file";
            self.notes.loss(&directive.at, directive.text(), message);
        }
        let mut directives = Vec::new();
        for (path, text) in found {
            self.included += 1;
            if self.included > MOST_FILES {
                return Err(ImportError::syntax(&directive.at, "too many files are included"));
            }
            directives.extend(self.file(&text, &path, depth + 1)?);
        }
        Ok(directives)
    }
}
