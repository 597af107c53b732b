//! One result in formats for other programs: CSV, Markdown and JUnit XML.

mod reported;

pub use reported::Reported;

use crate::planning::cell::Levels;
use weir_report::export::{Table, csv, junit, markdown, number};

/// Levels with columns of their own.
const COLUMNS: [&str; 5] = ["case", "mode", "connections", "bytes", "load_model"];

/// CSV with these columns.
pub(crate) fn values(columns: &'static str, rows: Vec<Vec<String>>) -> String {
    csv::render(&Table { title: String::new(), columns: columns.split(',').collect(), rows })
}

/// The other levels: `delay_ms=30;rate=100`.
pub(crate) fn further(levels: &Levels) -> String {
    let others = levels.iter().filter(|(key, _)| !COLUMNS.contains(key));
    others.map(|(key, level)| format!("{key}={level}")).collect::<Vec<_>>().join(";")
}
