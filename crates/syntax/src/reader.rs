//! Access to included files.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Reads included files.
pub trait Reader {
    /// The text of a file.
    ///
    /// # Errors
    /// The file cannot be read.
    fn read(&self, path: &Path) -> io::Result<String>;

    /// The files in a directory, sorted; empty if it is no directory.
    fn list(&self, directory: &Path) -> Vec<PathBuf>;
}

/// The file system.
#[derive(Clone, Copy, Debug, Default)]
pub struct Files;

impl Reader for Files {
    fn read(&self, path: &Path) -> io::Result<String> {
        // An included file may have any encoding; keywords are ASCII.
        fs::read(path).map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
    }

    fn list(&self, directory: &Path) -> Vec<PathBuf> {
        let entries = fs::read_dir(directory).into_iter().flatten().flatten();
        let mut files: Vec<_> = entries.map(|entry| entry.path()).filter(|path| path.is_file()).collect();
        files.sort();
        files
    }
}

/// The files that match a path with `*` and `?` in its last component. A wildcard in a directory name matches nothing.
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

/// Whether a name contains a wildcard of [`glob`].
pub(crate) fn is_pattern(path: &str) -> bool {
    path.contains(['*', '?'])
}

/// `*` matches any text, `?` any byte. Needs no extra memory and backtracks to the last `*` only.
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
