//! A cell over many results, oldest first, and whether its last change is a regression.

use crate::across::matching::{Between, Matched, check_different, rates_differ};
use crate::error::{ConfigError, LabError};
use crate::experiment::Load;
use crate::metric::Metric;
use crate::options::{RunOptions, select};
use crate::pairing;
use crate::plan::Cell;
use crate::results::Results;
use crate::stats;
use crate::store::stamp;
use crate::summary::by_cell;
use crate::table::{short, wrap};
use std::collections::BTreeSet;
use std::fmt::{self, Write as _};
use std::path::PathBuf;

/// Results before the last one from which a threshold is learnt: fewer have no quartiles to speak of.
pub const LEAST_RESULTS: usize = 10;

/// Where there are fewer: nightly runs of one program on changing hosts differ by less in nine of ten.
pub const DEFAULT_THRESHOLD: f64 = 0.3;

/// What is asked of a history.
#[derive(Clone, Debug, Default)]
pub struct HistoryOptions {
    /// The results' directories, in any order.
    pub directories: Vec<PathBuf>,
    /// Only the cells with these factors; values of one key are alternatives.
    pub cells: Vec<(String, String)>,
    /// What is looked at; by default CPU per request or per handshake.
    pub metric: Option<Metric>,
    /// A change for the worse beyond this share is a regression, whatever the past says.
    pub threshold: Option<f64>,
}

/// Cells over many results.
#[derive(Clone, Debug)]
pub struct History {
    /// The results, oldest first.
    pub results: Vec<Entry>,
    /// One for each cell.
    pub series: Vec<Series>,
    /// Changes of so much or less are never reported.
    pub minimum: f64,
    labels: Vec<String>,
}

/// One of the results.
#[derive(Clone, Debug)]
pub struct Entry {
    /// Where it is stored.
    pub directory: PathBuf,
    /// The seconds since 1970 at which it began.
    pub started_unix: u64,
}

/// A cell over the results that have it.
#[derive(Clone, Debug)]
pub struct Series {
    /// Its stable name.
    pub cell: String,
    /// Its target.
    pub target: String,
    /// What is looked at.
    pub metric: Metric,
    /// Oldest first.
    pub points: Vec<Point>,
    /// What the last change comes to; `None` where the last two have no values that can be compared.
    pub last: Option<Last>,
}

/// A cell in one result.
#[derive(Clone, Debug)]
pub struct Point {
    /// Which of [`History::results`].
    pub result: usize,
    /// The target's version.
    pub version: String,
    /// Requests per second that were offered; `None` in a closed loop.
    pub rate: Option<f64>,
    /// Median over the blocks.
    pub value: Option<f64>,
    /// Lower end of its interval (Hodges and Lehmann); `None` below five blocks.
    pub low: Option<f64>,
    /// Upper end.
    pub high: Option<f64>,
    /// Blocks with a valid run.
    pub blocks: u32,
    /// The ratio to the value before.
    pub change: Option<f64>,
    /// Why there is no value, or no change.
    pub note: Option<String>,
}

/// The last change, and the rule that it is measured by.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Last {
    /// The newest value over the one before.
    pub ratio: f64,
    /// A change beyond this share is reported.
    pub threshold: f64,
    /// Where the threshold is from.
    pub rule: Rule,
    /// What it comes to.
    pub verdict: Trend,
}

/// Where a threshold is from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// From so many past changes: the third quartile and three interquartile ranges.
    Learnt(usize),
    /// The default, since the past has too few results.
    Default,
    /// It was given.
    Given,
    /// The minimum, which the others fell below.
    Minimum,
}

/// What a change comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trend {
    /// For the worse, beyond the threshold.
    Regression,
    /// For the better, beyond the threshold.
    Improvement,
    /// Within the threshold.
    Usual,
}

impl fmt::Display for Rule {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Learnt(changes) => write!(formatter, "Q3 + 3 IQR of {changes} past changes"),
            Self::Default => write!(formatter, "the default, below {LEAST_RESULTS} past results"),
            Self::Given => formatter.write_str("--threshold"),
            Self::Minimum => formatter.write_str("the least that is reported"),
        }
    }
}

impl fmt::Display for Trend {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(match self {
            Self::Regression => "regression",
            Self::Improvement => "improvement",
            Self::Usual => "usual",
        })
    }
}

/// Reads results of one plan and follows its cells through them.
///
/// # Errors
/// What is no result of this program; results that are not of one plan on one machine, with what differs; a directory that
/// is given twice; no cell that was asked for.
pub fn history(options: &HistoryOptions) -> Result<History, LabError> {
    let directories: Vec<_> = options.directories.iter().map(PathBuf::as_path).collect();
    check_different(&directories)?;
    let mut all = Vec::new();
    for directory in directories {
        all.push(Results::read(directory)?);
    }
    all.sort_by_key(|results| results.machine.started_unix);
    Ok(of(&all, options)?)
}

