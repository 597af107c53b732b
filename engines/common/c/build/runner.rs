//! The runner: compiled against a library whose version was checked, and linked with it.

use std::fs;
use std::path::{Path, PathBuf};

use crate::{Library, variable};

/// Compiles the runner and tells cargo what to link. Ends the build if the library's version is not that of the
/// `engine.toml` beside the build script.
pub fn engine(library: &Library) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("runner");
    let manifest = PathBuf::from(variable("CARGO_MANIFEST_DIR")).join("engine.toml");
    println!("cargo:rerun-if-changed={}", folder.display());
    println!("cargo:rerun-if-changed={}", manifest.display());
    println!("cargo:rerun-if-changed=build.rs");

    let text =
        fs::read_to_string(&manifest).unwrap_or_else(|error| panic!("{}: {error}", manifest.display()));
    let (stack, version) = (value(&text, "stack"), value(&text, "version"));
    let built = library.version.clone().unwrap_or_else(|| told_version(library, &folder));
    // A system's library may be pinned to its line alone, "3.0", for its last number moves with the system.
    let rest = built.strip_prefix(version);
    assert!(
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.')),
        "the library is of version {built}, and {} says {version}",
        manifest.display()
    );

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

fn sources(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut files: Vec<_> = entries
        .map(|entry| entry.expect("the runner's folder can be read").path())
        .filter(|file| file.extension().is_some_and(|extension| extension == "c"))
        .collect();
    files.sort();
    files
}

fn compilation(library: &Library) -> cc::Build {
    let mut build = cc::Build::new();
    // Newer versions call deprecated what older ones have alone.
    build.define("_GNU_SOURCE", None).define("OPENSSL_SUPPRESS_DEPRECATED", None);
    build.includes(&library.include);
    build
}

/// The version that the library's headers tell.
fn told_version(library: &Library, folder: &Path) -> String {
    let question = folder.join("version.h");
    let answer = String::from_utf8(compilation(library).flag("-P").file(question).expand())
        .expect("headers are UTF-8");
    // A name may be before it, and a date after it: "OpenSSL 3.5.5 27 Jan 2026".
    let told = answer.split_once("weir_version").and_then(|(_, rest)| {
        rest.split(['"', ' ', '\n']).find(|word| word.starts_with(|c: char| c.is_ascii_digit()))
    });
    told.unwrap_or_else(|| panic!("the library's headers tell no version: {answer}")).to_owned()
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

/// The text that a key of `engine.toml`'s first table has.
fn value<'a>(manifest: &'a str, key: &str) -> &'a str {
    let line = manifest.lines().find_map(|line| line.strip_prefix(key)?.trim_start().strip_prefix("= \""));
    line.and_then(|rest| rest.split('"').next())
        .unwrap_or_else(|| panic!("engine.toml has no text for `{key}`"))
}

fn quoted(text: &str) -> String {
    format!("\"{text}\"")
}
