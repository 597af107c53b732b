//! Trailer sections and the fields that may be forwarded.

use crate::FieldName;

/// Appends the lines of a trailer section ([`BodyDecoder::trailers`](crate::BodyDecoder::trailers)) whose
/// names pass both [`may_be_trailer`] and `keep`.
pub fn copy_trailers(section: &[u8], mut keep: impl FnMut(&[u8]) -> bool, out: &mut Vec<u8>) {
    for line in section.split(|byte| *byte == b'\n') {
        let Some(colon) = line.iter().position(|byte| *byte == b':') else { continue };
        let (name, value) = (&line[..colon], line[colon + 1..].trim_ascii());
        if may_be_trailer(name) && keep(name) {
            out.extend_from_slice(name);
            out.extend_from_slice(b": ");
            out.extend_from_slice(value);
            out.extend_from_slice(b"\r\n");
        }
    }
}

/// Whether a field may appear in a trailer section. A recipient that merges trailers into the head would let
/// a forbidden field frame, route, authenticate or describe the message (RFC 9110 section 6.5.1). Names with
/// an underscore are forbidden, too, since servers that map names to variables take them for other names.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_frames_routes_or_authenticates_is_dropped() {
        let section = b"X-Checksum:  abc \r\nContent-Length: 5\r\ntransfer-encoding: chunked\r\nHost: evil\r\n\
            Authorization: Basic x\r\nX-Forwarded-For: 1.2.3.4\r\nSet-Cookie: a=b\r\nIf-Match: *\r\nX_Checksum: d\r\n\
            grpc-status: 0\r\nEmpty:\r\n";
        let mut out = Vec::new();
        copy_trailers(section, |_| true, &mut out);
        assert_eq!(out.escape_ascii().to_string(), r"X-Checksum: abc\r\ngrpc-status: 0\r\nEmpty: \r\n");
        out.clear();
        copy_trailers(section, |name| name.eq_ignore_ascii_case(b"x-checksum"), &mut out);
        assert_eq!(out, b"X-Checksum: abc\r\n");
    }
}
