//! The text format of a line, with variables.

use super::clock::Clock;
use super::entry::Line;
use super::field_values::{FIELDS, Value};
use crate::text;
use crate::variables::Piece;
use std::io::Write as _;
use weir_http::is_hidden;

/// Appends the line without its line break.
pub(super) fn write(template: &[Piece], line: &Line<'_>, clock: &mut Clock, out: &mut Vec<u8>) {
    for piece in template {
        match piece {
            Piece::Text(text) => out.extend_from_slice(text.as_bytes()),
            Piece::Variable(field) => write_value((FIELDS[*field].value)(line), clock, out),
        }
    }
}

fn write_value(value: Value<'_>, clock: &mut Clock, out: &mut Vec<u8>) {
    match value {
        Value::Time(at) => clock.write(at, out),
        Value::Address(address) => text::ip(address, out),
        Value::Text(text) => put(text, out),
        Value::Number(number) => weir_http1::decimal(number, out),
        Value::Millis(millis) => millis.write(out),
        Value::Absent(text) => out.extend_from_slice(text.as_bytes()),
    }
}

/// Appends a text, escaped so that it cannot leave its line or its quotes, and terminals do not act on it.
fn put(text: &str, out: &mut Vec<u8>) {
    if text.is_empty() {
        out.push(b'-');
    }
    for char in text.chars() {
        let mut bytes = [0; 4];
        let bytes = char.encode_utf8(&mut bytes).as_bytes();
        match is_hidden(char) || matches!(char, '"' | '\\') {
            // Writing to a vector does not fail.
            true => bytes.iter().for_each(|byte| drop(write!(out, "\\x{byte:02x}"))),
            false => out.extend_from_slice(bytes),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_acts_on_terminals_is_escaped() {
        for (text, written) in [
            ("a\"b\\c", r"a\x22b\x5cc"),
            ("\u{1b}[2J\n", r"\x1b[2J\x0a"),
            ("\u{7f}\u{9b}2J", r"\x7f\xc2\x9b2J"),
            ("ü\u{202e}\u{2069}\u{61c}€😀", r"ü\xe2\x80\xae\xe2\x81\xa9\xd8\x9c€😀"),
            ("", "-"),
        ] {
            let mut out = Vec::new();
            put(text, &mut out);
            assert_eq!(String::from_utf8(out).unwrap(), written);
        }
    }
}
