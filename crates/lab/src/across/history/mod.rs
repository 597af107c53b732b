//! A cell over many results, oldest first, and whether its last change is a regression.

mod text;
mod trend;

pub use trend::{DEFAULT_THRESHOLD, LEAST_CHANGES, Last, Latest, Rule, Trend};

use crate::across::matching::{Between, Matched, cells, rates_differ};
use crate::across::sample::Sample;
use crate::base::error::{ConfigError, LabError};
use crate::experiment::metric::Metric;
use crate::experiment::options::RunOptions;
use crate::findings::results::Results;
use crate::planning::cell::Cell;
use crate::planning::select::select;
use crate::report::shown::Shown;
use crate::stats;
use std::collections::BTreeSet;
use std::path::PathBuf;

/// The options of a history.
#[derive(Clone, Debug, Default)]
pub struct HistoryOptions {
    /// Directories of results, in any order.
    pub directories: Vec<PathBuf>,
    /// Only the cells with these factors; values of one key are alternatives.
    pub cells: Vec<(String, String)>,
    /// The metric followed; by default CPU per request or per handshake, and for TLS stacks the server's time.
    pub metric: Option<Metric>,
    /// A change for the worse beyond this share is a regression, regardless of past changes and of the margin.
    pub threshold: Option<f64>,
}

/// Cells over many results.
#[derive(Clone, Debug)]
pub struct History {
    /// The results, oldest first.
    pub results: Vec<Entry>,
    /// One for each cell.
    pub series: Vec<Series>,
    /// The largest change that is never reported: the given threshold, else the experiment's margin.
    pub minimum: f64,
    labels: Vec<String>,
}

/// One of the results.
#[derive(Clone, Debug)]
pub struct Entry {
    /// The result's directory.
    pub directory: PathBuf,
    /// The start, in seconds since 1970.
    pub started_unix: u64,
}

/// A cell over the results that include it.
#[derive(Clone, Debug)]
pub struct Series {
    /// Its stable name.
    pub cell: String,
    /// Its target or engine.
    pub target: String,
    /// The metric followed.
    pub metric: Metric,
    /// The points, oldest first.
    pub points: Vec<Point>,
    /// The state in the newest result.
    pub latest: Latest,
}

/// A cell in one result.
#[derive(Clone, Debug)]
pub struct Point {
    /// Index into [`History::results`].
    pub result: usize,
    /// The version of the target or engine.
    pub version: String,
    /// Offered requests per second; `None` in a closed loop.
    pub rate: Option<f64>,
    /// Median over the blocks.
    pub value: Option<f64>,
    /// Lower bound of its interval (Hodges and Lehmann); `None` below five blocks.
    pub low: Option<f64>,
    /// Upper bound.
    pub high: Option<f64>,
    /// Blocks with a valid run.
    pub blocks: u32,
    /// The change from an earlier value.
    pub change: Option<Step>,
    /// Why the value is no evidence, or why there is no change.
    pub note: Option<String>,
    is_usable: bool,
}

/// The change from an earlier value to this one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Step {
    /// This value divided by the earlier one.
    pub ratio: f64,
    /// Index into [`History::results`] of the earlier value: the newest usable one at this rate.
    pub since: usize,
}

/// The metrics to follow. Only valid runs count, and those have few errors.
const FOLLOWED: &str = "cpu_us_per_request, cpu_us_per_handshake, requests_per_second, handshakes_per_second, mean_us, \
    p50_us, p95_us, p99_us, rss_kib, utilisation, little_ratio, gc_throughput_percent, after_full_gc_kib";

/// As [`crate::history`].
pub(crate) fn history<I: Shown>(options: &HistoryOptions) -> Result<History, LabError> {
    let all = options.directories.iter().map(|directory| I::results(directory));
    let mut all = all.collect::<Result<Vec<_>, _>>()?;
    all.sort_by_key(|results| results.machine.started_unix);
    Ok(of(&all, options)?)
}

