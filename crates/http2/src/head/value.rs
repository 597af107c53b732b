//! Checks field values. Each verdict is computed once and stored with a table's entry.

use super::{HeadError, Name, NameKind, Pseudo};
use weir_http::scan::{target_end, text_end};
use weir_http::{Authority, FieldName, is_token};

/// The verdict on a single field. The decoder's dynamic table stores it with the entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Verdict {
    pub(crate) name: Name,
    /// The rule that the value violates; `None` if it is valid.
    pub(crate) value: Option<HeadError>,
}

impl Verdict {
    /// The verdict on a field with this value.
    #[inline]
    pub(crate) fn of(name: Name, value: &[u8]) -> Self {
        Self { name, value: check(name.kind, value).err() }
    }

    /// The first rule that the field violates, by its name or else by its value.
    #[inline]
    pub(crate) fn error(&self) -> Option<HeadError> {
        self.name.error.or(self.value)
    }
}

#[inline]
fn check(kind: NameKind, value: &[u8]) -> Result<(), HeadError> {
    let (is_valid, error) = match kind {
        NameKind::Pseudo(Pseudo::Method) => (is_token(value), HeadError::BadMethod),
        NameKind::Pseudo(Pseudo::Scheme) => (matches!(value, b"http" | b"https"), HeadError::BadScheme),
        NameKind::Pseudo(Pseudo::Path) => (is_path(value), HeadError::BadPath),
        NameKind::Pseudo(Pseudo::Authority) | NameKind::Field(FieldName::Host) => {
            (Authority::parse(value).is_some(), HeadError::BadAuthority)
        }
        NameKind::Pseudo(Pseudo::Protocol) => (is_token(value), HeadError::BadProtocol),
        NameKind::Pseudo(Pseudo::Status) => (status(value).is_some(), HeadError::BadStatus),
        NameKind::Field(FieldName::Te) => (value.eq_ignore_ascii_case(b"trailers"), HeadError::BadTe),
        NameKind::Cookie | NameKind::Field(_) => (is_text(value), HeadError::BadFieldValue),
    };
    if is_valid { Ok(()) } else { Err(error) }
}

/// Whether a value is text without surrounding white space. This is narrower than RFC 9113, section 8.2.1, which
/// forbids only NUL, CR and LF: as in HTTP/1, HTAB is the only control character allowed (RFC 9110, section 5.5).
#[inline]
fn is_text(value: &[u8]) -> bool {
    !matches!(value, [b' ' | b'\t', ..] | [.., b' ' | b'\t']) && text_end(value, 0) == value.len()
}

fn is_path(value: &[u8]) -> bool {
    value == b"*" || (value.first() == Some(&b'/') && target_end(value, 0) == value.len())
}

/// Parses a status of three digits, 100 to 999 without 101.
pub(super) fn status(value: &[u8]) -> Option<u16> {
    let [hundreds @ b'1'..=b'9', tens @ b'0'..=b'9', ones @ b'0'..=b'9'] = value else { return None };
    let digit = |byte: &u8| u16::from(byte - b'0');
    let status = 100 * digit(hundreds) + 10 * digit(tens) + digit(ones);
    (status != 101).then_some(status)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values() {
        use HeadError::*;
        for (name, value, error) in [
            ("a", "", None),
            ("a", "b\tc d\u{e4}", None),
            ("a", " b", Some(BadFieldValue)),
            ("a", "b\t", Some(BadFieldValue)),
            ("a", "b\r\nc: d", Some(BadFieldValue)),
            ("a", "b\nc", Some(BadFieldValue)),
            ("a", "b\0c", Some(BadFieldValue)),
            ("cookie", "a\rb", Some(BadFieldValue)),
            ("te", "trailers", None),
            ("te", "gzip", Some(BadTe)),
            ("te", "trailers, gzip", Some(BadTe)),
            ("host", "a:80", None),
            ("host", "a@b", Some(BadAuthority)),
            (":authority", "", Some(BadAuthority)),
            (":authority", "user@a", Some(BadAuthority)),
            (":method", "GET", None),
            (":method", "GET / HTTP/1.1\r\nx:", Some(BadMethod)),
            (":method", "", Some(BadMethod)),
            (":scheme", "https", None),
            (":scheme", "HTTPS", Some(BadScheme)),
            (":scheme", "ftp", Some(BadScheme)),
            (":path", "/a?b", None),
            (":path", "*", None),
            (":path", "", Some(BadPath)),
            (":path", "a", Some(BadPath)),
            (":path", "**", Some(BadPath)),
            (":path", "/a b", Some(BadPath)),
            (":path", "/a#b", Some(BadPath)),
            (":path", "/\u{e4}", Some(BadPath)),
            (":protocol", "websocket", None),
            (":protocol", "a b", Some(BadProtocol)),
            (":status", "200", None),
            (":status", "999", None),
            (":status", "101", Some(BadStatus)),
            (":status", "099", Some(BadStatus)),
            (":status", "20", Some(BadStatus)),
            (":status", "2000", Some(BadStatus)),
            (":status", "+20", Some(BadStatus)),
        ] {
            let verdict = Verdict::of(Name::of(name.as_bytes()), value.as_bytes());
            assert_eq!(verdict.error(), error, "{name}: {value:?}");
        }
    }
}
