//! The access log: a line for each request, written by a separate thread.
//!
//! Each worker formats lines into its own buffer, and passes the buffer to the writer thread when it is large or old.
//! If the disk does not keep up, workers wait, or drop and count lines, as configured.

pub(super) mod clock;
mod entry;
mod field_values;
mod json;
mod template;
mod writer;

pub(crate) use entry::{Entry, HEAD_IN_LOG, Line};
pub(crate) use writer::{Buffers, Writer, start};

use crate::config::document::WhenFull;
use crate::config::{AccessLog, LogFormat};
use clock::Clock;
use std::sync::atomic::Ordering;
use std::sync::mpsc::TrySendError;
use std::time::{Duration, Instant};

/// One worker's part of the access log: the format, and a buffer of lines.
#[derive(Debug)]
pub(crate) struct Access {
    format: LogFormat,
    when_full: WhenFull,
    clock: Clock,
    buffer: Vec<u8>,
    /// The number of lines in the buffer.
    lines: u64,
    /// The time at which to pass the buffer on, regardless of its size.
    flush_at: Option<Instant>,
    writer: Buffers,
}

impl Access {
    pub(crate) fn new(format: LogFormat, when_full: WhenFull, writer: Buffers) -> Self {
        Self {
            format,
            when_full,
            clock: Clock::default(),
            buffer: Vec::new(),
            lines: 0,
            flush_at: None,
            writer,
        }
    }

    /// Adopts these settings for further lines, except the file, which only a new process changes.
    pub(crate) fn follow(&mut self, log: &AccessLog) {
        self.format.clone_from(&log.format);
        self.when_full = log.when_full;
    }

    /// Formats a line into the buffer.
    pub(crate) fn record(&mut self, line: &Line<'_>, now: Instant) {
        match &self.format {
            LogFormat::Json => json::write(line, &mut self.clock, &mut self.buffer),
            LogFormat::Template(pieces) => template::write(pieces, line, &mut self.clock, &mut self.buffer),
        }
        self.buffer.push(b'\n');
        self.lines += 1;
        self.flush_at.get_or_insert(now + LONGEST_WAIT);
    }

    /// Passes the lines to the writer if they are many or old. Call it at the end of each turn.
    pub(crate) fn settle(&mut self, now: Instant) {
        if self.buffer.len() >= LARGE || self.flush_at.is_some_and(|at| at <= now) {
            self.flush();
        }
    }

    /// Passes the lines to the writer.
    pub(crate) fn flush(&mut self) {
        self.flush_at = None;
        let lines = std::mem::take(&mut self.lines);
        if lines == 0 {
            return;
        }
        let buffer = std::mem::replace(&mut self.buffer, Vec::with_capacity(LARGE + 4096));
        let lost = match self.when_full {
            WhenFull::Drop => match self.writer.queue.try_send(buffer) {
                Ok(()) => 0,
                Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) => lines,
            },
            WhenFull::Wait => self.writer.queue.send(buffer).map_or(lines, |()| 0),
        };
        if lost > 0 {
            self.writer.lost.fetch_add(lost, Ordering::Relaxed);
        }
    }

    /// The time by which to call [`Access::settle`] again.
    pub(crate) fn due(&self) -> Option<Instant> {
        self.flush_at
    }

    /// The number of lines that all workers lost because the disk was too slow, a write failed, or the writer had
    /// exited.
    pub(crate) fn lost(&self) -> u64 {
        self.writer.lost.load(Ordering::Relaxed)
    }
}

/// The size from which a worker passes its buffer on at the end of a turn: larger writes would save little CPU per
/// line.
const LARGE: usize = 32 * 1024;

/// The maximum age of a line: an operator who follows the file does not notice the delay.
const LONGEST_WAIT: Duration = Duration::from_millis(200);
