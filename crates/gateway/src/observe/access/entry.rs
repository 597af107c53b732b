//! The facts about one request in the access log.

use crate::grpc::Status;
use crate::observe::Times;
use std::net::SocketAddr;
use std::time::{Duration, Instant, SystemTime};
use weir_http::FieldName;
use weir_http1::RequestHead;
use weir_tls::Facts;

/// The start time, ID and copied head fields of a request, kept until the gateway writes the request's access log line.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub at: SystemTime,
    /// All texts in one string, to allocate once instead of five times.
    text: Box<str>,
    /// The end offsets of method, target, host, user agent and referer in `text`.
    ends: [usize; 5],
    /// The request ID; empty without `tracing`.
    pub request_id: Box<str>,
}

/// All facts from which a line of the access log is written.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Line<'a> {
    pub entry: &'a Entry,
    pub client: Option<SocketAddr>,
    pub listener: &'a str,
    /// `HTTP/1.1`, for example; empty if the request's version is unknown.
    pub protocol: &'static str,
    /// The result of the client's TLS handshake; `None` in cleartext.
    pub tls: Option<&'a Facts>,
    /// The status of the response; 0 if the client got none.
    pub status: u16,
    /// The status of a gRPC call, if known. If the gateway ended the call with an error, `status` is the HTTP status
    /// that a request without gRPC would have got.
    pub grpc: Option<Status>,
    /// The reason for an early end; `None` if the request ended normally.
    pub reason: Option<&'static str>,
    /// Bytes of the request body.
    pub received: u64,
    /// Bytes of the response body.
    pub sent: u64,
    pub service: &'a str,
    pub server: &'a str,
    pub retries: u8,
    pub times: Option<Times>,
    pub now: Instant,
}

/// A duration in microseconds, logged as milliseconds with three decimals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Millis(u64);

impl Entry {
    /// The entry of a request whose head was parsed from `buf`.
    pub(crate) fn of(head: &RequestHead, buf: &[u8]) -> Self {
        let field = |name: &[u8]| {
            let mut others = head.fields.iter().filter(|field| field.known == FieldName::Other);
            let found = others.find(|field| field.name.of(buf).eq_ignore_ascii_case(name));
            found.map_or(&b""[..], |field| field.value.of(buf))
        };
        let host = head.host.map_or(&b""[..], |host| host.of(buf));
        Self::of_parts([
            head.method_span.of(buf),
            head.target.of(buf),
            host,
            field(b"user-agent"),
            field(b"referer"),
        ])
    }

    /// The entry of a connection without requests.
    pub(crate) fn of_connection() -> Self {
        Self::of_parts([b""; 5])
    }

    /// The entry of a request with an incomplete or invalid head, as far as it can be parsed.
    #[cold]
    pub(crate) fn of_fragment(bytes: &[u8]) -> Self {
        let mut lines = bytes.get(..HEAD_IN_LOG).unwrap_or(bytes).split(|byte| *byte == b'\n');
        let line = lines.next().unwrap_or_default().trim_ascii();
        let (method, target) = match line.iter().position(|byte| *byte == b' ') {
            Some(at) => (&line[..at], line[at..].trim_ascii()),
            None => (line, &b""[..]),
        };
        let version = target.windows(6).rposition(|part| part == b" HTTP/");
        let target = &target[..version.unwrap_or(target.len())];
        let is_token = method.iter().all(u8::is_ascii_graphic);
        let (method, target) = if is_token { (method, target) } else { Default::default() };
        let fields = lines.filter_map(|line| {
            let colon = line.iter().position(|byte| *byte == b':')?;
            Some((&line[..colon], line[colon + 1..].trim_ascii()))
        });
        let field = |name: &[u8]| {
            let found = fields.clone().find(|(found, _)| found.eq_ignore_ascii_case(name));
            found.map_or(&b""[..], |(_, value)| value)
        };
        Self::of_parts([method, target, field(b"host"), field(b"user-agent"), field(b"referer")])
    }

