//! Results in the forms that other programs read: comma-separated values, Markdown, JUnit's XML.

pub mod csv;
pub mod junit;
pub mod markdown;

mod table;

pub use table::{Table, number};
