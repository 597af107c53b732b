//! Fields that may be forwarded in a trailer section.

use crate::FieldName;

/// Whether a field may appear in a trailer section. If a recipient merges trailers into the head, a forbidden field
/// could frame, route, authenticate or describe the message (RFC 9110 section 6.5.1). Names with an underscore are
/// forbidden, too, since servers that map names to variables take them for other names.
#[must_use]
pub fn may_be_trailer(name: &[u8]) -> bool {
    let known = FieldName::of(name);
    let listed = || FORBIDDEN.iter().any(|forbidden| name.eq_ignore_ascii_case(forbidden));
    let starts =
        |prefix: &[u8]| name.get(..prefix.len()).is_some_and(|start| start.eq_ignore_ascii_case(prefix));
    known == FieldName::Other
        && !name.contains(&b'_')
        && !starts(b"x-forwarded-")
        && !starts(b"if-")
        && !listed()
}

/// Forbidden names besides those with a [`FieldName`]: request modifiers, authentication, control data and
/// content format.
const FORBIDDEN: &[&[u8]] = &[
    b"age",
    b"cache-control",
    b"content-disposition",
    b"content-encoding",
    b"content-language",
    b"content-location",
    b"content-range",
    b"content-security-policy",
    b"content-type",
    b"cookie",
    b"expires",
    b"location",
    b"origin",
    b"pragma",
    b"range",
    b"referer",
    b"retry-after",
    b"set-cookie",
    b"strict-transport-security",
    b"vary",
    b"x-real-ip",
];
