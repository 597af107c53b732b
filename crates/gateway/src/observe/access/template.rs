//! The text format of a line, with variables.

use super::clock::Clock;
use super::entry::{Line, Millis, Split};
use crate::text;
use crate::variables::{self, Piece};
use std::io::Write as _;
use std::str::FromStr;
use weir_http1::is_hidden;

/// A text with variables such as `{status}`; `{{` is a brace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LineTemplate(Vec<Piece>);

type Write = fn(&Line<'_>, &mut Clock, &mut Vec<u8>);

const VARIABLES: [(&str, Write); 25] = [
    ("time", |line, clock, out| clock.write(line.entry.at, out)),
    ("client", |line, _, out| match line.client {
        Some(client) => text::ip(client.ip(), out),
        None => out.push(b'-'),
    }),
    ("client_port", |line, _, out| number(line.client.map_or(0, |client| client.port().into()), out)),
    ("listener", |line, _, out| put(Some(line.listener), out)),
    ("method", |line, _, out| put(Some(line.entry.method()), out)),
    ("host", |line, _, out| put(Some(line.entry.host()), out)),
    ("target", |line, _, out| put(Some(line.entry.target()), out)),
    ("status", |line, _, out| number(line.status.into(), out)),
    ("reason", |line, _, out| put(line.reason, out)),
    ("received", |line, _, out| number(line.received, out)),
    ("sent", |line, _, out| number(line.sent, out)),
    ("service", |line, _, out| put(Some(line.service), out)),
    ("server", |line, _, out| put(Some(line.server), out)),
    ("retries", |line, _, out| number(line.retries.into(), out)),
    ("tls_version", |line, _, out| put(line.tls.map(|tls| tls.version.name()), out)),
    ("tls_suite", |line, _, out| put(line.tls.map(|tls| tls.suite.name()), out)),
    ("tls_handshake", |line, _, out| put(line.tls.map(|tls| tls.kind.name()), out)),
    ("connect_ms", |line, _, out| decimal(split(line).and_then(|split| split.connect), out)),
    ("tls_ms", |line, _, out| decimal(split(line).and_then(|split| split.tls), out)),
    ("wait_ms", |line, _, out| decimal(split(line).and_then(|split| split.wait), out)),
    ("transfer_ms", |line, _, out| decimal(split(line).and_then(|split| split.transfer), out)),
    ("total_ms", |line, _, out| decimal(split(line).map(|split| split.total), out)),
    ("user_agent", |line, _, out| put(Some(line.entry.user_agent()), out)),
    ("referer", |line, _, out| put(Some(line.entry.referer()), out)),
    ("request_id", |line, _, out| put(Some(&line.entry.request_id), out)),
];

impl LineTemplate {
    /// Appends the line without its line break.
    pub(super) fn write(&self, line: &Line<'_>, clock: &mut Clock, out: &mut Vec<u8>) {
        for piece in &self.0 {
            match piece {
                Piece::Text(text) => out.extend_from_slice(text.as_bytes()),
                Piece::Variable(at) => {
                    if let Some((_, write)) = VARIABLES.get(*at) {
                        write(line, clock, out);
                    }
                }
            }
        }
    }
}

impl FromStr for LineTemplate {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Ok(Self(variables::parse(text, &VARIABLES.map(|(name, _)| name))?))
    }
}

fn split(line: &Line<'_>) -> Option<Split> {
    line.times.as_ref().map(|times| Split::of(times, line.now))
}

/// Appends a value, escaped so that it cannot leave its line or its quotes, and terminals do not act on it.
fn put(text: Option<&str>, out: &mut Vec<u8>) {
    match text {
        None | Some("") => out.push(b'-'),
        Some(text) => {
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
    }
}

fn number(number: u64, out: &mut Vec<u8>) {
    weir_http1::decimal(number, out);
}

fn decimal(value: Option<Millis>, out: &mut Vec<u8>) {
    match value {
        Some(value) => value.write(out),
        None => out.push(b'-'),
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
            put(Some(text), &mut out);
            assert_eq!(String::from_utf8(out).unwrap(), written);
        }
    }
}
