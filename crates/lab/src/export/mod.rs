//! Results in the forms that other programs read: comma-separated values, Markdown, JUnit's XML.

mod compared;
mod past;
mod reported;

pub use compared::Compared;
pub use past::Past;
pub use reported::Reported;

use weir_report::export::{Table, csv, junit, markdown, number};
