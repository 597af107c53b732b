//! The facts of one request.

use crate::exchange::Times;
use std::net::SocketAddr;
use std::time::{Instant, SystemTime};
use weir_http1::{FieldName, RequestHead};
use weir_tls::Facts;

/// What is kept of a request's head until its line is written.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub at: SystemTime,
    pub method: Box<str>,
    /// As the client wrote it.
    pub target: Box<str>,
    pub host: Box<str>,
    pub user_agent: Box<str>,
    pub referer: Box<str>,
    /// Empty unless `tracing` is set.
    pub request_id: Box<str>,
}

/// All facts of a line.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Line<'a> {
    /// `None` if no head was read.
    pub entry: Option<&'a Entry>,
    pub client: Option<SocketAddr>,
    pub listener: &'a str,
    /// What the client negotiated.
    pub tls: Option<&'a Facts>,
    /// 0 if the client got none.
    pub status: u16,
    /// Why it ended early.
    pub reason: Option<&'static str>,
    /// Bytes of the request's body.
    pub received: u64,
    /// Bytes of the answer's body.
    pub sent: u64,
    pub service: &'a str,
    pub server: &'a str,
    pub retries: u8,
    pub times: Option<Times>,
    pub now: Instant,
}

impl Entry {
    /// The entry of a request whose head was parsed from `buf`.
    pub(crate) fn of(head: &RequestHead, buf: &[u8]) -> Self {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned().into_boxed_str();
        let field = |name: &[u8]| {
            let mut others = head.fields.iter().filter(|field| field.known == FieldName::Other);
            let found = others.find(|field| field.name.of(buf).eq_ignore_ascii_case(name));
            found.map_or_else(Box::default, |field| text(field.value.of(buf)))
        };
        Self {
            at: SystemTime::now(),
            method: text(head.method_span.of(buf)),
            target: text(head.target.of(buf)),
            host: head.host.map_or_else(Box::default, |host| text(host.of(buf))),
            user_agent: field(b"user-agent"),
            referer: field(b"referer"),
            request_id: Box::default(),
        }
    }
}

/// Milliseconds of the steps of a request; `None` for those that did not happen.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Split {
    /// Connecting to the server: 0 on a connection of before.
    pub connect: Option<f64>,
    /// The handshake with it.
    pub tls: Option<f64>,
    /// From the request's last byte to the answer's first.
    pub wait: Option<f64>,
    /// From the answer's first byte to its last.
    pub transfer: Option<f64>,
    pub total: f64,
}

impl Split {
    pub(crate) fn of(times: &Times, now: Instant) -> Self {
        let ms = |from: Instant, to: Instant| to.saturating_duration_since(from).as_secs_f64() * 1000.0;
        let reached = times.reached.or(times.connected);
        Self {
            connect: reached.map(|reached| ms(times.attempt, reached)),
            tls: times.reached.zip(times.connected).map(|(reached, connected)| ms(reached, connected)),
            wait: times.first_byte.map(|first| ms(times.sent.unwrap_or(times.attempt).min(first), first)),
            transfer: times.first_byte.map(|first| ms(first, times.last_byte.unwrap_or(now))),
            total: ms(times.head, now),
        }
    }
}
