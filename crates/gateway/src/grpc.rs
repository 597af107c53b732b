//! gRPC over HTTP/2: its requests, and the status in the trailers of its responses.
//!
//! Source: "gRPC over HTTP2" and "HTTP to gRPC Status Code Mapping" of the gRPC project.

pub(crate) use weir_http2::grpc::{STATUSES, is_content_type};

use std::time::Duration;
use weir_http::{Field, FieldName, Method};
use weir_http1::RequestHead;
use weir_http2::grpc::{
    DEADLINE_EXCEEDED, INTERNAL, PERMISSION_DENIED, RESOURCE_EXHAUSTED, STATUS, UNAUTHENTICATED, UNAVAILABLE,
    UNIMPLEMENTED, UNKNOWN,
};

/// A call: a request with its deadline, and the status of its response.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Call {
    /// The client's timeout, from `grpc-timeout`.
    pub within: Option<Duration>,
    /// The status of the response, once received.
    pub status: Option<Status>,
}

/// A gRPC status code, such as 14 (`UNAVAILABLE`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Status(u8);

/// Whether a request is a call: a POST with the content type of gRPC.
pub(crate) fn is_call(head: &RequestHead, buf: &[u8]) -> bool {
    head.method == Method::Post && value(&head.fields, buf, b"content-type").is_some_and(is_content_type)
}

impl Call {
    /// The call of a request for which [`is_call`] returned true.
    pub(crate) fn of(head: &RequestHead, buf: &[u8]) -> Self {
        let within = value(&head.fields, buf, b"grpc-timeout").and_then(timeout);
        Self { within, status: None }
    }

    /// Records the status in the head of a response without a body, if it contains one.
    pub(crate) fn note_fields(&mut self, fields: &[Field], buf: &[u8]) {
        self.status = value(fields, buf, STATUS).map(Status::read).or(self.status);
    }

    /// Records the status in the lines of trailers, if they contain one.
    pub(crate) fn note_trailers(&mut self, lines: &[u8]) {
        let status = lines.split(|byte| *byte == b'\n').find_map(|line| {
            let colon = line.iter().position(|byte| *byte == b':')?;
            line[..colon].eq_ignore_ascii_case(STATUS).then(|| Status::read(line[colon + 1..].trim_ascii()))
        });
        self.status = status.or(self.status);
    }
}

impl Status {
    /// The status of a call to which the gateway responds with this HTTP status.
    pub(crate) fn of_http(status: u16) -> Self {
        Self(match status {
            400 => INTERNAL,
            401 => UNAUTHENTICATED,
            403 => PERMISSION_DENIED,
            404 => UNIMPLEMENTED,
            413 => RESOURCE_EXHAUSTED,
            429 | 502 | 503 => UNAVAILABLE,
            504 => DEADLINE_EXCEEDED,
            _ => UNKNOWN,
        })
    }

    /// The HTTP status with the same meaning, for the ejection of servers.
    pub(crate) fn as_http(self) -> u16 {
        match self.0 {
            UNAVAILABLE => 503,
            DEADLINE_EXCEEDED => 504,
            UNKNOWN | INTERNAL => 500,
            RESOURCE_EXHAUSTED => 429,
            UNIMPLEMENTED => 501,
            _ => 200,
        }
    }

    pub(crate) fn number(self) -> u8 {
        self.0
    }

    /// The index in [`STATUSES`]; for a number that gRPC does not define, the index of `UNKNOWN`.
    pub(crate) fn index(self) -> usize {
        let number = usize::from(self.0);
        if number < STATUSES.len() { number } else { UNKNOWN.into() }
    }

    fn read(value: &[u8]) -> Self {
        let number = std::str::from_utf8(value).ok().and_then(|text| text.parse().ok());
        Self(number.unwrap_or(UNKNOWN))
    }
}

/// Appends `message` as the value of a `grpc-message` field: percent-encodes `%` and all bytes other than printable
/// ASCII.
pub(crate) fn write_message(message: &[u8], out: &mut Vec<u8>) {
    for byte in message.trim_ascii() {
        match byte {
            b' '..=b'~' if *byte != b'%' => out.push(*byte),
            byte => out.extend_from_slice(format!("%{byte:02X}").as_bytes()),
        }
    }
}

/// Parses a `grpc-timeout`: one to eight digits and a unit. `None`, and so no deadline, if it is invalid.
fn timeout(value: &[u8]) -> Option<Duration> {
    let (unit, digits) = value.split_last()?;
    if digits.is_empty() || digits.len() > 8 || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let number = std::str::from_utf8(digits).ok()?.parse().ok()?;
    Some(match unit {
        b'H' => Duration::from_secs(number * 3600),
        b'M' => Duration::from_secs(number * 60),
        b'S' => Duration::from_secs(number),
        b'm' => Duration::from_millis(number),
        b'u' => Duration::from_micros(number),
        b'n' => Duration::from_nanos(number),
        _ => return None,
    })
}

fn value<'a>(fields: &[Field], buf: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    let mut others = fields.iter().filter(|field| field.known == FieldName::Other);
    let found = others.find(|field| field.name.of(buf).eq_ignore_ascii_case(name))?;
    Some(found.value.of(buf))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timeouts() {
        for (value, ms) in [
            ("1S", Some(1000)),
            ("99999999H", Some(99_999_999 * 3_600_000)),
            ("2M", Some(120_000)),
            ("250m", Some(250)),
            ("5000u", Some(5)),
            ("7000000n", Some(7)),
            ("0S", Some(0)),
            ("123456789S", None),
            ("S", None),
            ("1", None),
            ("1s", None),
            ("-1S", None),
            ("", None),
        ] {
            assert_eq!(timeout(value.as_bytes()), ms.map(Duration::from_millis), "{value}");
        }
    }

    #[test]
    fn statuses_in_trailers() {
        for (lines, expected) in [
            ("grpc-status: 0\r\n", Some(0)),
            ("x: 1\r\nGrpc-Status:14\r\ngrpc-message: no\r\n", Some(14)),
            ("grpc-status: 300\r\n", Some(UNKNOWN)),
            ("grpc-status: x\r\n", Some(UNKNOWN)),
            ("grpc-statuses: 1\r\n", None),
            ("", None),
        ] {
            let mut call = Call::default();
            call.note_trailers(lines.as_bytes());
            assert_eq!(call.status.map(Status::number), expected, "{lines}");
        }
    }

    #[test]
    fn both_kinds_of_statuses() {
        for status in 400..=599 {
            let own = Status::of_http(status);
            assert_ne!(own.number(), 0, "{status}");
        }
        for number in 0..=255 {
            let status = Status(number);
            assert!(status.index() < STATUSES.len() && (200..600).contains(&status.as_http()));
        }
        assert_eq!(STATUSES[Status::of_http(503).index()], "UNAVAILABLE");
        assert_eq!(STATUSES[Status::of_http(504).index()], "DEADLINE_EXCEEDED");
        assert_eq!(STATUSES[Status(99).index()], "UNKNOWN");
    }

    #[test]
    fn messages_are_ascii() {
        let mut out = Vec::new();
        write_message("100 % über\n".as_bytes(), &mut out);
        assert_eq!(String::from_utf8(out).unwrap(), "100 %25 %C3%BCber");
    }
}
