//! The thread that writes the access log to its file.

use crate::observe::journal::Journal;
use rustix::fs::{FileType, OFlags};
use rustix::io::Errno;
use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, channel, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

/// The workers' side of the access log.
#[derive(Clone, Debug)]
pub(crate) struct Buffers {
    /// The queue of buffers, each of whole lines.
    pub queue: SyncSender<Vec<u8>>,
    /// The number of lines that workers dropped, since the queue was full or the writer had exited, and of lines whose
    /// write failed.
    pub lost: Arc<AtomicU64>,
}

/// The writer thread. It exits when all [`Buffers`] are dropped.
#[derive(Debug)]
pub(crate) struct Writer(Receiver<()>);

/// The maximum number of buffers, of about 32 KiB each, that wait for the disk.
const QUEUE: usize = 256;

/// The timeout for writing the last lines when the process exits.
const LAST_LINES: Duration = Duration::from_secs(5);

/// The interval at which to check for a rotated log: rotation renames the file.
const LOOK: Duration = Duration::from_secs(1);

/// Opens the file for appending and starts the thread. `-` is stdout. Fails if the file cannot be opened.
pub(crate) fn start(path: &Path, journal: Journal) -> io::Result<(Buffers, Writer)> {
    let mut log = LogFile::open(path.to_owned())?;
    let (sender, queue) = sync_channel::<Vec<u8>>(QUEUE);
    let (ending, end) = channel();
    let lost = Arc::<AtomicU64>::default();
    let counted = Arc::clone(&lost);
    thread::Builder::new().name("access".into()).spawn(move || {
        let mut trouble = None;
        loop {
            match queue.recv_timeout(LOOK) {
                Ok(lines) => {
                    let Outcome { lost, error } = log.write(&lines);
                    counted.fetch_add(lost, Ordering::Relaxed);
                    report(&log.path, trouble.as_ref(), error.as_ref(), &journal);
                    trouble = error;
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            log.look();
        }
        drop(ending);
    })?;
    Ok((Buffers { queue: sender, lost }, Writer(end)))
}

impl Writer {
    /// Waits until all lines are written, but at most [`LAST_LINES`]. Call it once the workers have exited.
    pub(crate) fn finish(self) {
        // The thread sends nothing, but closes the channel when it exits.
        let _ = self.0.recv_timeout(LAST_LINES);
    }
}

struct LogFile {
    path: PathBuf,
    /// The open file; `None` for stdout.
    file: Option<File>,
    tail: Tail,
    looked: Instant,
}

impl LogFile {
    fn open(path: PathBuf) -> io::Result<Self> {
        let file = if path.as_os_str() == "-" { None } else { Some(append(&path)?) };
        Ok(Self { path, file, tail: Tail::Whole, looked: Instant::now() })
    }

    fn write(&mut self, lines: &[u8]) -> Outcome {
        match &mut self.file {
            Some(file) => self.tail.write(lines, file),
            None => self.tail.write(lines, &mut io::stdout()),
        }
    }

    /// Reopens the log if its path names another file or no file, since rotation has renamed the open file.
    fn look(&mut self) {
        let Some(file) = &self.file else { return };
        if self.looked.elapsed() < LOOK {
            return;
        }
        self.looked = Instant::now();
        let is_same = match (file.metadata(), std::fs::metadata(&self.path)) {
            (Ok(ours), Ok(named)) => (ours.dev(), ours.ino()) == (named.dev(), named.ino()),
            _ => false,
        };
        // If opening the new file fails, as for a FIFO without a reader, the old one stays in use.
        if !is_same && let Ok(file) = append(&self.path) {
            (self.file, self.tail) = (Some(file), Tail::Whole);
        }
    }
}

/// The number of lines that a write lost, and the cause.
struct Outcome {
    lost: u64,
    /// The error that lost these lines.
    error: Option<io::Error>,
}

/// The state of the output's last line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Tail {
    Whole,
    /// The output ends within a line, since a full disk may accept only part of a write.
    Torn,
}

impl Tail {
    fn write(&mut self, lines: &[u8], into: &mut impl Write) -> Outcome {
        let mut rest = lines;
        let mut error = None;
        if *self == Self::Torn {
            match into.write_all(b"\n") {
                Ok(()) => *self = Self::Whole,
                Err(failed) => error = Some(failed),
            }
        }
        while !rest.is_empty() && error.is_none() {
            match into.write(rest) {
                Ok(0) => error = Some(ErrorKind::WriteZero.into()),
                Ok(written) => rest = &rest[written..],
                Err(failed) if failed.kind() == ErrorKind::Interrupted => {}
                Err(failed) => error = Some(failed),
            }
        }
        let written = &lines[..lines.len() - rest.len()];
        if written.last().is_some_and(|last| *last != b'\n') {
            *self = Self::Torn;
        }
        let lost = rest.iter().filter(|byte| **byte == b'\n').count() as u64;
        Outcome { lost, error }
    }
}

/// Reports when write errors begin, change and stop.
fn report(path: &Path, before: Option<&io::Error>, now: Option<&io::Error>, journal: &Journal) {
    let path = path.display();
    match (before.map(io::Error::kind), now) {
        (None, None) => {}
        (Some(before), Some(now)) if before == now.kind() => {}
        (_, Some(error)) => journal.line(format_args!("weir: log.access: {path}: {error}; lines are lost")),
        (Some(_), None) => journal.line(format_args!("weir: log.access: {path}: lines are written again")),
    }
}

/// Opens a file, a FIFO or a device for appending. Fails if it is not writable, or if it is a FIFO that no process
/// reads: opening does not wait for a reader.
fn append(path: &Path) -> io::Result<File> {
    let nonblocking = OFlags::NONBLOCK.bits() as i32;
    let file = OpenOptions::new().append(true).create(true).custom_flags(nonblocking).open(path);
    let file = file.map_err(|error| {
        match rustix::fs::stat(path).map(|stat| FileType::from_raw_mode(stat.st_mode)) {
            Ok(FileType::Fifo) if error.raw_os_error() == Some(Errno::NXIO.raw_os_error()) => {
                io::Error::other("it is a FIFO that no process reads: start its reader first")
            }
            Ok(FileType::Socket) => {
                io::Error::other("it is a socket: expected a file, a FIFO, or `-` for stdout")
            }
            Ok(FileType::Directory) => {
                io::Error::other("it is a directory: expected a file, a FIFO, or `-` for stdout")
            }
            _ => error,
        }
    })?;
    // From now on, writes block on a slow reader as on a slow disk.
    let flags = rustix::fs::fcntl_getfl(&file)?;
    rustix::fs::fcntl_setfl(&file, flags - OFlags::NONBLOCK)?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A disk with `room` free bytes.
    struct Disk {
        file: Vec<u8>,
        room: usize,
    }

    impl Write for Disk {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let taken = bytes.len().min(self.room - self.file.len());
            self.file.extend_from_slice(&bytes[..taken]);
            if taken == 0 { Err(ErrorKind::StorageFull.into()) } else { Ok(taken) }
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// Regression test: the next line continued a line that a full disk had cut off, and lines already written counted
    /// as lost.
    #[test]
    fn a_full_disk_loses_the_lines_that_do_not_fit_and_no_other() {
        let (mut tail, mut disk) = (Tail::Whole, Disk { file: Vec::new(), room: 10 });
        let outcome = tail.write(b"first\nsecond\nthird\n", &mut disk);
        assert_eq!((outcome.lost, outcome.error.unwrap().kind()), (2, ErrorKind::StorageFull));
        assert_eq!((tail, tail.write(b"fourth\n", &mut disk).lost), (Tail::Torn, 1));
        disk.room = 100;
        let outcome = tail.write(b"fifth\n", &mut disk);
        assert!(outcome.lost == 0 && outcome.error.is_none() && tail == Tail::Whole);
        assert_eq!(disk.file, b"first\nseco\nfifth\n");
    }
}
