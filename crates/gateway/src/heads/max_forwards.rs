//! The limit on a request's hops: `Max-Forwards` (RFC 9110 section 7.6.2).

use weir_http::{FieldName, Method};
use weir_http1::RequestHead;

/// The number of gateways and proxies that may still forward a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MaxForwards {
    /// Unlimited: the field is absent, or has no meaning for the method.
    Any,
    /// None: the gateway must respond itself.
    None,
    /// The gateway may forward the request, and this many recipients after it may, too.
    AndThen(u64),
    /// The value is not a number, or there are two fields.
    Invalid,
}

impl MaxForwards {
    /// The limit for a request whose head was parsed from `buf`. The limit applies to OPTIONS and TRACE alone.
    #[inline]
    pub(crate) fn of(head: &RequestHead, buf: &[u8]) -> Self {
        match head.method {
            Method::Options | Method::Trace => Self::counted(head, buf),
            _ => Self::Any,
        }
    }

    #[cold]
    fn counted(head: &RequestHead, buf: &[u8]) -> Self {
        let mut fields = head.fields.iter().filter(|field| field.known == FieldName::MaxForwards);
        let Some(field) = fields.next() else { return Self::Any };
        let digits = field.value.of(buf);
        if fields.next().is_some() || digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
            return Self::Invalid;
        }
        // The field has no upper bound; a larger number becomes the maximum.
        let number = digits
            .iter()
            .fold(0_u64, |number, digit| number.saturating_mul(10).saturating_add(u64::from(digit - b'0')));
        number.checked_sub(1).map_or(Self::None, Self::AndThen)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_http1::{Limits, Parse};

    fn of(method: &str, fields: &str) -> MaxForwards {
        let buf = format!("{method} /x HTTP/1.1\r\nHost: h\r\n{fields}\r\n");
        let mut head = RequestHead::new();
        assert_eq!(
            head.parse(buf.as_bytes(), &Limits::default()),
            Ok(Parse::Complete(buf.len())),
            "{fields}"
        );
        MaxForwards::of(&head, buf.as_bytes())
    }

    #[test]
    fn options_and_trace_are_counted() {
        for (fields, hops) in [
            ("", MaxForwards::Any),
            ("Max-Forwards: 0\r\n", MaxForwards::None),
            ("max-forwards: 1\r\n", MaxForwards::AndThen(0)),
            ("Max-Forwards:  070 \r\n", MaxForwards::AndThen(69)),
            ("Max-Forwards: 99999999999999999999999\r\n", MaxForwards::AndThen(u64::MAX - 1)),
            // Naming the field in `Connection` does not lift the limit.
            ("Max-Forwards: 0\r\nConnection: Max-Forwards\r\n", MaxForwards::None),
            ("Max-Forwards:\r\n", MaxForwards::Invalid),
            ("Max-Forwards: -1\r\n", MaxForwards::Invalid),
            ("Max-Forwards: +1\r\n", MaxForwards::Invalid),
            ("Max-Forwards: 1, 1\r\n", MaxForwards::Invalid),
            ("Max-Forwards: 1\r\nMax-Forwards: 1\r\n", MaxForwards::Invalid),
        ] {
            assert_eq!(of("OPTIONS", fields), hops, "{fields}");
            assert_eq!(of("TRACE", fields), hops, "{fields}");
            assert_eq!(of("GET", fields), MaxForwards::Any, "{fields}");
        }
    }
}
