//! Rate-limited lines on stderr, one for each exchange or connection that ended early.

use super::Times;
use super::journal::{Journal, Level};
use crate::reason::{CODES, Reason};
use std::fmt::Display;
use std::net::SocketAddr;
use std::time::{Duration, Instant};
use weir_http::is_hidden;

/// One worker's log, with the number of lines in the current second.
#[derive(Debug)]
pub(crate) struct Log {
    journal: Journal,
    second: Instant,
    lines: u32,
    suppressed: u32,
    /// The reasons that were logged since `second`, by code.
    seen: [bool; CODES.len()],
}

/// The details of an early end, besides its reason.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Context<'a> {
    /// The client's address; `None` if no client is involved.
    pub client: Option<SocketAddr>,
    /// Method and target, as far as they were received.
    pub request: Option<&'a str>,
    /// The host that the request names; empty if unknown.
    pub host: &'a str,
    /// The index of the request's route.
    pub route: Option<usize>,
    /// The names of the service and the server; empty if there is none.
    pub service: &'a str,
    pub server: &'a str,
    /// The times of the exchange's steps.
    pub times: Option<Times>,
}

impl Log {
    pub(crate) fn new(journal: Journal, now: Instant) -> Self {
        Self { journal, second: now, lines: 0, suppressed: 0, seen: [false; CODES.len()] }
    }

    /// Writes a line that does not concern an exchange or a connection.
    pub(crate) fn line(&self, line: impl Display) {
        self.journal.line(line);
    }

    pub(crate) fn ended(&mut self, now: Instant, reason: &Reason, context: Context<'_>) {
        if now.duration_since(self.second) >= Duration::from_secs(1) {
            if self.suppressed > 0 {
                self.journal.line(format_args!("weir: {} more lines suppressed", self.suppressed));
            }
            *self = Self::new(self.journal.clone(), now);
        }
        // A frequent reason must not hide a rare one.
        let is_first = !std::mem::replace(&mut self.seen[reason.code()], true);
        if self.lines >= LINES_PER_SECOND && !is_first {
            self.suppressed += 1;
            return;
        }
        self.lines += 1;
        let status = reason.status().map_or("-".to_string(), |status| status.to_string());
        let mut line = format!("weir: {status} {}", reason.as_str());
        if let Some(client) = context.client {
            line.push_str(&format!(" client={client}"));
        }
        if let Some(request) = context.request {
            line.push_str(&format!(" request=\"{}\"", quotable(request)));
        }
        for (name, value) in
            [("host", context.host), ("service", context.service), ("server", context.server)]
        {
            if !value.is_empty() {
                line.push_str(&format!(" {name}=\"{}\"", quotable(value)));
            }
        }
        if let Some(route) = context.route {
            line.push_str(&format!(" route={route}"));
        }
        if let Some(times) = context.times {
            line.push_str(&format!(" ms=\"{}\"", times.until(now)));
        }
        if let Some(detail) = reason.detail() {
            line.push_str(&format!(" detail=\"{detail}\""));
        }
        self.journal.ended(Level::of(reason), line);
    }
}

/// Replaces characters that would end the quotes or the line.
fn quotable(text: &str) -> String {
    text.chars().map(|c| if is_hidden(c) { '?' } else { c }).collect::<String>().replace('"', "%22")
}

/// Enough lines for a diagnosis, but few enough that a flood of bad clients does not cause a flood of writes.
const LINES_PER_SECOND: u32 = 50;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_peer_wrote_stays_between_its_quotes_and_on_its_line() {
        for (text, expected) in [
            ("GET /a?b=ü", "GET /a?b=ü"),
            ("a\" detail=\"b", "a%22 detail=%22b"),
            ("a\r\nweir: b\tc", "a??weir: b?c"),
            ("\u{1b}[2J\u{7f}\u{9b}2J", "?[2J??2J"),
            ("a\u{202e}b\u{2066}\u{61c}", "a?b??"),
            ("a\u{2028}b\u{85}c", "a?b?c"),
        ] {
            assert_eq!(quotable(text), expected);
        }
    }
}
