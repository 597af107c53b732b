//! The format of the access log's lines.

use crate::log_fields::log_fields;
use crate::variables::{self, Piece};

/// The format of an access log line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum LogFormat {
    /// A JSON object with all fields that apply.
    #[default]
    Json,
    /// Text with variables such as `{status}`; `{{` stands for a brace. A piece refers to a variable by the index of
    /// its field.
    Template(Vec<Piece>),
}

macro_rules! names {
    ($($name:ident, $about:literal, $value:expr;)*) => { &[$(stringify!($name)),*] };
}

/// The variables, in the order in which error messages list them.
const VARIABLES: &[&str] = log_fields!(names);

impl LogFormat {
    /// Parses a template. Fails on an unknown variable and on an unpaired brace.
    pub(crate) fn template(text: &str) -> Result<Self, String> {
        Ok(Self::Template(variables::parse(text, VARIABLES)?))
    }
}
