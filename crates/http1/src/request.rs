//! Request heads: parsing, framing, and the facts that a gateway needs.

use crate::facts::Facts;
use crate::section::{self, line_end};
use crate::target::Target;
use crate::{Framing, HeadError, Limits, Parse, RequestError, TargetForm, Version};
use weir_http::scan::{elements, target_end, token_end};
use weir_http::{Authority, Field, FieldName, Method, Span};

/// A request head, as spans into the parsed buffer.
///
/// Create it once per connection and reuse it: it keeps its storage, so later parses rarely allocate. Its contents are
/// valid only after [`Parse::Complete`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RequestHead {
    /// The method; [`Method::Other`] for an unknown one.
    pub method: Method,
    /// The method as written.
    pub method_span: Span,
    /// The request target as written. Never empty.
    pub target: Span,
    /// The form of the target.
    pub target_form: TargetForm,
    /// Path and query: the whole target in origin and asterisk form, the part after the authority in absolute form,
    /// empty in authority form. In absolute form the path may be missing, so that this span is empty or starts with
    /// `?`: to forward it in origin form, put `/` before it, or send `*` for OPTIONS without a query (RFC 9112,
    /// sections 3.2.1 and 3.2.4).
    pub path: Span,
    /// The HTTP version in the request line.
    pub version: Version,
    /// The authority: host with optional port, valid for [`Authority::parse`]. In absolute and authority form
    /// it comes from the target, else from `Host`. When the request is forwarded, a `Host` field with this
    /// value replaces the received one (RFC 9112, section 3.2.2). `None` only in HTTP/1.0, and with
    /// [`Rule::EmptyHost`](crate::Rule) relaxed.
    pub host: Option<Span>,
    /// The fields, in the order of the head.
    pub fields: Vec<Field>,
    /// The end of the body; never [`Framing::UntilClose`].
    pub framing: Framing,
    /// Whether the client keeps the connection open after this exchange (RFC 9112, section 9.3).
    pub persistent: bool,
    /// Whether credentials authenticate the connection rather than this request (NTLM, Negotiate): the
    /// upstream connection must serve no other client.
    pub authenticates_connection: bool,
    /// Whether the client waits for 100 (Continue) before it sends the body (RFC 9110, section 10.1.1). Always false in
    /// HTTP/1.0.
    pub expect_continue: bool,
    /// The protocol that the client wants to switch to, from a single `Upgrade` field that `Connection` names (RFC
    /// 9110, section 7.8). Always `None` in HTTP/1.0.
    pub upgrade: Option<Span>,
    /// Whether the client accepts a trailer section (`TE: trailers`, RFC 9110, section 10.1.4). Always false in
    /// HTTP/1.0.
    pub accepts_trailers: bool,
}

/// Whether an HTTP/1.1 request must have `Host`. A repaired head need not, since the repair may have removed an empty
/// one.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Authorities {
    Needed,
    Dispensable,
}

/// The `Upgrade` fields so far.
#[derive(Clone, Copy)]
enum Upgrade {
    None,
    Once(Span),
    Repeated,
}

impl RequestHead {
    /// An empty head with room for the fields of a usual request.
    #[must_use]
    pub fn new() -> Self {
        Self { fields: Vec::with_capacity(32), ..Self::default() }
    }

    /// Parses a head from the start of `buf`, where the previous message ended. Skips one empty line before the request
    /// line and counts it as part of the head. The error is the violated rule, reported at the latest when its line is
    /// complete.
    #[inline]
    pub fn parse(&mut self, buf: &[u8], limits: &Limits) -> Result<Parse, RequestError> {
        self.read(buf, limits, Authorities::Needed)
    }

    /// As [`RequestHead::parse`], for a head that was accepted before and possibly [repaired](RequestHead::repair). The
    /// repair removes an empty `Host`, so the head may contain none.
    ///
    /// # Errors
    /// Those of [`RequestHead::parse`], since the limits may have changed.
    #[cold]
    pub fn parse_repaired(&mut self, buf: &[u8], limits: &Limits) -> Result<Parse, RequestError> {
        self.read(buf, limits, Authorities::Dispensable)
    }

