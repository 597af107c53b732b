//! The access log: a line for each request, written off the data path.
//!
//! A worker formats lines into a buffer of its own and hands it over when it is large or has waited. What happens when the
//! disk does not keep up is a setting, and is counted.

pub(super) mod clock;
mod entry;
mod json;
mod template;
mod writer;

pub(crate) use entry::{Entry, HEAD_IN_LOG, Line};
pub(crate) use template::LineTemplate;
pub(crate) use writer::{Buffers, Writer, start};

use crate::config::AccessLog;
use crate::config::document::WhenFull;
use clock::Clock;
use std::sync::atomic::Ordering;
use std::sync::mpsc::TrySendError;
use std::time::{Duration, Instant};

/// How a line looks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Format {
    /// An object with all fields.
    #[default]
    Json,
    /// A text with variables.
    Template(LineTemplate),
}

/// One worker's access log.
#[derive(Debug)]
pub(crate) struct Access {
    format: Format,
    when_full: WhenFull,
    clock: Clock,
    buffer: Vec<u8>,
    /// Lines in the buffer.
    lines: u64,
    /// When the buffer's first line has waited long enough.
    flush_at: Option<Instant>,
    writer: Buffers,
}

impl Access {
    pub(crate) fn new(format: Format, when_full: WhenFull, writer: Buffers) -> Self {
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

    /// Takes these settings for the lines to come. The file stays.
    pub(crate) fn follow(&mut self, log: &AccessLog) {
        self.format.clone_from(&log.format);
        self.when_full = log.when_full;
    }

    /// Adds a line.
    pub(crate) fn record(&mut self, line: &Line<'_>, now: Instant) {
        match &self.format {
            Format::Json => json::write(line, &mut self.clock, &mut self.buffer),
            Format::Template(template) => template.write(line, &mut self.clock, &mut self.buffer),
        }
        self.buffer.push(b'\n');
        self.lines += 1;
        self.flush_at.get_or_insert(now + LONGEST_WAIT);
    }

    /// Hands the lines over if they are many, or have waited. Call at the end of each turn.
    pub(crate) fn settle(&mut self, now: Instant) {
        if self.buffer.len() >= LARGE || self.flush_at.is_some_and(|at| at <= now) {
            self.flush();
        }
    }

    /// Hands the lines over.
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

    /// When [`Access::settle`] is to be called at the latest.
    pub(crate) fn due(&self) -> Option<Instant> {
        self.flush_at
    }

    /// Lines of all workers that were lost: the disk did not keep up, or failed.
    pub(crate) fn lost(&self) -> u64 {
        self.writer.lost.load(Ordering::Relaxed)
    }
}

/// A write of this size costs little more than a small one.
const LARGE: usize = 32 * 1024;

/// An operator who watches the file does not notice it.
const LONGEST_WAIT: Duration = Duration::from_millis(200);
