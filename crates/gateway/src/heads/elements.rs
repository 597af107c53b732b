//! The elements of `Forwarded` fields (RFC 7239 section 4).

use weir_http::{FieldName, is_token};
use weir_http1::RequestHead;

/// One element of a `Forwarded` field: a hop on the way of a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Hop<'a> {
    /// The node that sent the request to this hop (`for`).
    pub sender: Option<&'a [u8]>,
    pub proto: Option<&'a [u8]>,
    pub host: Option<&'a [u8]>,
}

/// The request's `Forwarded` lines with their hops, in order, after the last line that is not a complete list. A client
/// may open a quote that a proxy's element closes, so neither an incomplete list nor the lines before it can be
/// trusted.
pub(super) fn lines<'a>(head: &'a RequestHead, buf: &'a [u8]) -> Vec<(&'a [u8], Vec<Hop<'a>>)> {
    let fields = head.fields.iter().rev().filter(|field| field.known == FieldName::Forwarded);
    let values = fields.map(|field| field.value.of(buf));
    let mut lines: Vec<_> = values.map_while(|value| Some((value, parse(value)?))).collect();
    lines.reverse();
    lines
}

/// All hops of a line; `None` unless the whole line is a list of elements. Empty elements are ignored (RFC 9110 section
/// 5.6.1.2).
fn parse(mut rest: &[u8]) -> Option<Vec<Hop<'_>>> {
    let (mut hops, mut hop, mut names) = (Vec::new(), Hop::default(), Vec::new());
    loop {
        rest = rest.trim_ascii_start();
        if !matches!(rest.first(), None | Some(b',' | b';')) {
            rest = pair(rest, &mut hop, &mut names)?.trim_ascii_start();
        }
        let next = rest.split_first();
        if !matches!(next, Some((b';', _))) && !names.is_empty() {
            hops.push(std::mem::take(&mut hop));
            names.clear();
        }
        match next {
            None => return Some(hops),
            Some((b',' | b';', after)) => rest = after,
            Some(_) => return None,
        }
    }
}

/// Parses a pair such as `for=192.0.2.1` into `hop`; returns the rest of the text. `names`: the parameters of the same
/// element, of which each may occur only once.
fn pair<'a>(text: &'a [u8], hop: &mut Hop<'a>, names: &mut Vec<&'a [u8]>) -> Option<&'a [u8]> {
    let equals = text.iter().position(|byte| *byte == b'=')?;
    let name = text[..equals].trim_ascii_end();
    if !is_token(name) || names.iter().any(|earlier| earlier.eq_ignore_ascii_case(name)) {
        return None;
    }
    names.push(name);
    let (value, rest) = value(text[equals + 1..].trim_ascii_start())?;
    match () {
        () if name.eq_ignore_ascii_case(b"for") => hop.sender = value,
        () if name.eq_ignore_ascii_case(b"proto") => hop.proto = value,
        () if name.eq_ignore_ascii_case(b"host") => hop.host = value,
        () => {}
    }
    Some(rest)
}

/// A value without its quotes, and the remaining text. The value is `None` if it is empty or contains escapes, which no
/// address, scheme or host needs.
fn value(text: &[u8]) -> Option<(Option<&[u8]>, &[u8])> {
    let [b'"', inner @ ..] = text else {
        // Many proxies write addresses and ports without the quotes that `:`, `[` and `]` need.
        let is_in = |byte: &u8| is_token(&[*byte]) || b":[]/".contains(byte);
        let end = text.iter().position(|byte| !is_in(byte)).unwrap_or(text.len());
        let (value, rest) = text.split_at(end);
        return Some(((!value.is_empty()).then_some(value), rest));
    };
    let mut at = 0;
    loop {
        match inner.get(at)? {
            b'"' => break,
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    let value = &inner[..at];
    Some(((!value.is_empty() && !value.contains(&b'\\')).then_some(value), &inner[at + 1..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The sender of each hop; `None` if the line is not a list.
    fn senders(line: &str) -> Option<Vec<&str>> {
        let hops = parse(line.as_bytes())?;
        Some(hops.iter().map(|hop| std::str::from_utf8(hop.sender.unwrap_or(b"-")).unwrap()).collect())
    }

    #[test]
    fn elements_end_outside_quotes() {
        for (line, expected) in [
            ("for=\"a,b;c\";proto=https , , For = 1.1.1.1; by=x", vec!["a,b;c", "1.1.1.1"]),
            ("for=1.1.1.1,for=2.2.2.2,", vec!["1.1.1.1", "2.2.2.2"]),
            (", ;,for=1.1.1.1;;", vec!["1.1.1.1"]),
            ("proto=\"a\\\"b\"", vec!["-"]),
            ("for=\"\\\"\", for=x", vec!["-", "x"]),
            ("for=[2001:db8::7]:47;host=", vec!["[2001:db8::7]:47"]),
            ("for=\"[2001:db8::7]:47\"", vec!["[2001:db8::7]:47"]),
            ("for=unknown, for=_hidden, for=\"_x:_y\"", vec!["unknown", "_hidden", "_x:_y"]),
            ("", vec![]),
        ] {
            assert_eq!(senders(line), Some(expected), "{line}");
        }
    }

    /// Regression test: a client opened a quote, a proxy appended its element to the line, and the gateway trusted the
    /// client's element.
    #[test]
    fn a_line_is_a_list_as_a_whole() {
        for line in [
            "for=10.1.1.1;by=\"x",
            "for=10.1.1.1;by=\"x, for=203.0.113.7",
            "for=10.1.1.1;by=\"x, for=\"[2001:db8::7]\"",
            "for=10.1.1.1;by=\"x, for=\"203.0.113.7\";host=\"a:1\"",
            "for=10.1.1.1;by=\"x\\, for=\"_x\"",
            "for=10.1.1.1;by=\"x\\",
            "for=10.1.1.1;by=\"x\"y",
            "for=10.1.1.1;by=x\"y\"",
            "for=10.1.1.1;for=10.1.1.2",
            "for=;FOR=10.1.1.2",
            "for=\"a\\\"b\";for=10.1.1.2",
            "for=10.1.1.1;by=x;by=y",
            "for=10.1.1.1 for=10.1.1.2",
            "for=10.1.1.1;b y=x",
            "for=10.1.1.1;=x",
            "for 10.1.1.1",
            "10.1.1.1",
        ] {
            assert_eq!(senders(line), None, "{line}");
        }
    }
}