    fn read(&mut self, buf: &[u8], limits: &Limits, authorities: Authorities) -> Result<Parse, RequestError> {
        let head = limits.window(buf);
        let Some(at) = self.request_line(head, limits)? else { return Ok(Parse::Partial) };
        let version = self.version;
        let mut facts = Facts::new(version);
        let mut host = None;
        let mut expect_continue = false;
        let mut upgrade = Upgrade::None;
        let mut accepts_trailers = false;
        let note = |name, value: Span| {
            match name {
                FieldName::Host if host.is_some() => return Err(RequestError::DuplicateHost),
                FieldName::Host => {
                    Authority::parse(value.of(head)).ok_or(RequestError::BadHost)?;
                    host = Some(value);
                }
                // An HTTP/1.0 client does not understand 100 (Continue), even if an intermediary added
                // `Expect`.
                FieldName::Expect if version == Version::Http11 => {
                    expect_continue |= elements(value.of(head))
                        .any(|expected| expected.eq_ignore_ascii_case(b"100-continue"));
                }
                FieldName::Upgrade if version == Version::Http11 => {
                    upgrade = match upgrade {
                        Upgrade::None => Upgrade::Once(value),
                        Upgrade::Once(_) | Upgrade::Repeated => Upgrade::Repeated,
                    };
                }
                FieldName::Te if version == Version::Http11 => {
                    accepts_trailers |=
                        elements(value.of(head)).any(|coding| coding.eq_ignore_ascii_case(b"trailers"));
                }
                _ => facts.note(name, value.of(head))?,
            }
            Ok(())
        };
        let Some(end) = section::read(head, at, limits, &mut self.fields, note)? else {
            return Ok(Parse::Partial);
        };
        if host.is_none() && self.version == Version::Http11 && authorities == Authorities::Needed {
            return Err(RequestError::MissingHost);
        }
        self.host = self.host.or(host);
        self.framing = facts.declared;
        self.persistent = facts.connection.persistent(version);
        self.authenticates_connection = facts.authenticates_connection;
        self.expect_continue = expect_continue;
        self.accepts_trailers = accepts_trailers;
        self.upgrade = match upgrade {
            Upgrade::Once(protocol) if facts.connection.names_upgrade && !protocol.of(head).is_empty() => {
                Some(protocol)
            }
            _ => None,
        };
        facts.connection.mark_nominated(head, &mut self.fields);
        Ok(Parse::Complete(end))
    }

    /// Parses the request line; returns the offset after it, or `None` if it is not complete.
    #[inline]
    fn request_line(&mut self, head: &[u8], limits: &Limits) -> Result<Option<usize>, RequestError> {
        let start = match head {
            // A TLS record starts with its type, 22 for a handshake, and its major version, 3.
            [0x16] | [0x16, 0x03, ..] => return Err(RequestError::TlsOnCleartext),
            [b'\r' | b'\n', ..] => match line_end(head, 0)? {
                Some(start) => start,
                None => return partial(head, 0, limits),
            },
            _ => 0,
        };
        let method_end = token_end(head, start);
        match head.get(method_end) {
            Some(b' ') if method_end > start => {}
            None => return partial(head, start, limits),
            Some(b'\n') => return Err(HeadError::BareLf.into()),
            Some(_) => return Err(RequestError::BadMethod),
        }
        let target_start = method_end + 1;
        let target_end = target_end(head, target_start);
        match head.get(target_end) {
            Some(b' ') if target_end > target_start => {}
            None => return partial(head, start, limits),
            Some(b'\n') => return Err(HeadError::BareLf.into()),
            Some(b' ' | b'\r') => return Err(RequestError::BadRequestLine),
            Some(byte) if byte.is_ascii_control() => return Err(HeadError::ControlCharacter.into()),
            Some(_) => return Err(RequestError::BadTargetCharacter),
        }
        let Some(version) = Version::read(head, target_end + 1)? else { return partial(head, start, limits) };
        let version_end = target_end + 1 + Version::LEN;
        let end = match head.get(version_end) {
            None | Some(b'\r' | b'\n') => match line_end(head, version_end)? {
                Some(end) => end,
                None => return partial(head, start, limits),
            },
            Some(_) => return Err(RequestError::BadRequestLine),
        };
        if end - start > limits.line_bytes {
            return Err(RequestError::RequestLineTooLong);
        }

        self.method = Method::of(&head[start..method_end]);
        let target = Target::read(self.method, &head[target_start..target_end])?;
        self.method_span = Span::new(start, method_end);
        self.target = Span::new(target_start, target_end);
        self.target_form = target.form;
        self.path = Span::new(target_start + target.path, target_end);
        self.host = target.authority.map(|(from, to)| Span::new(target_start + from, target_start + to));
        self.version = version;
        Ok(Some(end))
    }
}

/// Checks that an incomplete request line can still be completed: both limits must allow another byte.
#[cold]
fn partial(head: &[u8], start: usize, limits: &Limits) -> Result<Option<usize>, RequestError> {
    if head.len() - start >= limits.line_bytes || limits.head_is_full(head) {
        return Err(RequestError::RequestLineTooLong);
    }
    Ok(None)
}
