//! The files that a configuration includes.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Reads what a configuration includes.
pub trait Reader {
    /// The text of a file.
    ///
    /// # Errors
    /// It cannot be read.
    fn read(&self, path: &Path) -> io::Result<String>;

    /// The files in a directory, sorted; none if it is not one.
    fn list(&self, directory: &Path) -> Vec<PathBuf>;
}

/// The file system.
#[derive(Clone, Copy, Debug, Default)]
pub struct Files;

impl Reader for Files {
    fn read(&self, path: &Path) -> io::Result<String> {
        // An included file may be in any encoding; keywords are ASCII.
        fs::read(path).map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
    }

    fn list(&self, directory: &Path) -> Vec<PathBuf> {
        let entries = fs::read_dir(directory).into_iter().flatten().flatten();
        let mut files: Vec<_> = entries.map(|entry| entry.path()).filter(|path| path.is_file()).collect();
        files.sort();
        files
    }
}

/// The files that a path with `*` and `?` in its last part stands for. A pattern in a directory's name matches nothing.
pub(crate) fn glob(pattern: &Path, reader: &dyn Reader) -> Vec<PathBuf> {
    let (Some(folder), Some(name)) = (pattern.parent(), pattern.file_name().and_then(|name| name.to_str()))
    else {
        return Vec::new();
    };
    let fits = |path: &PathBuf| {
        let file = path.file_name().and_then(|file| file.to_str()).unwrap_or_default();
        (name.starts_with('.') || !file.starts_with('.')) && matches(name.as_bytes(), file.as_bytes())
    };
    reader.list(folder).into_iter().filter(fits).collect()
}

/// Whether a name has a character that [`glob`] replaces.
pub(crate) fn is_pattern(path: &str) -> bool {
    path.contains(['*', '?'])
}

/// `*` is any text, `?` any byte. Linear memory, no backtracking beyond the last `*`.
fn matches(pattern: &[u8], name: &[u8]) -> bool {
    let (mut at, mut in_name, mut star) = (0, 0, None);
    while in_name < name.len() {
        match pattern.get(at) {
            Some(b'*') => {
                star = Some((at, in_name));
                at += 1;
            }
            Some(byte) if *byte == b'?' || *byte == name[in_name] => {
                at += 1;
                in_name += 1;
            }
            _ => match star {
                Some((star_at, begun)) => {
                    at = star_at + 1;
                    in_name = begun + 1;
                    star = Some((star_at, begun + 1));
                }
                None => return false,
            },
        }
    }
    pattern[at..].iter().all(|byte| *byte == b'*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_names() {
        for (pattern, name, is_match) in [
            ("*.conf", "a.conf", true),
            ("*.conf", "a.conf.bak", false),
            ("*", "a", true),
            ("a?c*", "abcd", true),
            ("a*b*c", "aXbYc", true),
            ("a*b*c", "aXbY", false),
            ("", "", true),
        ] {
            assert_eq!(matches(pattern.as_bytes(), name.as_bytes()), is_match, "{pattern} {name}");
        }
    }
}
