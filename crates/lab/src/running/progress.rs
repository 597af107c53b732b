//! The progress of an experiment on standard error. Nothing is drawn while a window is measured: the bar moves only
//! between runs.

use crate::base::duration::duration;
use crate::planning::planned_run::{PlannedRun, Stage};
use indicatif::{ProgressBar, ProgressStyle};
use std::fmt::Display;
use std::io::{self, Write as _};
use std::time::{Duration, Instant};

/// Receives the progress.
pub(crate) trait Progress {
    /// This many turns follow, with an estimated duration.
    fn begin(&mut self, turns: u64, expected_ms: u64);
    /// The runs of a turn start; the experiment has this many blocks.
    fn starts(&mut self, runs: &[PlannedRun], blocks: usize);
    /// A run has ended, described in a line.
    fn ended(&mut self, line: &str);
    /// The turn is over; it is skipped if its runs were stored already.
    fn turned(&mut self, is_skipped: bool);
    /// All runs are done.
    fn end(&mut self);
}

/// No output.
impl Progress for () {
    fn begin(&mut self, _: u64, _: u64) {}
    fn starts(&mut self, _: &[PlannedRun], _: usize) {}
    fn ended(&mut self, _: &str) {}
    fn turned(&mut self, _: bool) {}
    fn end(&mut self) {}
}

/// A bar on a terminal; elsewhere the runs' lines only.
#[derive(Debug)]
pub(crate) struct Bar {
    bar: ProgressBar,
    began: Instant,
    expected: Duration,
    made: u32,
    left: u64,
}

impl Default for Bar {
    fn default() -> Self {
        Self { bar: ProgressBar::hidden(), began: Instant::now(), expected: Duration::ZERO, made: 0, left: 0 }
    }
}

impl Progress for Bar {
    fn begin(&mut self, turns: u64, expected_ms: u64) {
        self.bar.finish_and_clear();
        // The bar is drawn on request only; its own clock would tick within a window.
        self.bar = ProgressBar::new(turns);
        if let Ok(style) = ProgressStyle::with_template("{bar:24} {pos}/{len}  {msg}") {
            self.bar.set_style(style);
        }
        self.began = Instant::now();
        self.expected = Duration::from_millis(expected_ms);
        self.made = 0;
        self.left = turns;
    }

    fn starts(&mut self, runs: &[PlannedRun], blocks: usize) {
        let stage = match runs.first().map(|run| run.stage) {
            Some(Stage::Block(block)) => format!("block {block}/{blocks}"),
            Some(Stage::Profile) => "profile".to_owned(),
            _ => "calibration".to_owned(),
        };
        let what: Vec<String> = runs.iter().map(|run| run.cell.to_string()).collect();
        self.bar.set_message(format!("{stage}  {}  {} left", what.join(", "), duration(self.left())));
        self.bar.tick();
    }

    fn ended(&mut self, line: &str) {
        if self.bar.is_hidden() { note(line) } else { self.bar.println(line) }
    }

    fn turned(&mut self, is_skipped: bool) {
        self.made += u32::from(!is_skipped);
        self.left = self.left.saturating_sub(1);
        self.bar.inc(1);
    }

    fn end(&mut self) {
        self.bar.finish_and_clear();
    }
}

impl Bar {
    fn left(&self) -> Duration {
        match self.made {
            0 => self.expected,
            made => self.began.elapsed() / made * u32::try_from(self.left).unwrap_or(u32::MAX),
        }
    }
}

/// Writes a line to standard error. A closed or full one does not stop the measurement.
pub(crate) fn note(line: impl Display) {
    let _ = writeln!(io::stderr(), "{line}");
}
