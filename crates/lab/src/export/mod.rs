//! Results in the forms that other programs read: comma-separated values, Markdown, JUnit's XML.

mod compared;
mod csv;
mod junit;
mod markdown;
mod past;
mod reported;

pub use compared::Compared;
pub use past::Past;
pub use reported::Reported;

/// What a result is as rows of text.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Table {
    title: String,
    columns: Vec<&'static str>,
    rows: Vec<Vec<String>>,
}

/// A value, with all of its digits; nothing where there is none.
fn number(value: Option<impl ToString>) -> String {
    value.map_or_else(String::new, |value| value.to_string())
}
