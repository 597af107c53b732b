//! The directory in which cargo stores a crate's source.

use std::path::PathBuf;
use std::process::Command;

use crate::variable;

/// A crate's source.
pub struct Source {
    /// Its directory.
    pub folder: PathBuf,
    /// Its version.
    pub version: String,
}

/// Finds a crate in the engine's lock file. A crate whose own build needs more than its library's (bindgen, and with it
/// libclang) is a dependency for no target: cargo then only fetches it.
pub fn crate_source(name: &str) -> Source {
    let output = Command::new(variable("CARGO"))
        .args(["metadata", "--locked", "--format-version", "1"])
        .current_dir(variable("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap_or_else(|error| panic!("cargo metadata: {error}"));
    assert!(output.status.success(), "cargo metadata: {}", String::from_utf8_lossy(&output.stderr));
    let metadata = String::from_utf8(output.stdout).expect("cargo writes UTF-8");

    let manifests = metadata.split("\"manifest_path\":\"").skip(1).filter_map(|rest| rest.split('"').next());
    for manifest in manifests {
        let folder = PathBuf::from(manifest).with_file_name("");
        let version =
            folder.file_name().and_then(|last| last.to_str()?.strip_prefix(name)?.strip_prefix('-'));
        if let Some(version) = version.filter(|version| version.starts_with(|c: char| c.is_ascii_digit())) {
            return Source { version: version.to_owned(), folder };
        }
    }
    panic!("the lock file has no crate {name}")
}
