//! The values of an access log line; `log_fields.rs` lists the fields with their expressions.

use super::entry::{Line, Millis};
use crate::log_fields::log_fields;
use std::net::IpAddr;
use std::time::SystemTime;

/// The value of a field in an access log line.
#[derive(Clone, Copy, Debug)]
pub(super) enum Value<'a> {
    Time(SystemTime),
    Address(IpAddr),
    Text(&'a str),
    Number(u64),
    Millis(Millis),
    /// The field does not apply: JSON omits it, and templates write this text.
    Absent(&'static str),
}

/// A field of an access log line.
pub(super) struct Field {
    /// `,"name":`, the start of the member in a JSON object; [`json::write`](super::json::write) replaces the first
    /// comma with `{`.
    pub key: &'static str,
    pub value: for<'a> fn(&'a Line<'a>) -> Value<'a>,
    #[cfg(test)]
    name: &'static str,
    /// The field's text in docs/gateway/monitoring.md.
    #[cfg(test)]
    about: &'static str,
}

macro_rules! fields {
    ($($name:ident, $about:literal, $value:expr;)*) => {
        &[$(Field {
            key: concat!(",\"", stringify!($name), "\":"),
            value: $value,
            #[cfg(test)]
            name: stringify!($name),
            #[cfg(test)]
            about: $about,
        }),*]
    };
}

/// The fields in the order of JSON objects. A template refers to them by index.
pub(super) static FIELDS: &[Field] = log_fields!(fields);

const NONE: Value<'static> = Value::Absent("-");
const ZERO: Value<'static> = Value::Absent("0");

fn text(text: &str) -> Value<'_> {
    if text.is_empty() { NONE } else { Value::Text(text) }
}

fn millis(time: Option<Millis>) -> Value<'static> {
    time.map_or(NONE, Value::Millis)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_document_has_a_row_for_each_field() {
        let document = include_str!("../../../../../docs/gateway/monitoring.md");
        let (_, table) = document.split_once("| field | value |\n| --- | --- |\n").unwrap();
        let rows: String =
            FIELDS.iter().map(|field| format!("| `{}` | {} |\n", field.name, field.about)).collect();
        assert!(
            table.starts_with(&format!("{rows}\n")),
            "docs/gateway/monitoring.md needs these rows:\n{rows}"
        );
    }
}
