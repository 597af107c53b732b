//! Changes between results in formats for other programs: CSV, Markdown and JUnit XML.

mod compared;
mod past;

pub use compared::Compared;
pub use past::Past;

use crate::report::export::{further, values};
use weir_report::export::{Table, junit, markdown, number};
