//! File searches: sources below a directory, programs on the PATH.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

/// The build directory of cargo and Maven.
const OUTPUT: &str = "target";

/// The files below a directory. Symbolic links to directories are not followed, so this ends.
pub(crate) fn add_files(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let (path, name) = (entry.path(), entry.file_name());
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            if name != OUTPUT && !name.as_encoded_bytes().starts_with(b".") {
                add_files(&path, files);
            }
        } else if path.is_file() {
            files.push(path);
        }
    }
}

/// The file of a program's name.
pub(crate) fn on_path(program: &str, path: Option<&OsStr>) -> Option<PathBuf> {
    std::env::split_paths(path?).map(|directory| directory.join(program)).find(|file| file.is_file())
}
