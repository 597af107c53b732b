//! The text format of a line, with variables.

use super::clock::Clock;
use super::entry::{Line, Millis, Split};
use crate::config::{LogPiece, LogVariable};
use crate::text;
use std::io::Write as _;
use weir_http::is_hidden;

/// Appends the line without its line break.
pub(super) fn write(template: &[LogPiece], line: &Line<'_>, clock: &mut Clock, out: &mut Vec<u8>) {
    for piece in template {
        match piece {
            LogPiece::Text(text) => out.extend_from_slice(text.as_bytes()),
            LogPiece::Variable(variable) => write_variable(*variable, line, clock, out),
        }
    }
}

fn write_variable(variable: LogVariable, line: &Line<'_>, clock: &mut Clock, out: &mut Vec<u8>) {
    match variable {
        LogVariable::Time => clock.write(line.entry.at, out),
        LogVariable::Client => match line.client {
            Some(client) => text::ip(client.ip(), out),
            None => out.push(b'-'),
        },
        LogVariable::ClientPort => number(line.client.map_or(0, |client| client.port().into()), out),
        LogVariable::Listener => put(Some(line.listener), out),
        LogVariable::Method => put(Some(line.entry.method()), out),
        LogVariable::Host => put(Some(line.entry.host()), out),
        LogVariable::Target => put(Some(line.entry.target()), out),
        LogVariable::Protocol => put(Some(line.protocol), out),
        LogVariable::Status => number(line.status.into(), out),
        LogVariable::GrpcStatus => match line.grpc {
            Some(grpc) => number(grpc.number().into(), out),
            None => put(None, out),
        },
        LogVariable::Reason => put(line.reason, out),
        LogVariable::Received => number(line.received, out),
        LogVariable::Sent => number(line.sent, out),
        LogVariable::Service => put(Some(line.service), out),
        LogVariable::Server => put(Some(line.server), out),
        LogVariable::Retries => number(line.retries.into(), out),
        LogVariable::TlsVersion => put(line.tls.map(|tls| tls.version.name()), out),
        LogVariable::TlsSuite => put(line.tls.map(|tls| tls.suite.name()), out),
        LogVariable::TlsHandshake => put(line.tls.map(|tls| tls.kind.name()), out),
        LogVariable::ConnectMs => decimal(split(line).and_then(|split| split.connect), out),
        LogVariable::TlsMs => decimal(split(line).and_then(|split| split.tls), out),
        LogVariable::WaitMs => decimal(split(line).and_then(|split| split.wait), out),
        LogVariable::TransferMs => decimal(split(line).and_then(|split| split.transfer), out),
        LogVariable::TotalMs => decimal(split(line).map(|split| split.total), out),
        LogVariable::UserAgent => put(Some(line.entry.user_agent()), out),
        LogVariable::Referer => put(Some(line.entry.referer()), out),
        LogVariable::RequestId => put(Some(&line.entry.request_id), out),
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
