//! Forwarding of trailer sections.

use weir_http::may_be_trailer;

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
