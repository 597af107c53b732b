//! A line as a JSON object.

use super::clock::Clock;
use super::entry::{Line, Millis, Split};
use crate::text;
use std::io::Write as _;

/// Appends the line, without its end.
pub(super) fn write(line: &Line<'_>, clock: &mut Clock, out: &mut Vec<u8>) {
    let mut object = Object { out, has_members: false };
    if let Some(entry) = line.entry {
        object.quoted("time", |out| clock.write(entry.at, out));
    }
    if let Some(client) = line.client {
        object.quoted("client", |out| text::ip(client.ip(), out));
        object.number("client_port", u64::from(client.port()));
    }
    object.text("listener", line.listener);
    if let Some(entry) = line.entry {
        object.text("method", entry.method());
        object.text("host", entry.host());
        object.text("target", entry.target());
    }
    object.number("status", u64::from(line.status));
    if let Some(reason) = line.reason {
        object.text("reason", reason);
    }
    object.number("received", line.received);
    object.number("sent", line.sent);
    if !line.service.is_empty() {
        object.text("service", line.service);
        object.text("server", line.server);
        object.number("retries", u64::from(line.retries));
    }
    if let Some(tls) = line.tls {
        object.text("tls_version", tls.version.name());
        object.text("tls_suite", tls.suite.name());
        object.text("tls_handshake", tls.kind.name());
    }
    if let Some(times) = &line.times {
        let Split { connect, tls, wait, transfer, total } = Split::of(times, line.now);
        for (name, value) in [
            ("connect_ms", connect),
            ("tls_ms", tls),
            ("wait_ms", wait),
            ("transfer_ms", transfer),
            ("total_ms", Some(total)),
        ] {
            if let Some(value) = value {
                object.decimal(name, value);
            }
        }
    }
    if let Some(entry) = line.entry {
        for (name, value) in [
            ("user_agent", entry.user_agent()),
            ("referer", entry.referer()),
            ("request_id", &entry.request_id),
        ] {
            if !value.is_empty() {
                object.text(name, value);
            }
        }
    }
    object.out.push(if object.has_members { b'}' } else { b' ' });
}

/// An object whose members are written as they come.
struct Object<'a> {
    out: &'a mut Vec<u8>,
    has_members: bool,
}

impl Object<'_> {
    fn name(&mut self, name: &str) {
        self.out.extend_from_slice(if self.has_members { b",\"" } else { b"{\"" });
        self.has_members = true;
        self.out.extend_from_slice(name.as_bytes());
        self.out.extend_from_slice(b"\":");
    }

    fn text(&mut self, name: &str, value: &str) {
        self.quoted(name, |out| escape(value, out));
    }

    fn quoted(&mut self, name: &str, value: impl FnOnce(&mut Vec<u8>)) {
        self.name(name);
        self.out.push(b'"');
        value(self.out);
        self.out.push(b'"');
    }

    fn number(&mut self, name: &str, value: u64) {
        self.name(name);
        weir_http1::decimal(value, self.out);
    }

    fn decimal(&mut self, name: &str, value: Millis) {
        self.name(name);
        value.write(self.out);
    }
}

/// RFC 8259 section 7.
fn escape(text: &str, out: &mut Vec<u8>) {
    let is_special = |byte: &u8| matches!(byte, b'"' | b'\\' | 0..0x20 | 0x7f);
    let mut rest = text.as_bytes();
    while let Some(at) = rest.iter().position(is_special) {
        out.extend_from_slice(&rest[..at]);
        match rest[at] {
            byte @ (b'"' | b'\\') => out.extend_from_slice(&[b'\\', byte]),
            // Writing to a vector does not fail.
            byte => drop(write!(out, "\\u{byte:04x}")),
        }
        rest = &rest[at + 1..];
    }
    out.extend_from_slice(rest);
}
