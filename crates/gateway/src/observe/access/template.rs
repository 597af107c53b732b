//! A line as a text with variables.

use super::entry::{Line, Split};
use crate::variables::{self, Piece};
use std::io::Write as _;
use std::str::FromStr;
use std::time::SystemTime;
use time::OffsetDateTime;

/// A text with variables such as `{status}`; `{{` is a brace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LineTemplate(Vec<Piece>);

type Write = fn(&Line<'_>, &mut Vec<u8>);

const VARIABLES: [(&str, Write); 25] = [
    ("time", |line, out| put(line.entry.map(|entry| time(entry.at)).as_deref(), out)),
    ("client", |line, out| {
        put(line.client.map(|client| client.ip().to_canonical().to_string()).as_deref(), out);
    }),
    ("client_port", |line, out| number(line.client.map_or(0, |client| client.port().into()), out)),
    ("listener", |line, out| put(Some(line.listener), out)),
    ("method", |line, out| put(line.entry.map(|entry| &*entry.method), out)),
    ("host", |line, out| put(line.entry.map(|entry| &*entry.host), out)),
    ("target", |line, out| put(line.entry.map(|entry| &*entry.target), out)),
    ("status", |line, out| number(line.status.into(), out)),
    ("reason", |line, out| put(line.reason, out)),
    ("received", |line, out| number(line.received, out)),
    ("sent", |line, out| number(line.sent, out)),
    ("service", |line, out| put(Some(line.service), out)),
    ("server", |line, out| put(Some(line.server), out)),
    ("retries", |line, out| number(line.retries.into(), out)),
    ("tls_version", |line, out| put(line.tls.map(|tls| tls.version.to_string()).as_deref(), out)),
    ("tls_suite", |line, out| put(line.tls.map(|tls| tls.suite.name()), out)),
    ("tls_handshake", |line, out| put(line.tls.map(|tls| tls.kind.name()), out)),
    ("connect_ms", |line, out| decimal(split(line).connect, out)),
    ("tls_ms", |line, out| decimal(split(line).tls, out)),
    ("wait_ms", |line, out| decimal(split(line).wait, out)),
    ("transfer_ms", |line, out| decimal(split(line).transfer, out)),
    ("total_ms", |line, out| decimal(line.times.as_ref().map(|_| split(line).total), out)),
    ("user_agent", |line, out| put(line.entry.map(|entry| &*entry.user_agent), out)),
    ("referer", |line, out| put(line.entry.map(|entry| &*entry.referer), out)),
    ("request_id", |line, out| put(line.entry.map(|entry| &*entry.request_id), out)),
];

impl LineTemplate {
    /// Appends the line, without its end.
    pub(super) fn write(&self, line: &Line<'_>, out: &mut Vec<u8>) {
        for piece in &self.0 {
            match piece {
                Piece::Text(text) => out.extend_from_slice(text.as_bytes()),
                Piece::Variable(at) => {
                    if let Some((_, write)) = VARIABLES.get(*at) {
                        write(line, out);
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

/// The instant in UTC, with milliseconds (RFC 3339).
pub(super) fn time(at: SystemTime) -> String {
    let at = OffsetDateTime::from(at);
    let ((year, month, day), (hour, minute, second, ms)) = (at.to_calendar_date(), at.to_hms_milli());
    format!("{year:04}-{:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{ms:03}Z", u8::from(month))
}

fn split(line: &Line<'_>) -> Split {
    line.times.as_ref().map(|times| Split::of(times, line.now)).unwrap_or_default()
}

/// Control characters and quotes do not break the line or its quotes.
fn put(text: Option<&str>, out: &mut Vec<u8>) {
    match text {
        None | Some("") => out.push(b'-'),
        Some(text) => {
            for byte in text.bytes() {
                match byte {
                    0..0x20 | 0x7f | b'"' | b'\\' => {
                        let _ = write!(out, "\\x{byte:02x}");
                    }
                    _ => out.push(byte),
                }
            }
        }
    }
}

fn number(number: u64, out: &mut Vec<u8>) {
    weir_http1::decimal(number, out);
}

fn decimal(value: Option<f64>, out: &mut Vec<u8>) {
    match value {
        Some(value) => drop(write!(out, "{value:.3}")),
        None => out.push(b'-'),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn instants_are_written_in_utc() {
        for (seconds, text) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_782_399, "2000-02-28T23:59:59.000Z"),
            (951_782_400, "2000-02-29T00:00:00.000Z"),
            (1_767_225_599, "2025-12-31T23:59:59.000Z"),
            (4_107_542_400, "2100-03-01T00:00:00.000Z"),
        ] {
            assert_eq!(time(SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)), text);
        }
    }
}