    fn of_parts(parts: [&[u8]; 5]) -> Self {
        let mut text = String::with_capacity(parts.iter().map(|part| part.len()).sum());
        let ends = parts.map(|part| {
            text.push_str(&String::from_utf8_lossy(part));
            text.len()
        });
        Self { at: SystemTime::now(), text: text.into_boxed_str(), ends, request_id: Box::default() }
    }

    /// Returns method and target, truncated for a line on stderr.
    pub(crate) fn line(&self) -> String {
        [self.method(), self.target()].join(" ").trim_end().chars().take(REQUEST_IN_LINE).collect()
    }

    pub(crate) fn method(&self) -> &str {
        self.part(0)
    }

    /// The target as the client sent it.
    pub(crate) fn target(&self) -> &str {
        self.part(1)
    }

    pub(crate) fn host(&self) -> &str {
        self.part(2)
    }

    pub(crate) fn user_agent(&self) -> &str {
        self.part(3)
    }

    pub(crate) fn referer(&self) -> &str {
        self.part(4)
    }

    fn part(&self, at: usize) -> &str {
        let begin = at.checked_sub(1).map_or(0, |before| self.ends[before]);
        self.text.get(begin..self.ends[at]).unwrap_or_default()
    }
}

/// The maximum number of characters of method and target on stderr, the same as for complete requests.
const REQUEST_IN_LINE: usize = 47;

/// The maximum number of bytes of a fragment that the logs use.
pub(crate) const HEAD_IN_LOG: usize = 4096;

/// The durations of a request's steps; `None` for a step that did not happen.
impl Line<'_> {
    /// The time to connect to the server; 0 on a reused connection.
    pub(super) fn connect(&self) -> Option<Millis> {
        let times = self.times.as_ref()?;
        Some(Millis::between(times.attempt, times.reached.or(times.connected)?))
    }

    /// The time for the TLS handshake with the server.
    pub(super) fn handshake_with_server(&self) -> Option<Millis> {
        let times = self.times.as_ref()?;
        Some(Millis::between(times.reached?, times.connected?))
    }

    /// The time from the request's last byte to the response's first.
    pub(super) fn wait(&self) -> Option<Millis> {
        let times = self.times.as_ref()?;
        let first = times.first_byte?;
        Some(Millis::between(times.sent.unwrap_or(times.attempt).min(first), first))
    }

    /// The time from the response's first byte to its last.
    pub(super) fn transfer(&self) -> Option<Millis> {
        let times = self.times.as_ref()?;
        Some(Millis::between(times.first_byte?, times.last_byte.unwrap_or(self.now)))
    }

    pub(super) fn total(&self) -> Option<Millis> {
        Some(Millis::between(self.times.as_ref()?.head, self.now))
    }
}

impl Millis {
    fn between(from: Instant, to: Instant) -> Self {
        Self::of(to.saturating_duration_since(from))
    }

    fn of(time: Duration) -> Self {
        Self(u64::try_from((time.as_nanos() + 500) / 1000).unwrap_or(u64::MAX))
    }

    /// Appends the number, such as `12.345`.
    pub(crate) fn write(self, out: &mut Vec<u8>) {
        weir_http1::decimal(self.0 / 1000, out);
        let digit = |n: u64| b'0' + (n % 10) as u8;
        out.extend_from_slice(&[b'.', digit(self.0 / 100), digit(self.0 / 10), digit(self.0)]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_to_the_microsecond() {
        for (ns, text) in [
            (0, "0.000"),
            (499, "0.000"),
            (500, "0.001"),
            (1_234_567, "1.235"),
            (60_000_000_000, "60000.000"),
        ] {
            let mut out = Vec::new();
            Millis::of(Duration::from_nanos(ns)).write(&mut out);
            assert_eq!(String::from_utf8(out).unwrap(), text);
        }
    }
}
