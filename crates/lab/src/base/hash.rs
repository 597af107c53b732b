//! SHA-256 of the inputs of a result.

use crate::base::error::LabError;
use aws_lc_rs::digest::{Context, SHA256, digest};
use std::fs;
use std::path::{Path, PathBuf};

/// The hash of these bytes, in hexadecimal digits.
pub(crate) fn bytes(bytes: &[u8]) -> String {
    hexadecimal(digest(&SHA256, bytes).as_ref())
}

/// The hash of this file's contents, whatever its name is.
/// Errors: when it cannot be read.
pub(crate) fn contents(path: &Path) -> Result<String, LabError> {
    fs::read(path).map(|contents| bytes(&contents)).map_err(LabError::file(path, "cannot be read"))
}

/// The hash of these files' contents together with their names.
/// Errors: when one cannot be read.
pub(crate) fn files(paths: &[PathBuf]) -> Result<String, LabError> {
    let mut context = Context::new(&SHA256);
    for path in paths {
        let contents = fs::read(path).map_err(LabError::file(path, "cannot be read"))?;
        context.update(path.file_name().unwrap_or_default().as_encoded_bytes());
        context.update(&contents.len().to_le_bytes());
        context.update(&contents);
    }
    Ok(hexadecimal(context.finish().as_ref()))
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contents_and_names_count() {
        // printf abc | sha256sum
        assert_eq!(bytes(b"abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
        let directory = tempfile::tempdir().expect("a directory");
        let file = |name: &str, text: &str| {
            let path = directory.path().join(name);
            fs::write(&path, text).expect("is written");
            path
        };
        let (one, other) = (file("a", "abc"), file("b", "abc"));
        let of = |paths: [&PathBuf; 2]| files(&paths.map(PathBuf::clone)).expect("are read");
        assert_eq!(of([&one, &other]), of([&one, &other]));
        assert_ne!(of([&one, &one]), of([&one, &other]));
        assert_ne!(of([&one, &other]), of([&other, &one]));
        assert!(files(&["/no/such/file".into()]).is_err());
    }
}
