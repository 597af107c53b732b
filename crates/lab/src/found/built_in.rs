//! The files built into the program, and their unpacked copies, which scripts and compilers need.

use crate::base::error::LabError;
use crate::base::{cache, hash};
use std::fs::{self, File, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Path, whether it is executable, and contents; sorted by path.
type BuiltIn = (&'static str, bool, &'static str);

const FILES: &[BuiltIn] = include!(concat!(env!("OUT_DIR"), "/built_in.rs"));

/// Whether a file with this path is built in.
pub(super) fn has(path: &str) -> bool {
    text(path).is_some()
}

/// The files below a directory, as paths relative to it.
pub(super) fn below(folder: &str) -> impl Iterator<Item = &'static str> {
    FILES.iter().filter_map(move |(name, ..)| name.strip_prefix(folder)?.strip_prefix('/'))
}

/// The text of a file.
pub(super) fn text(path: &str) -> Option<&'static str> {
    let index = FILES.binary_search_by_key(&path, |(name, ..)| *name).ok()?;
    Some(FILES[index].2)
}

/// The directory of the files, unpacked if they are missing or incomplete.
/// Errors: a cache that cannot be written.
pub(super) fn unpacked() -> Result<PathBuf, LabError> {
    unpack(FILES, &cache::shared("built-in"))
}

/// The directory of the files below `cache`, named by a hash of their contents. They are compared each time, as a cache
/// may be cleaned, and files in it changed.
fn unpack(files: &[BuiltIn], cache: &Path) -> Result<PathBuf, LabError> {
    let folder = cache.join(name(files));
    if is_whole(files, &folder) {
        return Ok(folder);
    }
    let failed = |source| LabError::File {
        path: cache.to_owned(),
        action: "cannot unpack the built-in files (set XDG_CACHE_HOME to another directory)",
        source,
    };
    write_whole(files, cache, &folder).map_err(failed)?;
    Ok(folder)
}

fn write_whole(files: &[BuiltIn], cache: &Path, folder: &Path) -> io::Result<()> {
    fs::create_dir_all(cache)?;
    let turn = File::create(cache.join("lock"))?;
    turn.lock()?;
    // Another process may have written them while this one waited for the lock.
    if is_whole(files, folder) {
        return Ok(());
    }
    let place = tempfile::Builder::new().prefix("part-").tempdir_in(cache)?;
    let fresh = place.path().join("fresh");
    for (name, is_executable, contents) in files {
        let path = fresh.join(name);
        path.parent().map_or(Ok(()), fs::create_dir_all)?;
        fs::write(&path, contents)?;
        if *is_executable {
            fs::set_permissions(&path, Permissions::from_mode(0o755))?;
        }
    }
    if folder.exists() {
        fs::rename(folder, place.path().join("spoilt"))?;
    }
    fs::rename(fresh, folder)
}

fn is_whole(files: &[BuiltIn], folder: &Path) -> bool {
    let is_same = |(name, _, contents): &BuiltIn| {
        fs::read(folder.join(name)).is_ok_and(|read| read == contents.as_bytes())
    };
    files.iter().all(is_same)
}

/// The beginning of the hash of all files, long enough to distinguish versions of the program.
fn name(files: &[BuiltIn]) -> String {
    let mut all = Vec::new();
    for (name, is_executable, contents) in files {
        all.extend_from_slice(&[u8::from(*is_executable)]);
        for part in [name, contents] {
            all.extend_from_slice(&part.len().to_le_bytes());
            all.extend_from_slice(part.as_bytes());
        }
    }
    hash::bytes(&all)[..16].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;

    const TWO: &[BuiltIn] =
        &[("targets/a/install.sh", true, "echo a"), ("targets/a/target.toml", false, "title = 'A'")];

    fn entries(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).expect("is read");
        let mut names: Vec<String> = entries
            .map(|entry| entry.expect("is read").file_name().into_string().expect("is text"))
            .collect();
        names.sort();
        names
    }

    #[test]
    fn built_in_files_are_those_of_the_repository() {
        assert!(FILES.is_sorted_by_key(|(name, ..)| *name), "for the binary search");
        assert!(has("experiments/quickstart.toml") && !has("experiments/quick.toml"));
        assert!(below("targets").any(|name| name == "nginx/target.toml"));
        assert!(below("engines").any(|name| name == "common/c/runner/engine.c"));
        let is_output = |name: &str| name.split('/').any(|part| part == "target" || part.starts_with('.'));
        assert!(!FILES.iter().any(|(name, ..)| is_output(name)));
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        assert!(is_whole(FILES, &root), "a changed file changes the program");
        let size: usize = FILES.iter().map(|(_, _, contents)| contents.len()).sum();
        assert!((500_000..5_000_000).contains(&size), "{size} bytes");
    }

    #[test]
    fn files_are_unpacked_once_and_with_their_permissions() {
        let cache = tempfile::tempdir().expect("a directory");
        let folder = unpack(TWO, cache.path()).expect("is unpacked");
        let mode =
            |name: &str| fs::metadata(folder.join(name)).expect("is there").permissions().mode() & 0o111;
        assert_ne!(mode("targets/a/install.sh"), 0);
        assert_eq!(mode("targets/a/target.toml"), 0);
        fs::write(folder.join("targets/a/beside"), "of a build").expect("is written");
        assert_eq!(unpack(TWO, cache.path()).expect("is there"), folder);
        assert!(folder.join("targets/a/beside").exists(), "not unpacked again");
        let other = unpack(&TWO[..1], cache.path()).expect("is unpacked");
        assert_ne!(other, folder, "another program has other files");
        assert_eq!(entries(cache.path()).len(), 3, "two directories, the lock and no partial one");
    }

    #[test]
    fn missing_or_changed_files_are_restored() {
        let cache = tempfile::tempdir().expect("a directory");
        let folder = unpack(TWO, cache.path()).expect("is unpacked");
        let file = folder.join("targets/a/target.toml");
        for spoil in [|path: &Path| fs::remove_file(path), |path: &Path| fs::write(path, "title = 'B'")] {
            spoil(&file).expect("is spoilt");
            unpack(TWO, cache.path()).expect("is unpacked again");
            assert_eq!(fs::read_to_string(&file).expect("is there"), "title = 'A'");
        }
        assert_eq!(entries(cache.path()).len(), 2, "the directory and the lock");
    }

    #[test]
    fn concurrent_processes_see_all_files_or_none() {
        let cache = tempfile::tempdir().expect("a directory");
        thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    let folder = unpack(FILES, cache.path()).expect("is unpacked");
                    assert!(is_whole(FILES, &folder));
                });
            }
        });
        assert_eq!(entries(cache.path()).len(), 2, "the directory and the lock");
    }

    #[test]
    fn a_cache_that_cannot_be_written_is_named() {
        let cache = tempfile::tempdir().expect("a directory");
        let file = cache.path().join("file");
        fs::write(&file, "").expect("is written");
        let error = unpack(TWO, &file.join("built-in")).expect_err("is refused").to_string();
        assert!(error.contains("file/built-in: ") && error.contains("XDG_CACHE_HOME"), "{error}");
    }
}