fn of(all: &[Results], options: &HistoryOptions) -> Result<History, ConfigError> {
    let mut labels = Vec::new();
    let Some((oldest, newest)) = all.first().zip(all.last()) else {
        return Err(ConfigError::new("history", "no result is given: at least one is needed"));
    };
    for results in &all[1..] {
        let names = [&oldest.directory, &results.directory].map(|directory| directory.display().to_string());
        let names = names.each_ref().map(String::as_str);
        let between = Between { names, results: [oldest, results] };
        between.check_plan()?;
        between.check_cells(&Matched::new(oldest, results))?;
        labels.extend(between.differences());
    }
    let mut cells: Vec<&Cell> = Vec::new();
    let mut seen = BTreeSet::new();
    for Results { plan, .. } in all.iter().rev() {
        for cell in plan.cells.iter().filter(|cell| !cell.is_again()) {
            if seen.insert(cell.to_string()) && select("--cell", &options.cells, cell, &plan.experiment)? {
                cells.push(cell);
            }
        }
    }
    let minimum = newest.plan.experiment.margin;
    let series: Vec<Series> =
        cells.into_iter().filter_map(|cell| Series::of(cell, all, options, minimum)).collect();
    if series.is_empty() {
        return Err(ConfigError::new(
            "--cell",
            "no cell of the results is meant, or none has a value of this metric",
        ));
    }
    let entry = |results: &Results| Entry {
        directory: results.directory.clone(),
        started_unix: results.machine.started_unix,
    };
    Ok(History { results: all.iter().map(entry).collect(), series, minimum, labels })
}

impl Series {
    /// `None` where no result has a value of the cell.
    fn of(cell: &Cell, all: &[Results], options: &HistoryOptions, minimum: f64) -> Option<Self> {
        let own = Metric::of_load(cell.load, cell.case)[0];
        let metric = options.metric.unwrap_or(own);
        let name = cell.to_string();
        let mut points: Vec<Point> = Vec::new();
        for (index, results) in all.iter().enumerate() {
            let runs = by_cell(&results.plan, &results.records);
            let Some((_, runs)) = runs.into_iter().find(|(other, _)| other.to_string() == name) else {
                continue;
            };
            let valid = pairing::valid(&runs);
            let values: Vec<f64> = pairing::values(metric, &valid).into_values().collect();
            let interval = stats::location(&values).and_then(|estimate| estimate.interval);
            let mut point = Point {
                result: index,
                version: results.machine.versions.get(&cell.target).cloned().unwrap_or_default(),
                rate: runs.iter().find_map(|run| run.rate),
                value: stats::median(&values),
                low: interval.map(|interval| interval.low),
                high: interval.map(|interval| interval.high),
                blocks: values.len() as u32,
                change: None,
                note: pairing::unsupported(metric, cell.load, &cell.name, &valid)
                    .or_else(|| metric.has_no_value(&cell.name, &valid)),
            };
            point.follow(points.last(), cell.load);
            points.push(point);
        }
        points.iter().any(|point| point.value.is_some()).then(|| {
            let last = Last::of(metric, &points, options.threshold, minimum);
            Self { cell: name, target: cell.name.clone(), metric, points, last }
        })
    }
}

impl Point {
    /// Its change from the one before, if both can be compared.
    fn follow(&mut self, before: Option<&Self>, load: Load) {
        let Some(before) = before.filter(|before| before.note.is_none() && self.note.is_none()) else {
            return;
        };
        self.note = rates_differ(load, ["the one before", "this one"], [before.rate, self.rate]);
        let values = before.value.zip(self.value).filter(|(old, new)| *old > 0.0 && *new > 0.0);
        self.change = values.filter(|_| self.note.is_none()).map(|(old, new)| new / old);
    }
}

impl Last {
    fn of(metric: Metric, points: &[Point], given: Option<f64>, minimum: f64) -> Option<Self> {
        let (newest, past) = points.split_last()?;
        let ratio = newest.change?;
        let past_changes: Vec<f64> = past.iter().filter_map(|point| point.change).collect();
        let (threshold, rule) = match given {
            Some(threshold) => (threshold, Rule::Given),
            None => threshold(past.len(), &past_changes, minimum),
        };
        // As far up as down: half as much is as large a change as twice as much.
        let verdict = match ratio.ln().abs() > threshold.ln_1p() {
            false => Trend::Usual,
            true if metric.is_worse(ratio) => Trend::Regression,
            true => Trend::Improvement,
        };
        Some(Self { ratio, threshold, rule, verdict })
    }
}

