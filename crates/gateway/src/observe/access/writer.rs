//! The thread that writes the access log to its file.

use crate::observe::journal::Journal;
use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, channel, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

/// The workers' side.
#[derive(Clone, Debug)]
pub(crate) struct Buffers {
    /// Buffers of whole lines.
    pub queue: SyncSender<Vec<u8>>,
    /// Lines that were lost.
    pub lost: Arc<AtomicU64>,
}

/// The thread; it ends when all [`Buffers`] are gone.
#[derive(Debug)]
pub(crate) struct Writer(Receiver<()>);

/// Buffers that wait for the disk, of 32 KiB each.
const QUEUE: usize = 256;

/// How long the end of the process waits for the disk.
const LAST_LINES: Duration = Duration::from_secs(5);

/// How often the file is looked for under its name: a tool that rotates logs renames it.
const LOOK: Duration = Duration::from_secs(1);

/// Opens the file for appending and starts the thread. `-` is stdout. Errors: the file cannot be opened.
pub(crate) fn start(path: &Path, journal: Journal) -> io::Result<(Buffers, Writer)> {
    let mut log = LogFile::open(path.to_owned())?;
    let (sender, queue) = sync_channel::<Vec<u8>>(QUEUE);
    let (ending, end) = channel();
    let lost = Arc::<AtomicU64>::default();
    let counted = Arc::clone(&lost);
    thread::Builder::new().name("access".into()).spawn(move || {
        let mut failing = false;
        loop {
            match queue.recv_timeout(LOOK) {
                Ok(lines) => {
                    let written = log.write(&lines);
                    if let Err(error) = &written
                        && !failing
                    {
                        journal.line(format_args!(
                            "weir: log.access: {}: {error}; lines are lost",
                            log.path.display()
                        ));
                    }
                    failing = written.is_err();
                    if failing {
                        let lines = lines.iter().filter(|byte| **byte == b'\n').count();
                        counted.fetch_add(lines as u64, Ordering::Relaxed);
                    }
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
    /// Waits until all lines are written, once the workers are gone, but not for ever.
    pub(crate) fn finish(self) {
        // The thread closes the channel, and sends nothing.
        let _ = self.0.recv_timeout(LAST_LINES);
    }
}

struct LogFile {
    path: PathBuf,
    /// `None` for stdout.
    file: Option<File>,
    looked: Instant,
}

impl LogFile {
    fn open(path: PathBuf) -> io::Result<Self> {
        let file = if path.as_os_str() == "-" { None } else { Some(append(&path)?) };
        Ok(Self { path, file, looked: Instant::now() })
    }

    fn write(&mut self, lines: &[u8]) -> io::Result<()> {
        match &mut self.file {
            Some(file) => file.write_all(lines),
            None => io::stdout().write_all(lines),
        }
    }

    /// Opens the file again if another one, or none, has its name now.
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
        if !is_same && let Ok(file) = append(&self.path) {
            self.file = Some(file);
        }
    }
}

fn append(path: &Path) -> io::Result<File> {
    OpenOptions::new().append(true).create(true).open(path)
}
