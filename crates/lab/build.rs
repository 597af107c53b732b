//! Lists the files of experiments/, targets/, engines/ and docs/studies/, which the lab carries, for `src/found/built_in.rs`; and those
//! of crates/ that an engine is built from.

use std::fmt::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

/// The folders, below the root of the repository.
const FOLDERS: [&str; 6] =
    ["docs/studies", "experiments", "targets", "engines", "crates/ifma/src", "crates/tls/src/curves"];

/// Single files, below the root of the repository.
const FILES: [&str; 1] = ["crates/ifma/build.rs"];

/// What builds by hand and interpreters leave behind.
const OUTPUTS: [&str; 3] = ["target", "node_modules", "__pycache__"];

fn main() -> io::Result<()> {
    let crate_folder = variable("CARGO_MANIFEST_DIR");
    let root = fs::canonicalize(crate_folder.join("../.."))?;
    let mut files = Vec::new();
    for folder in FOLDERS {
        println!("cargo::rerun-if-changed={}", root.join(folder).display());
        add_files(&root.join(folder), &mut files)?;
    }
    for file in FILES {
        println!("cargo::rerun-if-changed={}", root.join(file).display());
        files.push(root.join(file));
    }
    // As text, which is how they are searched.
    files.sort_by(|left, right| left.as_os_str().cmp(right.as_os_str()));
    let mut list = String::from("&[\n");
    for file in files {
        let is_executable = fs::metadata(&file)?.permissions().mode() & 0o100 != 0;
        let name = file.strip_prefix(&root).map_err(io::Error::other)?;
        let _ = writeln!(list, "({name:?}, {is_executable}, include_str!({file:?})),");
    }
    list.push_str("]\n");
    fs::write(variable("OUT_DIR").join("built_in.rs"), list)
}

fn variable(name: &str) -> PathBuf {
    env::var_os(name).unwrap_or_default().into()
}

/// The text files below a folder, without hidden ones.
fn add_files(folder: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let (path, kind) = (entry.path(), entry.file_type()?);
        let name = entry.file_name();
        if name.as_encoded_bytes().starts_with(b".") || OUTPUTS.iter().any(|output| name == *output) {
            continue;
        }
        if kind.is_dir() {
            add_files(&path, files)?;
        } else if kind.is_file() && is_text(&fs::read(&path)?) {
            files.push(path);
        }
    }
    Ok(())
}

fn is_text(bytes: &[u8]) -> bool {
    !bytes.contains(&0) && std::str::from_utf8(bytes).is_ok()
}
