//! The JSON format of a line: one object.

use super::clock::Clock;
use super::entry::{Line, Millis};
use super::field_values::{FIELDS, Value};
use crate::text;
use std::io::Write as _;
use weir_http::is_hidden;

/// Appends the line without a line break.
pub(super) fn write(line: &Line<'_>, clock: &mut Clock, out: &mut Vec<u8>) {
    let start = out.len();
    let mut object = Object(out);
    for field in FIELDS {
        match (field.value)(line) {
            Value::Time(at) => object.quoted(field.key, |out| clock.write(at, out)),
            Value::Address(address) => object.quoted(field.key, |out| text::ip(address, out)),
            Value::Text(text) => object.text(field.key, text),
            Value::Number(number) => object.number(field.key, number),
            Value::Millis(millis) => object.decimal(field.key, millis),
            Value::Absent(_) => {}
        }
    }
    // Replaces the comma of the first key. There is one, since every line has a time.
    out[start] = b'{';
    out.push(b'}');
}

/// Writes a JSON object member by member.
struct Object<'a>(&'a mut Vec<u8>);

impl Object<'_> {
    fn text(&mut self, key: &str, value: &str) {
        self.quoted(key, |out| escape(value, out));
    }

    fn quoted(&mut self, key: &str, value: impl FnOnce(&mut Vec<u8>)) {
        self.0.extend_from_slice(key.as_bytes());
        self.0.push(b'"');
        value(self.0);
        self.0.push(b'"');
    }

    fn number(&mut self, key: &str, value: u64) {
        self.0.extend_from_slice(key.as_bytes());
        weir_http1::decimal(value, self.0);
    }

    fn decimal(&mut self, key: &str, value: Millis) {
        self.0.extend_from_slice(key.as_bytes());
        value.write(self.0);
    }
}

/// Appends the contents of a JSON string (RFC 8259 section 7).
fn escape(text: &str, out: &mut Vec<u8>) {
    let is_plain = |byte: &u8| matches!(byte, b' '..=b'~') && !matches!(byte, b'"' | b'\\');
    let mut rest = text;
    while let Some(at) = rest.bytes().position(|byte| !is_plain(&byte)) {
        out.extend_from_slice(&rest.as_bytes()[..at]);
        let mut chars = rest[at..].chars();
        match chars.next() {
            Some(char @ ('"' | '\\')) => out.extend_from_slice(&[b'\\', char as u8]),
            // Some of these characters would control a terminal. All are in the Basic Multilingual Plane, so four
            // digits suffice. Writing to a vector does not fail.
            Some(char) if is_hidden(char) => drop(write!(out, "\\u{:04x}", u32::from(char))),
            Some(char) => out.extend_from_slice(char.encode_utf8(&mut [0; 4]).as_bytes()),
            None => {}
        }
        rest = chars.as_str();
    }
    out.extend_from_slice(rest.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_acts_on_terminals_is_escaped() {
        for (text, json) in [
            ("a\"b\\c", r#"a\"b\\c"#),
            ("\u{1b}[2J\n", r"\u001b[2J\u000a"),
            ("\u{7f}\u{80}\u{9b}2J", r"\u007f\u0080\u009b2J"),
            ("ü\u{202e}\u{2069}\u{200f}\u{61c}€😀", r"ü\u202e\u2069\u200f\u061c€😀"),
            ("plain", "plain"),
            ("", ""),
        ] {
            let mut out = Vec::new();
            escape(text, &mut out);
            assert_eq!(String::from_utf8(out.clone()).unwrap(), json);
            let whole = [b"\"", &out[..], b"\""].concat();
            assert_eq!(serde_json::from_slice::<String>(&whole).unwrap(), text);
        }
    }
}
