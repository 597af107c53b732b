//! Creating a file of secrets, and replacing one as a whole.

use std::ffi::OsString;
use std::fs::{self, File, FileType, Metadata, OpenOptions, Permissions, TryLockError};
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _, fchown};
use std::path::{Path, PathBuf};

use crate::FileError;

/// A regular file with a lock, so that no other rotation replaces it.
#[derive(Debug)]
pub(super) struct Locked<'a> {
    path: &'a Path,
    /// Closing it releases the lock.
    file: File,
    metadata: Metadata,
}

impl<'a> Locked<'a> {
    /// Locks a file. Returns `None` if another process has locked the file, or has just replaced it. Fails if the path
    /// is not a regular file, or the file cannot be opened or locked.
    pub(super) fn open(path: &'a Path) -> Result<Option<Self>, FileError> {
        let found = fs::symlink_metadata(path).map_err(cannot("read", path))?;
        if !found.is_file() {
            let detail = kind(found.file_type()).to_owned();
            return Err(FileError::Bad {
                origin: path.display().to_string(),
                what: "not a regular file",
                detail,
            });
        }
        let file = open(path).map_err(cannot("read", path))?;
        match file.try_lock() {
            Err(TryLockError::WouldBlock) => return Ok(None),
            Err(TryLockError::Error(source)) => return Err(cannot("lock", path)(source)),
            Ok(()) => {}
        }
        let metadata = file.metadata().map_err(cannot("read", path))?;
        // The lock is on the opened file, which another process may have replaced before it was locked.
        let now = fs::symlink_metadata(path).map_err(cannot("read", path))?;
        let is_current = (now.dev(), now.ino()) == (metadata.dev(), metadata.ino());
        Ok(is_current.then_some(Self { path, file, metadata }))
    }

    pub(super) fn content(&self) -> Result<Vec<u8>, FileError> {
        let mut content = Vec::new();
        (&self.file).read_to_end(&mut content).map_err(cannot("read", self.path))?;
        Ok(content)
    }

    /// Atomically replaces the file by one with this content and the same owner, group and mode. After an error the
    /// file is unchanged, unless only syncing the directory failed.
    pub(super) fn replace(&self, content: &[u8]) -> Result<(), FileError> {
        let new = beside(self.path);
        // This process holds the lock, so the file is a leftover of a killed process.
        match fs::remove_file(&new) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(cannot("remove", &new)(error)),
            _ => {}
        }
        let replaced = self
            .write(&new, content)
            .and_then(|()| fs::rename(&new, self.path).map_err(cannot("replace", self.path)));
        if replaced.is_err() {
            // Return the first error, not one from the cleanup.
            let _ = fs::remove_file(&new);
        }
        replaced.and_then(|()| sync_directory_of(self.path))
    }

    fn write(&self, new: &Path, content: &[u8]) -> Result<(), FileError> {
        let mut file = private(new).map_err(cannot("write", new))?;
        let created = file.metadata().map_err(cannot("read", new))?;
        let (uid, gid) = (self.metadata.uid(), self.metadata.gid());
        if (created.uid(), created.gid()) != (uid, gid) {
            fchown(&file, Some(uid), Some(gid)).map_err(cannot("keep the owner and group of", self.path))?;
        }
        let permissions = Permissions::from_mode(self.metadata.mode() & 0o777);
        file.set_permissions(permissions).map_err(cannot("keep the mode of", self.path))?;
        file.write_all(content).and_then(|()| file.sync_all()).map_err(cannot("write", new))
    }
}

/// Creates a file with this content and mode 0600. Fails if the file exists or cannot be written.
pub(super) fn create(path: &Path, content: &[u8]) -> Result<(), FileError> {
    let mut file = private(path).map_err(cannot("write", path))?;
    let written = file.write_all(content).and_then(|()| file.sync_all()).map_err(cannot("write", path));
    if written.is_err() {
        // Return the first error, not one from the cleanup.
        let _ = fs::remove_file(path);
    }
    written.and_then(|()| sync_directory_of(path))
}

/// Creates a file that only its owner can access; does not follow a symbolic link.
fn private(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)
}

/// Opens a file for locking: NFS locks only files opened for writing. Falls back to reading, since the owner may have
/// made the file read-only.
fn open(path: &Path) -> io::Result<File> {
    match OpenOptions::new().read(true).write(true).open(path) {
        Err(error) if error.kind() == ErrorKind::PermissionDenied => File::open(path),
        opened => opened,
    }
}

/// The path `.NAME.new` in the same directory, so that renaming the file is atomic.
fn beside(path: &Path) -> PathBuf {
    let mut name = OsString::from(".");
    name.push(path.file_name().unwrap_or_default());
    name.push(".new");
    path.with_file_name(name)
}

/// Makes a new name in the directory survive a crash of the machine.
fn sync_directory_of(path: &Path) -> Result<(), FileError> {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    let directory = parent.unwrap_or(Path::new("."));
    match File::open(directory).and_then(|directory| directory.sync_all()) {
        // Some file systems cannot sync directories.
        Err(error) if matches!(error.kind(), ErrorKind::InvalidInput | ErrorKind::Unsupported) => Ok(()),
        synced => synced.map_err(cannot("sync", directory)),
    }
}

fn kind(of: FileType) -> &'static str {
    match of {
        of if of.is_symlink() => "a symbolic link; name the file that it leads to",
        of if of.is_dir() => "a directory; name a file in it",
        _ => "a device, pipe or socket",
    }
}

fn cannot(what: &'static str, path: &Path) -> impl FnOnce(io::Error) -> FileError {
    let path = path.to_owned();
    move |source| FileError::System { what, path, source }
}