fn of<I: Shown>(all: &[Results<I>], options: &HistoryOptions) -> Result<History, ConfigError> {
    let Some((oldest, newest)) = all.first().zip(all.last()) else {
        return Err(ConfigError::new("history", "missing directory: expected at least one result"));
    };
    if options.metric == Some(Metric::ErrorRatio) {
        let message = format!(
            "invalid value `error_ratio`: a history has valid runs only, with few errors; expected one of {FOLLOWED}"
        );
        return Err(ConfigError::new("--metric", message));
    }
    let mut labels = BTreeSet::new();
    for results in &all[1..] {
        let names = [oldest, results].map(|results| results.directory.display().to_string());
        let names = names.each_ref().map(String::as_str);
        let between = Between { names, results: [oldest, results] };
        between.check_plan()?;
        between.check_cells(&Matched::new(oldest, results))?;
        labels.extend(between.differences().iter().map(|difference| format!("Differs: {difference}.")));
    }
    let mut followed: Vec<&Cell> = Vec::new();
    let mut seen = BTreeSet::new();
    for results in all.iter().rev() {
        for (cell, _) in cells(results) {
            if seen.insert(&cell.id) && select::<I>("--cell", &options.cells, cell, &results.plan.experiment)?
            {
                followed.push(cell);
            }
        }
    }
    let is_offered = |cell: &Cell| cell.levels.word("load_model") == "equal-rate";
    if options.metric.is_some_and(Metric::is_rate) && followed.iter().any(|cell| is_offered(cell)) {
        followed.retain(|cell| !is_offered(cell));
        labels.insert("Cells at equal-rate are omitted: their rate is the offered one.".into());
    }
    let minimum = options.threshold.unwrap_or(newest.plan.experiment.margin);
    let series: Vec<Series> =
        followed.into_iter().filter_map(|cell| Series::of(cell, all, options, minimum)).collect();
    if series.is_empty() {
        let message =
            "no cell matches, or none has a value of this metric; rates are followed at saturation only";
        return Err(ConfigError::new("--cell", message));
    }
    let entry = |results: &Results<I>| Entry {
        directory: results.directory.clone(),
        started_unix: results.machine.started_unix,
    };
    let labels = labels.into_iter().collect();
    Ok(History { results: all.iter().map(entry).collect(), series, minimum, labels })
}

impl Series {
    /// `None` if no result has a value of the cell.
    fn of<I: Shown>(cell: &Cell, all: &[Results<I>], options: &HistoryOptions, minimum: f64) -> Option<Self> {
        let metric = options.metric.or_else(|| I::compared(cell).first().copied())?;
        let mut points: Vec<Point> = Vec::new();
        for (index, results) in all.iter().enumerate() {
            let Some((_, runs)) = cells(results).into_iter().find(|(other, _)| other.id == cell.id) else {
                continue;
            };
            let Sample { values, valid, rate, note, .. } = Sample::of::<I>(metric, cell, &runs, &cell.name);
            let interval = stats::location(&values).and_then(|estimate| estimate.interval);
            let value = stats::median(&values);
            let mut point = Point {
                result: index,
                version: results.version(&cell.subject).to_owned(),
                rate,
                value,
                low: interval.map(|interval| interval.low),
                high: interval.map(|interval| interval.high),
                blocks: valid as u32,
                change: None,
                is_usable: note.is_none() && value.is_some_and(|value| value > 0.0),
                note,
            };
            point.follow(&points);
            points.push(point);
        }
        points.iter().any(|point| point.value.is_some()).then(|| {
            let latest = Latest::of(metric, &points, all.len() - 1, options.threshold, minimum);
            Self { cell: cell.to_string(), target: cell.name.clone(), metric, points, latest }
        })
    }
}

impl Point {
    /// Sets the change from the newest comparable earlier point, skipping nights without evidence.
    fn follow(&mut self, earlier: &[Self]) {
        let usable = earlier.iter().rev().filter(|before| before.is_usable && self.is_usable);
        let mut apart = None;
        for before in usable {
            let names = ["the earlier result", "this one"];
            match rates_differ(names, [before.rate, self.rate]) {
                Some(why) => apart = apart.or(Some(why)),
                None => {
                    let values = before.value.zip(self.value);
                    self.change = values.map(|(old, new)| Step { ratio: new / old, since: before.result });
                    return;
                }
            }
        }
        self.note = self.note.take().or(apart);
    }
}

impl History {
    /// The cells with a last change for the worse, beyond the threshold, and the broken cells.
    pub fn regressions(&self) -> impl Iterator<Item = &Series> {
        self.series.iter().filter(|series| series.latest.is_regression())
    }

    /// The cells missing from the newest result; all cells, if it has no value comparable with an earlier one.
    pub fn undecided(&self) -> impl Iterator<Item = &Series> {
        let is_incomparable = |series: &Series| matches!(series.latest, Latest::Absent | Latest::Alone);
        let is_open = self.series.iter().all(is_incomparable);
        self.series.iter().filter(move |series| is_open || matches!(series.latest, Latest::Absent))
    }

    /// A table for each cell, at most 100 columns wide.
    pub fn text(&self) -> String {
        text::render(self)
    }

    /// The state of a cell in the newest result, in words.
    pub fn latest_text(&self, series: &Series) -> String {
        text::latest(self, series)
    }
}

/// Parses `k=v,k=v` of `--cell`.
///
/// # Errors
/// A missing key or value.
pub fn parse_cells(text: &str) -> Result<Vec<(String, String)>, ConfigError> {
    RunOptions::parse_pairs("--cell", text)
}

#[cfg(test)]
mod tests;
