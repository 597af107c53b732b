//! Lines for the operator. A closed or full stream must not stop the gateway: write errors are ignored, and the lines
//! of workers are written by a thread of their own.

use std::fmt::Display;
use std::io::{self, Write as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, SyncSender, channel, sync_channel};
use std::thread;
use std::time::Duration;
use weir_http1::visible;

/// Takes the lines of a worker to the thread that writes them; never waits.
#[derive(Clone, Debug)]
pub(crate) struct Journal {
    queue: SyncSender<Entry>,
    dropped: Arc<AtomicU64>,
}

/// A line, or the end.
#[derive(Debug)]
pub(crate) enum Entry {
    Line(String),
    /// No further line is written.
    End,
}

/// The thread that writes them.
#[derive(Debug)]
pub(crate) struct Writer {
    queue: SyncSender<Entry>,
    /// Closed when the thread ends.
    end: Receiver<()>,
}

/// Lines that wait for a slow reader; further ones are dropped, and counted.
const QUEUE: usize = 1024;

/// How long the end of the process waits for a reader.
const LAST_LINES: Duration = Duration::from_secs(1);

/// Starts the thread. Errors: as spawning one.
pub(crate) fn journal() -> io::Result<(Journal, Writer)> {
    let (queue, lines) = sync_channel(QUEUE);
    let (ending, end) = channel();
    let dropped = Arc::<AtomicU64>::default();
    let (of_writer, last) = (Arc::clone(&dropped), queue.clone());
    thread::Builder::new().name("journal".into()).spawn(move || write(lines, &of_writer, ending))?;
    Ok((Journal { queue, dropped }, Writer { queue: last, end }))
}

impl Journal {
    /// A journal whose lines the caller takes itself.
    pub(crate) fn kept() -> (Self, Receiver<Entry>) {
        let (queue, lines) = sync_channel(QUEUE);
        (Self { queue, dropped: Arc::default() }, lines)
    }

    /// Queues a line for stderr. What a peer wrote in it does not act on terminals.
    pub(crate) fn line(&self, line: impl Display) {
        let line = visible(&line.to_string()).into_owned();
        if self.queue.try_send(Entry::Line(line)).is_err() {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl Writer {
    /// Waits until all lines of the workers are written, but not long for a reader that does not read.
    pub(crate) fn finish(self) {
        // With a full queue there is a line to wait for.
        let _ = self.queue.try_send(Entry::End);
        // The thread closes the channel, and sends nothing.
        let ended = self.end.recv_timeout(LAST_LINES);
        debug_assert!(matches!(ended, Err(RecvTimeoutError::Disconnected | RecvTimeoutError::Timeout)));
    }
}

fn write(lines: Receiver<Entry>, dropped: &AtomicU64, ending: Sender<()>) {
    for entry in lines {
        let Entry::Line(line) = entry else { break };
        err(line);
        match dropped.swap(0, Ordering::Relaxed) {
            0 => {}
            lost => err(format_args!("weir: {lost} lines dropped: stderr was not read in time")),
        }
    }
    drop(ending);
}

/// Writes a line to stdout.
pub(crate) fn out(line: impl Display) {
    let _ = writeln!(io::stdout(), "{line}");
}

/// Writes a line to stderr in one call, so that lines of different threads do not mix. Not for workers: it may wait for
/// the reader.
pub(crate) fn err(line: impl Display) {
    let _ = io::stderr().write_all(visible(&format!("{line}\n")).as_bytes());
}
