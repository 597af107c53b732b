//! What runs and how long is left, on standard error. Nothing is drawn while a window is measured: the bar moves only
//! between runs.

use crate::plan::{PlannedRun, Stage};
use crate::run::RunRecord;
use indicatif::{ProgressBar, ProgressStyle};
use std::fmt::Display;
use std::io::{self, Write as _};
use std::time::{Duration, Instant};

/// Is told what happens.
pub(crate) trait Progress {
    /// So many runs follow, which should take so long.
    fn begin(&mut self, runs: u64, expected_ms: u64);
    /// A run starts; the experiment has so many blocks.
    fn starts(&mut self, run: &PlannedRun, blocks: usize);
    /// A run has ended.
    fn ended(&mut self, record: &RunRecord);
    /// A run was stored already, or has no rate.
    fn skipped(&mut self);
    /// All runs are made.
    fn end(&mut self);
}

/// Says nothing.
impl Progress for () {
    fn begin(&mut self, _: u64, _: u64) {}
    fn starts(&mut self, _: &PlannedRun, _: usize) {}
    fn ended(&mut self, _: &RunRecord) {}
    fn skipped(&mut self) {}
    fn end(&mut self) {}
}

/// A bar on a terminal; elsewhere the lines of the runs alone.
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
    fn begin(&mut self, runs: u64, expected_ms: u64) {
        self.bar.finish_and_clear();
        // The bar draws only when it is told to; its own clock would tick within a window.
        self.bar = ProgressBar::new(runs);
        if let Ok(style) = ProgressStyle::with_template("{bar:24} {pos}/{len}  {msg}") {
            self.bar.set_style(style);
        }
        self.began = Instant::now();
        self.expected = Duration::from_millis(expected_ms);
        self.made = 0;
        self.left = runs;
    }

    fn starts(&mut self, run: &PlannedRun, blocks: usize) {
        let stage = match run.stage {
            Stage::Calibration => "calibration".to_owned(),
            Stage::Block(block) => format!("block {block}/{blocks}"),
        };
        let cell = &run.cell;
        let what = format!("{stage}  {} {} {}", cell.name, cell.mode, cell.load);
        self.bar.set_message(format!("{what}  {} left", duration(self.left())));
        self.bar.tick();
    }

    fn ended(&mut self, record: &RunRecord) {
        self.made += 1;
        self.left = self.left.saturating_sub(1);
        self.bar.inc(1);
        tell_above(&self.bar, &line(record));
    }

    fn skipped(&mut self) {
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

/// Writes a line to standard error. One that is closed or full is no reason to stop measuring.
pub(crate) fn tell(line: impl Display) {
    let _ = writeln!(io::stderr(), "{line}");
}

/// As [`tell`], above a bar that is drawn there.
pub(crate) fn tell_above(bar: &ProgressBar, line: &str) {
    if bar.is_hidden() { tell(line) } else { bar.println(line) }
}

/// One line for a run: its rate, what each part cost per request or handshake, who was the limit.
fn line(record: &RunRecord) -> String {
    let cell = &record.run.cell;
    let stage = record.run.id.split('-').next().unwrap_or_default();
    let what = format!("{stage} {:<12} {:<7} {:<10}", cell.name, cell.mode, cell.load);
    let Some(parts) = record.parts() else { return format!("{what}  {}", record.validity) };
    let each = |cost: Option<&weir_load::result::Cost>| {
        cost.and_then(|cost| cell.case.cpu_us(cost)).map_or("     -".into(), |us| format!("{us:6.1}"))
    };
    let mut line = format!(
        "{what} {:>8.0}/s  CPU us/{}: gateway {} origin {} load {}  limit {}",
        parts.load.requests_per_second,
        cell.case.unit(),
        each(parts.gateway.map(|server| &server.cost)),
        each(parts.origin.map(|server| &server.cost)),
        each(Some(&parts.load.engine.cost)),
        record.limit.map_or_else(String::new, |limit| limit.to_string()),
    );
    if !record.validity.is_valid() {
        line.push_str(&format!("  {}", record.validity));
    }
    line
}

/// `4 min 10 s`, `12 s`.
pub(crate) fn duration(time: Duration) -> String {
    match time.as_secs() {
        seconds @ 0..60 => format!("{seconds} s"),
        seconds @ 60..3600 => format!("{} min {} s", seconds / 60, seconds % 60),
        seconds => format!("{} h {} min", seconds / 3600, seconds / 60 % 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::{Load, Mode};
    use crate::testing::record;

    #[test]
    fn a_line_names_every_parts_cost() {
        let line = line(&record(Mode::H1H1c, Load::Saturated));
        assert!(line.contains("40000/s  CPU us/request: gateway   25.0 origin    7.5 load   10.0"), "{line}");
        assert!(line.ends_with("limit gateway"), "{line}");
        assert!(super::line(&record(Mode::H1, Load::Saturated)).contains("gateway      - origin    7.5"));
    }

    #[test]
    fn durations() {
        assert_eq!(duration(Duration::from_secs(59)), "59 s");
        assert_eq!(duration(Duration::from_secs(250)), "4 min 10 s");
        assert_eq!(duration(Duration::from_secs(3700)), "1 h 1 min");
    }
}
