//! Building a head from its fields, one by one.

use super::value::status;
use super::{Head, HeadError, Limits, NameKind, Pseudo, Scheme, Section, Verdict};
use crate::hpack::{OVERHEAD, SEPARATORS};
use weir_http::scan::{decimal, elements};
use weir_http::{Authority, Field, FieldName, Method, Span};

/// A head under construction. After the first violated rule the builder ignores further fields: the decoder continues
/// only to keep its table in sync.
pub(crate) struct Builder<'a> {
    pub(crate) head: &'a mut Head,
    limits: &'a Limits,
    section: Section,
    error: Option<HeadError>,
    size: usize,
    count: usize,
    /// The set of pseudo-fields so far, as bits of [`Pseudo`].
    pseudo: u8,
    authority: Option<Span>,
    crumbs: usize,
}

/// A line at the end of the head's bytes.
pub(crate) struct Line {
    pub(crate) start: usize,
    /// The length of the name, in bytes.
    pub(crate) name: usize,
    pub(crate) never_indexed: bool,
}

impl<'a> Builder<'a> {
    pub(crate) fn new(head: &'a mut Head, limits: &'a Limits, section: Section) -> Self {
        head.clear();
        Self { head, limits, section, error: None, size: 0, count: 0, pseudo: 0, authority: None, crumbs: 0 }
    }

    /// Counts a field whose name, value and overhead take `size` bytes. Returns whether its line is needed.
    #[inline]
    pub(crate) fn admit(&mut self, size: usize) -> bool {
        self.size = self.size.saturating_add(size);
        self.count += 1;
        if self.count > self.limits.fields {
            self.error.get_or_insert(HeadError::TooManyFields);
        } else if self.size > self.limits.head_bytes {
            self.error.get_or_insert(HeadError::HeadTooLong);
        }
        self.error.is_none()
    }

    /// The size of all fields so far, admitted or not.
    pub(crate) fn size(&self) -> usize {
        self.size
    }

    /// The bytes of all fields so far as lines of text, admitted or not.
    pub(crate) fn lines(&self) -> usize {
        self.size.saturating_sub(self.count * (OVERHEAD - SEPARATORS))
    }

    /// Takes the admitted field whose line ends the head's bytes.
    #[inline]
    pub(crate) fn field(&mut self, line: Line, verdict: Verdict) {
        let taken = match (verdict.error(), verdict.name.kind) {
            (Some(error), _) => Err(error),
            (None, NameKind::Pseudo(pseudo)) => self.pseudo(pseudo, self.value(&line)),
            (None, NameKind::Cookie) => {
                self.crumbs += 1;
                self.push(&line, verdict, FieldName::Other);
                Ok(())
            }
            (None, NameKind::Field(known)) => {
                let value = self.push(&line, verdict, known);
                self.known(known, value)
            }
        };
        self.error = taken.err();
    }

    /// The value: the part of the line after the name, a colon, and a space unless the value is empty.
    #[inline]
    fn value(&self, line: &Line) -> Span {
        let (colon, end) = (line.start + line.name, self.head.bytes.len() - 2);
        Span::new((colon + 2).min(end), end)
    }

    #[inline]
    fn push(&mut self, line: &Line, verdict: Verdict, known: FieldName) -> Span {
        let value = self.value(line);
        self.head.fields.push(Field {
            name: Span::new(line.start, line.start + line.name),
            value,
            line: Span::new(line.start, self.head.bytes.len()),
            known,
            hop_by_hop: known.is_hop_by_hop(),
            underscore: verdict.name.underscore,
            never_indexed: line.never_indexed,
        });
        value
    }

    fn pseudo(&mut self, pseudo: Pseudo, value: Span) -> Result<(), HeadError> {
        let is_defined = match self.section {
            Section::Request { .. } => pseudo != Pseudo::Status,
            Section::Response => pseudo == Pseudo::Status,
            Section::Trailers => false,
        };
        if !is_defined {
            return Err(HeadError::UnknownPseudo);
        }
        if !self.head.fields.is_empty() {
            return Err(HeadError::LatePseudo);
        }
        if self.pseudo & pseudo.bit() != 0 {
            return Err(HeadError::DuplicatePseudo);
        }
        self.pseudo |= pseudo.bit();
        let text = value.of(&self.head.bytes);
        match pseudo {
            Pseudo::Method => {
                self.head.method = Method::of(text);
                self.head.method_span = value;
            }
            Pseudo::Scheme if text == b"https" => self.head.scheme = Some(Scheme::Https),
            Pseudo::Scheme => self.head.scheme = Some(Scheme::Http),
            Pseudo::Authority => self.authority = Some(value),
            Pseudo::Path => self.head.path = value,
            Pseudo::Protocol => self.head.protocol = Some(value),
            Pseudo::Status => self.head.status = status(text).ok_or(HeadError::BadStatus)?,
        }
        Ok(())
    }

