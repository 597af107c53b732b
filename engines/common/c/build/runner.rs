//! The runner: compiled and linked against a library of the checked version.

use std::fs;
use std::path::{Path, PathBuf};

use crate::{Library, variable};

/// Compiles the runner and passes the libraries to cargo. Fails the build if the library's version differs from
/// `engine.toml` next to the build script.
pub fn engine(library: &Library) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("runner");
    let manifest = PathBuf::from(variable("CARGO_MANIFEST_DIR")).join("engine.toml");
    println!("cargo:rerun-if-changed={}", folder.display());
    println!("cargo:rerun-if-changed={}", manifest.display());

    let text =
        fs::read_to_string(&manifest).unwrap_or_else(|error| panic!("{}: {error}", manifest.display()));
    let (stack, version) = (value(&text, "stack"), value(&text, "version"));
    let built = library.version.clone().unwrap_or_else(|| header_version(library, &folder));
    assert!(is_of(&built, version), "the library is {built}, but {} needs {version}", manifest.display());

    let mut build = compilation(library);
    build.define("WEIR_STACK", quoted(stack).as_str()).define("WEIR_VERSION", quoted(version).as_str());
    build.flag("-std=c11").warnings(true).extra_warnings(true).warnings_into_errors(true);
    build.opt_level(if variable("PROFILE") == "release" { 2 } else { 0 });

    let watch = folder.join("lock_watch.c");
    for object in build.clone().file(&watch).compile_intermediates() {
        println!("cargo:rustc-link-arg-bin=engine-locks={}", object.display());
    }
    build.files(sources(&folder).into_iter().filter(|file| *file != watch)).compile("weir_runner");
    link(library);
}

/// Whether a library's version matches the manifest's. A system's library may be pinned only to its line, "3.0": its
/// patch number follows the system.
fn is_of(built: &str, version: &str) -> bool {
    built.strip_prefix(version).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

fn sources(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut files: Vec<_> = entries
        .map(|entry| entry.expect("list the runner's directory").path())
        .filter(|file| file.extension().is_some_and(|extension| extension == "c"))
        .collect();
    files.sort();
    files
}

fn compilation(library: &Library) -> cc::Build {
    let mut build = cc::Build::new();
    // Newer versions deprecate the only API of older ones.
    build.define("_GNU_SOURCE", None).define("OPENSSL_SUPPRESS_DEPRECATED", None);
    build.includes(&library.include);
    build
}

/// The version in the library's headers.
fn header_version(library: &Library, folder: &Path) -> String {
    let question = folder.join("version.h");
    let answer = String::from_utf8(compilation(library).flag("-P").file(question).expand())
        .expect("headers are UTF-8");
    // A name may be before it, and a date after it: "OpenSSL 3.5.5 27 Jan 2026".
    let version = answer.split_once("weir_version").and_then(|(_, rest)| {
        rest.split(['"', ' ', '\n']).find(|word| word.starts_with(|c: char| c.is_ascii_digit()))
    });
    version.unwrap_or_else(|| panic!("no version in the library's headers: {answer}")).to_owned()
}

fn link(library: &Library) {
    let kind = match &library.archives {
        Some(folder) => {
            println!("cargo:rustc-link-search=native={}", folder.display());
            "static"
        }
        None => "dylib",
    };
    println!("cargo:rustc-link-lib={kind}=ssl");
    println!("cargo:rustc-link-lib={kind}=crypto");
    if library.cpp {
        println!("cargo:rustc-link-lib=dylib=stdc++");
    }
}

/// The string value of a key in `engine.toml`'s first table.
fn value<'a>(manifest: &'a str, key: &str) -> &'a str {
    let line = manifest.lines().find_map(|line| line.strip_prefix(key)?.trim_start().strip_prefix("= \""));
    line.and_then(|rest| rest.split('"').next())
        .unwrap_or_else(|| panic!("engine.toml: `{key}`: missing string"))
}

fn quoted(text: &str) -> String {
    format!("\"{text}\"")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_are_parsed_from_a_manifest() {
        let manifest = "# version = \"0\"\nstack = \"openssl\"  # the family\nversion = \"3.5.5\"\n";
        assert_eq!(value(manifest, "stack"), "openssl");
        assert_eq!(value(manifest, "version"), "3.5.5");
    }

    #[test]
    fn a_version_matches_the_manifests_or_its_line() {
        assert!(is_of("3.5.5", "3.5.5"));
        assert!(is_of("3.0.19", "3.0"));
        assert!(!is_of("3.0.19", "3.0.1"));
        assert!(!is_of("3.5.5", "3.5.4"));
    }
}
