//! The distinguished encoding rules of ASN.1 (X.690), for signed messages that no library parses.

/// A sequence of encoded values.
#[derive(Clone, Copy)]
pub(crate) struct Der<'a>(pub(crate) &'a [u8]);

/// One encoded value.
#[derive(Clone, Copy)]
pub(crate) struct Value<'a> {
    pub(crate) tag: u8,
    pub(crate) content: &'a [u8],
    /// The value with its tag and length.
    pub(crate) whole: &'a [u8],
}

/// The tag of a SEQUENCE.
pub(crate) const SEQUENCE: u8 = 0x30;

impl<'a> Der<'a> {
    /// The next value, whatever its tag; `None` at the end, or if the encoding is invalid.
    pub(crate) fn any(&mut self) -> Option<Value<'a>> {
        let (tag, rest) = self.0.split_first()?;
        let (first, rest) = rest.split_first()?;
        let (len, content) = match usize::from(*first) {
            len @ ..=0x7f => (len, rest),
            // The length field has up to 4 bytes.
            bytes @ 0x81..=0x84 => {
                let (len, rest) = rest.split_at_checked(bytes - 0x80)?;
                (len.iter().fold(0, |len, byte| len << 8 | usize::from(*byte)), rest)
            }
            _ => return None,
        };
        let (content, rest) = content.split_at_checked(len)?;
        let whole = &self.0[..self.0.len() - rest.len()];
        self.0 = rest;
        Some(Value { tag: *tag, content, whole })
    }

    /// The content of the next value, if it has this tag.
    pub(crate) fn take(&mut self, tag: u8) -> Option<&'a [u8]> {
        self.any().filter(|value| value.tag == tag).map(|value| value.content)
    }

    /// As [`Der::take`], but consumes nothing if the next value has another tag.
    pub(crate) fn optional(&mut self, tag: u8) -> Option<&'a [u8]> {
        if self.0.first() == Some(&tag) { self.take(tag) } else { None }
    }
}

/// A signed message: a certificate (RFC 5280 section 4.1) or an OCSP response (RFC 6960 section 4.2.1).
pub(crate) struct Signed<'a> {
    /// The signed bytes.
    pub(crate) message: Value<'a>,
    /// The content of the algorithm identifier.
    pub(crate) algorithm: &'a [u8],
    pub(crate) signature: &'a [u8],
    /// The values after the signature.
    pub(crate) rest: Der<'a>,
}

impl<'a> Signed<'a> {
    pub(crate) fn read(der: &'a [u8]) -> Option<Self> {
        let mut outer = Der(der);
        let mut rest = Der(outer.take(SEQUENCE)?);
        let message = rest.any()?;
        let algorithm = rest.take(SEQUENCE)?;
        let signature = bits(rest.take(3)?)?;
        outer.0.is_empty().then_some(Self { message, algorithm, signature, rest })
    }
}

/// The bytes of a BIT STRING without unused bits.
pub(crate) fn bits(content: &[u8]) -> Option<&[u8]> {
    content.strip_prefix(&[0])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_split_and_cut_ones_are_none() {
        let long = [&[4, 0x82, 1, 0][..], &[7; 256], &[5, 0]].concat();
        let mut der = Der(&long);
        assert_eq!(der.optional(5), None);
        assert_eq!(der.take(4).map(<[u8]>::len), Some(256));
        assert_eq!(der.any().map(|value| value.whole), Some(&[5, 0][..]));
        assert!(der.any().is_none());
        for len in 0..260 {
            assert!(Der(&long[..len]).any().is_none(), "{len}");
        }
        for bad in
            [&[4, 0x80][..], &[4, 0x85, 0, 0, 0, 0, 1, 7], &[4, 0xff], &[4, 0x84, 0xff, 0xff, 0xff, 0xff]]
        {
            assert!(Der(bad).any().is_none(), "{bad:x?}");
        }
        assert!(bits(&[1, 2]).is_none() && bits(&[]).is_none());
    }
}
