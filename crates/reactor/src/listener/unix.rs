//! Unix domain sockets: one socket for all cores, and its file.

use rustix::io::Errno;
use socket2::{Domain, SockAddr, Socket, Type};
use std::fs;
use std::io;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

/// The file of a listening socket. Dropping this value removes the file, unless another process has replaced it.
#[derive(Debug)]
pub(super) struct SocketFile {
    path: PathBuf,
    device: u64,
    inode: u64,
    /// Whether another process owns the file, so that dropping this value does not remove it.
    is_left: AtomicBool,
}

/// Binds a path with these permissions; clients cannot connect before listen(2). Replaces a stale socket file. Fails if
/// another process listens on the path or a file of another kind exists there, or as bind(2) does.
pub(super) fn reserve(path: &Path, mode: u32) -> io::Result<(Socket, SocketFile)> {
    let socket = Socket::new(Domain::UNIX, Type::STREAM.nonblocking().cloexec(), None)?;
    let address = SockAddr::unix(path)?;
    clear(path, &address)?;
    socket.bind(&address)?;
    let bound = fs::symlink_metadata(path)?;
    let is_left = AtomicBool::new(false);
    let file = SocketFile { path: path.to_owned(), device: bound.dev(), inode: bound.ino(), is_left };
    fs::set_permissions(path, fs::Permissions::from_mode(mode))?;
    Ok((socket, file))
}

/// Removes a stale socket file, if there is one. Fails if a process listens on the path, or another kind of file is
/// there.
fn clear(path: &Path, address: &SockAddr) -> io::Result<()> {
    let Ok(found) = fs::symlink_metadata(path) else { return Ok(()) };
    if !found.file_type().is_socket() {
        return Err(io::Error::other("the file exists and is not a socket"));
    }
    let trial = Socket::new(Domain::UNIX, Type::STREAM.nonblocking().cloexec(), None)?;
    match trial.connect(address) {
        Err(error) if error.raw_os_error() == Some(Errno::CONNREFUSED.raw_os_error()) => {
            fs::remove_file(path)
        }
        // A process is listening: it accepted the connection, or its queue is full.
        Ok(()) => Err(io::ErrorKind::AddrInUse.into()),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Err(io::ErrorKind::AddrInUse.into()),
        Err(error) => Err(error),
    }
}

impl SocketFile {
    /// A socket file that another process owns until [`SocketFile::claim`].
    pub(super) fn of_another(path: &Path, (device, inode): (u64, u64)) -> Self {
        Self { path: path.to_owned(), device, inode, is_left: AtomicBool::new(true) }
    }

    /// The device and inode, which identify the file.
    pub(super) fn identity(&self) -> (u64, u64) {
        (self.device, self.inode)
    }

    /// Checks that the path still names this file. Another process that starts at the same time may have removed the
    /// bound socket as stale, since this process did not listen yet. Fails if the path names another file or none,
    /// although this process owns the file.
    pub(super) fn check(&self) -> io::Result<()> {
        match self.is_left.load(Ordering::Relaxed) {
            true => Ok(()),
            false => self.is_there(),
        }
    }

    /// Takes the file over from another process. Fails if the file was removed, or the permissions cannot be set.
    pub(super) fn claim(&self, mode: u32) -> io::Result<()> {
        // Must not change another file under the path, or the target of a link.
        self.is_there()?;
        self.is_left.store(false, Ordering::Relaxed);
        fs::set_permissions(&self.path, fs::Permissions::from_mode(mode))
    }

    fn is_there(&self) -> io::Result<()> {
        match fs::symlink_metadata(&self.path) {
            Ok(found) if (found.dev(), found.ino()) == self.identity() => Ok(()),
            Ok(_) => Err(io::Error::other("another file has the socket's path")),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                Err(io::Error::other("the socket's file is gone"))
            }
            Err(error) => Err(error),
        }
    }

    /// Leaves the file to another process: dropping this value no longer removes it.
    pub(super) fn leave(&self) {
        self.is_left.store(true, Ordering::Relaxed);
    }

    /// Removes the path; queued connections remain.
    pub(super) fn remove(&self) {
        if self.is_left.load(Ordering::Relaxed) {
            return;
        }
        if self.is_there().is_ok() {
            // On failure the file stays; the next process replaces it as stale.
            let _ = fs::remove_file(&self.path);
        }
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        self.remove();
    }
}