    #[inline]
    fn known(&mut self, known: FieldName, value: Span) -> Result<(), HeadError> {
        let is_request = matches!(self.section, Section::Request { .. });
        let text = value.of(&self.head.bytes);
        match known {
            FieldName::Host if is_request && self.head.host.is_some() => {
                return Err(HeadError::DuplicateHost);
            }
            FieldName::Host if is_request => self.head.host = Some(value),
            FieldName::ContentLength if self.section != Section::Trailers => {
                for element in elements(text) {
                    let length = decimal(element).ok_or(HeadError::BadContentLength)?;
                    if self.head.content_length.is_some_and(|other| other != length) {
                        return Err(HeadError::DifferingContentLength);
                    }
                    self.head.content_length = Some(length);
                }
            }
            FieldName::Te => self.head.accepts_trailers = is_request,
            FieldName::Expect if is_request => {
                self.head.expect_continue |=
                    elements(text).any(|expected| expected.eq_ignore_ascii_case(b"100-continue"));
            }
            _ => {}
        }
        Ok(())
    }

    /// Completes the head: joins cookies, and checks the pseudo-fields.
    pub(crate) fn finish(mut self) -> Result<(), HeadError> {
        if let Some(error) = self.error {
            return Err(error);
        }
        if self.crumbs > 1 {
            self.join_crumbs();
        }
        match self.section {
            Section::Request { extended_connect } => self.finish_request(extended_connect),
            Section::Response if self.pseudo == 0 => Err(HeadError::PseudoFields),
            Section::Response | Section::Trailers => Ok(()),
        }
    }

    fn finish_request(&mut self, extended_connect: bool) -> Result<(), HeadError> {
        let head = &mut *self.head;
        let of = |parts: &[Pseudo]| parts.iter().fold(0, |set, pseudo| set | pseudo.bit());
        let ordinary = of(&[Pseudo::Method, Pseudo::Scheme, Pseudo::Path]);
        // The pseudo-fields that a request must contain, and those that it may (RFC 9113, sections 8.3.1 and 8.5; RFC
        // 8441, section 4).
        let (required, optional) = match (head.method, head.protocol) {
            (Method::Connect, None) => (of(&[Pseudo::Method, Pseudo::Authority]), 0),
            (Method::Connect, Some(_)) if extended_connect => {
                (ordinary | of(&[Pseudo::Authority, Pseudo::Protocol]), 0)
            }
            (_, Some(_)) => return Err(HeadError::BadProtocol),
            (_, None) => (ordinary, of(&[Pseudo::Authority])),
        };
        if self.pseudo & !optional != required {
            return Err(HeadError::PseudoFields);
        }
        let bytes = &head.bytes;
        if head.path.of(bytes) == b"*" && head.method != Method::Options {
            return Err(HeadError::BadPath);
        }
        if let (Some(authority), Some(host)) = (self.authority, head.host)
            && !authority.of(bytes).eq_ignore_ascii_case(host.of(bytes))
        {
            return Err(HeadError::DifferingHost);
        }
        head.host = self.authority.or(head.host);
        let host = head.host.ok_or(HeadError::MissingAuthority)?;
        let is_tunnel = head.method == Method::Connect && head.protocol.is_none();
        if is_tunnel && Authority::parse(host.of(bytes)).is_none_or(|authority| authority.port.is_none()) {
            return Err(HeadError::BadAuthority);
        }
        Ok(())
    }

    /// Joins all crumbs into one `cookie` field (RFC 9113, section 8.2.3), which takes the first crumb's place in
    /// `fields`; its line is appended to `bytes`. Empty crumbs are dropped: after a last one, the value would end with
    /// the separator's space, which other HTTP/2 parsers reject.
    fn join_crumbs(&mut self) {
        let Head { bytes, fields, .. } = &mut *self.head;
        let start = bytes.len();
        let name = b"cookie";
        bytes.extend_from_slice(name);
        bytes.push(b':');
        let mut joined = None;
        let mut never_indexed = false;
        let mut index = 0;
        fields.retain(|field| {
            let is_crumb = field.name.of(bytes) == name;
            if is_crumb && !field.value.is_empty() {
                let is_first = bytes.len() == start + name.len() + 1;
                bytes.extend_from_slice(if is_first { b" " } else { b"; " });
                bytes.extend_from_within(field.value.range());
            }
            never_indexed |= is_crumb && field.never_indexed;
            let is_kept = is_crumb && joined.is_none();
            if is_kept {
                joined = Some(index);
            }
            index += 1;
            !is_crumb || is_kept
        });
        let value = Span::new((start + name.len() + 2).min(bytes.len()), bytes.len());
        bytes.extend_from_slice(b"\r\n");
        if let Some(joined) = joined {
            let field = &mut fields[joined];
            field.name = Span::new(start, start + name.len());
            field.value = value;
            field.line = Span::new(start, bytes.len());
            field.never_indexed = never_indexed;
        }
    }
}
