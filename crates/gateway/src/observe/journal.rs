//! Lines for the operator. A closed or full stream must not stop the gateway, so this module ignores write errors, and
//! a separate thread writes the workers' lines.

use super::access::clock::Clock;
use crate::reason::Reason;
use std::env;
use std::fmt::Display;
use std::fs::File;
use std::io::{self, Write as _};
use std::os::fd::AsFd as _;
use std::os::unix::fs::MetadataExt as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, SyncSender, channel, sync_channel};
use std::sync::{Arc, LazyLock};
use std::thread;
use std::time::{Duration, SystemTime};
use weir_http::visible;

/// The queue of lines for the writer thread. Queueing never blocks.
#[derive(Clone, Debug)]
pub(crate) struct Journal {
    queue: SyncSender<Entry>,
    dropped: Arc<AtomicU64>,
}

/// The severity of a line, numbered as in sd-daemon(3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Level {
    /// A request or a change failed, through no fault of the client.
    Error = 3,
    Warning = 4,
    /// A failure that the client caused.
    Notice = 5,
    Info = 6,
}

impl Level {
    /// The level of an early end.
    pub(crate) fn of(reason: &Reason) -> Self {
        let is_error = reason.failure().is_some() || reason.status().is_some_and(|status| status >= 500);
        if is_error { Self::Error } else { Self::Notice }
    }
}

/// A line, or the end of all lines.
#[derive(Debug)]
pub(crate) enum Entry {
    Line(Level, String),
    /// A line about an early end of an exchange or a connection. The thread appends the time.
    Ended(Level, String),
    /// The thread exits without writing further lines.
    End,
}

/// A handle on the thread that writes the lines.
#[derive(Debug)]
pub(crate) struct Writer {
    queue: SyncSender<Entry>,
    /// A channel that closes when the thread exits.
    end: Receiver<()>,
}

/// The maximum number of lines that wait for a slow reader. The journal drops and counts further ones.
const QUEUE: usize = 1024;

/// The timeout for writing the last lines when the process exits.
const LAST_LINES: Duration = Duration::from_secs(1);

/// Starts the writer thread. Fails if the thread cannot start.
pub(crate) fn journal() -> io::Result<(Journal, Writer)> {
    let (queue, lines) = sync_channel(QUEUE);
    let (ending, end) = channel();
    let dropped = Arc::<AtomicU64>::default();
    let (of_writer, last) = (Arc::clone(&dropped), queue.clone());
    thread::Builder::new().name("journal".into()).spawn(move || write(lines, &of_writer, ending))?;
    Ok((Journal { queue, dropped }, Writer { queue: last, end }))
}

impl Journal {
    /// A journal without a thread, and the receiver of its lines.
    pub(crate) fn kept() -> (Self, Receiver<Entry>) {
        let (queue, lines) = sync_channel(QUEUE);
        (Self { queue, dropped: Arc::default() }, lines)
    }

    /// Queues a line for stderr. Hidden characters are escaped, so that peers cannot control a terminal.
    pub(crate) fn line(&self, line: impl Display) {
        self.queue(Entry::Line(Level::Info, line.to_string()));
    }

    /// As [`Journal::line`], for a warning.
    pub(crate) fn warn(&self, line: impl Display) {
        self.queue(Entry::Line(Level::Warning, line.to_string()));
    }

    /// As [`Journal::line`], for a command that failed.
    pub(crate) fn error(&self, line: impl Display) {
        self.queue(Entry::Line(Level::Error, line.to_string()));
    }

    /// Queues a line about an early end. The thread appends the time.
    pub(crate) fn ended(&self, level: Level, line: String) {
        self.queue(Entry::Ended(level, line));
    }

    fn queue(&self, entry: Entry) {
        if self.queue.try_send(entry).is_err() {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl Writer {
    /// Waits until all lines of the workers are written, but at most [`LAST_LINES`].
    pub(crate) fn finish(self) {
        // If the queue is full, this fails, and the wait below times out.
        let _ = self.queue.try_send(Entry::End);
        // The thread sends nothing, but closes the channel when it exits.
        let ended = self.end.recv_timeout(LAST_LINES);
        debug_assert!(matches!(ended, Err(RecvTimeoutError::Disconnected | RecvTimeoutError::Timeout)));
    }
}

fn write(lines: Receiver<Entry>, dropped: &AtomicU64, ending: Sender<()>) {
    let mut clock = Clock::default();
    for entry in lines {
        match entry {
            Entry::Line(level, line) => put(level, line),
            // systemd's journal records the time itself.
            Entry::Ended(level, line) if *IS_JOURNAL => put(level, line),
            Entry::Ended(level, mut line) => {
                let mut time = Vec::new();
                clock.write(SystemTime::now(), &mut time);
                line.push_str(&format!(" time={}", String::from_utf8_lossy(&time)));
                put(level, line);
            }
            Entry::End => break,
        }
        match dropped.swap(0, Ordering::Relaxed) {
            0 => {}
            lost => {
                put(Level::Warning, format_args!("weir: {lost} lines dropped: stderr was not read in time"));
            }
        }
    }
    drop(ending);
}

/// Writes a line to stdout.
pub(crate) fn out(line: impl Display) {
    let _ = writeln!(io::stdout(), "{line}");
}

/// Writes a line to stderr in one call, so that lines of different threads do not mix. Workers must not call it, since
/// a slow reader may block it.
pub(crate) fn err(line: impl Display) {
    put(Level::Info, line);
}

fn put(level: Level, line: impl Display) {
    let line = match *IS_JOURNAL {
        true => format!("<{}>{line}\n", level as u8),
        false => format!("{line}\n"),
    };
    let _ = io::stderr().write_all(visible(&line).as_bytes());
}

/// Whether stderr is systemd's journal, which understands levels: systemd.exec(5), `JOURNAL_STREAM`.
static IS_JOURNAL: LazyLock<bool> = LazyLock::new(|| {
    let stream = env::var("JOURNAL_STREAM").unwrap_or_default();
    let stderr = io::stderr().as_fd().try_clone_to_owned().map(File::from);
    let found = stderr.and_then(|stderr| stderr.metadata());
    found.is_ok_and(|found| stream == format!("{}:{}", found.dev(), found.ino()))
});
