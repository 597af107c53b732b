//! `include`: further files of a configuration, by name or by pattern.

use super::{Text, Texts, Variables, environment, paths};
use crate::config::finding::Findings;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use toml::de::{DeTable, DeValue};

/// The files that the configuration file includes, sorted.
pub(super) fn of(texts: &Texts, variables: Variables<'_>, findings: &mut Findings) -> Vec<PathBuf> {
    let Some(Text { path: own, text, .. }) = texts.0.first() else { return Vec::new() };
    // Avoids parsing a large file just for this key: a text without `include` contains the key only if it is escaped.
    if !text.contains("include") && !text.contains('\\') {
        return Vec::new();
    }
    // [`super::Document`] reports invalid TOML.
    let Ok(table) = DeTable::parse(text) else { return Vec::new() };
    let Some((key, value)) = table.into_inner().remove_entry("include") else { return Vec::new() };
    let at = texts.at(key.span().start);
    let mut table = DeTable::from_iter([(key, value)]);
    environment::substitute(&mut table, variables, &mut |offset, key, why| {
        findings.fault_at(texts.at(offset), &key, why);
    });
    if let Some(directory) = own.parent() {
        paths::resolve(&mut table, directory);
    }
    let Some(value) = table.get("include") else { return Vec::new() };
    let patterns: Option<Vec<String>> = match value.get_ref() {
        DeValue::String(pattern) => Some(vec![pattern.to_string()]),
        DeValue::Array(items) => items.iter().map(|item| Some(item.get_ref().as_str()?.to_owned())).collect(),
        _ => None,
    };
    let Some(patterns) = patterns else {
        let why = "expected a quoted string or a list of them, such as \"conf.d/*.toml\"";
        findings.fault_at(at, "include", why.to_owned());
        return Vec::new();
    };
    let mut files = Vec::new();
    for pattern in patterns {
        match matching(Path::new(&pattern)) {
            Ok(found) if found.is_empty() => {
                findings.warn_at(
                    at.clone(),
                    "include",
                    format!("no file matches `{pattern}`"),
                    "add one, or remove the pattern",
                );
            }
            Ok(found) => files.extend(found),
            Err(why) => findings.fault_at(at.clone(), "include", why),
        }
    }
    files.sort();
    files.dedup();
    let itself = fs::canonicalize(own).ok();
    files.retain(|file| itself.is_none() || fs::canonicalize(file).ok() != itself);
    files
}

/// Returns the files that match a pattern; a pattern without `*` and `?` is the path of one file. Fails if the pattern
/// is invalid, or a directory cannot be read.
fn matching(pattern: &Path) -> Result<Vec<PathBuf>, String> {
    let is_pattern = |text: &str| text.contains(['*', '?']);
    let text = pattern.to_string_lossy();
    if !is_pattern(&text) {
        return Ok(vec![pattern.to_owned()]);
    }
    let directory = pattern.parent().unwrap_or(Path::new(""));
    let name = pattern.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    if is_pattern(&directory.to_string_lossy()) {
        return Err(format!("invalid pattern `{text}`: expected `*` and `?` in the file's name alone"));
    }
    let listed = if directory == Path::new("") { Path::new(".") } else { directory };
    let entries = match fs::read_dir(listed) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(format!("cannot list {}: {error}", directory.display())),
    };
    let mut files = Vec::new();
    for entry in entries {
        let found =
            entry.map_err(|error| format!("cannot list {}: {error}", directory.display()))?.file_name();
        // As in a shell, only a pattern with a leading dot matches hidden files.
        let shown = found.to_string_lossy();
        if fits(name.as_bytes(), shown.as_bytes()) && shown.starts_with('.') == name.starts_with('.') {
            files.push(directory.join(found));
        }
    }
    Ok(files)
}

/// Whether a name matches a pattern of `*` and `?`.
fn fits(pattern: &[u8], name: &[u8]) -> bool {
    let (mut at, mut of_name) = (0, 0);
    // The position of the last `*`, and the end of its match in the name.
    let mut star = None;
    while of_name < name.len() {
        match pattern.get(at) {
            Some(b'*') => {
                star = Some((at, of_name));
                at += 1;
            }
            Some(byte) if *byte == b'?' || *byte == name[of_name] => (at, of_name) = (at + 1, of_name + 1),
            _ => match star {
                Some((stands, taken)) => {
                    star = Some((stands, taken + 1));
                    (at, of_name) = (stands + 1, taken + 1);
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

    /// A file without `include` in its text is not parsed for the key, but a TOML key may be quoted and escaped.
    #[test]
    fn each_spelling_of_the_key_is_found() {
        let directory = tempfile::tempdir().unwrap();
        let included = directory.path().join("a.toml");
        fs::write(&included, "").unwrap();
        for key in ["include", "'include'", "\"include\"", "\"incl\\u0075de\""] {
            let own = directory.path().join("weir.toml");
            let text = format!("workers = 1\n{key} = '{}'\n", included.display());
            let texts = Texts::from(&[(own.to_str().unwrap(), &*text)][..]);
            let mut findings = Findings::default();
            assert_eq!(of(&texts, &|_| None, &mut findings), [&*included], "{key}: {findings}");
        }
    }

    #[test]
    fn names_fit_patterns() {
        for (pattern, fitting, others) in [
            ("*.toml", &["a.toml", ".toml", "a.b.toml"][..], &["a.toml~", "toml", "a.tom"][..]),
            ("a?.toml", &["ab.toml"], &["a.toml", "abc.toml"]),
            ("*a*b*", &["ab", "xaxbx", "aab"], &["ba", "a", ""]),
            ("*", &["", "a"], &[]),
            ("a", &["a"], &["", "b", "aa"]),
        ] {
            for name in fitting {
                assert!(fits(pattern.as_bytes(), name.as_bytes()), "{name} {pattern}");
            }
            for name in others {
                assert!(!fits(pattern.as_bytes(), name.as_bytes()), "{name} {pattern}");
            }
        }
    }
}