/// The third quartile of the sizes of past changes and three interquartile ranges, from [`LEAST_RESULTS`] past results on;
/// the default below; never less than `minimum`.
fn threshold(results: usize, past_changes: &[f64], minimum: f64) -> (f64, Rule) {
    let mut sizes: Vec<f64> = past_changes.iter().map(|ratio| ratio.ln().abs()).collect();
    sizes.sort_by(f64::total_cmp);
    let (threshold, rule) = match (quantile(&sizes, 0.25), quantile(&sizes, 0.75)) {
        (Some(first), Some(third)) if results >= LEAST_RESULTS => {
            ((third + 3.0 * (third - first)).exp_m1(), Rule::Learnt(sizes.len()))
        }
        _ => (DEFAULT_THRESHOLD, Rule::Default),
    };
    if threshold < minimum { (minimum, Rule::Minimum) } else { (threshold, rule) }
}

/// A quantile of sorted values, between two of them in proportion (as R's default does).
fn quantile(sorted: &[f64], quantile: f64) -> Option<f64> {
    let at = (sorted.len().checked_sub(1)?) as f64 * quantile;
    let below = sorted[at.floor() as usize];
    Some(below + at.fract() * (sorted[at.ceil() as usize] - below))
}

impl History {
    /// The cells whose last change is for the worse, beyond the threshold.
    pub fn regressions(&self) -> impl Iterator<Item = &Series> {
        let is_regression = |last: &Last| last.verdict == Trend::Regression;
        self.series.iter().filter(move |series| series.last.as_ref().is_some_and(is_regression))
    }

    /// A table for each cell, at most 100 columns wide.
    pub fn text(&self) -> String {
        let mut text = String::new();
        wrap(
            &mut text,
            &format!(
                "{} results, oldest first. Figures of different days share no block: a change has the sessions' drift in it. \
                 Changes of {:.0} % or less are not reported.",
                self.results.len(),
                self.minimum * 100.0
            ),
        );
        for label in &self.labels {
            wrap(&mut text, &format!("Differs: {label}."));
        }
        for series in &self.series {
            text.push('\n');
            self.series_text(&mut text, series);
        }
        text
    }

    fn series_text(&self, text: &mut String, series: &Series) {
        let Series { cell, metric, points, last, .. } = series;
        wrap(text, cell);
        let unit = if metric.unit().is_empty() { String::new() } else { format!(", {}", metric.unit()) };
        let values: Vec<Option<f64>> = points.iter().map(|point| point.value).collect();
        let _ = writeln!(text, "  {metric}{unit}  {}", sparkline(&values));
        for point in points {
            let began = stamp(self.results[point.result].started_unix);
            let value = match (point.value, point.low, point.high) {
                (Some(value), Some(low), Some(high)) => {
                    format!("{} [{}, {}]", short(value), short(low), short(high))
                }
                (Some(value), ..) => short(value),
                _ => "-".into(),
            };
            let change = point.change.map_or_else(String::new, percent);
            let rate = point.rate.map_or_else(String::new, |rate| format!(" at {rate:.0}/s"));
            let note = point.note.as_ref().map_or_else(String::new, |note| format!(" ({note})"));
            let line = format!(
                "  {began}  {value:<28} {change:>8}  {} blocks{rate} {}{note}",
                point.blocks, point.version
            );
            // Columns stay where they are; what is too long is told on the next line.
            match line.trim_end() {
                line if line.chars().count() <= crate::table::WIDTH => text.push_str(line),
                _ => {
                    let _ = write!(text, "  {began}  {value:<28} {change:>8}  {} blocks{rate}", point.blocks);
                    text.push('\n');
                    wrap(text, &format!("      {}{note}", point.version));
                    continue;
                }
            }
            text.push('\n');
        }
        let said = match last {
            Some(Last { ratio, threshold, rule, verdict }) => format!(
                "last change {}: {verdict} (threshold {:.1} %: {rule})",
                percent(*ratio),
                threshold * 100.0
            ),
            None => "last change: none, as the last two have no values that can be compared".into(),
        };
        wrap(text, &format!("  {said}"));
    }
}

/// `+2.3 %`.
fn percent(ratio: f64) -> String {
    format!("{:+.1} %", (ratio - 1.0) * 100.0)
}

/// The newest values that fit, each as a bar between the least and the largest; a gap where there is none.
fn sparkline(values: &[Option<f64>]) -> String {
    const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    const MOST: usize = 50;
    let values = &values[values.len().saturating_sub(MOST)..];
    let known = || values.iter().flatten().copied();
    let (low, high) = (known().fold(f64::INFINITY, f64::min), known().fold(f64::NEG_INFINITY, f64::max));
    let bar = |value: f64| match high > low {
        true => BARS[((value - low) / (high - low) * (BARS.len() - 1) as f64).round() as usize],
        false => BARS[3],
    };
    values.iter().map(|value| value.map_or(' ', bar)).collect()
}

/// Reads `k=v,k=v` of `--cell`.
///
/// # Errors
/// What has no key or no value.
pub fn parse_cells(text: &str) -> Result<Vec<(String, String)>, ConfigError> {
    RunOptions::parse_pairs("--cell", text)
}

#[cfg(test)]
mod tests;
