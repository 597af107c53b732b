//! Imports configurations with each family of directives, and compares lines of the TOML and the losses.

#[path = "../accepted/mod.rs"]
mod accepted;
mod certificates;
mod files;
mod haproxy;
mod http2;
mod listeners;
mod nginx;
mod properties;
mod texts;

use accepted::check;
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use weir_import::{Kind, Reader, import};

/// A reader of files in memory, by path.
#[derive(Default)]
struct Memory(BTreeMap<PathBuf, &'static str>);

impl Reader for Memory {
    fn read(&self, path: &Path) -> io::Result<String> {
        self.0.get(path).map(|text| (*text).to_owned()).ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn list(&self, directory: &Path) -> Vec<PathBuf> {
        self.0.keys().filter(|path| path.parent() == Some(directory)).cloned().collect()
    }
}

/// Translates a text, and checks the result. Returns the TOML, and `LINE: DIRECTIVE` of each loss.
fn translated(text: &str, kind: Kind) -> (String, Vec<String>) {
    let found = import(text, Path::new("x.conf"), Some(kind), &Memory::default()).unwrap();
    check(&found.toml);
    (found.toml, found.losses.iter().map(|loss| format!("{}: {}", loss.line, loss.directive)).collect())
}

#[track_caller]
fn assert_all(kind: Kind, cases: &[(&str, &[&str], &[&str])]) {
    for (text, parts, losses) in cases {
        let (toml, found) = translated(text, kind);
        for part in *parts {
            match part.strip_prefix('!') {
                Some(absent) => assert!(!toml.contains(absent), "{text}: `{absent}` in\n{toml}"),
                None => assert!(toml.contains(part), "{text}: no `{part}` in\n{toml}"),
            }
        }
        assert_eq!(found, *losses, "{text}\n{toml}");
    }
}

/// Like [`assert_all`] for one text, but ignores comments, which may contain `service = `.
#[track_caller]
fn assert_settings(kind: Kind, text: &str, parts: &[&str], losses: &[&str]) {
    let (toml, found) = translated(text, kind);
    let plain: String =
        toml.lines().filter(|line| !line.starts_with('#')).map(|line| format!("{line}\n")).collect();
    for part in parts {
        match part.strip_prefix('!') {
            Some(absent) => assert!(!plain.contains(absent), "{text}: {toml}"),
            None => assert!(plain.contains(part), "{text}: no `{part}` in\n{toml}"),
        }
    }
    assert_eq!(found, losses, "{text}\n{toml}");
}

/// An nginx server with these directives.
fn server(inner: &str) -> String {
    format!("server {{ {inner} }}")
}

#[track_caller]
fn assert_servers(cases: &[(&str, &[&str], &[&str])]) {
    for (inner, parts, losses) in cases {
        assert_all(Kind::Nginx, &[(&server(inner), parts, losses)]);
    }
}
