//! Builds an engine of the OpenSSL family: a TLS library, and the C runner against it.
//!
//! Called by each engine's build script; every OpenSSL from source shares `build_openssl.rs`. The engines are crates
//! because crates contain their libraries' sources, each pinned to an exact version by a lock file. A library is built
//! for release, with its authors' defaults.

mod cmake;
mod openssl;
mod runner;
mod source;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

pub use cmake::cmake;
pub use openssl::{openssl, system};
pub use runner::engine;
pub use source::{Source, crate_source};

/// A TLS library to link with: by default the system's.
#[derive(Default)]
pub struct Library {
    /// Its header directories; empty for the system's.
    pub include: Vec<PathBuf>,
    /// Where its archives are; `None` for the system's, which is shared.
    pub archives: Option<PathBuf>,
    /// Whether it is written in C++.
    pub cpp: bool,
    /// Its version, if not in its headers.
    pub version: Option<String>,
}

/// Runs a command; fails the build if it fails.
fn run(command: &mut Command) {
    println!("{command:?}");
    match command.status() {
        Ok(status) if status.success() => {}
        Ok(status) => panic!("{command:?} failed: {status}"),
        Err(error) => panic!("{command:?}: cannot run: {error}"),
    }
}

/// A library's build directory. Calls `build` unless the library was built there from the same source with the same
/// compiler: that takes minutes, which a change of the runner should not.
fn once(name: &str, source: &Path, compiler: &Path, build: impl FnOnce(&Path)) -> PathBuf {
    let folder = PathBuf::from(variable("OUT_DIR")).join(name);
    let stamp = folder.join("weir-built");
    let what = format!("{}\n{}\n", source.display(), compiler.display());
    if fs::read_to_string(&stamp).is_ok_and(|built| built == what) {
        return folder;
    }
    if folder.exists() {
        fs::remove_dir_all(&folder).expect("remove an old build");
    }
    fs::create_dir_all(&folder).expect("create the build directory");
    build(&folder);
    fs::write(stamp, what).expect("write the build's stamp");
    folder
}

/// The C compiler: $CC, or else the default.
fn compiler() -> PathBuf {
    cc::Build::new().get_compiler().path().to_path_buf()
}

/// Variables set by cargo for build scripts.
fn variable(name: &str) -> String {
    env::var(name).unwrap_or_else(|_| panic!("cargo sets {name}"))
}
