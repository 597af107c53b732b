//! Export formats: CSV, Markdown, JUnit XML.

pub mod csv;
pub mod junit;
pub mod markdown;

/// A result as rows of text, independent of the format.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table {
    /// The heading; CSV has none.
    pub title: String,
    /// The names of the columns.
    pub columns: Vec<&'static str>,
    /// Fields, as many in each row as there are columns.
    pub rows: Vec<Vec<String>>,
}

/// A value with all digits; empty if there is none.
pub fn number(value: Option<impl ToString>) -> String {
    value.map_or_else(String::new, |value| value.to_string())
}
