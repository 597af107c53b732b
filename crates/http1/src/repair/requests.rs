//! Repairing requests: every repair stays within a line, and all lines end with CRLF.

use super::{Written, lines};
use crate::{RequestError, Rule, Rules};
use weir_http::scan::trim_ows;
use weir_http::{Authority, FieldName};

/// The maximum number of empty lines before a request; more do not come from an HTTP client.
const MOST_EMPTY_LINES: usize = 8;

/// Writes the complete lines of `head`, which was rejected with `error`, to `out`, repairing violations of `rules`.
/// Fails on too many leading empty lines, and on a second `Host` after a dropped one, which the strict parser cannot
/// detect.
pub(super) fn write(
    head: &[u8],
    rules: Rules,
    error: RequestError,
    out: &mut Vec<u8>,
) -> Result<Written, RequestError> {
    out.clear();
    let mut written = Written::default();
    let empty_lines = head.chunks(2).take_while(|pair| *pair == b"\r\n").count();
    match empty_lines {
        // The LF of the second empty line may still be missing.
        0 | 1 if error != RequestError::BadMethod || head == b"\r\n\r" => {}
        2..=MOST_EMPTY_LINES if rules.has(Rule::EmptyLines) => {
            written.broken = written.broken.with(Rule::EmptyLines);
        }
        _ => return Err(RequestError::BadMethod),
    }
    written.read = 2 * empty_lines;
    let mut hosts = Hosts::default();
    for line in lines(head, written.read) {
        let rule = match written.lines {
            0 => request_line(line, rules, out),
            _ => hosts.field_line(line, rules, out)?,
        };
        written.broken = rule.into_iter().fold(written.broken, Rules::with);
        written.read += line.len();
        written.lines += 1;
    }
    Ok(written)
}

/// Writes a request line; returns the rules that it violates.
fn request_line(line: &[u8], rules: Rules, out: &mut Vec<u8>) -> Vec<Rule> {
    let mut broken = Vec::new();
    let (before, target, mut after) = around_target(line);
    if rules.has(Rule::HttpMinor)
        && let [b' ', b'H', b'T', b'T', b'P', b'/', b'1', b'.', b'2'..=b'9', b'\r', b'\n'] = after
    {
        broken.push(Rule::HttpMinor);
        after = b" HTTP/1.1\r\n";
    }
    out.extend_from_slice(before);
    if rules.has(Rule::RawUtf8Target) && !target.is_ascii() && std::str::from_utf8(target).is_ok() {
        broken.push(Rule::RawUtf8Target);
        for byte in target {
            match byte.is_ascii() {
                true => out.push(*byte),
                false => out.extend_from_slice(format!("%{byte:02X}").as_bytes()),
            }
        }
    } else {
        out.extend_from_slice(target);
    }
    out.extend_from_slice(after);
    broken
}

/// The bytes before, within and after the target, which extends from the first space to the last one.
fn around_target(line: &[u8]) -> (&[u8], &[u8], &[u8]) {
    let Some(first) = line.iter().position(|byte| *byte == b' ') else { return (line, b"", b"") };
    let last = line.iter().rposition(|byte| *byte == b' ').filter(|last| *last > first);
    let last = last.unwrap_or(line.len());
    (&line[..=first], &line[first + 1..last], &line[last..])
}

/// The `Host` fields of the lines written so far.
#[derive(Default)]
struct Hosts {
    count: usize,
    /// Whether the repair has dropped an empty `Host`.
    is_dropped: bool,
}

impl Hosts {
    fn field_line(
        &mut self,
        line: &[u8],
        rules: Rules,
        out: &mut Vec<u8>,
    ) -> Result<Vec<Rule>, RequestError> {
        let host = line.iter().position(|byte| *byte == b':').map(|colon| line.split_at(colon));
        let host = host.filter(|(name, _)| FieldName::of(name) == FieldName::Host);
        let Some((name, value)) =
            host.and_then(|(name, rest)| Some((name, rest[1..].strip_suffix(b"\r\n")?)))
        else {
            out.extend_from_slice(line);
            return Ok(Vec::new());
        };
        self.count += 1;
        if self.is_dropped {
            return Err(RequestError::DuplicateHost);
        }
        match trim_ows(value) {
            b"" if rules.has(Rule::EmptyHost) && self.count == 1 => {
                self.is_dropped = true;
                Ok(vec![Rule::EmptyHost])
            }
            [host @ .., b':']
                if rules.has(Rule::HostWithoutPort)
                    && Authority::parse(host).is_some_and(|host| host.port.is_none()) =>
            {
                for part in [name, b": ", host, b"\r\n"] {
                    out.extend_from_slice(part);
                }
                Ok(vec![Rule::HostWithoutPort])
            }
            _ => {
                out.extend_from_slice(line);
                Ok(Vec::new())
            }
        }
    }
}
