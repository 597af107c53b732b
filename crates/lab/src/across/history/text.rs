//! A history as text.

use super::{History, Last, Latest, Point, Series};
use crate::store::stamp;

use std::fmt::Write as _;
use weir_load::plural;
use weir_report::text::{WIDTH, short, wrap};

pub(super) fn render(history: &History) -> String {
    let mut text = String::new();
    wrap(
        &mut text,
        &format!(
            "{}, oldest first. Results of different days share no blocks, so each change includes drift. \
             Changes of {:.1} % or less are not reported.",
            plural(history.results.len() as u64, "result"),
            history.minimum * 100.0
        ),
    );
    for label in &history.labels {
        wrap(&mut text, label);
    }
    for series in &history.series {
        text.push('\n');
        render_series(&mut text, history, series);
    }
    text
}

fn render_series(text: &mut String, history: &History, series: &Series) {
    let Series { cell, metric, points, .. } = series;
    wrap(text, cell);
    let unit = if metric.unit().is_empty() { String::new() } else { format!(", {}", metric.unit()) };
    let values: Vec<Option<f64>> = points.iter().map(|point| point.value).collect();
    let _ = writeln!(text, "  {metric}{unit}  {}", sparkline(&values));
    for (index, point) in points.iter().enumerate() {
        let before = index.checked_sub(1).map(|before| &points[before]);
        render_point(text, history, point, before);
    }
    wrap(text, &format!("  {}", latest(history, series)));
}

fn render_point(text: &mut String, history: &History, point: &Point, before: Option<&Point>) {
    let began = history.began(point.result);
    let value = match (point.value, point.low, point.high) {
        (Some(value), Some(low), Some(high)) => {
            format!("{} [{}, {}]", short(value), short(low), short(high))
        }
        (Some(value), ..) => short(value),
        _ => "-".into(),
    };
    let change = point.change.map_or_else(String::new, |step| percent(step.ratio));
    let rate = point.rate.map_or_else(String::new, |rate| format!(" at {rate:.0}/s"));
    // By default, a change is from the line above.
    let skips = point.change.filter(|step| before.is_some_and(|before| before.result != step.since));
    let since = skips.map_or_else(String::new, |step| format!(" (since {})", history.began(step.since)));
    let note = point.note.as_ref().map_or_else(String::new, |note| format!(" ({note})"));
    let head = format!("  {began}  {value:<28} {change:>8}  {}{rate}", plural(point.blocks.into(), "block"));
    let tail = format!("{}{since}{note}", point.version);
    // The columns stay aligned: text that is too long goes on the next line.
    match format!("{head} {tail}").trim_end() {
        line if line.chars().count() <= WIDTH => {
            let _ = writeln!(text, "{line}");
        }
        _ => {
            let _ = writeln!(text, "{head}");
            wrap(text, &format!("      {tail}"));
        }
    }
}

/// The state of a cell in the newest result.
pub(super) fn latest(history: &History, series: &Series) -> String {
    match series.latest {
        Latest::Absent => "last change: none; the cell is not in the newest result".into(),
        Latest::Alone => {
            "last change: none; the newest result has no value comparable with an earlier one".into()
        }
        Latest::Broken(before) => {
            format!("broken: valid runs in {}, none in the newest result", history.began(before))
        }
        Latest::Changed(Last { step, threshold, rule, verdict }) => format!(
            "last change {} since {}: {verdict} (threshold {:.1} %: {rule})",
            percent(step.ratio),
            history.began(step.since),
            threshold * 100.0
        ),
    }
}

impl History {
    /// The start of a result, as printed.
    fn began(&self, result: usize) -> String {
        stamp(self.results[result].started_unix)
    }
}

/// `+2.3 %`.
fn percent(ratio: f64) -> String {
    format!("{:+.1} %", (ratio - 1.0) * 100.0)
}

/// The newest values that fit, each as a bar between the smallest and the largest; a missing value is a gap.
pub(super) fn sparkline(values: &[Option<f64>]) -> String {
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
