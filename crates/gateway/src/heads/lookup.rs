//! Values of fields and cookies in a request's head.

use weir_http1::RequestHead;

/// The values of all fields with this name, in order. The case of the name does not matter.
pub(crate) fn values<'a>(
    name: &'a [u8],
    head: &'a RequestHead,
    buf: &'a [u8],
) -> impl Iterator<Item = &'a [u8]> {
    let named = head.fields.iter().filter(move |field| field.name.of(buf).eq_ignore_ascii_case(name));
    named.map(move |field| field.value.of(buf))
}

/// The first value of the cookie with this name (RFC 6265 section 5.4).
pub(crate) fn cookie<'a>(name: &'a [u8], head: &'a RequestHead, buf: &'a [u8]) -> Option<&'a [u8]> {
    let pairs = values(b"cookie", head, buf).flat_map(|value| value.split(|byte| *byte == b';'));
    let mut found = pairs.filter_map(|pair| pair.trim_ascii().strip_prefix(name)?.strip_prefix(b"="));
    found.next()
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_http1::{Limits, Parse};

    #[test]
    fn a_cookie_is_found_in_any_cookie_field() {
        let buf = b"GET / HTTP/1.1\r\nHost: h\r\nCookie: a=1; id=2\r\ncookie: b=3\r\n\r\n";
        let mut head = RequestHead::new();
        assert_eq!(head.parse(buf, &Limits::default()), Ok(Parse::Complete(buf.len())));
        for (name, value) in
            [("a", Some(&b"1"[..])), ("id", Some(b"2")), ("b", Some(b"3")), ("d", None), ("i", None)]
        {
            assert_eq!(cookie(name.as_bytes(), &head, buf), value, "{name}");
        }
    }
}
