//! Response heads: parsing, framing, and the facts that a gateway needs.

use crate::facts::Facts;
use crate::section::{self, line_end};
use crate::{Framing, Limits, Parse, ResponseError, Version};
use weir_http::scan::text_end;
use weir_http::{Field, Method, Span};

/// A response head, as spans into the parsed buffer.
///
/// Create it once per connection and reuse it: it keeps its storage, so later parses rarely allocate. Its contents are
/// valid only after [`Parse::Complete`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResponseHead {
    /// The HTTP version in the status line.
    pub version: Version,
    /// The status, from 100 to 999. Statuses from 600 on are outside RFC 9110, section 15, but in use; they
    /// do not affect framing.
    pub status: u16,
    /// The reason phrase, often empty.
    pub reason: Span,
    /// The fields, in the order of the head.
    pub fields: Vec<Field>,
    /// Whether the fields let the connection persist after this response (RFC 9112, section 9.3). With
    /// [`Framing::UntilClose`] the connection never persists, regardless of this value.
    pub persistent: bool,
    /// Whether a challenge asks to authenticate the connection rather than a request (NTLM, Negotiate): the connection
    /// must then serve no other client.
    pub authenticates_connection: bool,
    /// The idle timeout of the server in seconds, from `Keep-Alive` (RFC 2068, section 19.7.1.1); `None` if unknown.
    pub idle_timeout: Option<u32>,
    declared: Framing,
}

impl ResponseHead {
    /// An empty head with room for the fields of a usual response.
    #[must_use]
    pub fn new() -> Self {
        Self { fields: Vec::with_capacity(32), ..Self::default() }
    }

    /// Parses a head from the start of `buf`. The error is the violated rule, reported at the latest when its line is
    /// complete.
    pub fn parse(&mut self, buf: &[u8], limits: &Limits) -> Result<Parse, ResponseError> {
        let head = limits.window(buf);
        let Some(at) = self.status_line(head, limits)? else { return Ok(Parse::Partial) };
        let mut facts = Facts::new(self.version);
        let note = |name, value: Span| facts.note(name, value.of(head)).map_err(ResponseError::from);
        let Some(end) = section::read(head, at, limits, &mut self.fields, note)? else {
            return Ok(Parse::Partial);
        };
        self.declared = facts.declared;
        self.persistent = facts.connection.persistent(self.version);
        self.authenticates_connection = facts.authenticates_connection;
        self.idle_timeout = facts.idle_timeout;
        facts.connection.mark_nominated(head, &mut self.fields);
        Ok(Parse::Complete(end))
    }

    /// Turns this into the head of a response that was not parsed from text: the caller sets its fields. `reason` is
    /// the span of a reason phrase, `declared` the framing that the message declares. The connection persists after the
    /// response.
    pub fn adopt(&mut self, status: u16, reason: Span, declared: Framing) {
        self.version = Version::Http11;
        self.status = status;
        self.reason = reason;
        self.persistent = true;
        self.authenticates_connection = false;
        self.idle_timeout = None;
        self.declared = declared;
    }

    /// The framing of the body of this response to a request with method `request` (RFC 9112, section 6.3).
    ///
    /// [`Framing::None`] for HEAD, 1xx, 204, 304 and 2xx to CONNECT, regardless of the fields. The bytes after a 101,
    /// and after a 2xx to CONNECT, are not HTTP.
    #[must_use]
    pub fn framing(&self, request: Method) -> Framing {
        match (request, self.status) {
            (Method::Head, _) | (_, 100..=199 | 204 | 304) | (Method::Connect, 200..=299) => Framing::None,
            _ => match self.declared {
                Framing::None => Framing::UntilClose,
                declared => declared,
            },
        }
    }

    /// The `Content-Length`, if present: for HEAD and 304, the length that the body would have had.
    #[must_use]
    pub fn content_length(&self) -> Option<u64> {
        match self.declared {
            Framing::Length(length) => Some(length),
            _ => None,
        }
    }

    /// Whether the fields declare a body although [`ResponseHead::framing`] is [`Framing::None`]. If the server then
    /// sends a body, a recipient would parse that body as the next response.
    #[must_use]
    pub fn announces_absent_body(&self, request: Method) -> bool {
        self.framing(request) == Framing::None && !self.declared.is_empty()
    }

    /// Parses the status line; returns the offset after it, or `None` if it is not complete.
    #[inline]
    fn status_line(&mut self, head: &[u8], limits: &Limits) -> Result<Option<usize>, ResponseError> {
        let Some(version) = Version::read(head, 0)? else { return partial(head, limits) };
        let status = match head[Version::LEN..] {
            [b' ', ref rest @ ..] => match status(rest)? {
                Some(status) => status,
                None => return partial(head, limits),
            },
            [] => return partial(head, limits),
            _ => return Err(ResponseError::BadStatusLine),
        };
        let status_end = Version::LEN + 1 + 3;
        let reason_start = match head.get(status_end) {
            Some(b' ') => status_end + 1,
            Some(b'\r' | b'\n') => status_end,
            None => return partial(head, limits),
            Some(_) => return Err(ResponseError::BadStatusLine),
        };
        let reason_end = text_end(head, reason_start);
        let Some(end) = line_end(head, reason_end)? else { return partial(head, limits) };
        if end > limits.line_bytes {
            return Err(ResponseError::StatusLineTooLong);
        }
        self.version = version;
        self.status = status;
        self.reason = Span::new(reason_start, reason_end);
        Ok(Some(end))
    }
}

/// Parses a status of three digits, the first not zero; `None` if the bytes end before the third.
#[inline]
fn status(bytes: &[u8]) -> Result<Option<u16>, ResponseError> {
    let digits = &bytes[..bytes.len().min(3)];
    if !digits.iter().all(u8::is_ascii_digit) || digits.first() == Some(&b'0') {
        return Err(ResponseError::BadStatus);
    }
    let number = digits.iter().fold(0, |number, digit| number * 10 + u16::from(digit - b'0'));
    Ok((digits.len() == 3).then_some(number))
}

/// Checks that an incomplete status line can still be completed: both limits must allow another byte.
#[cold]
fn partial(head: &[u8], limits: &Limits) -> Result<Option<usize>, ResponseError> {
    if head.len() >= limits.line_bytes || limits.head_is_full(head) {
        return Err(ResponseError::StatusLineTooLong);
    }
    Ok(None)
}
